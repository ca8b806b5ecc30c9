//! The extents of expressions, found before their elements are defined.

use super::engine::{Engine, Frame, LIMIT, Lowered};
use super::ir::{Node, NodeKind, Reference};
use super::locate::shape;
use super::names::Builtin;

impl<'a> Engine<'a> {
    /// The extents of an expression, if they can be found; empty for a scalar.
    pub fn shape_of(&mut self, node: &'a Node, frame: &Frame) -> Option<Vec<usize>> {
        match &node.kind {
            NodeKind::Number(_) | NodeKind::Counter(_) => Some(Vec::new()),
            NodeKind::Reference(reference) => {
                if self.direct(reference, frame).is_some() {
                    return Some(Vec::new());
                }
                self.arrays[reference.array].extent.as_ref()?;
                match &reference.indices {
                    None => self.shape_of_argument(node, frame).ok(),
                    Some(indices) => {
                        let extent = self.arrays[reference.array].extent.clone()?;
                        let mut shape = Vec::new();
                        for (index, n) in indices.iter().zip(extent) {
                            let n = match index {
                                None => n,
                                Some(index) => self.count_of(index, frame)?,
                            };
                            shape.extend((n != 1).then_some(n));
                        }
                        Some(shape)
                    }
                }
            }
            NodeKind::Call { function, arguments } => match function {
                Builtin::Elementwise(_) | Builtin::NormalProbability | Builtin::Log10 => {
                    self.common_shape(arguments.iter(), frame)
                }
                Builtin::Rank if arguments.len() == 2 => Some(Vec::new()),
                Builtin::Inverse | Builtin::Cholesky => self.shape_of(&arguments[0], frame),
                // A vector, even if the argument is a matrix.
                Builtin::Sort | Builtin::Rank | Builtin::Order => self.shape_of(&arguments[0], frame).map(|shape| {
                    let count = shape.iter().product();
                    if count == 1 { Vec::new() } else { vec![count] }
                }),
                Builtin::Transpose => self.shape_of(&arguments[0], frame).map(|shape| match shape[..] {
                    [n] => vec![1, n],
                    _ => shape.into_iter().rev().collect(),
                }),
                Builtin::Combine => {
                    let mut total = 0;
                    for argument in arguments {
                        total += self.shape_of(argument, frame)?.iter().product::<usize>();
                    }
                    Some(if total == 1 { Vec::new() } else { vec![total] })
                }
                Builtin::Repeat => {
                    let count: usize = self.shape_of(&arguments[0], frame)?.iter().product();
                    self.unknown_in(&arguments[1]).is_none().then_some(())?;
                    let times = self.eval(&arguments[1], frame).ok()?;
                    let times: Option<Vec<f64>> = times.elements().iter().map(|e| self.builder.value(*e)).collect();
                    let total = match times?[..] {
                        [n] => n * count as f64,
                        ref each => each.iter().sum(),
                    };
                    (0.0..=LIMIT as f64).contains(&total).then(|| vec![total as usize])
                }
                Builtin::Dimension => self.shape_of(&arguments[0], frame).map(|shape| vec![shape.len().max(1)]),
                _ => Some(Vec::new()),
            },
            NodeKind::Sum(nodes) | NodeKind::Product(nodes) => self.common_shape(nodes.iter().map(|(_, n)| n), frame),
            NodeKind::Logic { operands, .. } => self.common_shape(operands.iter(), frame),
            NodeKind::MatrixProduct(factors) => {
                let mut shape = self.shape_of(&factors[0], frame)?;
                for factor in &factors[1..] {
                    let next = self.shape_of(factor, frame)?;
                    let rows = if shape.len() == 2 { shape[0] } else { 1 };
                    let columns = if next.len() == 2 { next[1] } else { 1 };
                    shape = [rows, columns].into_iter().filter(|&n| n != 1).collect();
                }
                Some(shape)
            }
            NodeKind::Range { .. } => {
                let n = self.count_of(node, frame)?;
                Some(if n == 1 { Vec::new() } else { vec![n] })
            }
        }
    }

    /// The extents of a left side, without those of a single element.
    pub fn target_shape(&mut self, target: &'a Reference, frame: &Frame) -> Lowered<Vec<usize>> {
        if self.direct(target, frame).is_some() {
            return Ok(Vec::new());
        }
        Ok(shape(&self.locate(target, frame)?))
    }

    fn common_shape(&mut self, nodes: impl Iterator<Item = &'a Node>, frame: &Frame) -> Option<Vec<usize>> {
        let mut common = Vec::new();
        for node in nodes {
            let shape = self.shape_of(node, frame)?;
            if common.is_empty() {
                common = shape;
            }
        }
        Some(common)
    }

    /// How many elements an index selects.
    fn count_of(&mut self, index: &'a Node, frame: &Frame) -> Option<usize> {
        if let NodeKind::Range { from, to } = &index.kind {
            let (from, to) = (self.integer(from, frame)?, self.integer(to, frame)?);
            return usize::try_from(to.checked_sub(from)?.checked_add(1)?.max(0)).ok();
        }
        self.shape_of(index, frame).map(|shape| shape.iter().product())
    }

    /// The extents of the argument of `length` or `dim`.
    pub fn shape_of_argument(&mut self, node: &'a Node, frame: &Frame) -> Lowered<Vec<usize>> {
        let NodeKind::Reference(reference) = &node.kind else { return Ok(Vec::new()) };
        if reference.indices.is_none()
            && let Some(extent) = &self.arrays[reference.array].extent
        {
            return Ok(if extent.iter().product::<usize>() == 1 { Vec::new() } else { extent.clone() });
        }
        let axes = self.locate(reference, frame)?;
        Ok(shape(&axes))
    }
}

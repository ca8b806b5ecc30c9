//! How large arrays are: by declaration, by data, by the largest index on a left side, or by what a whole array is defined as.

use super::array::Origin;
use super::engine::{Engine, Frame, LIMIT, Lowered};
use super::ir::{Kind, Node, NodeKind, Reference};
use super::locate::shape;
use super::names::Builtin;
use crate::diagnostic::Diagnostic;

impl<'a> Engine<'a> {
    /// Scalars that are numbers whatever the rest of the model, such as `N <- 5`: loops may run to them.
    pub fn find_early_constants(&mut self) {
        self.quiet = true;
        let candidates: Vec<usize> = (0..self.block.relations.len())
            .filter(|&number| {
                let relation = self.relation(number);
                let plain = relation.counters.is_empty() && relation.target.indices.is_none();
                plain
                    && matches!(relation.kind, Kind::Value { link: None, .. })
                    && self.arrays[relation.target.array].extent.is_none()
            })
            .collect();
        loop {
            let mut progress = false;
            for &number in &candidates {
                let relation = self.relation(number);
                let (array, frame) = (relation.target.array, Frame { relation: Some(number), counters: Vec::new() });
                let Kind::Value { value, .. } = &relation.kind else { continue };
                if self.arrays[array].early.is_some() || self.unknown_in(value).is_some() {
                    continue;
                }
                if let Ok(value) = self.eval(value, &frame)
                    && let [e] = value.elements()
                    && let Some(x) = self.builder.value(*e)
                {
                    self.arrays[array].early = Some(x);
                    progress = true;
                }
            }
            if !progress {
                break;
            }
        }
        self.quiet = false;
    }

    /// The first variable in an expression whose value is not known before the model is built.
    pub fn unknown_in(&self, node: &'a Node) -> Option<&'a Reference> {
        let all = |mut nodes: &mut dyn Iterator<Item = &'a Node>| {
            Iterator::find_map(&mut nodes, |node| self.unknown_in(node))
        };
        match &node.kind {
            NodeKind::Number(_) | NodeKind::Counter(_) => None,
            NodeKind::Reference(reference) => {
                let array = &self.arrays[reference.array];
                if array.data.is_none() && array.early.is_none() {
                    return Some(reference);
                }
                all(&mut reference.indices.iter().flatten().flatten())
            }
            // Of these only the extents are asked.
            NodeKind::Call { function: Builtin::Length | Builtin::Dimension, arguments } => match &arguments[0].kind {
                NodeKind::Reference(inner) if self.arrays[inner.array].extent.is_none() => Some(inner),
                NodeKind::Reference(inner) => all(&mut inner.indices.iter().flatten().flatten()),
                _ => None,
            },
            NodeKind::Call { arguments: nodes, .. }
            | NodeKind::Logic { operands: nodes, .. }
            | NodeKind::MatrixProduct(nodes) => all(&mut nodes.iter()),
            NodeKind::Sum(nodes) | NodeKind::Product(nodes) => all(&mut nodes.iter().map(|(_, node)| node)),
            NodeKind::Range { from, to } => all(&mut [from.as_ref(), to.as_ref()].into_iter()),
        }
    }

    /// The extents of every array that is only defined on left sides.
    pub fn find_extents(&mut self) -> Lowered<()> {
        let mut largest: Vec<Option<Vec<usize>>> = vec![None; self.arrays.len()];
        self.walk(&mut |engine, number, frame| {
            let target = &engine.relation(number).target;
            if engine.arrays[target.array].extent.is_some() {
                return Ok(());
            }
            let Some(indices) = &target.indices else { return Ok(()) };
            let extent = largest[target.array].get_or_insert_with(|| vec![0; indices.len()]);
            if extent.len() != indices.len() {
                let name = engine.arrays[target.array].name;
                let message = format!("`{name}` has {} indices here and {} elsewhere", indices.len(), extent.len());
                let diagnostic = Diagnostic::error(message, target.span).label("here");
                return Err(engine.fail("rank", frame, diagnostic.hint("an array has one number of indices")));
            }
            for (d, index) in indices.iter().enumerate() {
                let Some(index) = index else {
                    let name = engine.arrays[target.array].name;
                    let diagnostic =
                        Diagnostic::error(format!("how far `{name}` extends cannot be known"), target.span)
                            .label("an empty index on the left")
                            .hint(format!(
                                "write the range out, such as `1:K`, or declare `var {name}[…]` before the model"
                            ));
                    return Err(engine.fail("size", frame, diagnostic));
                };
                let last = engine.largest_index(index, frame)?;
                // A bad index is reported where the definitions are recorded.
                extent[d] = extent[d].max(usize::try_from(last).unwrap_or(0));
            }
            Ok(())
        })?;
        for (array, extent) in largest.into_iter().enumerate() {
            if let Some(extent) = extent {
                self.set_extent(array, extent, Origin::LeftSides)?;
            }
        }
        self.find_whole_extents()
    }

    fn largest_index(&mut self, index: &'a Node, frame: &Frame) -> Lowered<i64> {
        if let Some(i) = self.integer(index, frame) {
            return Ok(i);
        }
        if let NodeKind::Range { from, to } = &index.kind
            && let (Some(from), Some(to)) = (self.integer(from, frame), self.integer(to, frame))
        {
            return Ok(if to < from { 0 } else { to });
        }
        self.must_be_known(index, "an index on the left", frame)?;
        let value = self.eval(index, frame)?;
        let numbers = value.elements().iter().map(|e| self.builder.value(*e).unwrap_or(0.0));
        Ok(numbers.fold(0.0, f64::max).min(1e15) as i64)
    }

    /// Reports an expression that is not computable from the data.
    pub fn must_be_known(&mut self, node: &'a Node, what: &str, frame: &Frame) -> Lowered<()> {
        let Some(culprit) = self.unknown_in(node) else { return Ok(()) };
        let name = self.arrays[culprit.array].name;
        let drawn =
            self.block.relations.iter().any(|r| r.target.array == culprit.array && matches!(r.kind, Kind::Law { .. }));
        let (message, label, hint) = if drawn {
            (
                format!("{what} cannot be random"),
                format!("`{name}` has a distribution"),
                "on a left side and in the range of a loop, everything must be known from the data".to_string(),
            )
        } else {
            (
                format!("{what} must be computable from the data"),
                format!("`{name}` is calculated in the model"),
                format!("put `{name}` into the data, or its definition into a block `data {{ … }}` before the model"),
            )
        };
        let diagnostic = Diagnostic::error(message, culprit.span).label(label).hint(hint);
        Err(self.fail("unknown", frame, diagnostic))
    }

    pub fn set_extent(&mut self, array: usize, extent: Vec<usize>, origin: Origin) -> Lowered<()> {
        let count = extent.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if count.is_none_or(|count| count > LIMIT) {
            let name = self.arrays[array].name;
            let message = format!("`{name}` would have the extents {extent:?}: too many elements");
            let span = self.block.relations.iter().find(|r| r.target.array == array).map(|r| r.target.span);
            let diagnostic = Diagnostic::new(crate::Severity::Error, message, span).label("here");
            return Err(self.fail("large", &Frame::default(), diagnostic));
        }
        self.arrays[array].extent = Some(extent);
        self.arrays[array].origin = origin;
        Ok(())
    }

    /// Arrays that are defined as a whole, without brackets: as large as what they are defined as.
    fn find_whole_extents(&mut self) -> Lowered<()> {
        self.quiet = true;
        let mut open: Vec<usize> = (0..self.block.relations.len())
            .filter(|&number| self.arrays[self.relation(number).target.array].extent.is_none())
            .collect();
        loop {
            let before = open.len();
            let mut still = Vec::new();
            for number in open {
                let relation = self.relation(number);
                let frame = Frame { relation: Some(number), counters: vec![0; relation.counters.len()] };
                let found = match &relation.kind {
                    Kind::Value { value, .. } => self.shape_of(value, &frame),
                    Kind::Law { family, parameters, .. } if family.is_vector() => self.shape_of(&parameters[0], &frame),
                    Kind::Law { .. } => Some(Vec::new()),
                };
                match found {
                    Some(shape) if self.arrays[relation.target.array].extent.is_none() => {
                        let extent = if shape.is_empty() { vec![1] } else { shape };
                        self.set_extent(relation.target.array, extent, Origin::LeftSides)?;
                    }
                    Some(_) => {}
                    None => still.push(number),
                }
            }
            open = still;
            if open.len() == before || open.is_empty() {
                break;
            }
        }
        self.quiet = false;
        // What cannot be known is taken for a number; if it is none, its relation will say so.
        for number in open {
            self.set_extent(self.relation(number).target.array, vec![1], Origin::LeftSides)?;
        }
        Ok(())
    }

    /// The extents of an expression, as far as they are plain; empty for a single number.
    fn shape_of(&mut self, node: &'a Node, frame: &Frame) -> Option<Vec<usize>> {
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
                Builtin::Elementwise(_) | Builtin::NormalProbability => self.common_shape(arguments.iter(), frame),
                Builtin::Sort | Builtin::Rank | Builtin::Order | Builtin::Inverse => {
                    self.shape_of(&arguments[0], frame)
                }
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

    /// How many elements an index means.
    fn count_of(&mut self, index: &'a Node, frame: &Frame) -> Option<usize> {
        if let NodeKind::Range { from, to } = &index.kind {
            let (from, to) = (self.integer(from, frame)?, self.integer(to, frame)?);
            return usize::try_from(to.checked_sub(from)?.checked_add(1)?.max(0)).ok();
        }
        self.shape_of(index, frame).map(|shape| shape.iter().product())
    }

    /// The extents of the variable that `length` or `dim` is asked of.
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

//! The extents of arrays: from the declaration, the data, the largest index on a left side, or the value of the whole array.

use super::array::Origin;
use super::engine::{Engine, Frame, LIMIT, Lowered};
use super::ir::{Kind, Node, NodeKind, Reference};
use super::names::Builtin;
use crate::diagnostic::Diagnostic;

impl<'a> Engine<'a> {
    /// Scalars that do not depend on the rest of the model, such as `N <- 5`: loops may run to them.
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

    /// The first variable in an expression that is not known before the model is built.
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
            // These need only the extents.
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

    /// Finds the extents of every array that is only defined on left sides.
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
                return Err(engine.fail(
                    "rank",
                    frame,
                    diagnostic.hint("an array always has the same number of indices"),
                ));
            }
            for (d, index) in indices.iter().enumerate() {
                let Some(index) = index else {
                    let name = engine.arrays[target.array].name;
                    let diagnostic =
                        Diagnostic::error(format!("the extents of `{name}` cannot be determined"), target.span)
                            .label("an empty index on the left")
                            .hint(format!(
                                "write the range out, such as `1:K`, or declare `var {name}[…]` before the model"
                            ));
                    return Err(engine.fail("size", frame, diagnostic));
                };
                let last = engine.largest_index(index, frame)?;
                // An invalid index is reported when the definitions are recorded.
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
        let drawn = self
            .block
            .relations
            .iter()
            .any(|r| r.target.array == culprit.array && matches!(r.kind, Kind::Distribution { .. }));
        let (message, label, hint) = if drawn {
            (
                format!("{what} cannot be random"),
                format!("`{name}` has a distribution"),
                "indices on the left side and ranges of loops must be known from the data".to_string(),
            )
        } else {
            (
                format!("{what} must be computable from the data"),
                format!("`{name}` is calculated in the model"),
                format!("put `{name}` in the data, or its definition in a block `data {{ … }}` before the model"),
            )
        };
        let diagnostic = Diagnostic::error(message, culprit.span).label(label).hint(hint);
        Err(self.fail("unknown", frame, diagnostic))
    }

    pub fn set_extent(&mut self, array: usize, extent: Vec<usize>, origin: Origin) -> Lowered<()> {
        let count = extent.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if count.is_none_or(|count| count > LIMIT) {
            let name = self.arrays[array].name;
            let message = format!("`{name}` would have extents {extent:?}: too many elements");
            let span = self.block.relations.iter().find(|r| r.target.array == array).map(|r| r.target.span);
            let diagnostic = Diagnostic::new(crate::Severity::Error, message, span).label("here");
            return Err(self.fail("large", &Frame::default(), diagnostic));
        }
        self.arrays[array].extent = Some(extent);
        self.arrays[array].origin = origin;
        Ok(())
    }

    /// Arrays that are defined as a whole, without brackets, have the extents of their value.
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
                    Kind::Distribution { family, parameters, .. } if family.is_vector() => {
                        self.shape_of(&parameters[0], &frame)
                    }
                    Kind::Distribution { .. } => Some(Vec::new()),
                };
                match found {
                    Some(shape) if self.arrays[relation.target.array].extent.is_none() => {
                        let extent = if shape.is_empty() { vec![1] } else { shape };
                        self.quiet = false;
                        self.set_extent(relation.target.array, extent, Origin::LeftSides)?;
                        self.quiet = true;
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
        // If the extents cannot be determined, assume a scalar; otherwise the relation reports an error.
        for number in open {
            self.set_extent(self.relation(number).target.array, vec![1], Origin::LeftSides)?;
        }
        Ok(())
    }
}

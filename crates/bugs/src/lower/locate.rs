//! From a reference with its indices to the elements that it selects.

use super::engine::{Engine, Failed, Frame, LIMIT, Lowered};
use super::ir::{Node, NodeKind, Reference};
use crate::diagnostic::Diagnostic;
use hyperprior_graph::Expr;

/// What an index selects along its dimension, from 0.
#[derive(Debug)]
pub(super) enum Axis {
    One(usize),
    Span(usize, usize),
    Many(Vec<usize>),
    /// The index is random: any element of the dimension, counted from 1.
    Random(Expr),
}

impl Axis {
    /// How many elements of the dimension may be selected.
    fn len(&self, extent: usize) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Span(_, n) => *n,
            Self::Many(indices) => indices.len(),
            Self::Random(_) => extent,
        }
    }

    fn at(&self, k: usize) -> usize {
        match self {
            Self::One(i) => *i,
            Self::Span(start, _) => start + k,
            Self::Many(indices) => indices[k],
            Self::Random(_) => k,
        }
    }

    pub fn is_random(&self) -> bool {
        matches!(self, Self::Random(_))
    }
}

/// Flat positions of the selected elements, row-major; a random axis selects its whole dimension.
pub(super) fn flats(axes: &[Axis], extent: &[usize]) -> Vec<usize> {
    let mut flats = vec![0];
    for (axis, &n) in axes.iter().zip(extent) {
        let count = axis.len(n);
        flats = flats.iter().flat_map(|&base| (0..count).map(move |k| base * n + axis.at(k))).collect();
    }
    flats
}

/// The extents of a selection, without those of length 1.
pub(super) fn shape(axes: &[Axis]) -> Vec<usize> {
    axes.iter().filter(|axis| !axis.is_random()).map(|axis| axis.len(1)).filter(|&n| n != 1).collect()
}

impl<'a> Engine<'a> {
    /// The value of an integer index, if counters and data alone determine it.
    pub fn integer(&self, node: &Node, frame: &Frame) -> Option<i64> {
        match &node.kind {
            NodeKind::Number(x) => (x.fract() == 0.0 && x.abs() < 1e15).then_some(*x as i64),
            NodeKind::Counter(depth) => frame.counters.get(*depth).copied(),
            NodeKind::Sum(terms) => terms.iter().try_fold(0_i64, |sum, (minus, term)| {
                let term = self.integer(term, frame)?;
                if *minus { sum.checked_sub(term) } else { sum.checked_add(term) }
            }),
            NodeKind::Reference(reference) => {
                let array = &self.arrays[reference.array];
                let value = match array.early {
                    Some(value) => value,
                    // An element with a relation must wait for it, even if its value is in the data.
                    None if !self.unrolling && !array.definitions.is_empty() => return None,
                    None => {
                        let flat = self.direct(reference, frame)?;
                        array.mark(flat);
                        array.datum(flat)?
                    }
                };
                (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64)
            }
            _ => None,
        }
    }

    /// The flat position of a single element, if counters and data alone determine it.
    pub fn direct(&self, reference: &Reference, frame: &Frame) -> Option<usize> {
        let extent = self.arrays[reference.array].extent.as_deref()?;
        let Some(indices) = &reference.indices else {
            return (extent.iter().product::<usize>() == 1).then_some(0);
        };
        if indices.len() != extent.len() {
            return None;
        }
        let mut flat = 0;
        for (index, &n) in indices.iter().zip(extent) {
            let i = usize::try_from(self.integer(index.as_ref()?, frame)?).ok()?;
            if !(1..=n).contains(&i) {
                return None;
            }
            flat = flat * n + i - 1;
        }
        Some(flat)
    }

    /// What every index of a reference selects.
    pub fn locate(&mut self, reference: &'a Reference, frame: &Frame) -> Lowered<Vec<Axis>> {
        let array = &self.arrays[reference.array];
        let name = array.name;
        let Some(extent) = array.extent.clone() else {
            let diagnostic = Diagnostic::error(format!("the size of `{name}` is not known here"), reference.span)
                .hint(format!("declare it before the model: `var {name}[…]`"));
            return Err(self.fail("size", frame, diagnostic));
        };
        let Some(indices) = &reference.indices else {
            return Ok(extent.iter().map(|&n| if n == 1 { Axis::One(0) } else { Axis::Span(0, n) }).collect());
        };
        if indices.len() != extent.len() {
            let plural = |n: usize| if n == 1 { "1 index".to_string() } else { format!("{n} indices") };
            let diagnostic = Diagnostic::error(
                format!(
                    "`{name}` has {}, but {} given",
                    plural(extent.len()),
                    match indices.len() {
                        1 => "1 is".to_string(),
                        n => format!("{n} are"),
                    }
                ),
                reference.span,
            )
            .label("here")
            .hint(format!("`{name}` has extents {} {}", array.extent_text(), array.origin_text()));
            return Err(self.fail("rank", frame, diagnostic));
        }
        let mut axes = Vec::with_capacity(indices.len());
        for (d, index) in indices.iter().enumerate() {
            axes.push(match index {
                None => Axis::Span(0, extent[d]),
                Some(node) => self.axis(node, extent[d], reference, frame)?,
            });
        }
        let count = axes.iter().zip(&extent).try_fold(1_usize, |n, (axis, &e)| n.checked_mul(axis.len(e)));
        if count.is_none_or(|count| count > LIMIT) {
            let diagnostic = Diagnostic::error(format!("this part of `{name}` has too many elements"), reference.span);
            return Err(self.fail("large", frame, diagnostic));
        }
        Ok(axes)
    }

    fn axis(&mut self, node: &'a Node, extent: usize, reference: &Reference, frame: &Frame) -> Lowered<Axis> {
        if let Some(i) = self.integer(node, frame) {
            return self.within(i, extent, node, reference, frame).map(Axis::One);
        }
        if let NodeKind::Range { from, to } = &node.kind
            && let (Some(from), Some(to)) = (self.integer(from, frame), self.integer(to, frame))
        {
            if to < from {
                return Ok(Axis::Span(0, 0));
            }
            let first = self.within(from, extent, node, reference, frame)?;
            let last = self.within(to, extent, node, reference, frame)?;
            return Ok(Axis::Span(first, last - first + 1));
        }
        let value = self.eval(node, frame)?;
        let elements = value.elements();
        if let [index] = elements
            && self.builder.value(*index).is_none()
        {
            return Ok(Axis::Random(*index));
        }
        let mut indices = Vec::with_capacity(elements.len());
        for index in elements {
            let Some(x) = self.builder.value(*index) else {
                let diagnostic = Diagnostic::error("a vector of indices cannot be random", node.span)
                    .label("depends on something random")
                    .hint("index with one random number at a time, in a loop");
                return Err(self.fail("random vector", frame, diagnostic));
            };
            if !(x.fract() == 0.0 && x.abs() < 1e15) {
                let diagnostic = Diagnostic::error(format!("{x} is not an index"), node.span)
                    .label("an index must be a whole number")
                    .hint("use `round` or `trunc`");
                return Err(self.fail("whole", frame, diagnostic));
            }
            indices.push(self.within(x as i64, extent, node, reference, frame)?);
        }
        Ok(match indices[..] {
            [one] => Axis::One(one),
            _ => Axis::Many(indices),
        })
    }

    /// The index from 0, if it is in range.
    fn within(&mut self, i: i64, extent: usize, node: &Node, reference: &Reference, frame: &Frame) -> Lowered<usize> {
        if let Ok(index) = usize::try_from(i)
            && (1..=extent).contains(&index)
        {
            return Ok(index - 1);
        }
        let array = &self.arrays[reference.array];
        let (name, extents, origin) = (array.name, array.extent_text(), array.origin_text());
        let (message, hint) = if i < 1 {
            let hint = "change the loop or the index; to index by a 0/1 variable, add 1".to_string();
            (format!("index {i} of `{name}`: indices count from 1"), hint)
        } else {
            let hint = format!("`{name}` has extents {extents} {origin}");
            (format!("index {i} of `{name}` is beyond its extent of {extent}"), hint)
        };
        let diagnostic = Diagnostic::error(message, node.span).label(format!("the index is {i}")).hint(hint);
        Err::<usize, Failed>(self.fail("range", frame, diagnostic))
    }
}

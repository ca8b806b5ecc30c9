//! The arrays of a program during lowering: extents, data, and the definition of each element.

use crate::data::Array;
use hyperprior_graph::Expr;
use std::cell::Cell;

/// No relation defines the element.
pub(super) const UNDEFINED: u32 = u32::MAX;

/// Where the extents of an array come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Declared,
    Data,
    LeftSides,
}

#[derive(Debug)]
pub(super) struct ArrayState<'a> {
    pub name: &'a str,
    /// None until it is known.
    pub extent: Option<Vec<usize>>,
    pub origin: Origin,
    /// The data, row-major, NaN if missing.
    pub data: Option<&'a [f64]>,
    /// The file of the data, if known.
    pub source: Option<&'a str>,
    /// The instance that defines each element; empty if the array is on no left side.
    pub definitions: Vec<u32>,
    /// The expression of each element that has been defined so far.
    pub values: Vec<Option<Expr>>,
    /// The value of a scalar that does not depend on the rest of the model; known before loops are unrolled.
    pub early: Option<f64>,
    /// Which elements of the data something is calculated from.
    pub used: Vec<Cell<bool>>,
    /// Whether its name is written without brackets.
    pub bare: bool,
}

impl<'a> ArrayState<'a> {
    pub fn new(name: &'a str, data: Option<&'a Array>, bare: bool) -> Self {
        let extent = data.map(|array| if array.shape.is_empty() { vec![1] } else { array.shape.clone() });
        Self {
            name,
            extent,
            origin: Origin::Data,
            data: data.map(|array| array.values.as_slice()),
            source: None,
            definitions: Vec::new(),
            values: Vec::new(),
            early: None,
            used: data.map_or(Vec::new(), |array| vec![Cell::new(false); array.values.len()]),
            bare,
        }
    }

    /// The number of elements; 0 if the extents are not known.
    pub fn len(&self) -> usize {
        self.extent.as_ref().map_or(0, |extent| extent.iter().product())
    }

    /// Allocates the definitions.
    pub fn make_definable(&mut self) {
        if self.definitions.is_empty() {
            self.definitions = vec![UNDEFINED; self.len()];
            self.values = vec![None; self.len()];
        }
    }

    pub fn definition(&self, flat: usize) -> Option<u32> {
        self.definitions.get(flat).copied().filter(|&d| d != UNDEFINED)
    }

    /// The datum of an element, if it is not missing.
    pub fn datum(&self, flat: usize) -> Option<f64> {
        self.data.map(|data| data[flat]).filter(|x| !x.is_nan())
    }

    /// Notes that something is calculated from an element.
    pub fn mark(&self, flat: usize) {
        if let Some(used) = self.used.get(flat) {
            used.set(true);
        }
    }

    /// The name of an element: `x`, `x[3]`, `x[2,1]`.
    pub fn element_name(&self, flat: usize) -> String {
        let extent = self.extent.as_deref().unwrap_or(&[]);
        if self.bare && self.len() == 1 {
            return self.name.to_string();
        }
        let mut indices = vec![0; extent.len()];
        let mut rest = flat;
        for (index, n) in indices.iter_mut().zip(extent).rev() {
            *index = rest % n + 1;
            rest /= n;
        }
        let mut name = String::with_capacity(self.name.len() + 8);
        name.push_str(self.name);
        for (d, index) in indices.iter().enumerate() {
            name.push(if d == 0 { '[' } else { ',' });
            name.push_str(&index.to_string());
        }
        name.push(']');
        name
    }

    /// Its extents as text: `[3, 2]`.
    pub fn extent_text(&self) -> String {
        format!("{:?}", self.extent.as_deref().unwrap_or(&[]))
    }

    /// The origin of the extents, for messages.
    pub fn origin_text(&self) -> &'static str {
        match self.origin {
            Origin::Declared => "from its declaration",
            Origin::Data => "in the data",
            Origin::LeftSides => "from the largest index on a left side",
        }
    }
}

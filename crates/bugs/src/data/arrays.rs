//! Named arrays of numbers.

use super::error::DataError;
use std::collections::BTreeMap;

/// An array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its extents; none for a scalar.
    pub shape: Vec<usize>,
    /// Its values, with the last index running fastest; NaN if missing.
    pub values: Vec<f64>,
}

impl Array {
    /// A single number.
    pub fn scalar(value: f64) -> Self {
        Self { shape: Vec::new(), values: vec![value] }
    }

    /// A vector.
    pub fn vector(values: Vec<f64>) -> Self {
        Self { shape: vec![values.len()], values }
    }
}

/// The data of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// The arrays by name.
    pub arrays: BTreeMap<String, Array>,
    /// Notes of the reader for the user, such as how it coded a column of text.
    pub notes: Vec<String>,
    /// The file that each array was read from, if known, for messages.
    pub sources: BTreeMap<String, String>,
}

impl Data {
    /// Adds an array, and returns the data.
    ///
    /// ```
    /// use hyperprior_bugs::{Array, Data};
    ///
    /// let data = Data::default().with("N", Array::scalar(2.0)).with("y", Array::vector(vec![0.5, f64::NAN]));
    /// assert_eq!(data.arrays.len(), 2);
    /// ```
    pub fn with(mut self, name: &str, array: Array) -> Self {
        self.arrays.insert(name.to_string(), array);
        self
    }

    /// Sets the file that the arrays were read from, and returns the data.
    pub fn read_from(mut self, file: &str) -> Self {
        self.sources = self.arrays.keys().map(|name| (name.clone(), file.to_owned())).collect();
        self
    }

    /// Adds the arrays and notes of other data.
    ///
    /// # Errors
    /// [`DataError::Twice`] if both have an array of the same name.
    pub fn merge(&mut self, other: Self) -> Result<(), DataError> {
        if let Some(name) = other.arrays.keys().find(|name| self.arrays.contains_key(*name)) {
            return Err(DataError::Twice { name: name.clone() });
        }
        self.arrays.extend(other.arrays);
        self.notes.extend(other.notes);
        self.sources.extend(other.sources);
        Ok(())
    }
}

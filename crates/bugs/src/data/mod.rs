//! Data: named arrays of numbers, read from JSON, from an R dump or from CSV.

mod csv;
mod error;
mod json;
mod rdump;
mod rvalue;

pub use error::DataError;
use std::collections::BTreeMap;
use std::path::Path;

/// An array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its extents; none for a scalar.
    pub shape: Vec<usize>,
    /// Its values, the last index running fastest; NaN where the value is missing.
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
    /// What a reader did that its user should know, such as how it coded a column of text.
    pub notes: Vec<String>,
    /// The file that each array was read from, where that is known; for messages.
    pub sources: BTreeMap<String, String>,
}

impl Data {
    /// Adds an array, and hands the data back.
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

    /// Says which file the arrays were read from, and hands the data back.
    pub fn read_from(mut self, file: &str) -> Self {
        self.sources = self.arrays.keys().map(|name| (name.clone(), file.to_owned())).collect();
        self
    }

    /// Adds the arrays of other data, and what their reader noted.
    ///
    /// # Errors
    /// [`DataError::Twice`] for an array that both have.
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

/// How a data file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object: `{"N": 2, "y": [0.5, null]}`; nested arrays are row-major, and `null` is a missing value.
    Json,
    /// An R dump (`N <- 2`, `y <- c(0.5, NA)`, `structure(…)` column-major), or an OpenBUGS `list(…)` (row-major).
    RDump,
    /// A table with a header: each column becomes a vector.
    Csv,
}

impl Format {
    /// The format that a file's extension speaks of.
    ///
    /// # Errors
    /// The extension is none that is known.
    pub fn of_path(path: &Path) -> Result<Self, DataError> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        match extension.as_str() {
            "json" => Ok(Self::Json),
            "r" | "rdump" | "dump" | "txt" | "dat" => Ok(Self::RDump),
            "csv" => Ok(Self::Csv),
            _ => Err(DataError::UnknownFormat { extension }),
        }
    }
}

/// Reads data from text.
///
/// ```
/// use hyperprior_bugs::data::{Format, read};
///
/// let data = read("x <- structure(c(1, 2, 3, 4, 5, 6), .Dim = c(2, 3))", Format::RDump).unwrap();
/// assert_eq!(data.arrays["x"].values, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
/// ```
///
/// # Errors
/// The text is not in that format; the error has the line and the column.
pub fn read(text: &str, format: Format) -> Result<Data, DataError> {
    // A byte order mark is no part of any of the formats, yet some editors write one.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Json => json::read(text),
        Format::RDump => rdump::read(text),
        Format::Csv => csv::read(text),
    }
}

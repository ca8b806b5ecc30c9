//! Data: named arrays of numbers, read from JSON, from an R dump or from CSV.

mod arrays;
mod csv;
mod error;
mod json;
mod rdump;
mod rvalue;

pub use arrays::{Array, Data};
pub use error::DataError;
use std::path::Path;

/// The format of a data file.
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
    /// The format that a file's extension stands for.
    ///
    /// # Errors
    /// [`DataError::UnknownFormat`] for any other extension.
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
/// [`DataError`] if the text is not in that format, with the line and the column.
pub fn read(text: &str, format: Format) -> Result<Data, DataError> {
    // Some editors write a byte order mark, which is not part of any of these formats.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Json => json::read(text),
        Format::RDump => rdump::read(text),
        Format::Csv => csv::read(text),
    }
}

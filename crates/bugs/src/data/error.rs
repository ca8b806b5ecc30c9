//! Errors of data files.

use thiserror::Error;

/// An error in a data file: where it is, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The extension of the file does not determine its format.
    #[error(
        "cannot tell the format of a data file from its extension `{extension}`; use .json, .R or .csv, or specify the format"
    )]
    UnknownFormat {
        /// The extension.
        extension: String,
    },
    /// The text is not in its format.
    #[error("line {line}, column {column}: {message}; {remedy}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// Two files have an array of the same name.
    #[error("`{name}` is in an earlier data file too; leave it out of one of them")]
    Twice {
        /// The array.
        name: String,
    },
    /// A value is not an array of numbers.
    #[error("`{name}`{place}: {message}; {remedy}")]
    Value {
        /// The variable's name.
        name: String,
        /// The element, as `[2][1]`; empty for the whole.
        place: String,
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
}

impl DataError {
    /// An error at a byte of the text.
    pub(super) fn at(text: &str, byte: usize, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &text[..byte];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self::Syntax { line, column, message: message.into(), remedy: remedy.into() }
    }

    pub(super) fn value(name: &str, place: String, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Value { name: name.to_string(), place, message: message.into(), remedy: remedy.into() }
    }
}

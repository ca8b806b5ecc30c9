//! Files with a name on each line: vocabularies, and the names of documents.

use super::lines::Lines;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Names, and the file they come from.
pub(super) struct List {
    pub path: PathBuf,
    pub names: Vec<String>,
}

impl List {
    /// Reads a name from each line, without empty lines at the end.
    pub fn read(mut lines: Lines) -> Result<Self> {
        let mut names = Vec::new();
        while lines.advance()? {
            names.push(lines.text()?.trim().to_string());
        }
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        Ok(Self { path: lines.path().to_path_buf(), names })
    }

    /// Reads a vocabulary of distinct, non-empty terms.
    pub fn vocabulary(lines: Lines) -> Result<Self> {
        let list = Self::read(lines)?;
        let path = || list.path.clone();
        let mut first = HashMap::with_capacity(list.names.len());
        for (i, term) in list.names.iter().enumerate() {
            if term.is_empty() {
                let (message, remedy) = ("an empty line".into(), "put one term on each line".into());
                return Err(Error::Malformed { path: path(), line: i + 1, column: 1, message, remedy });
            }
            if let Some(first) = first.insert(term.as_str(), i) {
                let term = term.clone();
                return Err(Error::RepeatedTerm { path: path(), line: i + 1, first: first + 1, term });
            }
        }
        if list.names.is_empty() {
            let message = "the vocabulary has no terms".into();
            return Err(Error::Empty { path: path(), message, remedy: "put one term on each line".into() });
        }
        Ok(list)
    }

    pub fn open_vocabulary(path: &Path) -> Result<Self> {
        Self::vocabulary(Lines::open(path)?)
    }
}

//! Reads the files of a run for a report. Missing files are skipped.

mod csv;

pub use csv::{number, rows};

use crate::error::CliError;
use crate::run_dir::read_draws;
use hyperprior::Batch;
use hyperprior::posterior::{Column, Draws};
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A run's folder and its `summary.json`.
pub struct Run<'a> {
    /// The folder.
    pub folder: PathBuf,
    /// `summary.json`.
    pub summary: Value,
    /// The draws, if they are in memory; otherwise they are read.
    pub draws: Option<&'a Draws>,
}

impl<'a> Run<'a> {
    /// Reads the summary in the folder.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join("summary.json");
        let text = std::fs::read_to_string(&path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
        let summary = serde_json::from_str(&text)
            .map_err(|error| CliError::NotReported { path, reason: format!("it is not JSON: {error}") })?;
        Ok(Self { folder: folder.to_owned(), summary, draws: None })
    }

    /// The error for a file that cannot be used.
    pub fn refused(&self, name: &str, reason: impl Into<String>) -> CliError {
        CliError::NotReported { path: self.folder.join(name), reason: reason.into() }
    }

    /// A file as text, if it exists.
    pub fn text(&self, name: &str) -> Result<Option<String>, CliError> {
        let path = self.folder.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(CliError::Read { path, reason }),
        }
    }

    /// `trace.csv`: the counter and the value at each.
    pub fn trace(&self) -> Result<Vec<(f64, f64)>, CliError> {
        let text = self.text("trace.csv")?.unwrap_or_default();
        let points = rows(&text).skip(1).filter_map(|row| match row.as_slice() {
            [at, value] => Some((number(at), number(value))),
            _ => None,
        });
        Ok(points.filter(|(at, value)| at.is_finite() && value.is_finite()).collect())
    }

    /// The draws, unweighted: from `draws.parquet`, or from `draws.csv` if there is only that.
    pub fn draws(&self) -> Result<Option<Cow<'a, Draws>>, CliError> {
        let path = self.folder.join("draws.parquet");
        let draws = if let Some(draws) = self.draws {
            Cow::Borrowed(draws)
        } else if path.exists() {
            Cow::Owned(read_draws(&path).map_err(|reason| self.refused("draws.parquet", reason))?)
        } else {
            match self.text("draws.csv")? {
                Some(text) => Cow::Owned(from_csv(&text).map_err(|reason| self.refused("draws.csv", reason))?),
                None => return Ok(None),
            }
        };
        Ok(Some(if draws.log_weights().is_some() { Cow::Owned(draws.resampled()) } else { draws }))
    }
}

/// Reads draws as written by [`crate::run_dir`]: a column of integers without a decimal point is discrete.
fn from_csv(text: &str) -> Result<Draws, String> {
    const LOG_WEIGHT: &str = ".log_weight";
    let mut rows = rows(text);
    let names = rows.next().unwrap_or_default();
    let rows: Vec<Vec<String>> = rows.collect();
    if let Some(line) = rows.iter().position(|row| row.len() != names.len()) {
        return Err(format!("line {} has {} fields, not {}", line + 2, rows[line].len(), names.len()));
    }
    let (mut columns, mut values, mut log_weights) = (Vec::new(), Vec::new(), None);
    for (c, name) in names.iter().enumerate() {
        let own = rows.iter().map(|row| number(&row[c]));
        if name == LOG_WEIGHT {
            log_weights = Some(own.collect());
            continue;
        }
        let is_whole = |field: &str| field.parse::<i64>().is_ok();
        let is_discrete = rows.iter().all(|row| is_whole(&row[c]));
        columns.push(if is_discrete { Column::discrete(name) } else { Column::continuous(name) });
        values.extend(own);
    }
    let draws = Draws::new(columns, Batch::from_columns(values, rows.len())).map_err(|e| e.to_string())?;
    match log_weights {
        Some(log_weights) => draws.weighted(log_weights).map_err(|e| e.to_string()),
        None => Ok(draws),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior::posterior::Kind;

    #[test]
    fn draws_have_their_kinds_and_weights() {
        let draws = from_csv("\"a[1,2]\",z,.log_weight\n0.5,1,-1.0\n2.0,3,0.0\n").expect("draws");
        assert_eq!(draws.names(), ["a[1,2]", "z"]);
        assert_eq!(draws.columns()[0].kind, Kind::Continuous);
        assert_eq!(draws.columns()[1].kind, Kind::Discrete);
        assert_eq!((draws.column(0), draws.column(1)), (&[0.5, 2.0][..], &[1.0, 3.0][..]));
        assert_eq!(draws.log_weights(), Some(&[-1.0, 0.0][..]));
        assert!(from_csv("a,b\n1\n").expect_err("a short line").contains("line 2"));
    }
}

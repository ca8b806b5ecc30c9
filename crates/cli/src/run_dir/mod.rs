//! A run directory: draws, summary, trace, report, configuration and checkpoint. Each file is written atomically.

mod coda;
mod columns;
mod csv;
mod parquet;
pub mod pending;

#[cfg(test)]
mod tests;

pub use columns::Columns;
pub use csv::quoted;
pub use parquet::read as read_draws;
pub use pending::WriteError;

use crate::error::CliError;
use hyperprior::posterior::Draws;
use pending::{Pending, create_folder, sweep};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file from which an interrupted run resumes.
pub const CHECKPOINT: &str = "checkpoint";
/// The default number of seconds between checkpoints: at most this much work is lost when a run is killed.
pub const SAVE_EVERY: f64 = 20.0;
/// The file with the trained topic model, for new documents.
pub const MODEL: &str = "model";

/// Reads a run's `config.toml`; `kind` names the expected kind of run in messages.
pub fn read_config<T: DeserializeOwned>(folder: &Path, kind: &str) -> Result<T, CliError> {
    let path = folder.join("config.toml");
    let text = std::fs::read_to_string(&path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
    toml::from_str(&text).map_err(|error| {
        let message = error.message();
        CliError::Usage(format!("{}: this is not the configuration of {kind}: {message}", path.display()))
    })
}

/// The folder of a run's files. Every method replaces its file and returns its path.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Creates the folder if necessary, and removes temporary files of killed runs from it.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, WriteError> {
        let path = path.into();
        create_folder(&path)?;
        sweep(&path);
        Ok(Self { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `draws.csv`: a column per scalar, a row per draw; log weights, if any, are the last column, `.log_weight`.
    pub fn draws_csv(&self, draws: &Draws) -> Result<PathBuf, WriteError> {
        self.write("draws.csv", |file| csv::draws(file, draws))
    }

    /// `draws.parquet`: the same, with discrete columns as integers.
    pub fn draws_parquet(&self, draws: &Draws) -> Result<PathBuf, WriteError> {
        self.write("draws.parquet", |file| parquet::draws(file, draws))
    }

    /// `log_likelihood.parquet`: a column per observation, a row per draw.
    pub fn log_likelihood(&self, log_likelihood: &Draws) -> Result<PathBuf, WriteError> {
        self.write("log_likelihood.parquet", |file| parquet::draws(file, log_likelihood))
    }

    /// `CODAindex.txt` and `CODAchain1.txt`, as in JAGS. Weighted draws are resampled, since CODA has no weights.
    pub fn coda(&self, draws: &Draws) -> Result<[PathBuf; 2], WriteError> {
        let resampled = draws.log_weights().map(|_| draws.resampled());
        let draws = resampled.as_ref().unwrap_or(draws);
        let index = self.pending("CODAindex.txt", |file| coda::index(file, draws))?;
        let chain = self.pending("CODAchain1.txt", |file| coda::chain(file, draws))?;
        Ok([index.publish()?, chain.publish()?])
    }

    /// A table as comma-separated values.
    pub fn columns_csv(&self, name: &str, table: &Columns) -> Result<PathBuf, WriteError> {
        self.write(name, |file| columns::csv(file, table))
    }

    /// A table as Parquet.
    pub fn columns_parquet(&self, name: &str, table: &Columns) -> Result<PathBuf, WriteError> {
        self.write(name, |file| columns::parquet(file, table))
    }

    /// `trace.csv`: the objective over the course of the fit, with these headings for the counter and the value.
    pub fn trace(&self, names: [&str; 2], points: &[(u64, f64)]) -> Result<PathBuf, WriteError> {
        self.write("trace.csv", |file| csv::trace(file, names, points))
    }

    /// `summary.json`.
    pub fn summary(&self, summary: &impl Serialize) -> Result<PathBuf, WriteError> {
        self.json("summary.json", summary)
    }

    /// `report.html`.
    pub fn report(&self, html: &str) -> Result<PathBuf, WriteError> {
        self.write("report.html", |file| file.write_all(html.as_bytes()))
    }

    /// Any value as JSON.
    pub fn json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, WriteError> {
        let text = serde_json::to_string_pretty(value).map_err(|e| self.format_error(name, &e))?;
        self.write(name, |file| writeln!(file, "{text}"))
    }

    /// Any text.
    pub fn text(&self, name: &str, text: &str) -> Result<PathBuf, WriteError> {
        self.write(name, |file| file.write_all(text.as_bytes()))
    }

    /// `config.toml`: everything needed to repeat the run.
    pub fn config(&self, settings: &impl Serialize) -> Result<PathBuf, WriteError> {
        let text = toml::to_string_pretty(settings).map_err(|e| self.format_error("config.toml", &e))?;
        self.text("config.toml", &text)
    }

    /// `checkpoint`, filled by `save`.
    pub fn checkpoint(&self, save: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<PathBuf, WriteError> {
        self.write(CHECKPOINT, save)
    }

    /// `model`, filled by `save`.
    pub fn model(&self, save: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<PathBuf, WriteError> {
        self.write(MODEL, save)
    }

    /// Removes `checkpoint`, if there is one: at the start of a new run, or after a complete one.
    pub fn remove_checkpoint(&self) {
        let _ = std::fs::remove_file(self.path.join(CHECKPOINT));
    }

    fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<PathBuf, WriteError> {
        self.pending(name, fill)?.publish()
    }

    fn pending(
        &self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<Pending, WriteError> {
        Pending::new(self.path.join(name), fill)
    }

    fn format_error(&self, name: &str, reason: &dyn std::error::Error) -> WriteError {
        WriteError::Format { path: self.path.join(name), reason: reason.to_string() }
    }
}

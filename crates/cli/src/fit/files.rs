//! The files of a run.

use super::told::Told;
use crate::output::RunDirectory;
use crate::output::pending::WriteError;
use hyperprior::infer::InferSettings;
use serde::Serialize;
use std::path::PathBuf;

/// Everything that is needed to repeat a run.
#[derive(Debug, Serialize)]
pub struct Config {
    /// Of this program.
    pub version: &'static str,
    /// The model's file.
    pub model: PathBuf,
    /// Its data files.
    pub data: Vec<PathBuf>,
    /// The file of starting values.
    pub init: Option<PathBuf>,
    /// Whose reading of the language.
    pub dialect: String,
    /// What was to be summed out.
    pub eliminate: String,
    /// What was asked for; empty for everything.
    pub monitor: String,
    /// The settings of inference.
    pub infer: InferSettings,
}

/// Writes all of them.
pub fn write(run: &RunDirectory, config: &Config, told: &Told) -> Result<(), WriteError> {
    run.config(config)?;
    run.draws_csv(&told.posterior.draws)?;
    run.draws_parquet(&told.posterior.draws)?;
    run.coda(&told.posterior.draws)?;
    if let Some(loo) = &told.foretold.loo {
        run.log_likelihood(&loo.log_likelihood)?;
    }
    run.trace(["step", "elbo"], &told.watch.trace)?;
    // Last, since whoever waits for a run waits for this one.
    run.summary(&told.summary())?;
    Ok(())
}

//! The files of a run.

use crate::command::input::Input;
use crate::error::CliError;
use crate::html;
use crate::output::pending::WriteError;
use crate::output::{RunDirectory, read_config};
use hyperprior::infer::InferSettings;
use hyperprior_bugs::told::Told;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Steps between the points of a trace.
const EVERY: usize = 10;

/// Everything that is needed to repeat a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Of this program.
    pub version: String,
    /// What the model's file and those of its data and starting values had in them.
    pub fingerprint: String,
    /// What was asked for; empty for everything.
    pub monitor: String,
    /// Seconds between two states that are saved.
    pub save_every: f64,
    /// Whether data that the model gives are held beside the data.
    pub check_predictive: bool,
    /// Whether each observation is foretold from all others.
    pub loo: bool,
    /// Whether spreads are mended by linear response.
    pub linear_response: bool,
    /// The model and what it is given.
    pub input: Input,
    /// The settings of inference.
    pub infer: InferSettings,
}

impl Config {
    /// Of a run that was begun before.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        read_config(folder, "a fit")
    }
}

/// Writes all of them but the configuration, which is there from the beginning.
pub fn write(run: &RunDirectory, told: &Told) -> Result<(), WriteError> {
    run.draws_csv(&told.posterior.draws)?;
    run.draws_parquet(&told.posterior.draws)?;
    run.coda(&told.posterior.draws)?;
    if let Some(loo) = &told.foretold.loo {
        run.log_likelihood(&loo.log_likelihood)?;
    }
    let history = told.inferred().map_or(&[][..], |inferred| &inferred.fitted.history);
    let is_shown = |step: usize| step == 1 || step.is_multiple_of(EVERY);
    let points = history.iter().enumerate().map(|(i, elbo)| (i + 1, *elbo)).filter(|(step, _)| is_shown(*step));
    run.trace(["step", "elbo"], &points.map(|(step, elbo)| (step as u64, elbo)).collect::<Vec<_>>())?;
    let summary = told.summary();
    html::write(run, &summary, Some(&told.posterior.draws))?;
    // Last, since whoever waits for a run waits for this one.
    run.summary(&summary)?;
    Ok(())
}

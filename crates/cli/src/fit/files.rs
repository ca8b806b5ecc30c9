//! The files of a fit.

use crate::command::input::Input;
use crate::error::CliError;
use crate::render::html;
use crate::render::terminal::remedy;
use crate::run_dir::pending::WriteError;
use crate::run_dir::{RunDirectory, read_config};
use hyperprior::infer::InferSettings;
use hyperprior::report::FitReport;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Steps between the points of a trace.
const EVERY: usize = 10;

/// Everything needed to repeat a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The version of hyperprior.
    pub version: String,
    /// A checksum of the model, the data and the starting values.
    pub fingerprint: String,
    /// The monitored quantities; empty for all.
    pub monitor: String,
    /// Seconds between checkpoints.
    pub save_every: f64,
    /// Whether to run a posterior predictive check.
    #[serde(alias = "check_predictive")]
    pub ppc: bool,
    /// Whether to run leave-one-out cross-validation.
    pub loo: bool,
    /// Whether to correct standard deviations by linear response.
    pub linear_response: bool,
    /// The model and its data.
    pub input: Input,
    /// The settings of inference.
    pub infer: InferSettings,
}

impl Config {
    /// Reads the configuration of an earlier run.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        read_config(folder, "a fit")
    }
}

/// Writes all files except the configuration, which is written at the start.
pub fn write(run: &RunDirectory, report: &FitReport) -> Result<(), WriteError> {
    run.draws_csv(&report.posterior.draws)?;
    run.draws_parquet(&report.posterior.draws)?;
    run.coda(&report.posterior.draws)?;
    if let Some(loo) = &report.predictive.loo {
        run.log_likelihood(&loo.log_likelihood)?;
    }
    let history = report.inferred().map_or(&[][..], |inferred| &inferred.fitted.history);
    let is_shown = |step: usize| step == 1 || step.is_multiple_of(EVERY);
    let points = history.iter().enumerate().map(|(i, elbo)| (i + 1, *elbo)).filter(|(step, _)| is_shown(*step));
    run.trace(["step", "elbo"], &points.map(|(step, elbo)| (step as u64, elbo)).collect::<Vec<_>>())?;
    let summary = report.summary(&remedy);
    html::write(run, &summary, Some(&report.posterior.draws))?;
    // Last: its existence means that the run is complete.
    run.summary(&summary)?;
    Ok(())
}

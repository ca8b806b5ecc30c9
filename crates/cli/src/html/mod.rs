//! `report.html`: what is in a run directory as one page to look at, which needs nothing else.
//!
//! Everything that is told is in the files of the run, so that a report can be made anew from them. Templates are in `assets/`; all
//! text that is not ours goes through [`escape`].

mod escape;
mod fit;
mod page;
mod plot;
mod read;
mod repeat;
mod topics;
mod trace;

use crate::error::CliError;
use crate::output::{RunDirectory, WriteError};
use hyperprior::posterior::Draws;
use read::Run;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The report of a run, by the files in its folder; the pairs of another fit are put beside its own.
pub fn of_folder(folder: &Path, beside: Option<&Path>) -> Result<String, CliError> {
    let run = Run::read(folder)?;
    let beside = beside.map(Run::read).transpose()?;
    report(&run, beside.as_ref())
}

/// Writes `report.html` of a run that has all its files but `summary.json`, which comes last. Draws of a fit that are at hand need not be
/// read.
pub fn write(run: &RunDirectory, summary: &impl Serialize, draws: Option<&Draws>) -> Result<PathBuf, WriteError> {
    let unfit = |reason: String| WriteError::Format { path: run.path().join("report.html"), reason };
    let summary = serde_json::to_value(summary).map_err(|error| unfit(error.to_string()))?;
    let told = Run { folder: run.path().to_owned(), summary, draws };
    run.report(&report(&told, None).map_err(|error| unfit(error.to_string()))?)
}

fn report(run: &Run, beside: Option<&Run>) -> Result<String, CliError> {
    if run.summary.get("corpus").is_some() {
        return match beside {
            None => topics::report(run),
            Some(_) => Err(CliError::Usage("--beside: this is a run of topics, which has no pairs".to_owned())),
        };
    }
    if run.summary.get("method").is_none() {
        return Err(run.refused("summary.json", "this is not the summary of a fit or of topics"));
    }
    fit::report(run, beside)
}

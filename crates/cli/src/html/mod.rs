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
use page::Page;
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

/// One page for a fit and a training, after pictures that are SVG.
pub fn tour(pictures: &[String], fit: &Path, topics: &Path) -> Result<String, CliError> {
    let mut page = Page::new("A tour of hyperprior", "discrete posteriors · a model in BUGS · topics of a text");
    let intro = "<p>Where the true posterior is known, it is the first picture of each row: mean-field treats the variables as \
                 independent, the hierarchical model keeps their dependence.</p>";
    let pictures: String = pictures.iter().map(|svg| format!("<figure class=\"tour\">{svg}</figure>")).collect();
    page.section("discrete", "Counts and spins", format!("{intro}{pictures}"));
    let told = |text: &str| format!("<p>{text}</p>");
    page.section(
        "change-point",
        "A change point",
        told("The year <code>k</code> in which coal mining became safer, and the rates of disasters before and after it."),
    );
    fit::add(&mut page, &Run::read(fit)?)?;
    page.section("text", "A text", told("The King James Bible by chapter, in two layers of topics."));
    topics::add(&mut page, &Run::read(topics)?)?;
    Ok(page.html())
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

//! `report.html`: the report of a run as one self-contained page.
//!
//! Everything in it comes from the files of the run, so that a report can be rebuilt from them. Templates are in `assets/`; all
//! foreign text goes through [`escape`].

mod escape;
mod fit;
mod page;
mod plot;
mod read;
mod repeat;
mod topics;
mod trace;

use crate::error::CliError;
use crate::run_dir::{RunDirectory, WriteError};
use hyperprior::posterior::Draws;
use page::Page;
use read::Run;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The report of the run in `folder`; `reference` is the folder of another fit to compare pairs of parameters with.
pub fn of_folder(folder: &Path, reference: Option<&Path>) -> Result<String, CliError> {
    let run = Run::read(folder)?;
    let reference = reference.map(Run::read).transpose()?;
    report(&run, reference.as_ref())
}

/// Writes `report.html` of a run that has all its files except `summary.json`, which comes last. `draws` saves reading them.
pub fn write(run: &RunDirectory, summary: &impl Serialize, draws: Option<&Draws>) -> Result<PathBuf, WriteError> {
    let format_error = |reason: String| WriteError::Format { path: run.path().join("report.html"), reason };
    let summary = serde_json::to_value(summary).map_err(|error| format_error(error.to_string()))?;
    let of_run = Run { folder: run.path().to_owned(), summary, draws };
    run.report(&report(&of_run, None).map_err(|error| format_error(error.to_string()))?)
}

/// The page of the demo: SVG pictures, a fit and a topic model.
pub fn tour(pictures: &[String], fit: &Path, topics: &Path) -> Result<String, CliError> {
    let mut page = Page::new("A tour of hyperprior", "discrete posteriors · a BUGS model · topics of a text");
    let intro = "<p>The first picture of each row is the true posterior. Mean-field treats the variables as independent; the \
                 hierarchical model keeps their dependence.</p>";
    let pictures: String = pictures.iter().map(|svg| format!("<figure class=\"tour\">{svg}</figure>")).collect();
    page.section("discrete", "Counts and spins", format!("{intro}{pictures}"));
    let paragraph = |text: &str| format!("<p>{text}</p>");
    page.section(
        "change-point",
        "A change point",
        paragraph(
            "The year <code>k</code> in which coal mining became safer, and the rates of disasters before and after it.",
        ),
    );
    fit::add(&mut page, &Run::read(fit)?)?;
    page.section(
        "text",
        "Topics of a text",
        paragraph("The chapters of the King James Bible, with two layers of topics."),
    );
    topics::add(&mut page, &Run::read(topics)?)?;
    Ok(page.html())
}

fn report(run: &Run, reference: Option<&Run>) -> Result<String, CliError> {
    if run.summary.get("corpus").is_some() {
        return match reference {
            None => topics::report(run),
            Some(_) => {
                Err(CliError::Usage("--compare-with: this is a topics run; only fits can be compared".to_owned()))
            }
        };
    }
    if run.summary.get("method").is_none() {
        return Err(run.refused("summary.json", "it is not the summary of a fit or a topics run"));
    }
    fit::report(run, reference)
}

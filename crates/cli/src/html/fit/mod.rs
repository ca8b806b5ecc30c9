//! The report of a fit.

mod course;
mod density;
mod dependence;
mod foretold;
mod pairs;
mod panel;
mod parameters;
mod verdict;

use super::page::{Page, facts};
use super::read::{FitSummary, Run};
use super::repeat;
use crate::error::CliError;
use crate::topics::{duration, grouped};
use hyperprior::posterior::Draws;
use pairs::Beside;

/// The whole file, with the pairs of another run beside its own.
pub fn report(run: &Run, beside: Option<&Run>) -> Result<String, CliError> {
    let summary: FitSummary = read(run)?;
    let draws = run.draws()?;
    let beside = beside.map(other).transpose()?;
    let name = method(run, &summary);
    let mut page = Page::new(&summary.model, &subtitle(&summary, draws.as_ref().map_or(0, |draws| draws.len())));
    answers(&mut page, &summary, draws.as_deref(), &name, beside.as_ref())?;
    page.section("course", "How the fit went", course::section(&summary, &run.trace()?));
    page.section("checks", "Checks", foretold::section(&summary));
    page.section("plan", "The approximation", facts(&course::plan(&summary)));
    page.section("repeat", "How to repeat it", repeat::section(run)?);
    Ok(page.html())
}

/// Puts what a fit found into a page that has more than that.
pub fn add(page: &mut Page, run: &Run) -> Result<(), CliError> {
    let (summary, draws) = (read(run)?, run.draws()?);
    answers(page, &summary, draws.as_deref(), &method(run, &summary), None)
}

/// The verdict, the parameters and their dependence.
fn answers(
    page: &mut Page,
    summary: &FitSummary,
    draws: Option<&Draws>,
    name: &str,
    beside: Option<&Beside>,
) -> Result<(), CliError> {
    page.section("verdict", "", verdict::section(summary));
    parameters::add(page, summary, draws)?;
    if let Some(draws) = draws {
        page.section(
            "dependence",
            "What depends on what",
            pairs::section(draws, &summary.plan.latents(), name, beside)?,
        );
    }
    Ok(())
}

fn read(run: &Run) -> Result<FitSummary, CliError> {
    serde_json::from_value(run.summary.clone()).map_err(|error| run.refused("summary.json", error.to_string()))
}

fn other(run: &Run) -> Result<Beside, CliError> {
    let summary = read(run)?;
    let draws = run.draws()?.ok_or_else(|| run.refused("draws.parquet", "it is not there; fit again with --out"))?;
    Ok(Beside { name: method(run, &summary), draws: draws.into_owned() })
}

/// What a run is called beside another.
fn method(run: &Run, summary: &FitSummary) -> String {
    let folder = run.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    match folder {
        Some(folder) => format!("{} ({folder})", summary.method),
        None => summary.method.clone(),
    }
}

fn subtitle(summary: &FitSummary, draws: usize) -> String {
    let mut said = vec![summary.method.clone()];
    if draws > 0 {
        said.push(format!("{} draws", grouped(draws as u64)));
    }
    if summary.steps > 0 {
        said.push(format!("{} steps", grouped(summary.steps)));
    }
    if summary.wall_seconds.is_finite() {
        said.push(duration(summary.wall_seconds));
    }
    said.push(format!("seed {}", summary.seed));
    said.join(" · ")
}

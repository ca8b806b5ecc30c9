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
use pairs::Beside;

/// The whole file, with the pairs of another run beside its own.
pub fn report(run: &Run, beside: Option<&Run>) -> Result<String, CliError> {
    let summary: FitSummary = read(run)?;
    let draws = run.draws()?;
    let beside = beside.map(other).transpose()?;
    let name = method(run, &summary);
    let mut page = Page::new(&summary.model, &subtitle(&summary, draws.as_ref().map_or(0, |draws| draws.len())));
    page.section("verdict", "", verdict::section(&summary));
    parameters::add(&mut page, &summary, draws.as_deref())?;
    if let Some(draws) = &draws {
        page.section("dependence", "What depends on what", pairs::section(draws, &name, beside.as_ref())?);
    }
    page.section("course", "How the fit went", course::section(&summary, &run.trace()?));
    page.section("checks", "Checks", foretold::section(&summary));
    page.section("plan", "The approximation", facts(&course::plan(&summary)));
    page.section("repeat", "How to repeat it", repeat::section(run)?);
    Ok(page.html())
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

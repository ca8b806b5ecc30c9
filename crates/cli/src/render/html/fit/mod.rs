//! The report of a fit.

mod density;
mod dependence;
mod fit_history;
mod pairs;
mod panel;
mod parameters;
mod predictive;
mod verdict;

use super::page::{Page, facts};
use super::read::Run;
use super::repeat;
use crate::error::CliError;
use crate::topics::{duration, grouped};
use hyperprior::posterior::{Draws, Monitor};
use hyperprior::report::{FitSummary, Plan};
use pairs::Reference;

/// The whole file; pairs of parameters are compared with those of the reference run.
pub fn report(run: &Run, reference: Option<&Run>) -> Result<String, CliError> {
    let summary: FitSummary = read(run)?;
    let draws = run.draws()?;
    let reference = reference.map(read_reference).transpose()?;
    let name = method(run, &summary);
    let mut page = Page::new(&summary.model, &subtitle(&summary, draws.as_ref().map_or(0, |draws| draws.len())));
    results(&mut page, &summary, draws.as_deref(), &name, reference.as_ref())?;
    page.section("fit", "Fit", fit_history::section(&summary, &run.trace()?));
    page.section("checks", "Checks", predictive::section(&summary));
    page.section("plan", "Approximation", facts(&fit_history::plan(&summary)));
    page.section("repeat", "Reproduce", repeat::section(run)?);
    Ok(page.html())
}

/// Adds the results of a fit to a page.
pub fn add(page: &mut Page, run: &Run) -> Result<(), CliError> {
    let (summary, draws) = (read(run)?, run.draws()?);
    results(page, &summary, draws.as_deref(), &method(run, &summary), None)
}

/// The verdict, the parameters and their dependence.
fn results(
    page: &mut Page,
    summary: &FitSummary,
    draws: Option<&Draws>,
    name: &str,
    reference: Option<&Reference>,
) -> Result<(), CliError> {
    page.section("verdict", "", verdict::section(summary));
    parameters::add(page, summary, draws)?;
    if let Some(draws) = draws {
        let pairs = pairs::section(draws, &latents(&summary.plan), name, reference)?;
        page.section("dependence", "Dependence", pairs);
    }
    Ok(())
}

/// All latents: fitted, marginalised or drawn from their priors. Computed quantities are excluded.
fn latents(plan: &Plan) -> Vec<Monitor> {
    let named = plan.marginalised.iter().chain(&plan.prior_only).chain(plan.gradient.values().flatten());
    named.filter_map(|name| Monitor::parse(name).ok()).collect()
}

fn read(run: &Run) -> Result<FitSummary, CliError> {
    serde_json::from_value(run.summary.clone()).map_err(|error| run.refused("summary.json", error.to_string()))
}

fn read_reference(run: &Run) -> Result<Reference, CliError> {
    let summary = read(run)?;
    let draws = run.draws()?.ok_or_else(|| run.refused("draws.parquet", "it is missing; fit again with --out"))?;
    Ok(Reference { name: method(run, &summary), draws: draws.into_owned() })
}

/// The name of a run in a comparison.
fn method(run: &Run, summary: &FitSummary) -> String {
    let folder = run.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    match folder {
        Some(folder) => format!("{} ({folder})", summary.method),
        None => summary.method.clone(),
    }
}

fn subtitle(summary: &FitSummary, draws: usize) -> String {
    let mut parts = vec![summary.method.clone()];
    if draws > 0 {
        parts.push(format!("{} draws", grouped(draws as u64)));
    }
    if summary.steps > 0 {
        parts.push(format!("{} steps", grouped(summary.steps)));
    }
    if summary.wall_seconds.is_finite() {
        parts.push(duration(summary.wall_seconds));
    }
    parts.push(format!("seed {}", summary.seed));
    parts.join(" · ")
}

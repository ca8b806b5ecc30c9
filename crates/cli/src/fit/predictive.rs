//! Predictive checks as text: posterior predictive checks and leave-one-out cross-validation.

use super::report::lines;
use crate::render::terminal::{Digits, estimate, remedy, table};
use hyperprior::objective::Estimate;
use hyperprior::posterior::PpcArray;
use hyperprior::report::{LooReport, Predictive, TAIL_MIN};
use std::fmt::Write as _;

/// The requested checks; empty if there are none.
pub fn text(checks: &Predictive) -> String {
    let mut out = String::new();
    if let Some(arrays) = &checks.ppc {
        let _ = write!(out, "\nPosterior predictive check:\n\n{}", predictive(arrays));
    }
    if let Some(loo) = &checks.loo {
        let _ = write!(out, "\n{}", cross_validation(loo));
    }
    let warnings = checks.diagnostics();
    if !warnings.is_empty() {
        out.push('\n');
    }
    warnings.iter().for_each(|warning| out.push_str(&format!("Warning: {}.\n", warning.worded(&remedy))));
    out
}

fn predictive(arrays: &[PpcArray]) -> String {
    let rows: Vec<Vec<String>> = arrays
        .iter()
        .flat_map(|array| array.statistics.iter().map(move |s| (array, s)))
        .map(|(array, s)| {
            let digits = Digits::new(s.mean, (s.q95 - s.q05) / 3.0);
            let cells = [s.data, s.mean, s.q05, s.q95].map(|x| digits.show(x));
            [array.array.clone(), s.statistic.to_string()].into_iter().chain(cells).chain([tail(s.tail)]).collect()
        })
        .collect();
    table::render(&["name", "statistic", "data", "model", "5%", "95%", "tail"], &rows)
}

fn tail(p: f64) -> String {
    if p < TAIL_MIN { format!("{p:.4}") } else { format!("{p:.2}") }
}

fn cross_validation(report: &LooReport) -> String {
    let loo = &report.summary;
    let plural = if loo.units == 1 { "" } else { "s" };
    let what = if loo.grouped.is_empty() { "observation" } else { "unit" };
    let mut out = format!("Leave-one-out cross-validation (PSIS-LOO), {} {what}{plural}:\n\n", loo.units);
    let khat = match loo.khat_above {
        0 => format!("below its limit of {:.2} for all", loo.khat_limit),
        above => {
            let worst: Vec<String> = loo.worst.iter().map(|w| format!("{} ({:.2})", w.name, w.khat)).collect();
            let more = if above > worst.len() { ", …" } else { "" };
            format!("above its limit of {:.2} for {above}: {}{more}", loo.khat_limit, worst.join(", "))
        }
    };
    let mut rows = vec![("elpd_loo", estimate(report.elpd)), ("p_loo", format!("{:.2}", loo.p_loo)), ("k̂", khat)];
    match &loo.waic {
        Some(waic) => {
            let elpd = Estimate { value: waic.elpd_waic, standard_error: waic.elpd_waic_standard_error };
            rows.push(("elpd_waic", estimate(elpd)));
            rows.push(("p_waic", format!("{:.2}", waic.p_waic)));
        }
        None => {
            let reason = "none: observations share marginalised latents, and WAIC needs independent ones";
            rows.push(("elpd_waic", reason.to_owned()));
        }
    }
    if !loo.excluded.is_empty() {
        rows.push(("excluded", loo.excluded.join(", ")));
    }
    lines(&mut out, &rows);
    out
}

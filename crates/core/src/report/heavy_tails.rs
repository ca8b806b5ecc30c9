//! Quantities with tails so heavy that their standard deviations are uncertain.

use crate::diagnostics::psis::tail_shape;
use crate::diagnostics::{Diagnostic, Finding, Severity};
use crate::infer::Posterior;
use crate::posterior::Kind;
use rayon::prelude::*;
use std::collections::HashSet;

/// With a larger share of quantities with uncertain standard deviations, the spreads of a fit cannot be trusted. About half of these
/// are then wrong.
const HEAVY_MAX: f64 = 0.4;

/// The same for quantities that have no variance. A few of many are named, and the spreads of the others can be trusted.
const INFINITE_MAX: f64 = 0.1;

/// The largest Monte Carlo error of a standard deviation, as a share of it.
const SD_ERROR_MAX: f64 = 0.1;

/// Quantities whose standard deviations are uncertain. Either they may have no variance, since the shape of a tail is above 1/2 by more
/// than a standard error, or the Monte Carlo error of the standard deviation is large.
pub(super) fn heavy_tails(
    posterior: &Posterior,
    derived: &HashSet<String>,
    hypercube: &HashSet<String>,
) -> Option<Diagnostic> {
    let ess = posterior.effective_sample_size()?;
    let draws = &posterior.draws;
    // What is computed from the latents is named, but does not decide.
    let is_derived = |i: usize| derived.contains(&draws.columns()[i].name);
    let continuous: Vec<usize> =
        (0..draws.columns().len()).filter(|i| draws.columns()[*i].kind == Kind::Continuous).collect();
    let heavy: Vec<(usize, f64, f64)> = continuous
        .par_iter()
        .filter_map(|i| {
            let (shape, error) = tail_shape(draws.column(*i))?;
            let sd_error = sd_error(draws.column(*i), ess);
            let may_be_infinite = shape - error > 0.5;
            // A Latin hypercube knows the spreads of its own coordinates better than independent draws.
            if hypercube.contains(&draws.columns()[*i].name) {
                let is_uncertain = may_be_infinite && sd_error > SD_ERROR_MAX;
                let of_strata = sd_error_of_strata(draws.column(*i));
                let error = if is_uncertain { sd_error.max(of_strata) } else { of_strata };
                return (error > SD_ERROR_MAX).then_some((*i, shape, error));
            }
            (may_be_infinite || sd_error > SD_ERROR_MAX).then_some((*i, shape, sd_error))
        })
        .collect();
    let (worst, shape, sd_error) = heavy.iter().copied().reduce(|a, b| if b.2 > a.2 { b } else { a })?;
    let is_large = heavy.len() as f64 > HEAVY_MAX * continuous.len() as f64;
    // Variances that do not exist, and errors that show it: these standard deviations are wrong.
    let is_infinite = |found: &&(usize, f64, f64)| found.1 > 0.5 && found.2 > SD_ERROR_MAX && !is_derived(found.0);
    let infinite = heavy.iter().filter(is_infinite).count() as f64;
    let are_many = infinite > INFINITE_MAX * continuous.len() as f64;
    let severity = if is_large || are_many { Severity::MeansOnly } else { Severity::Note };
    let name = draws.columns()[worst].name.clone();
    let finding = Finding::HeavyTails { heavy: heavy.len(), of: continuous.len(), name, shape, sd_error };
    Some(Diagnostic::new(severity, finding, Vec::new()))
}

/// The same for the draws of a Latin hypercube. In each stratum a squared distance is uncertain by about the gap to the next one.
fn sd_error_of_strata(x: &[f64]) -> f64 {
    let (n, mean) = (x.len() as f64, x.iter().sum::<f64>() / x.len() as f64);
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut runs: Vec<(f64, f64)> = Vec::new();
    for squared in sorted.iter().map(|x| (x - mean).powi(2)) {
        match runs.last_mut().filter(|run| run.0 == squared) {
            Some(run) => run.1 += 1.0,
            None => runs.push((squared, 1.0)),
        }
    }
    let variance = runs.iter().map(|run| run.0 * run.1).sum::<f64>() / n;
    let gap = |pair: &[(f64, f64)]| (pair[0].1.max(pair[1].1) * (pair[1].0 - pair[0].0)).powi(2);
    let error = runs.windows(2).map(gap).sum::<f64>().sqrt() / n;
    if variance > 0.0 { 0.5 * error / variance } else { 0.0 }
}

/// The Monte Carlo error of a standard deviation as a share of it, from the kurtosis: √((κ − 1) / (4 ESS)).
fn sd_error(x: &[f64], ess: f64) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let moment = |power: i32| x.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / x.len() as f64;
    let variance = moment(2);
    if variance > 0.0 { ((moment(4) / (variance * variance) - 1.0).max(0.0) / (4.0 * ess)).sqrt() } else { 0.0 }
}

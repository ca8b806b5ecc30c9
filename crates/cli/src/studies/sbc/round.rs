//! One round of a calibration: a fit of simulated data, and the ranks of the true values.

use super::calibration::Calibration;
use crate::error::CliError;
use crate::fit::Watch;
use crate::progress::StopFlag;
use hyperprior::diagnostics::Verdict;
use hyperprior::diagnostics::calibration::rank;
use hyperprior::infer::Posterior;
use hyperprior_bugs::compile;
use hyperprior_bugs::simulate::Simulated;
use hyperprior_graph::fit::{FitError, Task};
use hyperprior_math::random::{Purpose, stream};

/// The outcome of a round.
pub enum Round {
    /// It was fitted.
    Ranked {
        /// The rank of each quantity.
        ranks: Vec<(String, usize)>,
        /// The verdict of the fit.
        verdict: Verdict,
    },
    /// The fit failed.
    Failed(String),
    /// A simulated value is not a finite number.
    Unsimulated,
    /// A bad option, which would fail in every round.
    Usage(CliError),
    /// It was stopped, or did not start.
    Stopped,
}

/// The seed of a round's fit. Streams are keyed by their seed, so it suffices that all seeds differ.
fn seed_of(seed: u64, k: usize) -> u64 {
    seed.wrapping_add((k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Fits the data of a round, and ranks the true values.
pub fn round(calibration: &Calibration, simulated: &Simulated, k: usize, stop: &StopFlag) -> Round {
    let Some(data) = simulated.data(k) else { return Round::Unsimulated };
    let compiled = match compile(calibration.source, &calibration.name, &data, calibration.options) {
        Ok(compiled) => compiled,
        Err(diagnostics) => {
            return Round::Failed(diagnostics.first().map_or_else(String::new, |d| d.message.clone()));
        }
    };
    let task = match Task::new(compiled.graph, &calibration.marginalise, &[]) {
        Ok(task) => task,
        Err(error) => return Round::Failed(error.to_string()),
    };
    let names: Vec<&str> = task.quantities().iter().map(|q| q.name.as_str()).collect();
    let mut is_wanted: Vec<bool> = task.quantities().iter().map(|q| q.is_latent).collect();
    for monitor in &calibration.monitors {
        match monitor.places(&names) {
            Ok(places) => places.into_iter().for_each(|place| is_wanted[place] = true),
            Err(error) => return Round::Usage(FitError::from(error).into()),
        }
    }
    let mut rng = stream(calibration.settings.seed, Purpose::Calibration.step(), k as u64, 0);
    let settings = calibration.settings(seed_of(calibration.settings.seed, k));
    let mut watch = Watch::new(true, stop);
    let posterior = match task.run(&settings, &mut watch) {
        Ok(posterior) => posterior,
        Err(error) => return Round::Failed(error.to_string()),
    };
    let report = task.report((String::new(), compiled.observed, Vec::new()), settings, &posterior, 0.0);
    if report.is_stopped() || stop.is_raised() {
        return Round::Stopped;
    }
    let verdict = report.verdict();
    let Posterior { draws, .. } = &posterior;
    let mut ranks = Vec::new();
    for (i, name) in names.iter().enumerate().filter(|(i, _)| is_wanted[*i]) {
        let thinned: Vec<f64> =
            (0..calibration.draws).map(|s| draws.column(i)[s * draws.len() / calibration.draws]).collect();
        let truth = simulated.truth(name, k).filter(|truth| !truth.is_nan());
        if let Some(truth) = truth
            && !thinned.iter().any(|x| x.is_nan())
        {
            ranks.push(((*name).to_owned(), rank(truth, &thinned, &mut rng)));
        }
    }
    Round::Ranked { ranks, verdict }
}

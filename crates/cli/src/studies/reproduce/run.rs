//! Runs the methods of a study and measures them.

use super::{Method, Target};
use crate::error::CliError;
use crate::parts::PriorChoice;
use crate::progress::{Bar, StopFlag};
use hyperprior::exact::{self, Marginal, Posterior};
use hyperprior::fit::fit;
use hyperprior::objective::BoundSettings;
use serde::Serialize;
use std::time::Instant;

/// One method on one target.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The target.
    pub target: String,
    /// The method.
    pub method: &'static str,
    /// Its recursive approximation.
    pub recursive: String,
    /// The prior's components.
    pub components: usize,
    /// KL(q ‖ p) by enumeration of z, in nats.
    pub kl: f64,
    /// The hierarchical ELBO.
    pub elbo: f64,
    /// Its standard error.
    pub elbo_standard_error: f64,
    /// The exact ELBO of q(z), by enumeration.
    pub elbo_exact: f64,
    /// The importance-weighted upper bound on the exact ELBO.
    pub elbo_upper: f64,
    /// Its standard error.
    pub elbo_upper_standard_error: f64,
    /// The time of the fit.
    pub wall_seconds: f64,
    /// Nodes of λ per component for the enumeration of q(z).
    pub nodes: usize,
    /// The share of q's probability on the grid that was enumerated.
    pub mass: f64,
}

/// A row with the data for its picture.
pub struct Outcome {
    /// The results.
    pub row: Row,
    /// The method.
    pub method: Method,
    /// q(z) over the grid.
    pub marginal: Marginal,
}

/// The largest count enumerated.
pub const LARGEST_COUNT: u32 = 127;
/// Draws per component for the bounds.
pub const BOUND_DRAWS: usize = 8192;
/// λ's per draw for the upper bound.
pub const BOUND_SAMPLES: usize = 16;

/// Runs every method on a target and passes each outcome to `each`.
pub fn run(
    target: Target,
    seed: u64,
    quiet: bool,
    stop: &StopFlag,
    mut each: impl FnMut(&Outcome) -> Result<(), CliError>,
) -> Result<(Posterior, Vec<Outcome>), CliError> {
    let model = target.model()?;
    let posterior = exact::posterior(&*model, LARGEST_COUNT)?;
    let mut outcomes = Vec::new();
    for method in target.methods() {
        let q = method.parts.build(&*model)?;
        let label = match method.parts.prior {
            PriorChoice::Delta => format!("{} · {}", target.name(), method.name()),
            _ => format!("{} · {} · {}", target.name(), method.name(), method.recursive_name()),
        };
        let mut bar = Bar::new(&label, quiet, stop);
        let began = Instant::now();
        let fitted = fit(&*model, &q, &method.settings(seed), &mut bar)?;
        let wall_seconds = began.elapsed().as_secs_f64();
        bar.finish();
        if fitted.stopped || stop.is_raised() {
            return Err(CliError::Stopped);
        }
        let settings = BoundSettings::default().draws(BOUND_DRAWS).samples(BOUND_SAMPLES).seed(seed);
        let bounds = fitted.bounds(&*model, &q, &settings)?;
        let marginal = exact::marginal(&q, &fitted.theta, &posterior, seed as u32);
        let upper = bounds.upper.unwrap_or(bounds.elbo);
        let row = Row {
            target: target.name(),
            method: method.name(),
            recursive: method.recursive_name(),
            components: method.components_len(),
            kl: marginal.kl,
            elbo: bounds.elbo.value,
            elbo_standard_error: bounds.elbo.standard_error,
            elbo_exact: marginal.elbo,
            elbo_upper: upper.value,
            elbo_upper_standard_error: upper.standard_error,
            wall_seconds,
            nodes: marginal.nodes,
            mass: marginal.mass,
        };
        let outcome = Outcome { row, method, marginal };
        each(&outcome)?;
        outcomes.push(outcome);
    }
    Ok((posterior, outcomes))
}

//! Fits each method to a target and measures it.

use super::annealed::{self, AnnealedRow};
use super::comparison::Comparison;
use super::method::{Method, Recipe};
use super::target::Kind;
use crate::error::CliError;
use crate::memory::Meter;
use crate::progress::{Bar, StopFlag};
use crate::studies::reproduce::{BOUND_DRAWS, BOUND_SAMPLES, LARGEST_COUNT};
use hyperprior::exact::{self, Marginal, Posterior};
use hyperprior::fit::{Quiet, fit};
use hyperprior::gradient::Plan;
use hyperprior::objective::{BoundSettings, Bounds};
use hyperprior::{Model, Variational};
use serde::Serialize;
use std::time::Instant;

/// One method's results; `None` if unknown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The method.
    pub method: String,
    /// Whether it applies to the target.
    pub applies: bool,
    /// Why not.
    pub reason: Option<String>,
    /// q(λ; θ).
    pub prior: Option<String>,
    /// r(λ | z; φ).
    pub recursive: Option<String>,
    /// The hierarchical ELBO.
    pub elbo: Option<f64>,
    /// Its standard error.
    pub elbo_standard_error: Option<f64>,
    /// The exact ELBO of q(z), by enumeration.
    pub elbo_exact: Option<f64>,
    /// The importance-weighted upper bound on the exact ELBO.
    pub elbo_upper: Option<f64>,
    /// Its standard error.
    pub elbo_upper_standard_error: Option<f64>,
    /// KL(q ‖ p) in nats: by enumeration, or from a bound that is exact.
    pub kl: Option<f64>,
    /// The time of the fit divided by its steps, including those of the short runs.
    pub seconds_per_step: Option<f64>,
    /// The peak memory of the fit.
    pub peak_bytes: Option<usize>,
    /// The length of θ and φ.
    pub parameters: Option<usize>,
    /// The gradient estimators, with the number of latents of each.
    pub gradient: Option<String>,
    /// Annealed bounds on log p(x), if they were asked for and apply.
    pub annealed: Option<Vec<AnnealedRow>>,
}

/// A row with its notes.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results.
    pub row: Row,
    /// If the evidence is known but q(z) was not integrated: bounds on the KL, up to their Monte Carlo errors.
    pub kl_bounds: Option<(f64, f64)>,
    /// The share of q's probability that was enumerated.
    pub mass: Option<f64>,
}

/// Runs every method and passes each outcome to `each`.
pub fn run(
    comparison: &Comparison,
    quiet: bool,
    stop: &StopFlag,
    mut each: impl FnMut(Outcome) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Comparison { target, seed, .. } = *comparison;
    let model = target.model(comparison.coupling)?;
    let posterior = match target.kind() {
        Kind::Continuous => None,
        Kind::Counts | Kind::Binary => Some(exact::posterior(&*model, LARGEST_COUNT)?),
    };
    for method in &comparison.methods {
        each(match method.recipe(target, seed) {
            Ok(recipe) => measure(comparison, *method, &recipe, &*model, posterior.as_ref(), quiet, stop)?,
            Err(reason) => {
                let row = Row { method: method.name(), reason: Some(reason), ..Row::default() };
                Outcome { row, kl_bounds: None, mass: None }
            }
        })?;
    }
    Ok(())
}

/// Fits one method and measures it.
fn measure(
    comparison: &Comparison,
    method: Method,
    recipe: &Recipe,
    model: &dyn Model,
    posterior: Option<&Posterior>,
    quiet: bool,
    stop: &StopFlag,
) -> Result<Outcome, CliError> {
    let q = recipe.parts.build(model)?;
    let mut bar = Bar::new(&format!("{} · {}", comparison.target.name(), method.name()), quiet, stop);
    let (meter, began) = (Meter::start(), Instant::now());
    let fitted = fit(model, &q, &recipe.settings, &mut bar)?;
    let (seconds, peak_bytes) = (began.elapsed().as_secs_f64(), meter.peak_bytes());
    bar.finish();
    if fitted.stopped || stop.is_raised() {
        return Err(CliError::Stopped);
    }
    let settings = BoundSettings::default().draws(BOUND_DRAWS).samples(BOUND_SAMPLES).seed(comparison.seed);
    let bounds = fitted.bounds(model, &q, &settings)?;
    let marginal = posterior.and_then(|posterior| marginal(comparison, &q, &fitted.theta, posterior));
    let upper = bounds.upper.unwrap_or(bounds.elbo);
    let annealed = match posterior {
        _ if comparison.annealed.is_empty() => None,
        Some(posterior) => Some(annealed::rows(comparison, model, (&q, &fitted), posterior)?),
        None => annealed::hamiltonian_rows(comparison, model, (&q, &fitted), &mut Quiet)?,
    };
    let row = Row {
        method: method.name(),
        applies: true,
        reason: None,
        prior: Some(q.prior().name()),
        recursive: Some(if needs_recursive(&q) { q.recursive().name() } else { "none".to_owned() }),
        elbo: Some(bounds.elbo.value),
        elbo_standard_error: Some(bounds.elbo.standard_error),
        elbo_exact: marginal.as_ref().map(|m| m.elbo),
        elbo_upper: Some(upper.value),
        elbo_upper_standard_error: Some(upper.standard_error),
        kl: match (&marginal, comparison.target.log_evidence()) {
            (Some(marginal), _) => Some(marginal.kl),
            (None, Some(log_evidence)) if !q.has_recursion() => Some(log_evidence - bounds.elbo.value),
            _ => None,
        },
        seconds_per_step: Some(seconds / bar.steps_taken().max(1) as f64),
        peak_bytes: Some(peak_bytes),
        parameters: Some(q.theta_len() + q.phi_len()),
        gradient: Some(describe(&fitted.plans)),
        annealed,
    };
    let kl_bounds = match (&marginal, posterior) {
        (None, Some(posterior)) => Some(bounds_on_kl(posterior, &bounds)),
        _ => None,
    };
    Ok(Outcome { row, kl_bounds, mass: marginal.map(|m| m.mass) })
}

/// Whether there is a λ for r to infer from z.
fn needs_recursive(q: &Variational) -> bool {
    q.has_recursion() && (q.prior().columns_len() > 0 || q.prior().components_len() > 1)
}

/// q(z) over the grid, unless that takes too long, which requires noise to integrate over.
fn marginal(comparison: &Comparison, q: &Variational, theta: &[f64], posterior: &Posterior) -> Option<Marginal> {
    let takes_long = q.prior().noise_len() > 0 && posterior.grid.len() > comparison.states_max;
    (!takes_long).then(|| exact::marginal(q, theta, posterior, comparison.seed as u32))
}

/// The evidence minus each of the importance-weighted bounds, the tightest bounds without the integral.
fn bounds_on_kl(posterior: &Posterior, bounds: &Bounds) -> (f64, f64) {
    let upper = bounds.upper.unwrap_or(bounds.elbo);
    (posterior.log_evidence - upper.value, posterior.log_evidence - bounds.importance_lower.value)
}

/// Each plan with the number of its latents.
fn describe(plans: &[Plan]) -> String {
    let mut counted: Vec<(Plan, usize)> = Vec::new();
    for plan in plans {
        match counted.iter_mut().find(|(counted, _)| counted == plan) {
            Some((_, len)) => *len += 1,
            None => counted.push((*plan, 1)),
        }
    }
    let texts: Vec<String> = counted.iter().map(|(plan, len)| format!("{plan} × {len}")).collect();
    texts.join(", ")
}

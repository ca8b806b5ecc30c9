//! Fits each method to a target and takes its figures.

use super::method::{Method, Recipe};
use super::target::{Kind, Target};
use crate::error::CliError;
use crate::memory::Meter;
use crate::progress::{Bar, StopFlag};
use crate::study::{BOUND_DRAWS, BOUND_SAMPLES, LARGEST_COUNT};
use hyperprior::bound::{BoundSettings, Bounds};
use hyperprior::exact::{self, Marginal, Posterior};
use hyperprior::fit::fit;
use hyperprior::gradient::Plan;
use hyperprior::{Model, Variational};
use serde::Serialize;
use std::time::Instant;

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The posterior.
    pub target: Target,
    /// J, where the target has one.
    pub coupling: Option<f64>,
    /// The methods, in the order of their rows.
    pub methods: Vec<Method>,
    /// The seed.
    pub seed: u64,
    /// Up to how many states q(z) is integrated over a continuous λ.
    pub states_max: usize,
}

/// One method's figures; what is not known is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The method.
    pub method: String,
    /// Whether it can be used here.
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
    /// KL(q ‖ p) in nats: by enumeration, or from a bound that nothing is lost in.
    pub kl: Option<f64>,
    /// The time of the fit over its steps, those of the starts among them.
    pub seconds_per_step: Option<f64>,
    /// The most memory that the fit had in use.
    pub peak_bytes: Option<usize>,
    /// The length of θ and φ.
    pub parameters: Option<usize>,
    /// What is done for the latents, with how many they are.
    pub gradient: Option<String>,
}

/// A row with what is said beside it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The figures.
    pub row: Row,
    /// Where the evidence is known but q(z) was not integrated: between which numbers the KL lies, but for the bounds' errors.
    pub kl_between: Option<(f64, f64)>,
    /// The share of q's probability that was enumerated.
    pub mass: Option<f64>,
}

/// Runs every method, `each` being shown the outcomes as they come.
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
            Ok(recipe) => take(comparison, *method, &recipe, &*model, posterior.as_ref(), quiet, stop)?,
            Err(reason) => {
                let row = Row { method: method.name(), reason: Some(reason), ..Row::default() };
                Outcome { row, kl_between: None, mass: None }
            }
        })?;
    }
    Ok(())
}

/// Fits one method and takes its figures.
fn take(
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
    let settings = BoundSettings { draws: BOUND_DRAWS, samples: BOUND_SAMPLES, seed: comparison.seed };
    let bounds = fitted.bounds(model, &q, &settings)?;
    let marginal = posterior.and_then(|posterior| marginal(comparison, &q, &fitted.theta, posterior));
    let upper = bounds.upper.unwrap_or(bounds.elbo);
    let row = Row {
        method: method.name(),
        applies: true,
        reason: None,
        prior: Some(q.prior().name()),
        recursive: Some(if is_guessed(&q) { q.recursive().name() } else { "none".to_owned() }),
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
    };
    let kl_between = match (&marginal, posterior) {
        (None, Some(posterior)) => Some(between(posterior, &bounds)),
        _ => None,
    };
    Ok(Outcome { row, kl_between, mass: marginal.map(|m| m.mass) })
}

/// Whether there is anything behind z that r has to guess.
fn is_guessed(q: &Variational) -> bool {
    q.has_recursion() && (q.prior().columns_len() > 0 || q.prior().components_len() > 1)
}

/// q(z) over the grid, where that does not take too long: without normals to integrate over it never does.
fn marginal(comparison: &Comparison, q: &Variational, theta: &[f64], posterior: &Posterior) -> Option<Marginal> {
    let takes_long = q.prior().noise_len() > 0 && posterior.grid.len() > comparison.states_max;
    (!takes_long).then(|| exact::marginal(q, theta, posterior, comparison.seed as u32))
}

/// The evidence less each of the importance-weighted bounds, the tightest pair there is without the integral.
fn between(posterior: &Posterior, bounds: &Bounds) -> (f64, f64) {
    let upper = bounds.upper.unwrap_or(bounds.elbo);
    (posterior.log_evidence - upper.value, posterior.log_evidence - bounds.importance_lower.value)
}

/// Each plan with the number of latents that it is for.
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

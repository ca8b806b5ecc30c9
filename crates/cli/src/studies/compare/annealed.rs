//! Annealed bounds on the evidence from a fitted approximation, with one number of temperatures after the other: with Gibbs scans for
//! discrete latents, with uncorrected Hamiltonian steps, trained together with the approximation, for continuous ones.

use super::comparison::Comparison;
use crate::error::CliError;
use hyperprior::exact::Posterior;
use hyperprior::fit::{FitSettings, Fitted, Observer, fit_annealing};
use hyperprior::gradient::GradientSettings;
use hyperprior::math::random::{Purpose, stream};
use hyperprior::objective::{AnnealedSettings, HamiltonianAnnealing, annealed, annealed_upper};
use hyperprior::{Batch, Error, Model, Session, Variational};
use serde::Serialize;

/// The draws of each bound, over all components of the prior.
const DRAWS: usize = 1024;

/// The same for Hamiltonian steps, which cost less.
const HAMILTONIAN_DRAWS: usize = 8192;
/// The training of Hamiltonian steps.
const STEPS: u64 = 2000;
const STEP_SIZE: f64 = 0.02;

/// Annealed bounds with K temperatures.
#[derive(Clone, Debug, Serialize)]
pub struct AnnealedRow {
    /// K.
    pub temperatures: usize,
    /// E[log w] from the approximation.
    pub lower: f64,
    /// Its standard error.
    pub lower_standard_error: f64,
    /// log p(x), if it is known.
    pub log_evidence: Option<f64>,
    /// E[log w] from exact draws of the posterior, if there are any and it is finite.
    pub upper: Option<f64>,
    /// Its standard error.
    pub upper_standard_error: Option<f64>,
}

/// The bounds for every K of the comparison.
pub fn rows(
    comparison: &Comparison,
    model: &dyn Model,
    (q, fitted): (&Variational, &Fitted),
    posterior: &Posterior,
) -> Result<Vec<AnnealedRow>, CliError> {
    let at = (&*fitted.theta, &*fitted.phi);
    let z = posterior.sample(DRAWS, &mut stream(comparison.seed, Purpose::Draws.step(), 0, 0));
    let of = |temperatures: usize| {
        let draws = DRAWS.div_ceil(q.prior().components_len());
        let settings = AnnealedSettings::default().temperatures(temperatures).draws(draws).seed(comparison.seed);
        let lower = annealed(model, q, at, &settings)?.lower;
        let upper = annealed_upper(model, q, at, &z, &settings)?;
        Ok(AnnealedRow {
            temperatures,
            lower: lower.value,
            lower_standard_error: lower.standard_error,
            log_evidence: Some(posterior.log_evidence),
            upper: Some(upper.value),
            upper_standard_error: Some(upper.standard_error),
        })
    };
    comparison.annealed.iter().map(|temperatures| of(*temperatures)).collect()
}

/// The bounds of uncorrected Hamiltonian annealing for every K of the comparison, each trained from the same fit; `None` if the approximation
/// is not one Gaussian.
pub fn hamiltonian_rows(
    comparison: &Comparison,
    model: &dyn Model,
    (q, fitted): (&Variational, &Fitted),
    observer: &mut dyn Observer,
) -> Result<Option<Vec<AnnealedRow>>, CliError> {
    let seed = comparison.seed;
    let draws = |rng: &mut _| comparison.target.exact_draws(HAMILTONIAN_DRAWS, rng);
    let z: Option<Batch> = draws(&mut stream(seed, Purpose::Draws.step(), 0, 0));
    let mut rows = Vec::new();
    for temperatures in &comparison.annealed {
        let annealing = HamiltonianAnnealing::new(*temperatures)?;
        if annealing.check(model, q, &fitted.theta, &annealing.initial()).is_err() {
            return Ok(None);
        }
        let gradient = GradientSettings::default().draws(64);
        let settings = FitSettings::default().seed(seed).steps(STEPS).step_size(STEP_SIZE).gradient(gradient);
        let trained = fit_annealing(model, q, &annealing, &fitted.theta, &settings, Session::new(observer))?;
        let (at, of_bound) = ((&*trained.theta, &*trained.psi), AnnealedSettings::default().draws(HAMILTONIAN_DRAWS));
        let lower = annealing.lower(model, q, at, &of_bound.seed(seed))?.lower;
        let upper = match z.as_ref().map(|z| annealing.upper(model, q, at, z, seed)) {
            // Steps may not be stable from every draw of the posterior; then the upper bound is infinite.
            None | Some(Err(Error::NotFinite { .. })) => None,
            Some(upper) => Some(upper?).filter(|upper| upper.standard_error.is_finite()),
        };
        rows.push(AnnealedRow {
            temperatures: *temperatures,
            lower: lower.value,
            lower_standard_error: lower.standard_error,
            log_evidence: comparison.target.log_evidence(),
            upper: upper.map(|upper| upper.value),
            upper_standard_error: upper.map(|upper| upper.standard_error),
        });
    }
    Ok(Some(rows))
}

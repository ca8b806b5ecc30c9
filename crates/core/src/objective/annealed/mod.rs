//! Annealed bounds on log p(x): an MCMC chain between q and p as auxiliary variables of the hierarchy (Salimans, Kingma and Welling,
//! 2015), in the form of annealed importance sampling (Neal, 2001).
//!
//! The path goes from q(z, λ) = q(z | λ) q(λ) to p(x, z) r(λ | z), which normalises to p(x) because r does:
//!
//! π_t(z, λ) ∝ q(z, λ)^(1−t) (p(x, z) r(λ | z))^t,   t_k = k/K,   log w = (1/K) Σ_k f(z_k, λ_k),
//!
//! where f = log p + log r − log q is the hierarchical integrand, the first draw is from q, and each further one is from a kernel that leaves
//! π_t of the temperature before it invariant. Then E[w] = p(x), and E[log w] ≤ log p(x) rises from the hierarchical ELBO at K = 1 towards
//! log p(x). From draws of the posterior with λ ~ r(λ | z), the reversed kernels in the reverse order give E[1/w] = 1/p(x), and so
//! E[log w] ≥ log p(x): an upper bound if these draws are exact.

mod chains;
mod tempered;

use super::strata::{Estimate, Strata};
use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::{Model, describe};
use crate::variational::Variational;
use chains::Chains;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How annealed bounds are estimated. See [`annealed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AnnealedSettings {
    /// K; with 1 the lower bound is the hierarchical ELBO.
    pub temperatures: usize,
    /// Draws of (z, λ) per component of the prior.
    pub draws: usize,
    /// The seed.
    pub seed: u64,
}

crate::setters!(AnnealedSettings {
    temperatures: usize, draws: usize, seed: u64;
});

impl Default for AnnealedSettings {
    fn default() -> Self {
        Self { temperatures: 8, draws: 512, seed: 0 }
    }
}

/// The annealed lower bound of a fitted q. See [`annealed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Annealed {
    /// K.
    pub temperatures: usize,
    /// E\[log w\], a lower bound on log p(x). If some draws are impossible, it is E\[log w | A\] + ln P(A) over the others, A.
    pub lower: Estimate,
    /// The log of the evidence estimate p(x) = E\[w\], with the standard error of the log. Impossible draws count as zeros.
    pub log_evidence: Estimate,
    /// The number of draws.
    pub drawn: usize,
    /// The number of draws whose log weight was not finite.
    pub dropped: usize,
}

/// Draws per block.
const BLOCK: usize = 64;
/// The number under which the streams of the posterior's draws are filed, after those of the prior's components.
const FROM_POSTERIOR: u64 = u64::MAX;

/// Estimates the annealed lower bound on log p(x), in parallel; the numbers do not depend on the number of threads.
///
/// Each of the K − 1 moves draws λ from r and accepts it with the ratio of the density of π_t, and then draws every latent given λ and
/// the others. A move costs about as much as one evaluation of r and the conditionals of every latent.
///
/// ```
/// use hyperprior::objective::{AnnealedSettings, annealed, annealed_upper};
/// use hyperprior::{Model, Variational, exact, likelihood::MeanField, targets::Ising};
/// let model = Ising::ring(4, 1.0)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let settings = AnnealedSettings::default().temperatures(16);
/// let lower = annealed(&model, &q, (&[0.0; 4], &[]), &settings)?.lower;
///
/// let posterior = exact::posterior(&model, 0)?;
/// let z = posterior.sample(512, &mut hyperprior::math::random::stream(1, 0, 0, 0));
/// let upper = annealed_upper(&model, &q, (&[0.0; 4], &[]), &z, &settings)?;
/// assert!(lower.value < posterior.log_evidence && posterior.log_evidence < upper.value);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model, [`Error::BadSetting`] for no draws or no temperatures, [`Error::Mismatch`] if a latent is continuous, and
/// [`Error::NotFinite`] if all draws are impossible.
pub fn annealed(
    model: &dyn Model,
    q: &Variational,
    at: (&[f64], &[f64]),
    settings: &AnnealedSettings,
) -> Result<Annealed> {
    check(model, q, at, settings)?;
    let AnnealedSettings { temperatures, draws, seed } = *settings;
    let components_len = q.prior().components_len();
    let blocks: Vec<(usize, usize)> =
        (0..components_len).flat_map(|k| (0..draws).step_by(BLOCK).map(move |first| (k, first))).collect();
    let run = |&(k, first): &(usize, usize)| -> Result<(usize, Vec<f64>, Option<String>)> {
        let mut streams = streams(seed, k as u64, first, BLOCK.min(draws - first));
        let mut chains = Chains::from_approximation(model, q, at, k, &mut streams)?;
        let example = (0..streams.len()).find(|s| !chains.log_ratio(*s).is_finite()).map(|s| chains.describe(s));
        let mut log_w = vec![0.0; streams.len()];
        add(&chains, temperatures, &mut log_w);
        for number in 1..temperatures {
            chains.forward(number as f64 / temperatures as f64, &mut streams)?;
            add(&chains, temperatures, &mut log_w);
        }
        Ok((k, log_w, example))
    };
    let results: Vec<(usize, Vec<f64>, Option<String>)> = blocks.par_iter().map(run).collect::<Result<_>>()?;
    let mut log_pi = vec![0.0; components_len];
    q.prior().log_weights(at.0, &mut log_pi);
    let mut strata = Strata { samples: vec![Vec::new(); components_len], log_pi: &log_pi, draws };
    for (k, log_w, _) in &results {
        strata.samples[*k].extend(log_w.iter().filter(|log_w| log_w.is_finite()));
    }
    let drawn = draws * components_len;
    let dropped = drawn - strata.samples.iter().map(Vec::len).sum::<usize>();
    if dropped == drawn {
        let example = results.into_iter().find_map(|(.., example)| example).unwrap_or_default();
        return Err(Error::NotFinite { step: 0, dropped, drawn, example });
    }
    Ok(Annealed { temperatures, lower: strata.restricted_bound(), log_evidence: strata.log_evidence(), drawn, dropped })
}

/// Estimates the annealed upper bound on log p(x) from draws of the posterior, one per draw.
///
/// It is a bound only if the draws are from the posterior itself, such as those of [`exact::Posterior::sample`](crate::exact::Posterior::sample).
/// From an approximation it is an estimate that can lie on either side.
///
/// # Errors
/// As [`annealed`], and [`Error::NotFinite`] if any draw is impossible.
pub fn annealed_upper(
    model: &dyn Model,
    q: &Variational,
    at: (&[f64], &[f64]),
    posterior: &Batch,
    settings: &AnnealedSettings,
) -> Result<Estimate> {
    let draws = posterior.draws_len();
    check(model, q, at, &settings.clone().draws(draws))?;
    if posterior.columns_len() != model.latents().len() {
        return Err(Error::Mismatch {
            first: "the draws of the posterior".to_owned(),
            second: "the model".to_owned(),
            reason: format!("one has {} latents, the other {}", posterior.columns_len(), model.latents().len()),
        });
    }
    let temperatures = settings.temperatures;
    let firsts: Vec<usize> = (0..draws).step_by(BLOCK).collect();
    let run = |&first: &usize| -> Result<Vec<f64>> {
        let len = BLOCK.min(draws - first);
        let mut streams = streams(settings.seed, FROM_POSTERIOR, first, len);
        let mut z = Batch::zeros(posterior.columns_len(), len);
        for i in 0..z.columns_len() {
            z.column_mut(i).copy_from_slice(&posterior.column(i)[first..first + len]);
        }
        let mut chains = Chains::from_posterior(model, q, at, z, &mut streams)?;
        let mut log_w = vec![0.0; len];
        add(&chains, temperatures, &mut log_w);
        for number in (1..temperatures).rev() {
            chains.backward(number as f64 / temperatures as f64, &mut streams)?;
            add(&chains, temperatures, &mut log_w);
        }
        Ok(log_w)
    };
    let log_w: Vec<f64> = firsts.par_iter().map(run).collect::<Result<Vec<_>>>()?.concat();
    if let Some(s) = log_w.iter().position(|log_w| !log_w.is_finite()) {
        let dropped = log_w.iter().filter(|log_w| !log_w.is_finite()).count();
        let example = describe(model, posterior, s, log_w[s]);
        return Err(Error::NotFinite { step: 0, dropped, drawn: draws, example });
    }
    Ok(Strata { samples: vec![log_w], log_pi: &[0.0], draws }.restricted_bound())
}

fn streams(seed: u64, datum: u64, first: usize, len: usize) -> Vec<Stream> {
    (first..first + len).map(|s| stream(seed, Purpose::AnnealedBounds.step(), datum, s as u64)).collect()
}

/// Adds the part of one temperature to the log weights.
fn add(chains: &Chains, temperatures: usize, log_w: &mut [f64]) {
    for (s, log_w) in log_w.iter_mut().enumerate() {
        *log_w += chains.log_ratio(s) / temperatures as f64;
    }
}

fn check(
    model: &dyn Model,
    q: &Variational,
    (theta, phi): (&[f64], &[f64]),
    settings: &AnnealedSettings,
) -> Result<()> {
    q.check(model)?;
    q.check_parameters(theta, phi)?;
    for (field, value) in [("draws", settings.draws), ("temperatures", settings.temperatures)] {
        if value == 0 {
            let reason = "at least one is needed";
            return Err(Error::BadSetting { field, value: "0".to_owned(), reason });
        }
    }
    match (0..model.latents().len()).find(|i| q.likelihood().kind(*i) != Kind::Sampled) {
        None => Ok(()),
        Some(i) => Err(Error::Mismatch {
            first: "the annealed bound".to_owned(),
            second: format!("the factor `{}` of {}", q.likelihood().factor_name(i), model.latents().name(i)),
            reason: "its moves draw every latent from its conditional, so all latents must be discrete; use the \
                     importance-weighted bound, or marginalise this latent"
                .to_owned(),
        }),
    }
}

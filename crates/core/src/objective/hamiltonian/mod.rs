//! Uncorrected Hamiltonian annealing (Geffner and Domke, 2021): an annealed bound on log p(x) that can be differentiated, for continuous
//! latents.
//!
//! In the noise ε behind λ, q is the standard normal s, and the model is g(ε) = log p(x, z(λ(ε))) + log |dz/dε|. From (ε_1, ρ_1) ~ s · N(0, I),
//! each of K − 1 steps k refreshes a part of the momentum, ρ′ = η ρ + √(1−η²) ξ, and makes one leapfrog step of length δ in the density
//! s^(1−t_k) e^(t_k g), without accepting or rejecting it. Refreshment is reversible and a leapfrog step keeps volume, so that
//!
//! log w = g(ε_K) − log s(ε_1) + Σ_k (log N(ρ_(k+1); 0, I) − log N(ρ′_k; 0, I))
//!
//! has E\[w\] = p(x), and E\[log w\] ≤ log p(x) is differentiable in the noise: along θ, and along ψ = (log δ, logit η, K logits of the
//! differences between temperatures). With K = 1 it is the ELBO. From exact draws of the posterior the reversed steps give an upper bound.

mod path;
mod target;

pub(crate) use path::{Path, Steps, push};
pub(crate) use target::{Memory, Target};

use super::annealed::{Annealed, AnnealedSettings};
use super::strata::{Estimate, Strata};
use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::{Model, describe};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;

/// K − 1 leapfrog steps between q and p. See [`HamiltonianAnnealing::lower`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HamiltonianAnnealing {
    temperatures: usize,
}

/// Draws per block.
const BLOCK: usize = 128;
/// The number under which the streams of the posterior's draws are filed.
const FROM_POSTERIOR: u64 = u64::MAX;
/// The length of a step at the start, in standard deviations of q, and the logit of the share of momentum that is kept.
const STEP: f64 = 0.3;
const LOGIT_KEPT: f64 = 0.0;

impl HamiltonianAnnealing {
    /// With K temperatures.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for none.
    pub fn new(temperatures: usize) -> Result<Self> {
        if temperatures == 0 {
            let reason = "at least one is needed";
            return Err(Error::BadSetting { field: "temperatures", value: "0".to_owned(), reason });
        }
        Ok(Self { temperatures })
    }

    /// K.
    pub fn temperatures(&self) -> usize {
        self.temperatures
    }

    /// The length of ψ.
    pub fn parameters_len(&self) -> usize {
        2 + self.temperatures
    }

    /// ψ at the start: steps of 0.3 standard deviations of q, half of the momentum kept, temperatures at equal distances.
    pub fn initial(&self) -> Vec<f64> {
        let mut psi = vec![0.0; self.parameters_len()];
        (psi[0], psi[1]) = (STEP.ln(), LOGIT_KEPT);
        psi
    }

    /// Checks that these fit together: continuous latents as point masses, with one Gaussian as prior.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with what to do.
    pub fn check(&self, model: &dyn Model, q: &Variational, theta: &[f64], psi: &[f64]) -> Result<()> {
        q.check(model)?;
        q.check_parameters(theta, &[])?;
        let mismatch = |second: String, reason: &str| {
            let (first, reason) = ("uncorrected Hamiltonian annealing".to_owned(), reason.to_owned());
            Err(Error::Mismatch { first, second, reason })
        };
        if let Some(i) = (0..model.latents().len()).find(|i| q.likelihood().kind(*i) != Kind::PointMass) {
            let factor = format!("the factor `{}` of {}", q.likelihood().factor_name(i), model.latents().name(i));
            return mismatch(
                factor,
                "its steps follow gradients; use point masses, or the annealed bound for discrete latents",
            );
        }
        let prior = q.prior();
        let is_gaussian = prior.components_len() == 1 && prior.gaussians().is_some();
        if !is_gaussian || prior.noise_len() != prior.lambda_len() || prior.switches_len() > 0 {
            return mismatch(
                format!("the prior `{}`", prior.name()),
                "its steps need one Gaussian; use a Gaussian prior",
            );
        }
        if psi.len() != self.parameters_len() {
            let reason = format!("one has {} numbers, the other needs {}", psi.len(), self.parameters_len());
            return mismatch("ψ".to_owned(), &reason);
        }
        Ok(())
    }

    /// Estimates the lower bound E\[log w\] on log p(x), in parallel; the settings' temperatures are not used.
    ///
    /// ```
    /// use hyperprior::objective::{AnnealedSettings, HamiltonianAnnealing};
    /// use hyperprior::{Model, Variational, targets::Banana};
    /// use hyperprior::likelihood::MeanField;
    /// use hyperprior::prior::{Covariance, Gaussian};
    /// use hyperprior::recursive::SameAsPrior;
    /// let model = Banana::new();
    /// let likelihood = MeanField::for_latents(model.latents())?;
    /// let q = Variational::new(likelihood, Gaussian::new(2, Covariance::Diagonal)?, SameAsPrior)?;
    /// let (theta, settings) = ([0.0, 0.0, -0.5, -0.5], AnnealedSettings::default());
    /// let bound = |temperatures| -> hyperprior::Result<f64> {
    ///     let annealing = HamiltonianAnnealing::new(temperatures)?;
    ///     Ok(annealing.lower(&model, &q, (&theta, &annealing.initial()), &settings)?.lower.value)
    /// };
    /// assert!(bound(1)? < bound(16)? && bound(16)? < 0.0); // log p(x) is 0
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check), errors of the model, and [`Error::NotFinite`] if no draw has a finite weight.
    pub fn lower(
        &self,
        model: &dyn Model,
        q: &Variational,
        (theta, psi): (&[f64], &[f64]),
        settings: &AnnealedSettings,
    ) -> Result<Annealed> {
        self.check(model, q, theta, psi)?;
        let (draws, target) = (settings.draws, Target::new(model, q, theta)?);
        let run = |first: usize, streams: &mut [Stream]| {
            let mut path = Path::default();
            path.run(&target, Steps::new(psi), None, streams)?;
            let example = (0..streams.len()).find(|s| !path.log_w[*s].is_finite());
            Ok((path.log_w.clone(), example.map(|s| format!("draw {} of q", first + s))))
        };
        let (log_w, example) = in_blocks(settings.seed, 0, draws, run)?;
        let finite: Vec<f64> = log_w.into_iter().filter(|log_w| log_w.is_finite()).collect();
        let dropped = draws - finite.len();
        if finite.is_empty() {
            let example = example.unwrap_or_default();
            return Err(Error::NotFinite { step: 0, dropped, drawn: draws, example });
        }
        let strata = Strata { samples: vec![finite], log_pi: &[0.0], draws };
        let (lower, log_evidence) = (strata.restricted_bound(), strata.log_evidence());
        Ok(Annealed { temperatures: self.temperatures, lower, log_evidence, drawn: draws, dropped })
    }

    /// Estimates the upper bound E\[log w\] of the reversed steps from draws of the posterior. It is a bound only if these are exact.
    ///
    /// # Errors
    /// As [`lower`](Self::lower), if any draw has no finite weight.
    pub fn upper(
        &self,
        model: &dyn Model,
        q: &Variational,
        (theta, psi): (&[f64], &[f64]),
        posterior: &Batch,
        seed: u64,
    ) -> Result<Estimate> {
        self.check(model, q, theta, psi)?;
        let (draws, target) = (posterior.draws_len(), Target::new(model, q, theta)?);
        let run = |first: usize, streams: &mut [Stream]| {
            let mut z = Batch::zeros(posterior.columns_len(), streams.len());
            for i in 0..z.columns_len() {
                z.column_mut(i).copy_from_slice(&posterior.column(i)[first..first + streams.len()]);
            }
            let mut path = Path::default();
            path.run(&target, Steps::new(psi), Some(&target.noise(&z)), streams)?;
            let example = (0..streams.len()).find(|s| !path.log_w[*s].is_finite());
            Ok((path.log_w.clone(), example.map(|s| describe(model, &z, s, path.log_w[s]))))
        };
        let (log_w, example) = in_blocks(seed, FROM_POSTERIOR, draws, run)?;
        if let Some(example) = example {
            let dropped = log_w.iter().filter(|log_w| !log_w.is_finite()).count();
            return Err(Error::NotFinite { step: 0, dropped, drawn: draws, example });
        }
        Ok(Strata { samples: vec![log_w], log_pi: &[0.0], draws }.restricted_bound())
    }
}

/// The log weights of all blocks, and the first draw without a finite one.
fn in_blocks(
    seed: u64,
    datum: u64,
    draws: usize,
    run: impl Fn(usize, &mut [Stream]) -> Result<(Vec<f64>, Option<String>)> + Sync,
) -> Result<(Vec<f64>, Option<String>)> {
    let firsts: Vec<usize> = (0..draws).step_by(BLOCK).collect();
    let block = |&first: &usize| {
        let draws = first..draws.min(first + BLOCK);
        let mut streams: Vec<Stream> =
            draws.map(|s| stream(seed, Purpose::AnnealedBounds.step(), datum, s as u64)).collect();
        run(first, &mut streams)
    };
    let results: Vec<(Vec<f64>, Option<String>)> = firsts.par_iter().map(block).collect::<Result<_>>()?;
    let example = results.iter().find_map(|(_, example)| example.clone());
    Ok((results.into_iter().flat_map(|(log_w, _)| log_w).collect(), example))
}

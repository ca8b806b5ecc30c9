//! Training of an approximation, and of the steps between it and the posterior, through uncorrected Hamiltonian annealing.

use super::settings::FitSettings;
use crate::error::{Error, Result};
use crate::gradient::{Gradients, annealing_block};
use crate::model::Model;
use crate::objective::HamiltonianAnnealing;
use crate::session::Session;
use crate::variational::Variational;
use hyperprior_math::random::{Stream, stream};
use rayon::prelude::*;

/// θ and ψ after training. See [`fit_annealing`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FittedAnnealing {
    /// The parameters of the prior.
    pub theta: Vec<f64>,
    /// The step size, the share of momentum that is kept, and the temperatures.
    pub psi: Vec<f64>,
    /// The estimate of the bound at every step.
    pub history: Vec<f64>,
}

/// The sum of log w over the valid paths of a block, their number, and the gradients along θ and ψ.
struct Part {
    sum: f64,
    valid: usize,
    d_theta: Vec<f64>,
    d_psi: Vec<f64>,
}

/// Paths per block.
const BLOCK: usize = 16;

/// Maximises the bound of uncorrected Hamiltonian annealing over θ and ψ together, from θ as fitted to the ELBO. The settings' steps, step
/// size, optimiser, seed and number of draws are used.
///
/// ```
/// use hyperprior::fit::{FitSettings, fit_annealing};
/// use hyperprior::objective::{AnnealedSettings, HamiltonianAnnealing};
/// use hyperprior::{Model, Quiet, Variational, likelihood::MeanField, targets::Banana};
/// use hyperprior::prior::{Covariance, Gaussian};
/// use hyperprior::recursive::SameAsPrior;
/// let model = Banana::new();
/// let likelihood = MeanField::for_latents(model.latents())?;
/// let q = Variational::new(likelihood, Gaussian::new(2, Covariance::Diagonal)?, SameAsPrior)?;
/// let annealing = HamiltonianAnnealing::new(4)?;
/// let (theta, psi) = (vec![0.0, 0.0, -0.5, -0.5], annealing.initial());
/// let fitted = fit_annealing(&model, &q, &annealing, &theta, &FitSettings::default().steps(100), &mut Quiet)?;
/// let bound = |theta: &[f64], psi: &[f64]| {
///     annealing.lower(&model, &q, (theta, psi), &AnnealedSettings::default()).map(|bound| bound.lower.value)
/// };
/// assert!(bound(&fitted.theta, &fitted.psi)? > bound(&theta, &psi)?);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// As [`HamiltonianAnnealing::check`] and [`FitSettings::check`], errors of the model, [`Error::NotFinite`] if no path of a step has a finite
/// weight, and [`Error::Stopped`] if the session's observer or budget stops it.
pub fn fit_annealing<'s>(
    model: &dyn Model,
    q: &Variational,
    annealing: &HamiltonianAnnealing,
    theta: &[f64],
    settings: &FitSettings,
    session: impl Into<Session<'s>>,
) -> Result<FittedAnnealing> {
    settings.check()?;
    let (mut theta, mut psi) = (theta.to_vec(), annealing.initial());
    annealing.check(model, q, &theta, &psi)?;
    let (mut of_theta, mut of_psi) = (settings.optimizer.build(theta.len()), settings.optimizer.build(psi.len()));
    let draws = settings.gradient.draws;
    let (mut history, session) = (Vec::new(), &mut session.into());
    for step in 0..settings.steps {
        let blocks: Vec<usize> = (0..draws).step_by(BLOCK).collect();
        let at = (&*theta, &*psi);
        let block = |first: &usize| {
            let of_block = *first..draws.min(first + BLOCK);
            let mut streams: Vec<Stream> = of_block.map(|s| stream(settings.seed, step, 0, s as u64)).collect();
            let (mut d_theta, mut d_psi) = (vec![0.0; at.0.len()], vec![0.0; at.1.len()]);
            let mut gradients = Gradients { d_theta: &mut d_theta, d_psi: &mut d_psi };
            let (sum, valid) = annealing_block(model, q, at, draws, &mut streams, &mut gradients)?;
            Ok(Part { sum, valid, d_theta, d_psi })
        };
        let parts: Vec<Part> = blocks.par_iter().map(block).collect::<Result<_>>()?;
        let (mut sum, mut valid) = (0.0, 0);
        let (mut d_theta, mut d_psi) = (vec![0.0; theta.len()], vec![0.0; psi.len()]);
        for part in &parts {
            (sum, valid) = (sum + part.sum, valid + part.valid);
            d_theta.iter_mut().zip(&part.d_theta).for_each(|(d, x)| *d += x);
            d_psi.iter_mut().zip(&part.d_psi).for_each(|(d, x)| *d += x);
        }
        if valid == 0 {
            let example = "every path of the step".to_owned();
            return Err(Error::NotFinite { step, dropped: draws, drawn: draws, example });
        }
        let elbo = sum / valid as f64;
        if d_theta.iter().chain(&d_psi).any(|d| !d.is_finite()) {
            return Err(Error::GradientNotFinite { step, elbo });
        }
        let size = settings.size(step);
        of_theta.ascend(&mut theta, &d_theta, size);
        of_psi.ascend(&mut psi, &d_psi, size);
        history.push(elbo);
        if session.advance("annealing", step as usize + 1, settings.steps as usize).is_break() {
            return Err(Error::Stopped { step });
        }
    }
    Ok(FittedAnnealing { theta, psi, history })
}

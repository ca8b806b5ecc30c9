//! Model selection: candidate approximations, compared by their ELBOs.

use super::resample::draw;
use super::whitened::WhitenedModel;
use crate::diagnostics::convergence::{has_converged, moments};
use crate::diagnostics::psis::{Psis, psis};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::infer::budget::Work;
use crate::infer::method::Method;
use crate::infer::parts::covariance;
use crate::infer::result::CandidateSummary;
use crate::model::Model;
use crate::prior::Covariance;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;

/// The maximum number of Gaussians in a mixture that is chosen automatically.
pub(in crate::infer) const MODES_MAX: usize = 8;
/// With at most this many latents, a mixture is tried if one Gaussian is not enough.
const SMALL: usize = 32;
/// The number of draws for a candidate's importance weights.
const WEIGHTED: usize = 4000;

/// A fitted approximation.
pub(in crate::infer) struct Candidate<'a> {
    pub(in crate::infer) whitened: WhitenedModel<'a, dyn Model + 'a>,
    pub(in crate::infer) q: Variational,
    pub(in crate::infer) fitted: Fitted,
    pub(in crate::infer) has_converged: Option<bool>,
    pub(in crate::infer) method: Method,
}

/// Draws of a candidate and their importance weights.
pub(in crate::infer) struct Weighted {
    pub(in crate::infer) u: Batch,
    pub(in crate::infer) psis: Psis,
    pub(in crate::infer) elbo: f64,
    log_evidence: f64,
}

impl Weighted {
    /// The most that a better approximation could gain; infinite if the weights are unreliable.
    pub(in crate::infer) fn headroom(&self) -> f64 {
        if self.psis.is_good() { self.log_evidence - self.elbo } else { f64::INFINITY }
    }
}

impl Candidate<'_> {
    pub(in crate::infer) fn weighted(&self, seed: u64) -> Result<Weighted> {
        weight(&self.whitened, &self.q, &self.fitted, seed)
    }

    pub(in crate::infer) fn summary(&self, weighted: &Weighted) -> CandidateSummary {
        CandidateSummary {
            method: self.method,
            elbo: weighted.elbo,
            khat: weighted.psis.khat,
            steps: self.fitted.steps,
        }
    }
}

/// Draws from a fitted approximation, with importance weights.
pub(in crate::infer) fn weight(model: &dyn Model, q: &Variational, fitted: &Fitted, seed: u64) -> Result<Weighted> {
    let (u, mut log_weights) = draw(model, q, fitted, WEIGHTED, seed)?;
    let finite: Vec<f64> = log_weights.iter().copied().filter(|w| w.is_finite()).collect();
    let top = finite.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let mean = finite.iter().map(|w| (w - top).exp()).sum::<f64>() / log_weights.len() as f64;
    // The bound of q restricted to the possible draws; see `Bounds`.
    let share = finite.len() as f64 / log_weights.len() as f64;
    let elbo = if finite.is_empty() { f64::NEG_INFINITY } else { moments(&finite).0 + share.ln() };
    Ok(Weighted { u, psis: psis(&mut log_weights), elbo, log_evidence: top + mean.ln() })
}

/// The candidates after one Gaussian, each larger than those before it.
pub(in crate::infer) fn ladder(latents_len: usize, modes_len: usize, is_heavy: bool) -> Vec<Method> {
    let mut rising = Vec::new();
    if modes_len > 1 {
        // More components than modes: two Gaussians fit a mode better than one.
        rising.push(Method::Mixture((2 * modes_len).clamp(4, MODES_MAX)));
    }
    match latents_len {
        _ if is_heavy => {}
        0..=SMALL => {
            rising.extend([Method::Mixture(MODES_MAX), Method::Copula(4)]);
            rising.dedup();
        }
        _ if covariance(latents_len) == Covariance::Full => rising.push(Method::Copula(4)),
        _ => rising.push(Method::LowRank(8)),
    }
    rising
}

/// Tries larger approximations as long as the ELBO may gain more than the requested accuracy, and keeps the best. If there are
/// several modes, the first candidate is always tried: the weights of one Gaussian cannot show what it misses.
pub(in crate::infer) fn grow<'a>(
    mut best: Candidate<'a>,
    rising: &[Method],
    has_modes: bool,
    fit: impl Fn(&Candidate, &Variational, &mut Work) -> Result<Fitted>,
    work: &mut Work,
) -> Result<(Candidate<'a>, Vec<CandidateSummary>)> {
    let (seed, accuracy) = (work.settings.seed, work.settings.accuracy);
    let mut weighted = best.weighted(seed)?;
    let mut candidates = vec![best.summary(&weighted)];
    for (rank, method) in rising.iter().enumerate() {
        let is_needed = weighted.headroom() > accuracy || has_modes && rank == 0;
        if !is_needed || best.fitted.stopped || work.is_over()? {
            break;
        }
        let q = method.variational_with(best.whitened.latents(), &work.settings.parts)?;
        let fitted = match fit(&best, &q, work) {
            Ok(fitted) => fitted,
            // A candidate that cannot be fitted is skipped.
            Err(Error::NotFinite { .. } | Error::GradientNotFinite { .. }) => continue,
            Err(error) => return Err(error),
        };
        if fitted.stopped {
            break;
        }
        let next = weight(&best.whitened, &q, &fitted, seed)?;
        candidates.push(CandidateSummary {
            method: *method,
            elbo: next.elbo,
            khat: next.psis.khat,
            steps: fitted.steps,
        });
        let is_nearer = !weighted.psis.is_good() && next.psis.khat < weighted.psis.khat && next.elbo > weighted.elbo;
        let is_enough = next.headroom() <= accuracy && next.elbo > weighted.elbo;
        if next.elbo > weighted.elbo + accuracy || is_nearer || is_enough {
            let has_converged = has_converged(&fitted);
            best = Candidate { whitened: best.whitened, q, fitted, has_converged, method: *method };
            weighted = next;
        }
    }
    Ok((best, candidates))
}

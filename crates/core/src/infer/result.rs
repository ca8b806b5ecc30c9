//! The result of inference.

use super::method::Method;
use super::settings::{BudgetRecord, Correction};
use super::stages::whitening::Whitening;
use crate::diagnostics::Exchangeable;
use crate::diagnostics::psis::Psis;
use crate::fit::Fitted;
use crate::json::{nullable, nullables};
use crate::objective::{Annealed, Bounds, Estimate};
use hyperprior_math::batch::Batch;
use serde::{Deserialize, Serialize};

/// The result of inference: draws of the posterior, and how they were obtained. See [`infer`](super::infer) for an example.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inferred {
    /// Draws of the model's latents.
    pub z: Batch,
    /// How the MCMC moves went; `None` if there were none.
    pub moved: Option<MoveSummary>,
    /// The importance weights of the approximation's draws.
    pub psis: Psis,
    /// The components of the mixture that was learnt from weighted draws, if the draws are from there.
    pub learnt: Option<usize>,
    /// The ELBO and related bounds.
    pub bounds: Bounds,
    /// The annealed bound on log p(x), if one was asked for.
    pub annealed: Option<Annealed>,
    /// The method.
    pub method: Method,
    /// The names of its parts: likelihood, prior, r.
    pub parts: [String; 3],
    /// The candidates, if the method was selected automatically.
    pub candidates: Vec<CandidateSummary>,
    /// How well fits from different starts agree, if there were several.
    pub restarts: Option<Restarts>,
    /// The total number of steps of all fits.
    pub steps: u64,
    /// How far the fits got before the time budget was spent, if it was.
    pub budget_record: Option<BudgetRecord>,
    /// Whether the run was stopped before model selection and restarts were complete.
    pub is_stopped: bool,
    /// Whether the ELBO had converged at the end of the fit; `None` if there were too few steps to tell.
    pub has_converged: Option<bool>,
    /// The fit.
    pub fitted: Fitted,
    /// How the draws were corrected.
    pub correct: Correction,
    /// How many of several modes one ascent of the mode search alone ended at.
    pub modes_once: usize,
    /// The largest mode that the mode search found and the draws missed.
    pub missed_mode: Option<MissedMode>,
    /// The largest tail of a latent that the draws missed.
    pub missed_tail: Option<MissedTail>,
    /// The latents along which the posterior is improper.
    pub improper: Vec<String>,
    /// Components that may change places without changing the posterior, and do.
    pub exchangeable: Vec<Exchangeable>,
    /// Chains from elsewhere; `None` if the draws were not moved.
    pub superchains: Option<Superchains>,
    /// Chains of the No-U-Turn sampler; `None` if they were not needed.
    pub nuts: Option<NutsSummary>,
    /// Tempered sequential Monte Carlo; `None` if it was not needed.
    pub smc: Option<SmcSummary>,
    /// Which latents were integrated out by adaptive quadrature, if the draws are from there.
    pub quadrature: Option<QuadratureSummary>,
    /// The log evidence by bridge sampling, if long chains were needed or the importance weights have no variance.
    pub bridge: Option<Estimate>,
    /// The latent whose tails changed most during the last moves.
    pub drifting: Option<String>,
    /// The location of the whitened coordinates: z = location + L u for the continuous latents.
    pub location: Vec<f64>,
    /// The whitening L.
    pub whitening: Whitening,
}

impl Inferred {
    /// The effective sample size of the draws. Importance weights reduce it, and MCMC moves make up for that as the draws mix.
    pub fn effective_sample_size(&self) -> f64 {
        if let Some(smc) = self.particles() {
            return smc.ess_bulk.min(self.z.draws_len() as f64);
        }
        if let Some(nuts) = self.nuts.as_ref().filter(|nuts| nuts.is_used) {
            return nuts.ess_bulk.min(self.z.draws_len() as f64);
        }
        if let Some(QuadratureSummary { is_exact, ess, .. }) = self.quadrature {
            // Those of importance sampling are resampled.
            return if is_exact { ess } else { resampled_ess(self.z.draws_len(), ess, 1.0) };
        }
        let memory = self.moved.map_or(1.0, |moved| moved.memory);
        resampled_ess(self.z.draws_len(), self.psis.ess, memory)
    }

    /// The log evidence: by bridge sampling, or else by importance sampling.
    pub fn log_evidence(&self) -> Estimate {
        self.bridge.unwrap_or(self.bounds.log_evidence)
    }

    /// Tempered sequential Monte Carlo, if the draws are its particles.
    pub fn particles(&self) -> Option<&SmcSummary> {
        self.smc.as_ref().filter(|smc| smc.is_used)
    }

    /// The chains of the No-U-Turn sampler, if they agree with each other and with the draws.
    pub fn long_chains(&self) -> Option<&NutsSummary> {
        self.nuts.as_ref().filter(|nuts| nuts.has_converged() && (nuts.is_used || nuts.agrees))
    }
}

/// NaN, for a missing number.
fn unknown() -> f64 {
    f64::NAN
}

/// A candidate approximation. See [`Inferred`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CandidateSummary {
    /// Its method.
    pub method: Method,
    /// Its ELBO.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub elbo: f64,
    /// k̂ of its importance weights.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub khat: f64,
    /// The steps of its fit.
    #[serde(default)]
    pub steps: u64,
}

/// Fits of the same approximation from several starts. See [`Inferred`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Restarts {
    /// The ELBO of each fit, the best first.
    #[serde(default, deserialize_with = "nullables")]
    pub elbo: Vec<f64>,
    /// The largest R̂ of any latent, over the fits whose ELBOs are within the accuracy of the best; it compares the means of the
    /// fits with the spread of the latent. `None` if no other fit came that close.
    #[serde(default)]
    pub rhat: Option<f64>,
    /// The latent with that R̂.
    #[serde(default)]
    pub latent: String,
}

/// How the MCMC moves went. See [`mcmc_moves`](super::mcmc_moves).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoveSummary {
    /// The number of moves of each draw.
    pub moves: usize,
    /// The mean acceptance probability of the last Hamiltonian moves; `None` without continuous latents.
    pub accepted: Option<f64>,
    /// The share of the last trajectories that diverged.
    pub divergent: f64,
    /// The final step size.
    pub step: f64,
    /// How much the draws still depend on where they started: the largest correlation, over the draws, of a latent, of its distance
    /// from its mean or of the log density with the value before the first move.
    pub memory: f64,
    /// The largest change of a tail's mean (over 5 % of the draws) since half as many moves, in standard deviations and beyond
    /// what chance explains. Missing tails can take longer to fill than the draws take to mix.
    pub drift: f64,
    /// The latent with that tail.
    pub drifting: usize,
    /// Whether the moves were stopped on request.
    pub stopped: bool,
}

/// Chains from overdispersed starts, compared with the draws. See [`Inferred`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Superchains {
    /// The moves of each chain.
    pub moves: usize,
    /// Nested R̂ (Margossian et al., 2024), the largest of any latent: 16 superchains of 16 chains, one draw of each.
    #[serde(deserialize_with = "nullable")]
    pub nested_rhat: f64,
    /// The latent with that nested R̂.
    pub latent: String,
    /// The same with normal scores of ranks, over the superchains that ended where the draws are or where there is mass.
    #[serde(deserialize_with = "nullable")]
    pub joined_rhat: f64,
    /// The latent with that nested R̂.
    pub slowest: String,
    /// How many superchains ended where there are hardly any draws.
    pub away: usize,
    /// The largest difference between the means of the other superchains and those of the draws, in standard deviations and as
    /// normal scores of ranks; 0 if chance explains it.
    pub shift: f64,
    /// The latent with that difference.
    pub shifted: String,
    /// The largest difference of their variances, as a share of that of the draws; 0 if chance explains it.
    pub spread: f64,
    /// The latent with that difference.
    pub spreading: String,
    /// The place with the largest share of the posterior that superchains found and the draws missed.
    pub missed: Option<MissedMode>,
    /// Whether the moves were stopped on request.
    pub stopped: bool,
}

impl Superchains {
    /// Whether the superchains confirm the draws: those that ended elsewhere found no mass, and the others agree with the draws.
    pub fn agrees(&self) -> bool {
        self.missed.is_none() && self.shift <= SHIFT_MAX && self.spread <= SPREAD_MAX && !self.strays()
    }

    /// Whether the superchains with mass have forgotten their starts.
    pub(crate) fn have_joined(&self) -> bool {
        !(self.joined_rhat > JOINED_RHAT_MAX)
    }

    /// Whether most superchains ended elsewhere.
    pub(crate) fn strays(&self) -> bool {
        2 * self.away > SUPERCHAINS
    }
}

/// Latents that were integrated out by adaptive quadrature, each on a line of its own or all together. See [`Inferred`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuadratureSummary {
    /// The number of latents that are independent of each other, or Gaussian, given the others.
    pub integrated: usize,
    /// The number of the others.
    pub conditioned: usize,
    /// Whether they are Gaussian given the others.
    #[serde(default)]
    pub is_gaussian: bool,
    /// Whether the others were integrated out in the same way, and not by importance sampling.
    pub is_exact: bool,
    /// k̂ of the importance weights of the draws, which are nearly equal if `is_exact`.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub khat: f64,
    /// Their effective sample size.
    pub ess: f64,
}

/// Chains of the No-U-Turn sampler, from which the draws are taken if they are better than those of the approximation. See
/// [`Inferred`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NutsSummary {
    /// The number of chains.
    pub chains: usize,
    /// The transitions of the warm-up of each chain.
    pub warm_up: usize,
    /// The draws of each chain.
    pub draws: usize,
    /// The largest rank-normalised split R̂ of any latent.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub rhat: f64,
    /// The latent with that R̂.
    pub latent: String,
    /// The smallest bulk effective sample size of any latent.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub ess_bulk: f64,
    /// The smallest tail effective sample size of any latent.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub ess_tail: f64,
    /// The share of transitions that diverged.
    pub divergent: f64,
    /// The gradients of all chains.
    pub gradients: usize,
    /// The chains that could not leave their starts during the first part of the warm-up, and were moved to where others were.
    #[serde(default)]
    pub stuck: usize,
    /// Whether the draws of the approximation, moved, have the same distribution as those of the chains.
    pub agrees: bool,
    /// Whether the draws are those of the chains.
    pub is_used: bool,
    /// Whether the chains were stopped on request.
    pub stopped: bool,
}

impl NutsSummary {
    /// Whether the chains agree and say enough about means.
    pub fn has_converged(&self) -> bool {
        self.rhat <= CHAINS_RHAT_MAX && self.ess_bulk >= ESS_MIN && self.divergent <= DIVERGENT_MAX && !self.stopped
    }
}

/// Particles of tempered sequential Monte Carlo, which are the draws if nothing before was trusted and islands of them agree. See
/// [`Inferred`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SmcSummary {
    /// The number of islands, which share no particles.
    pub islands: usize,
    /// The number of particles of all islands.
    pub particles: usize,
    /// The number of temperatures.
    pub temperatures: usize,
    /// The moves of each particle.
    pub moves: usize,
    /// The smallest effective sample size of any latent's mean: its variance divided by the squared standard error over the islands.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub ess_bulk: f64,
    /// The same for the shares below the 5 % and the 95 % quantile.
    #[serde(default = "unknown", deserialize_with = "nullable")]
    pub ess_tail: f64,
    /// The latent with the smallest effective sample size.
    pub latent: String,
    /// Whether further moves were accepted, did not diverge, and left the marginals as they were.
    pub is_stationary: bool,
    /// The share of the islands that is effective, by their weights.
    pub islands_effective: f64,
    /// Whether the draws are the particles.
    pub is_used: bool,
}

impl SmcSummary {
    /// Whether the islands agree enough for means.
    pub fn is_useful(&self) -> bool {
        self.is_stationary && self.islands_effective >= 0.5 && self.ess_bulk >= ESS_MEANS
    }
}

/// The largest R̂ of chains that agree.
pub(crate) const CHAINS_RHAT_MAX: f64 = 1.02;
/// Chains with a larger R̂ have not joined.
pub(crate) const RHAT_MAX: f64 = 1.1;
/// The largest share of divergent transitions: where trajectories diverge, the chains may not go.
pub(crate) const DIVERGENT_MAX: f64 = 0.02;
/// The smallest effective sample size that is enough for means and quantiles.
pub(crate) const ESS_MIN: f64 = 400.0;
/// With a smaller one, means have errors above a fifth of a standard deviation.
pub(crate) const ESS_MEANS: f64 = 100.0;

/// The number of superchains.
pub(crate) const SUPERCHAINS: usize = 16;

/// The largest nested R̂ of superchains that have forgotten their starts. With 16 chains each, 1.03 is expected.
pub(crate) const JOINED_RHAT_MAX: f64 = 1.2;

/// The largest difference of means, in standard deviations, at which draws and superchains agree.
pub(crate) const SHIFT_MAX: f64 = 0.2;
/// The largest relative difference of variances.
pub(crate) const SPREAD_MAX: f64 = 0.4;

/// A mode that the mode search found and the draws missed. See [`Inferred`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissedMode {
    /// Its share of the posterior, as estimated by the mode search.
    pub share: f64,
    /// The share of the draws that lie there.
    pub drawn: f64,
    /// Its location, in the model's coordinates.
    #[serde(skip)]
    pub z: Vec<f64>,
}

/// A tail of a latent, more than three standard deviations from the mean of the draws, that they missed. See [`Inferred`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissedTail {
    /// The latent.
    pub latent: String,
    /// The tail's share of the posterior.
    pub share: f64,
    /// The share of the draws that lie there.
    pub drawn: f64,
    /// Whether it matters for the mean, and not only for the standard deviation.
    pub is_large: bool,
    /// How many times as wide the posterior is with it, in standard deviations.
    pub wider: f64,
}

impl Default for MoveSummary {
    /// Before the first move.
    fn default() -> Self {
        Self {
            moves: 0,
            accepted: None,
            divergent: 0.0,
            step: 0.0,
            memory: 1.0,
            drift: 0.0,
            drifting: 0,
            stopped: false,
        }
    }
}

/// The effective sample size of so many draws by weights with this effective sample size, which still have this correlation with what was
/// drawn by them.
pub(super) fn resampled_ess(draws_len: usize, of_weights: f64, memory: f64) -> f64 {
    1.0 / (1.0 / draws_len as f64 + memory * memory / of_weights.max(1.0))
}

/// The least effective sample size of so many draws that may be trusted.
pub(crate) fn ess_min(draws_len: usize) -> f64 {
    ESS_MIN.min(0.5 * draws_len as f64)
}

//! The stochastic gradient of the hierarchical ELBO.
//!
//! `eq:first-gradient`, for λ = λ(ε; θ):
//!
//! ∇_θ = E[∇_θλ ∇_λ L_MF(λ)] + E[∇_θλ ∇_λ (log r − log q(λ))] + E[∇_θλ Σ_i V_i r_i], V_i = ∇_λ log q(z_i | λ_i).
//!
//! Terms one and three need the derivative of an expectation over z: by the score with local signals and a leave-one-out
//! baseline ([`score`](self)), by local expectation, or along the draw itself if it is differentiable. Term two is the
//! ordinary derivative of densities; on the noise it vanishes. `eq:r-grad`: ∇_φ = E[∇_φ log r].
//!
//! With `importance` J > 0 the bound that is maximised is the importance-weighted one ([`objective`](crate::objective)), in which
//! log q(z) is estimated by log q̂(z) = log mean(e^a_0, …, e^a_J). Its gradient is E[∇_θλ V (log p − log q̂(z))]: the direct
//! derivative of −log q̂(z) has mean zero for every J. The reason: λ_0 is a draw of q(λ | z), the others are draws of r(λ | z),
//! and one chosen with the weights e^a_j is again a draw of q(λ | z); so E[Σ_j share_j ∇_θ log q(z, λ_j)] is the mean of a score.
//! φ still follows `eq:r-grad`. This is the gradient with r held fixed, which is the gradient of the bound unless r depends on
//! θ. r = prior (semi-implicit inference) does, through a mixture's weights and switches, from which the fresh draws are then
//! made: along those alone the step is the gradient of a bound with the current r.
//!
//! Continuous latents. Of *point masses* z_c = T(λ_c) determines λ_c and, with one component, its noise ε_c. Given ε_c everything
//! above holds with q(λ_d | ε_c) in place of q(λ): the fresh draws are of ε_d alone, and the score of z_d has the signal
//! log p − log q̂. The factor q(λ_c)/|T′| is common to all a_j, so along λ_c there remain the derivatives of log p(x, z), of
//! log|T′| and of −log q(λ_c), as without fresh draws. (With several components the fresh draws have other noises ε_c behind
//! the same λ_c, and −log q̂ would have to be differentiated along it.) Along the draw of a *pathwise* factor both log p and log q̂
//! are differentiated; if r = prior, whose fresh draws do not depend on z, the latter gives −Σ_j w_j ∂_z log q(z | λ_j) with w_j the
//! share of e^a_j (semi-implicit inference: Yin and Zhou, 2018; Titsias and Ruiz, 2019).

mod difference;
mod disarm;
mod engine;
pub(crate) mod hamiltonian;
mod impossible;
mod local_expectation;
mod score;
mod switches;
mod three_terms;

pub use engine::{Estimate, GradientEngine};
pub(crate) use hamiltonian::{Gradients, annealing_block};
#[doc(hidden)]
pub use three_terms::Backward;

use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use serde::{Deserialize, Serialize};

/// How the derivative of an expectation over a discrete latent is estimated. See [`GradientSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Local expectation if the model has conditionals and r splits by latent, otherwise the score.
    #[default]
    Automatic,
    /// The score function with local learning signals and a leave-one-out baseline.
    Score,
    /// The sum over the latent's values, with everything else as drawn.
    LocalExpectation,
    /// For Poisson factors: the difference f(z + 1) − f(z), which needs two values however large the rate is. Other latents
    /// get the score.
    Difference,
    /// For Bernoulli factors: DisARM (Dong, Mnih and Tucker, 2020), the score with draws in antithetic pairs.
    #[serde(rename = "disarm")]
    DisArm,
}

/// How a gradient is estimated.
///
/// ```
/// use hyperprior::gradient::{Estimator, GradientSettings};
/// let settings = GradientSettings::default().draws(64).estimator(Estimator::Score);
/// settings.check()?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GradientSettings {
    /// Draws of z per component and step.
    pub draws: usize,
    /// How many of those draws share one λ: the group within which the baseline is computed.
    pub replicates: usize,
    /// Whether noises come in pairs ±ε.
    pub antithetic: bool,
    /// The estimator for discrete latents.
    pub estimator: Estimator,
    /// Whether the score uses a leave-one-out baseline.
    pub baseline: bool,
    /// The most values a local expectation sums over; wider windows fall back to the score.
    pub window_max: usize,
    /// Whether a recursive approximation that does not split by latent is summed over too, at the cost of solving it again
    /// for every value; if not, its part is estimated by the score.
    pub sum_joint_recursion: bool,
    /// J: fresh draws of r(λ | z) per draw of z, which tighten the bound that is maximised. It needs r on the noise; with point
    /// masses a prior of one component, and with continuous factors r = prior. 0 maximises the paper's hierarchical ELBO.
    pub importance: usize,
    /// Which terms of `eq:first-gradient` to include; all, except in tests.
    pub terms: Terms,
}

crate::setters!(GradientSettings {
    draws: usize, replicates: usize, antithetic: bool, estimator: Estimator, baseline: bool, window_max: usize, sum_joint_recursion: bool, importance: usize, terms: Terms;
});

impl Default for GradientSettings {
    fn default() -> Self {
        Self {
            draws: 32,
            replicates: 4,
            antithetic: true,
            estimator: Estimator::Automatic,
            baseline: true,
            window_max: 1024,
            sum_joint_recursion: false,
            importance: 0,
            terms: Terms::default(),
        }
    }
}

impl GradientSettings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad = |field, value: usize, reason| Err(Error::BadSetting { field, value: value.to_string(), reason });
        if self.draws == 0 {
            return bad("draws", self.draws, "at least one draw is needed");
        }
        if self.replicates == 0 || !self.draws.is_multiple_of(self.replicates) {
            return bad("replicates", self.replicates, "it must be at least 1 and divide `draws`");
        }
        if self.window_max == 0 {
            return bad("window_max", self.window_max, "at least one value is needed");
        }
        Ok(())
    }
}

/// Which terms of `eq:first-gradient` to include. See [`GradientSettings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// E[∇_θλ ∇_λ L_MF(λ)].
    pub likelihood: bool,
    /// E[∇_θλ ∇_λ (log r − log q(λ))].
    pub densities: bool,
    /// E[∇_θλ Σ_i V_i r_i].
    pub recursion: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { likelihood: true, densities: true, recursion: true }
    }
}

/// The estimator of one latent. See [`plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The score with a local signal.
    Score,
    /// The sum over its values.
    LocalExpectation,
    /// The difference f(z + 1) − f(z).
    Difference,
    /// The difference between two antithetic draws.
    DisArm,
    /// The derivative along the draw.
    Path,
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Score => "score, leave-one-out",
            Self::LocalExpectation => "local expectation",
            Self::Difference => "difference",
            Self::DisArm => "DisARM",
            Self::Path => "pathwise",
        })
    }
}

/// The plan for every latent.
///
/// Local expectation falls back to the difference, or to the score, in steps in which a latent has more than
/// [`window_max`](GradientSettings::window_max) values.
///
/// ```
/// use hyperprior::gradient::{GradientSettings, Plan, plan};
/// use hyperprior::{Model, Variational, likelihood::MeanField, targets::Ising};
/// let model = Ising::ring(4, 0.5)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// assert_eq!(plan(&model, &q, &GradientSettings::default())?, [Plan::LocalExpectation; 4]);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// [`Error::Mismatch`] if the model or the likelihood does not support the requested estimator.
pub fn plan(model: &dyn Model, variational: &Variational, settings: &GradientSettings) -> Result<Vec<Plan>> {
    let splits = settings.importance == 0 && (variational.recursive().is_local() || settings.sum_joint_recursion);
    (0..model.latents().len())
        .map(|i| {
            if variational.likelihood().kind(i) != Kind::Sampled {
                return Ok(Plan::Path);
            }
            let mismatch = |first: &str, second: &str, reason: &str| {
                let [first, second, reason] = [first, second, reason].map(str::to_owned);
                Err(Error::Mismatch { first, second, reason })
            };
            let likelihood = variational.likelihood();
            let takes_differences = likelihood.difference_rate(i, &Batch::zeros(likelihood.lambda_len(), 0), &mut []);
            if !likelihood.is_factorised() {
                return match settings.estimator {
                    Estimator::Automatic | Estimator::Score => Ok(Plan::Score),
                    _ => mismatch("the estimator", "the likelihood", "it is not a product of factors; use the score"),
                };
            }
            match (settings.estimator, model.conditionals().is_some()) {
                (Estimator::Score, _) | (Estimator::Automatic, false) => Ok(Plan::Score),
                (Estimator::Automatic, true) if !splits => Ok(Plan::Score),
                (Estimator::Automatic | Estimator::LocalExpectation, true) => Ok(Plan::LocalExpectation),
                (Estimator::LocalExpectation | Estimator::Difference, false) => {
                    let reason = "it has no conditionals; give it some, or use the score estimator";
                    mismatch("local expectation", "the model", reason)
                }
                (Estimator::Difference, true) => {
                    Ok(if takes_differences && splits { Plan::Difference } else { Plan::Score })
                }
                (Estimator::DisArm, _) if likelihood.factor_name(i) != "bernoulli" => {
                    mismatch("DisARM", "the likelihood", "it works for Bernoulli factors only; use another estimator")
                }
                (Estimator::DisArm, _) if settings.importance > 0 || !settings.replicates.is_multiple_of(2) => {
                    let reason = "it needs pairs of draws that share λ and no importance weights; use an even number of \
                                  replicates and an importance of 0";
                    mismatch("DisARM", "the settings", reason)
                }
                (Estimator::DisArm, _) => Ok(Plan::DisArm),
            }
        })
        .collect()
}

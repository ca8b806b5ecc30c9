//! The settings of inference.

use super::method::Method;
use super::parts::Parts;
use super::stages::whitening::Whitening;
use crate::gradient::Estimator;
use crate::optimizer::OptimizerKind;
use serde::{Deserialize, Serialize};

/// The default number of draws.
pub(super) const DRAWS: usize = 4000;
/// Fewer draws than this say nothing about quantiles or tails.
pub const DRAWS_MIN: usize = 10;
/// The largest number of components, layers, ranks or importance draws that a front end accepts.
pub const SIZE_MAX: usize = 1000;
/// The default accuracy: importance weights can correct a gap of half a nat.
const ACCURACY: f64 = 0.5;

/// The settings of [`infer`](super::infer).
///
/// ```
/// use hyperprior::infer::{InferSettings, Method};
/// let settings = InferSettings::default().method(Method::Mixture(4)).draws(1000);
/// assert_eq!((settings.seed, settings.accuracy), (1, 0.5));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct InferSettings {
    /// The approximation. `Auto` tries larger ones as long as the ELBO improves.
    pub method: Method,
    /// The ELBO tolerance in nats: a larger approximation is kept if it gains more than this, and a fit stops when more steps are
    /// expected to gain less than a fifth of it.
    pub accuracy: f64,
    /// The time budget in seconds. Once it is spent, fits stop and optional work is skipped; drawing and correcting the draws takes
    /// additional time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// The record of an earlier run whose budget was spent, to stop at the same steps again. With it the clock is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_record: Option<BudgetRecord>,
    /// How many times the approximation is fitted, from different starts; by default twice, or once for an expensive model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<usize>,
    /// Parts of the approximation that are chosen individually.
    pub parts: Parts,
    /// Draws of r that tighten the bound that is maximised; 0 for the hierarchical ELBO. By default a few if r matches moments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<usize>,
    /// The temperatures of an annealed bound on log p(x), to be computed once the approximation is fitted; all latents must be discrete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annealed: Option<usize>,
    /// The seed. The same seed gives the same numbers for any number of threads.
    pub seed: u64,
    /// The number of posterior draws.
    pub draws: usize,
    /// Optimisation steps of a fit; by default a stopping rule decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// How the draws of the approximation are corrected.
    pub correct: Correction,
    /// How gradients along discrete latents are estimated; by default as suits the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// The optimiser of gradient steps; Adam by default. Sparse Gaussians are fitted by Newton's method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// The initial step size, in whitened coordinates; the default depends on the method.
    pub step_size: Option<f64>,
    /// How many MCMC moves each draw makes; by default until the draws no longer depend on where they started.
    pub moves: Option<usize>,
}

crate::setters!(InferSettings {
    method: Method, accuracy: f64, parts: Parts, seed: u64, draws: usize, correct: Correction;
    annealed?: usize, budget?: f64, budget_record?: BudgetRecord, restarts?: usize, steps?: u64, step_size?: f64, moves?: usize, importance?: usize,
    estimator?: Estimator, optimizer?: OptimizerKind
});

/// How draws of an approximation are brought closer to the posterior. See [`InferSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Not at all: the draws are those of the approximation.
    #[serde(alias = "nothing")]
    None,
    /// By resampling with Pareto-smoothed importance weights.
    #[serde(alias = "weights")]
    Resample,
    /// By resampling, followed by MCMC moves of each draw.
    #[default]
    #[serde(alias = "moves")]
    ResampleMove,
}

impl Default for InferSettings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            accuracy: ACCURACY,
            budget: None,
            budget_record: None,
            restarts: None,
            parts: Parts::default(),
            importance: None,
            annealed: None,
            seed: 1,
            draws: DRAWS,
            steps: None,
            estimator: None,
            optimizer: None,
            step_size: None,
            correct: Correction::default(),
            moves: None,
        }
    }
}

impl InferSettings {
    /// Whether the approximation is to be fitted with its usual parts to the usual bound.
    pub(super) fn is_plain(&self) -> bool {
        let is_usual = self.estimator.is_none() && self.optimizer.is_none();
        self.parts == Parts::default() && self.importance.is_none() && self.annealed.is_none() && is_usual
    }

    /// Whether the draws may come from elsewhere than the approximation that is fitted: if no method, number of steps or number of moves
    /// was asked for.
    pub(super) fn is_free(&self) -> bool {
        self.method == Method::Auto && self.moves.is_none() && self.steps.is_none()
    }

    /// The whitening to fit in. For mean-field it is diagonal: a full whitening would bring dependence back in.
    pub(super) fn whitening(&self, full: &Whitening) -> Whitening {
        match self.method {
            Method::MeanField if self.parts.prior.is_none() => full.diagonal(),
            _ => full.clone(),
        }
    }
}

/// How far a run got before its time budget was spent, so that another run can stop at the same steps.
///
/// ```
/// use hyperprior::infer::{BudgetRecord, InferSettings};
/// let record = BudgetRecord { steps: vec![400, 250], spent_at: 2 };
/// let again = InferSettings::default().budget_record(record);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetRecord {
    /// The steps of each fit, in order.
    pub steps: Vec<u64>,
    /// How many fits were finished or in progress when the budget was spent.
    pub spent_at: usize,
}

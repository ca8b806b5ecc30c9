//! The result of a fit.

use super::stopping::StepSizeStage;
use crate::error::Result;
use crate::gradient::Plan;
use crate::model::Model;
use crate::objective::{self, BoundSettings, Bounds};
use crate::variational::Variational;

/// A finished fit. See [`fit`](super::fit) for an example.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// The prior's parameters.
    pub theta: Vec<f64>,
    /// The recursive approximation's parameters.
    pub phi: Vec<f64>,
    /// The number of steps after the start.
    pub steps: u64,
    /// The number of steps that were planned.
    pub planned: u64,
    /// Whether it was stopped before the end of its schedule.
    pub stopped: bool,
    /// The bound that each start reached in its short run, −∞ for an impossible one; the best was continued. Empty for a single
    /// start.
    pub starts: Vec<f64>,
    /// The share of draws that were invalid.
    pub dropped: f64,
    /// The gradient estimator of each latent.
    pub plans: Vec<Plan>,
    /// Each step's estimate of the bound.
    pub history: Vec<f64>,
    /// The stages of the stopping rule, each with half the step size of the one before; empty without a rule.
    pub stages: Vec<StepSizeStage>,
    /// Whether the budget was spent before the stopping rule ended the fit.
    pub is_spent: bool,
}

impl Fitted {
    /// The bounds of the fitted model.
    ///
    /// # Errors
    /// As [`objective::evaluate`].
    pub fn bounds(&self, model: &dyn Model, q: &Variational, settings: &BoundSettings) -> Result<Bounds> {
        objective::evaluate(model, q, (&self.theta, &self.phi), settings)
    }
}

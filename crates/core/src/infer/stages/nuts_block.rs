//! Chains of the No-U-Turn sampler whose gradients are evaluated together.

use super::hmc::Phase;
use super::label_swaps::Symmetry;
use super::nuts::{Transitions, no_u_turn};
use super::step_size::StepSize;
use super::whitened::WhitenedModel;
use crate::error::Result;
use crate::gibbs::sweep;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;

/// The number of chains.
pub(super) const BLOCK: usize = 8;
/// Transitions between two looks at the session.
pub(super) const TOGETHER: usize = 10;

/// Chains whose gradients are evaluated together.
pub(super) struct Block {
    pub(super) u: Batch,
    pub(super) log_p: Vec<f64>,
    pub(super) d_u: Batch,
    pub(super) streams: Vec<Stream>,
    pub(super) step: StepSize,
    /// Whether `log_p` and `d_u` belong to `u`.
    pub(super) is_known: bool,
}

impl Block {
    /// Some transitions, adapting the step size to an acceptance; returns the chains after each.
    pub(super) fn advance(
        &mut self,
        whitened: &WhitenedModel<dyn Model + '_>,
        (discrete, symmetry): (&[usize], &Symmetry),
        aim: Option<f64>,
    ) -> Result<(Vec<Batch>, Transitions)> {
        let mut total = Transitions::default();
        let mut draws = Vec::with_capacity(TOGETHER);
        let Some(gradient) = whitened.gradient() else { return Ok((draws, total)) };
        for _ in 0..TOGETHER {
            sweep(whitened, discrete, &mut self.u, &mut self.streams)?;
            if !self.is_known || !discrete.is_empty() {
                gradient.log_joint_gradient(&self.u, &mut self.log_p, &mut self.d_u)?;
                self.is_known = true;
            }
            let state =
                Phase { u: &mut self.u, log_p: &mut self.log_p, d_u: &mut self.d_u, streams: &mut self.streams };
            let made = no_u_turn(gradient, whitened.continuous(), self.step.step, state)?;
            if let Some(aim) = aim {
                self.step.adapt(made.accepted / self.log_p.len() as f64, aim);
            }
            total.gradients += made.gradients;
            if !symmetry.is_empty() {
                let state =
                    Phase { u: &mut self.u, log_p: &mut self.log_p, d_u: &mut self.d_u, streams: &mut self.streams };
                symmetry.exchange(whitened, gradient, state)?;
                total.gradients += self.log_p.len();
            }
            total.divergent += made.divergent;
            draws.push(whitened.restored(&self.u));
        }
        Ok((draws, total))
    }
}

//! The delta prior: a single λ, which reduces the hierarchical model to mean-field.

use super::{Prior, Start};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;

/// q(λ; θ) = δ(λ − θ). With a mean-field likelihood this is black box variational inference; O(d).
///
/// ```
/// use hyperprior::prior::{Delta, Prior};
/// assert_eq!(Delta { lambda_len: 3 }.parameters_len(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The length of λ.
    pub lambda_len: usize,
}

impl Prior for Delta {
    fn name(&self) -> String {
        "delta".to_owned()
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn noise_len(&self) -> usize {
        0
    }

    fn parameters_len(&self) -> usize {
        self.lambda_len
    }

    fn has_leading_density(&self) -> bool {
        true
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], _scratch: &mut Scratch) {
        let PriorPass { theta, .. } = pass;
        for (i, value) in theta.iter().enumerate() {
            lambda.column_mut(i).fill(*value);
        }
        // A point has no density; the bound has no term for q(λ).
        log_q.fill(0.0);
    }

    fn pullback(
        &self,
        _pass: PriorPass,
        _lambda: &Batch,
        d_lambda: &Batch,
        _d_log_q: &[f64],
        d_theta: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        for (i, d) in d_theta.iter_mut().enumerate() {
            *d += d_lambda.column(i).iter().sum::<f64>();
        }
    }

    fn log_density(&self, _theta: &[f64], _lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        out.fill(0.0);
    }

    fn initialize(&self, start: &Start, _rng: &mut Stream, theta: &mut [f64]) {
        theta.copy_from_slice(&start.locations[0]);
    }
}

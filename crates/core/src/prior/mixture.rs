//! A mixture of Gaussians over λ, stratified over its components, with learned weights.
//!
//! q(λ; θ) = Σ_k π_k N(λ; μ_k, L_k L_kᵀ). O(Kd) with diagonal scales, O(Kd²) with full ones, and K times the model
//! evaluations.

use super::{Covariance, Density, Gaussian, Gaussians, Prior, Start, weights};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::packed_len;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::log_sum_exp_columns;

/// A mixture of K Gaussians; θ is the K logits of the weights, then each component's [`Gaussian`] parameters.
///
/// ```
/// use hyperprior::prior::{Covariance, Mixture, Prior};
/// let prior = Mixture::new(2, 3, Covariance::Diagonal)?;
/// assert_eq!(prior.components_len(), 3);
/// assert_eq!(prior.parameters_len(), 3 + 3 * 4);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixture {
    gaussian: Gaussian,
    components_len: usize,
}

impl Mixture {
    /// A mixture of `components_len` Gaussians over `lambda_len` numbers. One component is a Gaussian.
    ///
    /// # Errors
    /// [`Error::BadPart`] for no components or no parameters.
    pub fn new(lambda_len: usize, components_len: usize, covariance: Covariance) -> Result<Self> {
        if components_len == 0 {
            let reason = "it has 0 components; use at least 1".to_owned();
            return Err(Error::BadPart { part: "a mixture prior".to_owned(), reason });
        }
        Ok(Self { gaussian: Gaussian::new(lambda_len, covariance)?, components_len })
    }

    fn component_range(&self, k: usize) -> std::ops::Range<usize> {
        let len = self.gaussian.parameters_len();
        self.components_len + k * len..self.components_len + (k + 1) * len
    }

    /// log π_k + log N(λ; k) for every component, a column each.
    fn joint(&self, theta: &[f64], lambda: &Batch, scratch: &mut Scratch) -> Batch {
        let draws_len = lambda.draws_len();
        let mut joint = scratch.take_batch(self.components_len, draws_len);
        let mut log_pi = scratch.take(self.components_len);
        let mut x = scratch.take_batch(self.lambda_len(), draws_len);
        self.log_weights(theta, &mut log_pi);
        for k in 0..self.components_len {
            let theta = &theta[self.component_range(k)];
            self.gaussian.whiten(theta, lambda, &mut x, scratch);
            let column = joint.column_mut(k);
            self.gaussian.log_density_at_noise(theta, &x, self.lambda_len(), column);
            for c in column {
                *c += log_pi[k];
            }
        }
        scratch.give_batch(x);
        scratch.give(log_pi);
        joint
    }
}

impl Prior for Mixture {
    fn name(&self) -> String {
        let shape = if self.gaussian.is_diagonal() { "diagonal" } else { "full" };
        format!("mixture of {} gaussians ({shape})", self.components_len)
    }

    fn lambda_len(&self) -> usize {
        self.gaussian.lambda_len()
    }

    fn parameters_len(&self) -> usize {
        self.components_len * (1 + self.gaussian.parameters_len())
    }

    fn components_len(&self) -> usize {
        self.components_len
    }

    fn log_weights(&self, theta: &[f64], out: &mut [f64]) {
        weights::log_weights(&theta[..self.components_len], out);
    }

    fn weights_pullback(&self, theta: &[f64], values: &[f64], d_theta: &mut [f64]) {
        weights::weights_pullback(&theta[..self.components_len], values, d_theta);
    }

    fn log_weights_pullback(&self, theta: &[f64], counts: &[f64], d_theta: &mut [f64]) {
        weights::log_weights_pullback(&theta[..self.components_len], counts, d_theta);
    }

    fn has_leading_density(&self) -> bool {
        true
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, component: k, eps, density } = pass;
        let own = &theta[self.component_range(k)];
        self.gaussian.place(own, eps, lambda, scratch);
        match density {
            Density::Unneeded => {}
            Density::Whole => self.log_density(theta, lambda, log_q, scratch),
            Density::Leading(n) => self.gaussian.log_density_at_noise(own, eps, n, log_q),
        }
    }

    fn pullback(
        &self,
        pass: PriorPass,
        lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let PriorPass { theta, component: k, eps, density } = pass;
        let own = self.component_range(k);
        if density != Density::Whole {
            let (theta, d_theta) = (&theta[own.clone()], &mut d_theta[own]);
            self.gaussian.pullback(
                PriorPass { theta, component: 0, eps, density },
                lambda,
                d_lambda,
                d_log_q,
                d_theta,
                scratch,
            );
            return;
        }
        let draws_len = eps.draws_len();
        let mut total = scratch.take_batch(self.lambda_len(), draws_len);
        total.copy_from(d_lambda);
        let mut joint = self.joint(theta, lambda, scratch);
        let mut noise = scratch.take_batch(self.lambda_len(), draws_len);
        let mut log_q = scratch.take(draws_len);
        log_sum_exp_columns(joint.as_slice(), &mut log_q);
        let mut counts = scratch.take(self.components_len);
        for j in 0..self.components_len {
            // ∂ log q = Σ_j q(j | λ) ∂ (log π_j + log N_j).
            let share = joint.column_mut(j);
            for ((share, log_q), d) in share.iter_mut().zip(&log_q).zip(d_log_q) {
                *share = (*share - log_q).exp() * d;
                counts[j] += *share;
            }
            let range = self.component_range(j);
            let (theta, d_theta) = (&theta[range.clone()], &mut d_theta[range]);
            self.gaussian.whiten(theta, lambda, &mut noise, scratch);
            self.gaussian.log_density_pullback(theta, &noise, share, &mut total, d_theta, scratch);
        }
        self.log_weights_pullback(theta, &counts, d_theta);
        let (theta, d_theta) = (&theta[own.clone()], &mut d_theta[own]);
        self.gaussian.place_pullback(theta, eps, &total, d_theta, scratch);
        scratch.give_batch(noise);
        scratch.give(counts);
        scratch.give(log_q);
        scratch.give_batch(joint);
        scratch.give_batch(total);
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let joint = self.joint(theta, lambda, scratch);
        log_sum_exp_columns(joint.as_slice(), out);
        scratch.give_batch(joint);
    }

    fn gaussians(&self) -> Option<&dyn Gaussians> {
        Some(self)
    }

    fn initialize(&self, start: &Start, _rng: &mut Stream, theta: &mut [f64]) {
        theta[..self.components_len].fill(0.0);
        for k in 0..self.components_len {
            self.gaussian.initialize_at(start, k, &mut theta[self.component_range(k)]);
        }
    }
}

impl Gaussians for Mixture {
    fn is_diagonal(&self) -> bool {
        self.gaussian.is_diagonal()
    }

    fn component(&self, theta: &[f64], k: usize, mean: &mut [f64], scale: &mut [f64]) {
        debug_assert_eq!(scale.len(), packed_len(self.lambda_len()));
        self.gaussian.write_component(&theta[self.component_range(k)], mean, scale);
    }
}

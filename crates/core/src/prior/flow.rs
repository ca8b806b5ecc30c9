//! A normalizing flow over a learnable diagonal Gaussian: λ = f(λ₀), for any flow f.
//!
//! log q(λ; θ) = log N(λ₀; m, s²) − log|det ∂f/∂λ₀|. The base's location and scale are learned, so that the family contains
//! mean-field; a flow without layers is the diagonal Gaussian.

use super::{Covariance, Density, Gaussian, Prior, Start};
use crate::error::Result;
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::flow::Flow;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;

/// A prior defined by a flow; θ is the base's [`Gaussian`] parameters, then the flow's. It starts at the base.
///
/// ```
/// use hyperprior::math::flow::Planar;
/// use hyperprior::prior::{FlowPrior, PlanarFlow};
/// let prior = FlowPrior::over_gaussian(Planar { len: 5, layers_len: 2 })?;
/// assert_eq!(prior, PlanarFlow::new(5, 2)?);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPrior<F> {
    base: Gaussian,
    flow: F,
}

impl<F: Flow> FlowPrior<F> {
    /// This flow over a diagonal Gaussian of the same length.
    ///
    /// # Errors
    /// [`Error::BadPart`](crate::Error::BadPart) for length 0.
    pub fn over_gaussian(flow: F) -> Result<Self> {
        Ok(Self { base: Gaussian::new(flow.numbers_len(), Covariance::Diagonal)?, flow })
    }

    fn split<'a>(&self, theta: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        theta.split_at(self.base.parameters_len())
    }
}

impl<F: Flow> Prior for FlowPrior<F> {
    fn name(&self) -> String {
        self.flow.name()
    }

    fn lambda_len(&self) -> usize {
        self.base.lambda_len()
    }

    fn parameters_len(&self) -> usize {
        self.base.parameters_len() + self.flow.parameters_len()
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        let (base, layers) = self.split(theta);
        self.base.place(base, eps, lambda, scratch);
        let mut log_det = scratch.take(eps.draws_len());
        self.flow.forward(layers, lambda, &mut log_det, scratch);
        if density == Density::Whole {
            self.base.log_density_at_noise(base, eps, self.lambda_len(), log_q);
            for (q, d) in log_q.iter_mut().zip(&log_det) {
                *q -= d;
            }
        }
        scratch.give(log_det);
    }

    fn pullback(
        &self,
        pass: PriorPass,
        _lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let PriorPass { theta, component: k, eps, density } = pass;
        let (base, layers) = self.split(theta);
        let (d_base, d_layers) = d_theta.split_at_mut(self.base.parameters_len());
        let draws_len = eps.draws_len();
        let mut x = scratch.take_batch(self.lambda_len(), draws_len);
        let mut d_x = scratch.take_batch(self.lambda_len(), draws_len);
        let mut d_log_det = scratch.take(draws_len);
        if density == Density::Whole {
            for (d, q) in d_log_det.iter_mut().zip(d_log_q) {
                *d = -q;
            }
        }
        d_x.copy_from(d_lambda);
        // Running the map again is cheaper than storing its activations between calls.
        self.base.place(base, eps, &mut x, scratch);
        self.flow.pullback(layers, &mut x, &mut d_x, &d_log_det, d_layers, scratch);
        self.base.pullback(PriorPass { theta: base, component: k, eps, density }, &x, &d_x, d_log_q, d_base, scratch);
        scratch.give(d_log_det);
        scratch.give_batch(d_x);
        scratch.give_batch(x);
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let (base, layers) = self.split(theta);
        let mut x = scratch.take_batch(self.lambda_len(), lambda.draws_len());
        let mut log_det = scratch.take(lambda.draws_len());
        x.copy_from(lambda);
        self.flow.invert(layers, &mut x, &mut log_det, scratch);
        self.base.log_density(base, &x, out, scratch);
        for (o, d) in out.iter_mut().zip(&log_det) {
            *o -= d;
        }
        scratch.give(log_det);
        scratch.give_batch(x);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let (base, layers) = theta.split_at_mut(self.base.parameters_len());
        self.base.initialize_at(start, 0, base);
        self.flow.identity(rng, layers);
    }
}

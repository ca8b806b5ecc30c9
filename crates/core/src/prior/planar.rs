//! A planar flow over a learnable diagonal Gaussian: λ = f_L ∘ … ∘ f_1(λ₀), O(Ld).
//!
//! log q(λ; θ) = log N(λ₀; m, s²) − Σ_l log|det ∂f_l/∂λ_{l−1}|. The base's location and scale are learned, so that the
//! family contains mean-field; a flow of length 0 is the diagonal Gaussian.

use super::{Covariance, Density, Gaussian, Prior, Start};
use crate::error::Result;
use hyperprior_math::batch::Batch;
use hyperprior_math::flow::Planar;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;

/// The paper's normalizing-flow prior; θ is the base's [`Gaussian`] parameters, then the layers'.
///
/// ```
/// use hyperprior::prior::{PlanarFlow, Prior};
/// let prior = PlanarFlow::new(5, 2)?;
/// assert_eq!(prior.parameters_len(), 10 + 2 * 11);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanarFlow {
    base: Gaussian,
    flow: Planar,
}

impl PlanarFlow {
    /// A flow of `layers_len` layers over `lambda_len` numbers.
    ///
    /// # Errors
    /// [`Error::BadPart`](crate::Error::BadPart) over nothing.
    pub fn new(lambda_len: usize, layers_len: usize) -> Result<Self> {
        let base = Gaussian::new(lambda_len, Covariance::Diagonal)?;
        Ok(Self { base, flow: Planar { len: lambda_len, layers_len } })
    }

    fn split<'a>(&self, theta: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        theta.split_at(self.base.parameters_len())
    }
}

impl Prior for PlanarFlow {
    fn name(&self) -> String {
        format!("planar flow of {}", self.flow.layers_len)
    }

    fn lambda_len(&self) -> usize {
        self.flow.len
    }

    fn parameters_len(&self) -> usize {
        self.base.parameters_len() + self.flow.parameters_len()
    }

    fn transform(
        &self,
        theta: &[f64],
        _k: usize,
        eps: &Batch,
        density: Density,
        lambda: &mut Batch,
        log_q: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (base, layers) = self.split(theta);
        let draws_len = eps.draws_len();
        self.base.place(base, eps, lambda, scratch);
        let mut log_det = scratch.take(draws_len);
        let mut tanh = scratch.take(self.flow.layers_len * draws_len);
        self.flow.forward(layers, lambda, &mut log_det, &mut tanh);
        if density == Density::Whole {
            self.base.log_density_at_noise(base, eps, self.flow.len, log_q);
            for (q, d) in log_q.iter_mut().zip(&log_det) {
                *q -= d;
            }
        }
        scratch.give(tanh);
        scratch.give(log_det);
    }

    fn pullback(
        &self,
        theta: &[f64],
        k: usize,
        eps: &Batch,
        density: Density,
        _lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (base, layers) = self.split(theta);
        let (d_base, d_layers) = d_theta.split_at_mut(self.base.parameters_len());
        let draws_len = eps.draws_len();
        let mut x = scratch.take_batch(self.flow.len, draws_len);
        let mut d_x = scratch.take_batch(self.flow.len, draws_len);
        let mut tanh = scratch.take(self.flow.layers_len * draws_len);
        let mut d_log_det = scratch.take(draws_len);
        // The map is run again: cheaper than keeping its activations between the calls.
        self.base.place(base, eps, &mut x, scratch);
        self.flow.forward(layers, &mut x, &mut d_log_det, &mut tanh);
        d_log_det.fill(0.0);
        if density == Density::Whole {
            for (d, q) in d_log_det.iter_mut().zip(d_log_q) {
                *d = -q;
            }
        }
        d_x.copy_from(d_lambda);
        self.flow.pullback(layers, &mut x, &mut d_x, &d_log_det, &tanh, d_layers, scratch);
        self.base.pullback(base, k, eps, density, &x, &d_x, d_log_q, d_base, scratch);
        scratch.give(d_log_det);
        scratch.give(tanh);
        scratch.give_batch(d_x);
        scratch.give_batch(x);
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let (base, layers) = self.split(theta);
        let mut x = scratch.take_batch(self.flow.len, lambda.draws_len());
        let mut log_det = scratch.take(lambda.draws_len());
        x.copy_from(lambda);
        self.flow.invert(layers, &mut x, &mut log_det);
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
        self.flow.identity(1.0, rng, layers);
    }
}

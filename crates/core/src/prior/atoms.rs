//! A mixture of atoms over λ: q(z) = Σ_k π_k q(z | λ_k), the latent class model.
//!
//! There is no noise to integrate over, so q(z) is a finite sum and r can be exact: with
//! [`Responsibilities`](crate::recursive::Responsibilities) the bound is the ELBO of q(z) itself. O(Kd), and K times the model
//! evaluations.

use super::{Prior, Start, weights};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use rand_distr::{Distribution, StandardNormal};

/// K atoms with learned weights, stratified; θ is the K logits of the weights, then each atom.
///
/// With negative binomial factors this is the mixture of gamma priors over Poisson rates with the rates marginalised; with
/// [`Mixed`](crate::math::family::Mixed) factors it is the mixture of diagonal Gaussians with λ marginalised.
///
/// ```
/// use hyperprior::prior::{Atoms, Prior};
/// let prior = Atoms::new(2, 3)?;
/// assert_eq!((prior.components_len(), prior.parameters_len()), (3, 3 + 3 * 2));
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atoms {
    lambda_len: usize,
    components_len: usize,
}

impl Atoms {
    /// A mixture of `components_len` atoms over `lambda_len` numbers.
    ///
    /// # Errors
    /// [`Error::BadPart`] for no components.
    pub fn new(lambda_len: usize, components_len: usize) -> Result<Self> {
        if components_len == 0 {
            let reason = "it has 0 components; use at least 1".to_owned();
            return Err(Error::BadPart { part: "a mixture of atoms".to_owned(), reason });
        }
        Ok(Self { lambda_len, components_len })
    }

    fn point(&self, k: usize) -> std::ops::Range<usize> {
        self.components_len + k * self.lambda_len..self.components_len + (k + 1) * self.lambda_len
    }
}

impl Prior for Atoms {
    fn name(&self) -> String {
        format!("mixture of {} atoms", self.components_len)
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn noise_len(&self) -> usize {
        0
    }

    fn parameters_len(&self) -> usize {
        self.components_len * (1 + self.lambda_len)
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

    fn has_density(&self) -> bool {
        false
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, _log_q: &mut [f64], _scratch: &mut Scratch) {
        let PriorPass { theta, component: k, .. } = pass;
        for (i, value) in theta[self.point(k)].iter().enumerate() {
            lambda.column_mut(i).fill(*value);
        }
    }

    fn pullback(
        &self,
        pass: PriorPass,
        _lambda: &Batch,
        d_lambda: &Batch,
        _d_log_q: &[f64],
        d_theta: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        let PriorPass { component: k, .. } = pass;
        for (i, d) in d_theta[self.point(k)].iter_mut().enumerate() {
            *d += d_lambda.column(i).iter().sum::<f64>();
        }
    }

    fn log_density(&self, _theta: &[f64], _lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        out.fill(f64::NAN);
    }

    /// One location each; atoms with the same location are scattered around it, or they would never separate.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        theta[..self.components_len].fill(0.0);
        for k in 0..self.components_len {
            let place = k % start.locations.len();
            theta[self.point(k)].copy_from_slice(&start.locations[place]);
            if k >= start.locations.len() {
                for (t, scale) in theta[self.point(k)].iter_mut().zip(&start.scales[place % start.scales.len()]) {
                    let normal: f64 = StandardNormal.sample(rng);
                    *t += scale * normal;
                }
            }
        }
    }
}

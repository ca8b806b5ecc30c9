//! Gaussian priors: diagonal, O(d), or with a full covariance, O(d²).

mod kernels;

use super::{Density, Gaussians, Prior, Start};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::HALF_LN_2_PI;
use hyperprior_math::vector;
use kernels::{shift_and_scale, shift_and_scale_pullback, subtract_half_squares};
use serde::{Deserialize, Serialize};

/// The shape of a Gaussian's scale. See [`Gaussian`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// Independent λ: no dependence within one component.
    Diagonal,
    /// A lower-triangular scale: every pair of λ can depend on each other.
    #[default]
    Full,
}

/// λ = μ + L ε.
///
/// θ is μ, then L: its log diagonal ℓ alone, or its rows packed, L_ii = e^ℓ_i and L_ij = e^ℓ_i c_ij. With its own scale a row
/// can grow as fast as necessary, whatever the step size: binary latents that are nearly always equal need logits with
/// standard deviations in the tens.
///
/// ```
/// use hyperprior::prior::{Covariance, Gaussian, Prior};
/// let prior = Gaussian::new(3, Covariance::Full)?;
/// assert_eq!(prior.parameters_len(), 3 + 6);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaussian {
    len: usize,
    covariance: Covariance,
}

impl Gaussian {
    /// A Gaussian over `lambda_len` numbers.
    ///
    /// # Errors
    /// [`Error::BadPart`] for length 0.
    pub fn new(lambda_len: usize, covariance: Covariance) -> Result<Self> {
        if lambda_len == 0 {
            let reason = "it has no parameters; the likelihood must have at least one".to_owned();
            return Err(Error::BadPart { part: "a Gaussian prior".to_owned(), reason });
        }
        Ok(Self { len: lambda_len, covariance })
    }

    fn log_diagonal(&self, theta: &[f64], i: usize) -> f64 {
        match self.covariance {
            Covariance::Diagonal => theta[self.len + i],
            Covariance::Full => theta[self.len + packed(i, i)],
        }
    }

    fn add_log_diagonal(&self, d_theta: &mut [f64], i: usize, value: f64) {
        match self.covariance {
            Covariance::Diagonal => d_theta[self.len + i] += value,
            Covariance::Full => d_theta[self.len + packed(i, i)] += value,
        }
    }

    /// L, packed (full covariance only).
    fn scale(&self, theta: &[f64], scratch: &mut Scratch) -> Vec<f64> {
        let mut scale = scratch.take(packed_len(self.len));
        self.write_scale(theta, &mut scale);
        scale
    }

    fn write_scale(&self, theta: &[f64], scale: &mut [f64]) {
        scale.copy_from_slice(&theta[self.len..]);
        for i in 0..self.len {
            let row = &mut scale[packed(i, 0)..=packed(i, i)];
            let size = row[i].exp();
            row[..i].iter_mut().for_each(|c| *c *= size);
            row[i] = size;
        }
    }

    /// d_theta += the pullback of L; consumes its cotangent `d_scale`.
    fn scale_pullback(&self, scale: &[f64], mut d_scale: Vec<f64>, d_theta: &mut [f64], scratch: &mut Scratch) {
        for i in 0..self.len {
            let row = packed(i, 0)..packed(i, i) + 1;
            let (l, d) = (&scale[row.clone()], &mut d_scale[row]);
            let d_log_size = vector::dot(l, d);
            d[..i].iter_mut().for_each(|d| *d *= l[i]);
            d[i] = d_log_size;
        }
        vector::add_scaled(1.0, &d_scale, &mut d_theta[self.len..]);
        scratch.give(d_scale);
    }

    /// x ← L⁻¹ (λ − μ).
    pub(super) fn whiten(&self, theta: &[f64], lambda: &Batch, x: &mut Batch, scratch: &mut Scratch) {
        let draws_len = lambda.draws_len();
        for i in 0..self.len {
            for (x, l) in x.column_mut(i).iter_mut().zip(lambda.column(i)) {
                *x = l - theta[i];
            }
        }
        match self.covariance {
            Covariance::Diagonal => {
                for i in 0..self.len {
                    let inverse = (-theta[self.len + i]).exp();
                    for x in x.column_mut(i) {
                        *x *= inverse;
                    }
                }
            }
            Covariance::Full => {
                let scale = self.scale(theta, scratch);
                linalg::lower_solve(&scale, x.as_mut_slice(), draws_len);
                scratch.give(scale);
            }
        }
    }

    /// out\[s\] = log N of the first `n` numbers at whitened noise `x`.
    pub(super) fn log_density_at_noise(&self, theta: &[f64], x: &Batch, n: usize, out: &mut [f64]) {
        let constant: f64 = -(0..n).map(|i| self.log_diagonal(theta, i) + HALF_LN_2_PI).sum::<f64>();
        out.fill(constant);
        subtract_half_squares(x.columns(0..n), out);
    }

    /// The pullback of log N(λ; θ) at any λ, whose whitened noise is `x`: adds the partial derivatives along λ and θ.
    pub(super) fn log_density_pullback(
        &self,
        theta: &[f64],
        x: &Batch,
        d_log_q: &[f64],
        d_lambda: &mut Batch,
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let draws_len = x.draws_len();
        // With g = L⁻ᵀ x: ∂/∂λ = −g, ∂/∂μ = g, ∂/∂L = g xᵀ − diag(1/L).
        let mut g = scratch.take_batch(self.len, draws_len);
        for i in 0..self.len {
            for ((g, x), d) in g.column_mut(i).iter_mut().zip(x.column(i)).zip(d_log_q) {
                *g = x * d;
            }
        }
        let total: f64 = d_log_q.iter().sum();
        match self.covariance {
            Covariance::Diagonal => {
                for i in 0..self.len {
                    let inverse = (-theta[self.len + i]).exp();
                    d_theta[self.len + i] += vector::dot(g.column(i), x.column(i)) - total;
                    for g in g.column_mut(i) {
                        *g *= inverse;
                    }
                }
            }
            Covariance::Full => {
                let scale = self.scale(theta, scratch);
                linalg::lower_transpose_solve(&scale, g.as_mut_slice(), draws_len);
                let mut d_scale = scratch.take(scale.len());
                linalg::lower_outer(g.as_slice(), x.as_slice(), &mut d_scale, draws_len);
                self.scale_pullback(&scale, d_scale, d_theta, scratch);
                for i in 0..self.len {
                    self.add_log_diagonal(d_theta, i, -total);
                }
                scratch.give(scale);
            }
        }
        for i in 0..self.len {
            d_theta[i] += g.column(i).iter().sum::<f64>();
        }
        vector::add_scaled(-1.0, g.as_slice(), d_lambda.as_mut_slice());
        scratch.give_batch(g);
    }

    /// λ = μ + L ε alone.
    pub(super) fn place(&self, theta: &[f64], eps: &Batch, lambda: &mut Batch, scratch: &mut Scratch) {
        match self.covariance {
            Covariance::Diagonal => {
                let mut scale = scratch.take(self.len);
                vector::exp(&theta[self.len..], &mut scale);
                shift_and_scale(&theta[..self.len], &scale, eps.as_slice(), lambda.as_mut_slice());
                scratch.give(scale);
            }
            Covariance::Full => {
                for i in 0..self.len {
                    lambda.column_mut(i).fill(theta[i]);
                }
                let scale = self.scale(theta, scratch);
                linalg::lower_multiply(&scale, eps.as_slice(), lambda.as_mut_slice(), eps.draws_len());
                scratch.give(scale);
            }
        }
    }

    /// The pullback of [`place`](Self::place).
    pub(super) fn place_pullback(
        &self,
        theta: &[f64],
        eps: &Batch,
        d_lambda: &Batch,
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        match self.covariance {
            Covariance::Diagonal => {
                let mut scale = scratch.take(self.len);
                vector::exp(&theta[self.len..], &mut scale);
                let (d_mean, d_log_scale) = d_theta.split_at_mut(self.len);
                shift_and_scale_pullback(&scale, eps.as_slice(), d_lambda.as_slice(), d_mean, d_log_scale);
                scratch.give(scale);
            }
            Covariance::Full => {
                for i in 0..self.len {
                    d_theta[i] += d_lambda.column(i).iter().sum::<f64>();
                }
                let mut d_scale = scratch.take(packed_len(self.len));
                linalg::lower_outer(d_lambda.as_slice(), eps.as_slice(), &mut d_scale, eps.draws_len());
                let scale = self.scale(theta, scratch);
                self.scale_pullback(&scale, d_scale, d_theta, scratch);
                scratch.give(scale);
            }
        }
    }

    /// Writes θ for one location with its scales or covariance.
    pub(super) fn initialize_at(&self, start: &Start, k: usize, theta: &mut [f64]) {
        let pick = |len: usize| k % len;
        let location = &start.locations[pick(start.locations.len())];
        let scales = &start.scales[pick(start.scales.len())];
        theta.fill(0.0);
        theta[..self.len].copy_from_slice(location);
        for i in 0..self.len {
            self.add_log_diagonal(theta, i, scales[i].max(1e-6).ln());
        }
        let covariance = start.covariances.get(pick(start.covariances.len().max(1))).and_then(Option::as_ref);
        if let (Covariance::Full, Some(covariance)) = (self.covariance, covariance)
            && let Some(scale) = linalg::cholesky(covariance, self.len)
        {
            for i in 0..self.len {
                let size = scale[packed(i, i)];
                for j in 0..i {
                    theta[self.len + packed(i, j)] = scale[packed(i, j)] / size;
                }
                theta[self.len + packed(i, i)] = size.ln();
            }
        }
    }

    /// Writes μ and the packed L.
    pub(super) fn write_component(&self, theta: &[f64], mean: &mut [f64], scale: &mut [f64]) {
        mean.copy_from_slice(&theta[..self.len]);
        match self.covariance {
            Covariance::Diagonal => {
                scale.fill(0.0);
                for i in 0..self.len {
                    scale[packed(i, i)] = theta[self.len + i].exp();
                }
            }
            Covariance::Full => self.write_scale(theta, scale),
        }
    }
}

impl Prior for Gaussian {
    fn name(&self) -> String {
        match self.covariance {
            Covariance::Diagonal => "gaussian (diagonal)".to_owned(),
            Covariance::Full => "gaussian (full)".to_owned(),
        }
    }

    fn lambda_len(&self) -> usize {
        self.len
    }

    fn parameters_len(&self) -> usize {
        self.len
            + match self.covariance {
                Covariance::Diagonal => self.len,
                Covariance::Full => packed_len(self.len),
            }
    }

    fn has_leading_density(&self) -> bool {
        true
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        self.place(theta, eps, lambda, scratch);
        match density {
            Density::Unneeded => {}
            Density::Whole => self.log_density_at_noise(theta, eps, self.len, log_q),
            Density::Leading(n) => self.log_density_at_noise(theta, eps, n, log_q),
        }
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
        let PriorPass { theta, eps, density, .. } = pass;
        self.place_pullback(theta, eps, d_lambda, d_theta, scratch);
        let n = match density {
            Density::Unneeded => 0,
            Density::Whole => self.len,
            Density::Leading(n) => n,
        };
        // At fixed ε, log q(λ(ε)) = log s(ε) − Σ log L_ii.
        let total: f64 = if n > 0 { d_log_q.iter().sum() } else { 0.0 };
        for i in 0..n {
            self.add_log_diagonal(d_theta, i, -total);
        }
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let mut x = scratch.take_batch(self.len, lambda.draws_len());
        self.whiten(theta, lambda, &mut x, scratch);
        self.log_density_at_noise(theta, &x, self.len, out);
        scratch.give_batch(x);
    }

    fn gaussians(&self) -> Option<&dyn Gaussians> {
        Some(self)
    }

    fn initialize(&self, start: &Start, _rng: &mut Stream, theta: &mut [f64]) {
        self.initialize_at(start, 0, theta);
    }
}

impl Gaussians for Gaussian {
    fn is_diagonal(&self) -> bool {
        self.covariance == Covariance::Diagonal
    }

    fn component(&self, theta: &[f64], _k: usize, mean: &mut [f64], scale: &mut [f64]) {
        self.write_component(theta, mean, scale);
    }
}

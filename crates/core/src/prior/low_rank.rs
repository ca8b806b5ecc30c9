//! A Gaussian whose covariance is diagonal plus low-rank: dependence between all λ at cost O(dr).
//!
//! λ = μ + D (I + U Uᵀ) ε, D = diag(e^ℓ), U of size d × r. The covariance is D (I + U (2I + UᵀU) Uᵀ) D, and every matrix of
//! the form "diagonal plus rank r" has such a root. There are as many noises as λ, so that r on the noise can be split by
//! latent. log|det| = Σ ℓ + log|I + UᵀU|.

use super::{Density, Prior, Start};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::HALF_LN_2_PI;
use hyperprior_math::vector::{add_scaled, dot};
use rand_distr::{Distribution, StandardNormal};

/// The map ε ↦ (I + U Uᵀ) ε; its parameters are U, column by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) len: usize,
    pub(super) rank: usize,
}

impl Spread {
    pub(super) fn parameters_len(self) -> usize {
        self.len * self.rank
    }

    /// a\[r\] ← Uᵀ x, a column per rank.
    fn project(self, u: &[f64], x: &Batch, a: &mut Batch) {
        for (r, u) in u.chunks_exact(self.len).enumerate() {
            let a = a.column_mut(r);
            a.fill(0.0);
            for (i, u) in u.iter().enumerate() {
                add_scaled(*u, x.column(i), a);
            }
        }
    }

    /// y ← ε + U (Uᵀ ε).
    pub(super) fn forward(self, u: &[f64], eps: &Batch, y: &mut Batch, scratch: &mut Scratch) {
        y.copy_from(eps);
        let mut a = scratch.take_batch(self.rank, eps.draws_len());
        self.project(u, eps, &mut a);
        for (r, u) in u.chunks_exact(self.len).enumerate() {
            for (i, u) in u.iter().enumerate() {
                add_scaled(*u, a.column(r), y.column_mut(i));
            }
        }
        scratch.give_batch(a);
    }

    /// d_u += Σ_s d_y (Uᵀε)ᵀ + ε (Uᵀ d_y)ᵀ.
    pub(super) fn pullback(self, u: &[f64], eps: &Batch, d_y: &Batch, d_u: &mut [f64], scratch: &mut Scratch) {
        let mut a = scratch.take_batch(self.rank, eps.draws_len());
        let mut d_a = scratch.take_batch(self.rank, eps.draws_len());
        self.project(u, eps, &mut a);
        self.project(u, d_y, &mut d_a);
        for (r, d_u) in d_u.chunks_exact_mut(self.len).enumerate() {
            for (i, d_u) in d_u.iter_mut().enumerate() {
                *d_u += dot(d_y.column(i), a.column(r)) + dot(eps.column(i), d_a.column(r));
            }
        }
        scratch.give_batch(d_a);
        scratch.give_batch(a);
    }

    /// UᵀU, row by row.
    pub(super) fn gram(self, u: &[f64], scratch: &mut Scratch) -> Vec<f64> {
        let mut gram = scratch.take(self.rank * self.rank);
        for (r, a) in u.chunks_exact(self.len).enumerate() {
            for (q, b) in u.chunks_exact(self.len).enumerate() {
                gram[r * self.rank + q] = dot(a, b);
            }
        }
        gram
    }

    /// The packed Cholesky factor of I + UᵀU, which is never singular.
    fn factor(self, u: &[f64], scratch: &mut Scratch) -> Vec<f64> {
        let gram = self.gram(u, scratch);
        let mut factor = scratch.take(linalg::packed_len(self.rank));
        for r in 0..self.rank {
            for q in 0..=r {
                factor[packed(r, q)] = gram[r * self.rank + q] + f64::from(r == q);
            }
        }
        linalg::cholesky_each(&mut factor, self.rank, 1);
        scratch.give(gram);
        factor
    }

    /// log|I + U Uᵀ| = log|I + UᵀU|.
    pub(super) fn log_det(self, u: &[f64], scratch: &mut Scratch) -> f64 {
        let factor = self.factor(u, scratch);
        let log_det = 2.0 * (0..self.rank).map(|r| factor[packed(r, r)].ln()).sum::<f64>();
        scratch.give(factor);
        log_det
    }

    /// d_u += scale · ∂ log|I + UᵀU| / ∂U = scale · 2 U (I + UᵀU)⁻¹.
    pub(super) fn log_det_pullback(self, u: &[f64], scale: f64, d_u: &mut [f64], scratch: &mut Scratch) {
        let factor = self.factor(u, scratch);
        // The columns of Uᵀ as draws: one solve for all rows of U.
        let mut solved = scratch.take(self.parameters_len());
        solved.copy_from_slice(u);
        linalg::lower_solve(&factor, &mut solved, self.len);
        linalg::lower_transpose_solve(&factor, &mut solved, self.len);
        add_scaled(2.0 * scale, &solved, d_u);
        scratch.give(solved);
        scratch.give(factor);
    }

    /// x ← (I + U Uᵀ)⁻¹ x = x − U (I + UᵀU)⁻¹ Uᵀ x.
    pub(super) fn invert(self, u: &[f64], x: &mut Batch, scratch: &mut Scratch) {
        let draws_len = x.draws_len();
        let mut a = scratch.take_batch(self.rank, draws_len);
        self.project(u, x, &mut a);
        let factor = self.factor(u, scratch);
        linalg::lower_solve(&factor, a.as_mut_slice(), draws_len);
        linalg::lower_transpose_solve(&factor, a.as_mut_slice(), draws_len);
        for (r, u) in u.chunks_exact(self.len).enumerate() {
            for (i, u) in u.iter().enumerate() {
                add_scaled(-*u, a.column(r), x.column_mut(i));
            }
        }
        scratch.give(factor);
        scratch.give_batch(a);
    }

    /// A U so small that the map is almost the identity, in random directions so that a fit can leave it: at U = 0 the gradient
    /// vanishes.
    pub(super) fn identity(self, rng: &mut Stream, u: &mut [f64]) {
        let scale = 0.1 / (self.len as f64).sqrt();
        for u in u {
            let normal: f64 = StandardNormal.sample(rng);
            *u = scale * normal;
        }
    }
}

/// N(μ, D (I + U Uᵀ)² D): diagonal plus rank r; θ is μ, ℓ, then U column by column.
///
/// ```
/// use hyperprior::prior::{LowRank, Prior};
/// let prior = LowRank::new(100, 5)?;
/// assert_eq!(prior.parameters_len(), 100 + 100 + 500);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowRank {
    spread: Spread,
}

impl LowRank {
    /// Over `lambda_len` numbers with this rank; rank 0 is the diagonal Gaussian.
    ///
    /// # Errors
    /// [`Error::BadPart`] for length 0, or if the rank exceeds the length.
    pub fn new(lambda_len: usize, rank: usize) -> Result<Self> {
        let bad = |reason: String| Err(Error::BadPart { part: "a low-rank Gaussian prior".to_owned(), reason });
        if lambda_len == 0 {
            return bad("it has no parameters; the likelihood must have at least one".to_owned());
        }
        if rank > lambda_len {
            return bad(format!("rank {rank} exceeds its {lambda_len} parameters; use at most {lambda_len}"));
        }
        Ok(Self { spread: Spread { len: lambda_len, rank } })
    }

    fn split<'a>(&self, theta: &'a [f64]) -> [&'a [f64]; 3] {
        let (mean, rest) = theta.split_at(self.spread.len);
        let (log_scale, u) = rest.split_at(self.spread.len);
        [mean, log_scale, u]
    }

    /// log N at the noise: −½ε² − Σ ℓ − log|I + UᵀU| − const.
    fn log_density_at_noise(&self, theta: &[f64], eps: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let [_, log_scale, u] = self.split(theta);
        let constant = log_scale.iter().map(|l| l + HALF_LN_2_PI).sum::<f64>() + self.spread.log_det(u, scratch);
        out.fill(-constant);
        for i in 0..self.spread.len {
            for (o, e) in out.iter_mut().zip(eps.column(i)) {
                *o -= 0.5 * e * e;
            }
        }
    }
}

impl Prior for LowRank {
    fn name(&self) -> String {
        format!("gaussian (rank {})", self.spread.rank)
    }

    fn lambda_len(&self) -> usize {
        self.spread.len
    }

    fn parameters_len(&self) -> usize {
        2 * self.spread.len + self.spread.parameters_len()
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        let [mean, log_scale, u] = self.split(theta);
        self.spread.forward(u, eps, lambda, scratch);
        for (i, (mean, log_scale)) in mean.iter().zip(log_scale).enumerate() {
            let scale = log_scale.exp();
            lambda.column_mut(i).iter_mut().for_each(|x| *x = mean + scale * *x);
        }
        if density == Density::Whole {
            self.log_density_at_noise(theta, eps, log_q, scratch);
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
        let PriorPass { theta, eps, density, .. } = pass;
        let [mean, log_scale, u] = self.split(theta);
        let n = self.spread.len;
        let (d_mean, rest) = d_theta.split_at_mut(n);
        let (d_log_scale, d_u) = rest.split_at_mut(n);
        let total = if density == Density::Whole { d_log_q.iter().sum() } else { 0.0 };
        let mut d_y = scratch.take_batch(n, eps.draws_len());
        for i in 0..n {
            let (d, scale) = (d_lambda.column(i), log_scale[i].exp());
            let sum: f64 = d.iter().sum();
            d_mean[i] += sum;
            // D y = λ − μ.
            d_log_scale[i] += dot(d, lambda.column(i)) - mean[i] * sum - total;
            for (d_y, d) in d_y.column_mut(i).iter_mut().zip(d) {
                *d_y = scale * d;
            }
        }
        self.spread.pullback(u, eps, &d_y, d_u, scratch);
        if total != 0.0 {
            self.spread.log_det_pullback(u, -total, d_u, scratch);
        }
        scratch.give_batch(d_y);
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let [mean, log_scale, u] = self.split(theta);
        let mut x = scratch.take_batch(self.spread.len, lambda.draws_len());
        for (i, (mean, log_scale)) in mean.iter().zip(log_scale).enumerate() {
            let inverse = (-log_scale).exp();
            for (x, l) in x.column_mut(i).iter_mut().zip(lambda.column(i)) {
                *x = (l - mean) * inverse;
            }
        }
        self.spread.invert(u, &mut x, scratch);
        self.log_density_at_noise(theta, &x, out, scratch);
        scratch.give_batch(x);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let n = self.spread.len;
        theta[..n].copy_from_slice(&start.locations[0]);
        for (t, scale) in theta[n..2 * n].iter_mut().zip(&start.scales[0]) {
            *t = scale.max(1e-6).ln();
        }
        self.spread.identity(rng, &mut theta[2 * n..]);
    }
}

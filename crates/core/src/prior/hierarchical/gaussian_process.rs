//! The variational Gaussian process (Tran, Ranganath and Blei, 2016) as a level: λ_i = f_i(ξ), each f_i a Gaussian process
//! conditioned on variational data.
//!
//! With N inputs s and outputs t_i, λ_i given ξ is normal with mean m_i + K_ξs K_ss⁻¹ t_i and variance
//! k(ξ, ξ) − K_ξs K_ss⁻¹ K_sξ, for the kernel k(a, b) = σ² exp(−½ Σ_c (a_c − b_c)² / ℓ_c²). As N grows the level can match
//! any distribution. O(dN + N²) per draw, and O(N³) once.

use super::LevelMap;
use crate::error::{Error, Result};
use crate::prior::Start;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::normal_quantile;
use hyperprior_math::vector::{add_scaled, dot};
use rand_distr::{Distribution, StandardNormal};

/// White noise in the kernel, relative to σ²: it is added to the diagonal of K_ss and to the variance, and keeps both away from
/// zero.
const JITTER: f64 = 1e-4;

/// Means and scales given by Gaussian processes over the level above; parameters m, then ln σ, ln ℓ, the inputs s (input by
/// input, each relative to its initial place, see [`place`](Self::place)) and the outputs t (λ by λ).
///
/// ```
/// use hyperprior::prior::{Covariance, Gaussian, GaussianProcessMap, Hierarchical, Prior};
/// let upper = Gaussian::new(1, Covariance::Diagonal)?;
/// let prior = Hierarchical::new(upper, GaussianProcessMap::new(5, 1, 4)?)?;
/// assert_eq!((prior.lambda_len(), prior.noise_len()), (5, 5 + 1));
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaussianProcessMap {
    lambda_len: usize,
    upper_len: usize,
    data_len: usize,
}

/// The parameters by kind.
struct Parts<'a> {
    m: &'a [f64],
    log_sigma: f64,
    log_length: &'a [f64],
    inputs: &'a [f64],
    outputs: &'a [f64],
}

/// The part that does not depend on ξ: the packed Cholesky factor of K_ss, and α = K_ss⁻¹ t (λ by λ).
struct Solved {
    factor: Vec<f64>,
    alpha: Vec<f64>,
}

impl GaussianProcessMap {
    /// From `upper_len` inputs ξ to `lambda_len` λ, with `data_len` variational data.
    ///
    /// # Errors
    /// [`Error::BadPart`] without data.
    pub fn new(lambda_len: usize, upper_len: usize, data_len: usize) -> Result<Self> {
        if data_len == 0 || lambda_len == 0 {
            let reason = "it has no variational data or no parameters; use at least 1 of each".to_owned();
            return Err(Error::BadPart { part: "a Gaussian process prior".to_owned(), reason });
        }
        Ok(Self { lambda_len, upper_len, data_len })
    }

    fn parts<'a>(&self, theta: &'a [f64]) -> Parts<'a> {
        let (m, rest) = theta.split_at(self.lambda_len);
        let (kernel, rest) = rest.split_at(1 + self.upper_len);
        let (inputs, outputs) = rest.split_at(self.data_len * self.upper_len);
        Parts { m, log_sigma: kernel[0], log_length: &kernel[1..], inputs, outputs }
    }

    /// The initial place of input `a` along coordinate `c`, when its parameter is zero: spread over twice the range of a standard
    /// normal, in a different order along each coordinate, so that no two inputs start close together.
    pub fn place(&self, a: usize, c: usize) -> f64 {
        // A multiplier coprime to N visits every rank once.
        let multiplier = (2 * c + 1..).find(|m| greatest_divisor(*m, self.data_len) == 1).unwrap_or(1);
        let rank = (a * multiplier + c) % self.data_len;
        2.0 * normal_quantile((rank as f64 + 0.5) / self.data_len as f64)
    }

    fn input(&self, parts: &Parts, a: usize, c: usize) -> f64 {
        self.place(a, c) + parts.inputs[a * self.upper_len + c]
    }

    /// k(s_a, s_b), without the jitter.
    fn kernel(&self, parts: &Parts, a: usize, b: usize) -> f64 {
        let along = |c| ((self.input(parts, a, c) - self.input(parts, b, c)) * (-parts.log_length[c]).exp()).powi(2);
        (2.0 * parts.log_sigma - 0.5 * (0..self.upper_len).map(along).sum::<f64>()).exp()
    }

    fn solve(&self, parts: &Parts, scratch: &mut Scratch) -> Solved {
        let n = self.data_len;
        let mut factor = scratch.take(packed_len(n));
        for a in 0..n {
            for b in 0..=a {
                let jitter = if a == b { JITTER * (2.0 * parts.log_sigma).exp() } else { 0.0 };
                factor[packed(a, b)] = self.kernel(parts, a, b) + jitter;
            }
        }
        linalg::cholesky_each(&mut factor, n, 1);
        // The outputs as draws: one column per datum.
        let mut columns = scratch.take(n * self.lambda_len);
        for i in 0..self.lambda_len {
            for a in 0..n {
                columns[a * self.lambda_len + i] = parts.outputs[i * n + a];
            }
        }
        linalg::lower_solve(&factor, &mut columns, self.lambda_len);
        linalg::lower_transpose_solve(&factor, &mut columns, self.lambda_len);
        let mut alpha = scratch.take(n * self.lambda_len);
        for i in 0..self.lambda_len {
            for a in 0..n {
                alpha[i * n + a] = columns[a * self.lambda_len + i];
            }
        }
        scratch.give(columns);
        Solved { factor, alpha }
    }

    /// K_sξ of every draw, a column per datum, and v = K_ss⁻¹ K_sξ.
    fn cross(&self, parts: &Parts, solved: &Solved, upper: &Batch, scratch: &mut Scratch) -> (Batch, Batch) {
        let draws_len = upper.draws_len();
        let mut k = scratch.take_batch(self.data_len, draws_len);
        for a in 0..self.data_len {
            let column = k.column_mut(a);
            column.fill(2.0 * parts.log_sigma);
            for c in 0..self.upper_len {
                let (s, inverse) = (self.input(parts, a, c), (-parts.log_length[c]).exp());
                for (k, x) in column.iter_mut().zip(upper.column(c)) {
                    *k -= 0.5 * ((x - s) * inverse).powi(2);
                }
            }
            column.iter_mut().for_each(|k| *k = k.exp());
        }
        let mut v = scratch.take_batch(self.data_len, draws_len);
        v.copy_from(&k);
        linalg::lower_solve(&solved.factor, v.as_mut_slice(), draws_len);
        linalg::lower_transpose_solve(&solved.factor, v.as_mut_slice(), draws_len);
        (k, v)
    }

    /// The variance of every draw: σ² (1 + jitter) − kᵀ v.
    fn variance(&self, parts: &Parts, k: &Batch, v: &Batch, out: &mut [f64]) {
        out.fill((2.0 * parts.log_sigma).exp() * (1.0 + JITTER));
        for a in 0..self.data_len {
            for ((o, k), v) in out.iter_mut().zip(k.column(a)).zip(v.column(a)) {
                *o -= k * v;
            }
        }
        // Rounding may take it below the minimum that the jitter guarantees.
        let least = (2.0 * parts.log_sigma).exp() * JITTER * 0.5;
        out.iter_mut().for_each(|o| *o = o.max(least));
    }
}

fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// The cotangents of the kernel's ingredients.
struct Cotangents<'a> {
    log_sigma: &'a mut f64,
    log_length: &'a mut [f64],
    inputs: &'a mut [f64],
}

impl LevelMap for GaussianProcessMap {
    fn name(&self) -> String {
        format!("gaussian process with {} data", self.data_len)
    }

    fn upper_len(&self) -> usize {
        self.upper_len
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn parameters_len(&self) -> usize {
        self.lambda_len + 1 + self.upper_len + self.data_len * (self.upper_len + self.lambda_len)
    }

    fn forward(&self, theta: &[f64], upper: &Batch, mean: &mut Batch, log_scale: &mut Batch, scratch: &mut Scratch) {
        let parts = self.parts(theta);
        let solved = self.solve(&parts, scratch);
        let (k, v) = self.cross(&parts, &solved, upper, scratch);
        let mut variance = scratch.take(upper.draws_len());
        self.variance(&parts, &k, &v, &mut variance);
        variance.iter_mut().for_each(|x| *x = 0.5 * x.ln());
        for i in 0..self.lambda_len {
            let column = mean.column_mut(i);
            column.fill(parts.m[i]);
            for a in 0..self.data_len {
                add_scaled(solved.alpha[i * self.data_len + a], k.column(a), column);
            }
            log_scale.column_mut(i).copy_from_slice(&variance);
        }
        for buffer in [variance, solved.alpha, solved.factor] {
            scratch.give(buffer);
        }
        scratch.give_batch(v);
        scratch.give_batch(k);
    }

    fn pullback(
        &self,
        theta: &[f64],
        upper: &Batch,
        d_mean: &Batch,
        d_log_scale: &Batch,
        d_upper: &mut Batch,
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.data_len, upper.draws_len());
        let parts = self.parts(theta);
        let solved = self.solve(&parts, scratch);
        let (k, v) = self.cross(&parts, &solved, upper, scratch);
        let mut d_variance = scratch.take(draws_len);
        self.variance(&parts, &k, &v, &mut d_variance);
        for s in 0..draws_len {
            let total: f64 = (0..self.lambda_len).map(|i| d_log_scale.get(i, s)).sum();
            d_variance[s] = 0.5 * total / d_variance[s];
        }
        // Through the means: dα_i = Σ_s d_mean_i k; dt_i = K⁻¹ dα_i; dK = −(K⁻¹ dα_i) α_iᵀ.
        // Through the variance: dk = −2 v, dK = v vᵀ.
        let mut d_k = scratch.take_batch(n, draws_len);
        let mut d_outputs = scratch.take(n * self.lambda_len);
        for i in 0..self.lambda_len {
            d_theta[i] += d_mean.column(i).iter().sum::<f64>();
            for a in 0..n {
                add_scaled(solved.alpha[i * n + a], d_mean.column(i), d_k.column_mut(a));
                d_outputs[a * self.lambda_len + i] = dot(d_mean.column(i), k.column(a));
            }
        }
        linalg::lower_solve(&solved.factor, &mut d_outputs, self.lambda_len);
        linalg::lower_transpose_solve(&solved.factor, &mut d_outputs, self.lambda_len);
        for a in 0..n {
            for ((d, v), w) in d_k.column_mut(a).iter_mut().zip(v.column(a)).zip(&d_variance) {
                *d -= 2.0 * w * v;
            }
        }
        let (head, rest) = d_theta[self.lambda_len..].split_at_mut(1 + self.upper_len);
        let (d_inputs, d_t) = rest.split_at_mut(n * self.upper_len);
        let (d_sigma, d_length) = head.split_at_mut(1);
        let mut to = Cotangents { log_sigma: &mut d_sigma[0], log_length: d_length, inputs: d_inputs };
        for i in 0..self.lambda_len {
            for a in 0..n {
                d_t[i * n + a] += d_outputs[a * self.lambda_len + i];
            }
        }
        for a in 0..n {
            for b in 0..n {
                let through_means: f64 =
                    (0..self.lambda_len).map(|i| d_outputs[a * self.lambda_len + i] * solved.alpha[i * n + b]).sum();
                let through_variance: f64 = (0..draws_len).map(|s| d_variance[s] * v.get(a, s) * v.get(b, s)).sum();
                self.kernel_pullback(&parts, a, b, through_variance - through_means, &mut to);
            }
        }
        for a in 0..n {
            self.cross_pullback(&parts, a, upper, k.column(a), d_k.column(a), d_upper, &mut to);
        }
        // σ² (1 + jitter) in the variance.
        let sigma2 = (2.0 * parts.log_sigma).exp();
        *to.log_sigma += 2.0 * sigma2 * (1.0 + JITTER) * d_variance.iter().sum::<f64>();
        for buffer in [d_outputs, d_variance, solved.alpha, solved.factor] {
            scratch.give(buffer);
        }
        for batch in [d_k, v, k] {
            scratch.give_batch(batch);
        }
    }

    /// Inputs at their initial places, small random outputs, σ as large as the start's scales on average.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        theta.fill(0.0);
        theta[..self.lambda_len].copy_from_slice(&start.locations[0]);
        let scale = (start.scales[0].iter().sum::<f64>() / self.lambda_len as f64).max(1e-6);
        theta[self.lambda_len] = scale.ln();
        let outputs = self.parameters_len() - self.data_len * self.lambda_len;
        for t in &mut theta[outputs..] {
            let normal: f64 = StandardNormal.sample(rng);
            *t = 0.1 * scale * normal;
        }
    }
}

impl GaussianProcessMap {
    /// The pullback of K_ab, the jitter included.
    fn kernel_pullback(&self, parts: &Parts, a: usize, b: usize, d: f64, to: &mut Cotangents) {
        let value = self.kernel(parts, a, b);
        let jitter = if a == b { JITTER * (2.0 * parts.log_sigma).exp() } else { 0.0 };
        *to.log_sigma += 2.0 * d * (value + jitter);
        for c in 0..self.upper_len {
            let inverse = (-2.0 * parts.log_length[c]).exp();
            let difference = self.input(parts, a, c) - self.input(parts, b, c);
            to.log_length[c] += d * value * difference * difference * inverse;
            to.inputs[a * self.upper_len + c] -= d * value * difference * inverse;
            to.inputs[b * self.upper_len + c] += d * value * difference * inverse;
        }
    }

    /// The pullback of k(s_a, ξ) over the draws.
    fn cross_pullback(
        &self,
        parts: &Parts,
        a: usize,
        upper: &Batch,
        k: &[f64],
        d_k: &[f64],
        d_upper: &mut Batch,
        to: &mut Cotangents,
    ) {
        *to.log_sigma += 2.0 * dot(d_k, k);
        for c in 0..self.upper_len {
            let (input, inverse) = (self.input(parts, a, c), (-2.0 * parts.log_length[c]).exp());
            for (s, d_x) in d_upper.column_mut(c).iter_mut().enumerate() {
                let (difference, d) = (upper.get(c, s) - input, d_k[s] * k[s]);
                *d_x -= d * difference * inverse;
                to.inputs[a * self.upper_len + c] += d * difference * inverse;
                to.log_length[c] += d * difference * difference * inverse;
            }
        }
    }
}

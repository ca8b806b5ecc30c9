//! A Gaussian copula: any marginals for the λ_i, and a low-rank correlation between them.
//!
//! x = S⁻¹ (I + U Uᵀ) ε with S the rows' lengths, so that every x_i is a standard normal and x has a correlation matrix of the
//! form "diagonal plus rank r"; λ_i = h_i(x_i), increasing. Then
//! log q(λ) = log N(ε) − log|I + UᵀU| + Σ log s_i − Σ log h_i'(x_i). O(dr²).

use super::low_rank::Spread;
use super::marginal::Marginal;
use super::{Density, Prior, Start, log_standard_normal};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::dot;

/// A Gaussian copula of low rank; θ is U column by column, then each marginal's parameters.
///
/// ```
/// use hyperprior::prior::{Copula, Prior, SinhArcsinh};
/// let prior = Copula::of(SinhArcsinh, 10, 2)?;
/// assert_eq!(prior.parameters_len(), 2 * 10 + 4 * 10);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct Copula {
    marginals: Vec<Box<dyn Marginal>>,
    /// Where the parameters of each marginal start.
    offsets: Vec<usize>,
    spread: Spread,
}

impl Copula {
    /// These marginals, with a correlation of this rank; with rank 0 they are independent.
    ///
    /// # Errors
    /// [`Error::BadPart`] without marginals, or if the rank exceeds their number.
    pub fn new(marginals: Vec<Box<dyn Marginal>>, rank: usize) -> Result<Self> {
        let len = marginals.len();
        let bad = |reason: String| Err(Error::BadPart { part: "a copula prior".to_owned(), reason });
        if len == 0 {
            return bad("it has no marginals; give one for every parameter".to_owned());
        }
        if rank > len {
            return bad(format!("rank {rank} exceeds its {len} parameters; use at most {len}"));
        }
        let mut offsets = Vec::with_capacity(len);
        let mut end = len * rank;
        for marginal in &marginals {
            offsets.push(end);
            end += marginal.parameters_len();
        }
        Ok(Self { marginals, offsets, spread: Spread { len, rank } })
    }

    /// The same kind of marginal for every λ.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of<M: Marginal + Copy + 'static>(marginal: M, lambda_len: usize, rank: usize) -> Result<Self> {
        Self::new((0..lambda_len).map(|_| Box::new(marginal) as Box<dyn Marginal>).collect(), rank)
    }

    fn range(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i]..self.offsets[i] + self.marginals[i].parameters_len()
    }

    /// s_i², the squared lengths of the rows of I + U Uᵀ: 1 + 2 |u_i|² + u_iᵀ (UᵀU) u_i.
    fn squared_lengths(&self, u: &[f64], gram: &[f64], out: &mut [f64]) {
        let Spread { len, rank } = self.spread;
        for (i, out) in out.iter_mut().enumerate() {
            *out = 1.0;
            for r in 0..rank {
                let along: f64 = (0..rank).map(|q| gram[r * rank + q] * u[q * len + i]).sum();
                *out += u[r * len + i] * (2.0 * u[r * len + i] + along);
            }
        }
    }

    /// d_u += Σ_i d_squared\[i\] ∂s_i²/∂U.
    fn squared_lengths_pullback(&self, u: &[f64], gram: &[f64], d_squared: &[f64], d_u: &mut [f64]) {
        let Spread { len, rank } = self.spread;
        // Directly through u_i: 4 u_i + 2 G u_i; through G = UᵀU: Σ_i d_i u_i u_iᵀ = H, then 2 U H.
        for r in 0..rank {
            for q in 0..rank {
                let h: f64 = (0..len).map(|i| d_squared[i] * u[r * len + i] * u[q * len + i]).sum();
                for i in 0..len {
                    d_u[q * len + i] += 2.0 * h * u[r * len + i];
                    d_u[r * len + i] += 2.0 * d_squared[i] * gram[r * rank + q] * u[q * len + i];
                }
            }
            for i in 0..len {
                d_u[r * len + i] += 4.0 * d_squared[i] * u[r * len + i];
            }
        }
    }

    /// x = S⁻¹ (I + U Uᵀ) ε; returns the squared lengths s² and the Gram matrix UᵀU.
    fn correlate(&self, theta: &[f64], eps: &Batch, x: &mut Batch, scratch: &mut Scratch) -> (Vec<f64>, Vec<f64>) {
        let u = &theta[..self.spread.parameters_len()];
        self.spread.forward(u, eps, x, scratch);
        let gram = self.spread.gram(u, scratch);
        let mut squared = scratch.take(self.spread.len);
        self.squared_lengths(u, &gram, &mut squared);
        for (i, squared) in squared.iter().enumerate() {
            let inverse = squared.sqrt().recip();
            x.column_mut(i).iter_mut().for_each(|x| *x *= inverse);
        }
        (squared, gram)
    }
}

impl Prior for Copula {
    fn name(&self) -> String {
        let first = self.marginals[0].name();
        let name = if self.marginals.iter().all(|m| m.name() == first) { first } else { "mixed" };
        format!("copula of {name} marginals (rank {})", self.spread.rank)
    }

    fn lambda_len(&self) -> usize {
        self.spread.len
    }

    fn parameters_len(&self) -> usize {
        self.spread.parameters_len() + self.marginals.iter().map(|m| m.parameters_len()).sum::<usize>()
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        let (squared, gram) = self.correlate(theta, eps, lambda, scratch);
        if density == Density::Whole {
            let u = &theta[..self.spread.parameters_len()];
            log_standard_normal(eps, 0..self.spread.len, log_q);
            let constant = 0.5 * squared.iter().map(|s| s.ln()).sum::<f64>() - self.spread.log_det(u, scratch);
            log_q.iter_mut().for_each(|q| *q += constant);
        }
        let mut log_slopes = scratch.take(eps.draws_len());
        for (i, marginal) in self.marginals.iter().enumerate() {
            marginal.forward_each(&theta[self.range(i)], lambda.column_mut(i), &mut log_slopes);
            if density == Density::Whole {
                log_q.iter_mut().zip(&log_slopes).for_each(|(q, log_slope)| *q -= log_slope);
            }
        }
        scratch.give(log_slopes);
        scratch.give(squared);
        scratch.give(gram);
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
        let (n, draws_len) = (self.spread.len, eps.draws_len());
        let u = &theta[..self.spread.parameters_len()];
        let mut x = scratch.take_batch(n, draws_len);
        let (squared, gram) = self.correlate(theta, eps, &mut x, scratch);
        let mut d_y = scratch.take_batch(n, draws_len);
        let mut d_squared = scratch.take(n);
        let total = if density == Density::Whole { d_log_q.iter().sum() } else { 0.0 };
        let mut d_log_slopes = scratch.take(draws_len);
        if density == Density::Whole {
            d_log_slopes.iter_mut().zip(d_log_q).for_each(|(d, d_log_q)| *d = -d_log_q);
        }
        for (i, marginal) in self.marginals.iter().enumerate() {
            let (range, d_y) = (self.range(i), d_y.column_mut(i));
            let d = &mut d_theta[range.clone()];
            d_y.copy_from_slice(x.column(i));
            marginal.pullback_each(&theta[range], d_y, d_lambda.column(i), &d_log_slopes, d);
            // x = y / s, so ∂x/∂s² = −x / (2 s²); log q holds ½ log s².
            d_squared[i] = 0.5 * (total - dot(d_y, x.column(i))) / squared[i];
            let inverse = squared[i].sqrt().recip();
            d_y.iter_mut().for_each(|d| *d *= inverse);
        }
        let d_u = &mut d_theta[..self.spread.parameters_len()];
        self.spread.pullback(u, eps, &d_y, d_u, scratch);
        self.squared_lengths_pullback(u, &gram, &d_squared, d_u);
        if total != 0.0 {
            self.spread.log_det_pullback(u, -total, d_u, scratch);
        }
        for buffer in [d_log_slopes, d_squared, squared, gram] {
            scratch.give(buffer);
        }
        scratch.give_batch(d_y);
        scratch.give_batch(x);
    }

    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch) {
        let u = &theta[..self.spread.parameters_len()];
        let gram = self.spread.gram(u, scratch);
        let mut squared = scratch.take(self.spread.len);
        self.squared_lengths(u, &gram, &mut squared);
        let mut x = scratch.take_batch(self.spread.len, lambda.draws_len());
        let mut slopes = scratch.take(out.len());
        for (i, marginal) in self.marginals.iter().enumerate() {
            let (parameters, length) = (&theta[self.range(i)], squared[i].sqrt());
            for (s, l) in lambda.column(i).iter().enumerate() {
                let inverse = marginal.inverse(parameters, *l);
                slopes[s] += marginal.forward(parameters, inverse).1 - length.ln();
                x.set(i, s, inverse * length);
            }
        }
        self.spread.invert(u, &mut x, scratch);
        log_standard_normal(&x, 0..self.spread.len, out);
        let log_det = self.spread.log_det(u, scratch);
        for (o, slope) in out.iter_mut().zip(&slopes) {
            *o -= slope + log_det;
        }
        for buffer in [slopes, squared, gram] {
            scratch.give(buffer);
        }
        scratch.give_batch(x);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        self.spread.identity(rng, &mut theta[..self.spread.parameters_len()]);
        for (i, marginal) in self.marginals.iter().enumerate() {
            marginal.start(start.locations[0][i], start.scales[0][i].max(1e-6), &mut theta[self.range(i)]);
        }
    }
}

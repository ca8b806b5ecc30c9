//! A Gaussian copula: any marginals for the λ_i, and a low-rank correlation between them.
//!
//! x = S⁻¹ (I + U Uᵀ) ε with S the rows' lengths, so that every x_i is a standard normal and x has a correlation matrix of the
//! form "diagonal plus rank r"; λ_i = h_i(x_i), increasing. Then
//! log q(λ) = log N(ε) − log|I + UᵀU| + Σ log s_i − Σ log h_i'(x_i). O(dr²).

use super::low_rank::Spread;
use super::{Density, Prior, Start, log_standard_normal};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::dot;

/// A marginal distribution of one λ, as an increasing map of a standard normal.
///
/// ```
/// use hyperprior::prior::{Marginal, NormalMarginal};
/// let (lambda, log_slope) = NormalMarginal.forward(&[2.0, 0.0], 0.5);
/// assert_eq!((lambda, log_slope), (2.5, 0.0));
/// assert_eq!(NormalMarginal.inverse(&[2.0, 0.0], lambda), 0.5);
/// ```
pub trait Marginal: std::fmt::Debug + Send + Sync {
    /// A short name.
    fn name(&self) -> &'static str;

    /// How many parameters it has.
    fn parameters_len(&self) -> usize;

    /// h(x) and log h'(x).
    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64);

    /// Given the cotangents of h(x) and of log h'(x): adds to those of the parameters and returns that of x.
    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64;

    /// The x with h(x) = λ.
    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64;

    /// Parameters of the normal with this mean and standard deviation, or the closest available.
    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]);
}

/// N(m, e^{2l}): h(x) = m + e^l x. See [`Marginal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NormalMarginal;

impl Marginal for NormalMarginal {
    fn name(&self) -> &'static str {
        "normal"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64) {
        (parameters[0] + parameters[1].exp() * x, parameters[1])
    }

    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64 {
        let scale = parameters[1].exp();
        d_parameters[0] += d_value;
        d_parameters[1] += d_value * scale * x + d_log_slope;
        d_value * scale
    }

    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64 {
        (lambda - parameters[0]) * (-parameters[1]).exp()
    }

    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]) {
        parameters.copy_from_slice(&[mean, deviation.ln()]);
    }
}

/// The sinh–arcsinh distribution (Jones and Pewsey, 2009): h(x) = m + e^l sinh((asinh x + a) e^b), skewed by a, with tails
/// heavier than the normal's where b > 0 and lighter where b < 0. See [`Copula`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinhArcsinh;

impl Marginal for SinhArcsinh {
    fn name(&self) -> &'static str {
        "sinh-arcsinh"
    }

    fn parameters_len(&self) -> usize {
        4
    }

    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64) {
        let &[m, l, a, b] = parameters else { return (f64::NAN, f64::NAN) };
        let w = (x.asinh() + a) * b.exp();
        (m + l.exp() * w.sinh(), l + log_cosh(w) + b - 0.5 * (x * x).ln_1p())
    }

    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64 {
        let &[_, l, a, b] = parameters else { return f64::NAN };
        let (tail, scale) = (b.exp(), l.exp());
        let w = (x.asinh() + a) * tail;
        let d_w = d_value * scale * w.cosh() + d_log_slope * w.tanh();
        d_parameters[0] += d_value;
        d_parameters[1] += d_value * scale * w.sinh() + d_log_slope;
        d_parameters[2] += d_w * tail;
        d_parameters[3] += d_w * w + d_log_slope;
        d_w * tail / (1.0 + x * x).sqrt() - d_log_slope * x / (1.0 + x * x)
    }

    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64 {
        let &[m, l, a, b] = parameters else { return f64::NAN };
        (((lambda - m) * (-l).exp()).asinh() * (-b).exp() - a).sinh()
    }

    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]) {
        parameters.copy_from_slice(&[mean, deviation.ln(), 0.0, 0.0]);
    }
}

fn log_cosh(w: f64) -> f64 {
    w.abs() + (-2.0 * w.abs()).exp().ln_1p() - std::f64::consts::LN_2
}

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
        for (i, marginal) in self.marginals.iter().enumerate() {
            let parameters = &theta[self.range(i)];
            for (s, x) in lambda.column_mut(i).iter_mut().enumerate() {
                let (value, log_slope) = marginal.forward(parameters, *x);
                *x = value;
                if density == Density::Whole {
                    log_q[s] -= log_slope;
                }
            }
        }
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
        for (i, marginal) in self.marginals.iter().enumerate() {
            let (range, d_y) = (self.range(i), d_y.column_mut(i));
            for s in 0..draws_len {
                let d_log_slope = if density == Density::Whole { -d_log_q[s] } else { 0.0 };
                let d_value = d_lambda.get(i, s);
                let d = &mut d_theta[range.clone()];
                d_y[s] = marginal.pullback(&theta[range.clone()], x.get(i, s), d_value, d_log_slope, d);
            }
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
        for buffer in [d_squared, squared, gram] {
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

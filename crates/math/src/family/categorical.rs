//! The categorical family.

use super::{Family, Support};
use crate::random::Stream;
use rand::RngExt;

/// Why a [`Categorical`] could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CategoricalError {
    /// One value would be a constant, and none no distribution.
    #[error("a categorical needs at least two values, not {len}")]
    TooFewValues {
        /// The requested number.
        len: usize,
    },
}

/// One of the values 0, …, K−1: q(z | λ) = e^{λ_z} / Σₖ e^{λₖ} with λ₀ = 0, so that λ holds K−1 logits relative to value 0.
///
/// ```
/// use hyperprior_math::family::{Categorical, Family};
/// let mut log_q = [0.0];
/// Categorical::new(3)?.log_density(&[0.0, 2f64.ln()], &[2.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.5).abs() < 1e-15);
/// # Ok::<(), hyperprior_math::family::CategoricalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Categorical {
    len: usize,
}

/// The logits of one draw, and ln Σ e^λ split into its largest term and the rest so that nothing overflows.
struct Logits<'a> {
    lambda: &'a [f64],
    draws_len: usize,
    draw: usize,
    largest: f64,
    total: f64,
}

impl<'a> Logits<'a> {
    fn new(lambda: &'a [f64], draws_len: usize, draw: usize) -> Self {
        let mut logits = Self { lambda, draws_len, draw, largest: 0.0, total: 0.0 };
        logits.largest = (0..logits.len()).map(|k| logits.get(k)).fold(0.0, f64::max);
        logits.total = (0..logits.len()).map(|k| (logits.get(k) - logits.largest).exp()).sum();
        logits
    }

    fn len(&self) -> usize {
        self.lambda.len() / self.draws_len + 1
    }

    fn get(&self, k: usize) -> f64 {
        if k == 0 { 0.0 } else { self.lambda[(k - 1) * self.draws_len + self.draw] }
    }

    fn log_probability(&self, k: usize) -> f64 {
        self.get(k) - self.largest - self.total.ln()
    }

    fn probability(&self, k: usize) -> f64 {
        (self.get(k) - self.largest).exp() / self.total
    }
}

impl Categorical {
    /// The categorical of `len` values.
    ///
    /// # Errors
    /// If there are fewer than two values.
    pub fn new(len: usize) -> Result<Self, CategoricalError> {
        if len < 2 { Err(CategoricalError::TooFewValues { len }) } else { Ok(Self { len }) }
    }

    /// How many values.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Family for Categorical {
    fn name(&self) -> &'static str {
        "categorical"
    }

    fn parameters_len(&self) -> usize {
        self.len - 1
    }

    fn support(&self) -> Support {
        Support::Integers { lower: 0.0, upper: (self.len - 1) as f64 }
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        for (s, (out, &z_s)) in out.iter_mut().zip(z).enumerate() {
            *out = if self.support().contains(z_s) {
                Logits::new(lambda, z.len(), s).log_probability(z_s as usize)
            } else {
                f64::NEG_INFINITY
            };
        }
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        let draws_len = z.len();
        for s in (0..draws_len).filter(|&s| signal[s] != 0.0) {
            let logits = Logits::new(lambda, draws_len, s);
            for k in 1..self.len {
                let indicator = f64::from(z[s] == k as f64);
                d_lambda[(k - 1) * draws_len + s] += signal[s] * (indicator - logits.probability(k));
            }
        }
    }

    fn log_densities(&self, lambda: &[f64], values: &[f64], z: &mut [f64], out: &mut [f64]) {
        let draws_len = z.len();
        for s in 0..draws_len {
            let logits = Logits::new(lambda, draws_len, s);
            let constant = logits.largest + logits.total.ln();
            for (v, value) in values.iter().enumerate() {
                let inside = self.support().contains(*value);
                out[v * draws_len + s] =
                    if inside { logits.get(*value as usize) - constant } else { f64::NEG_INFINITY };
            }
        }
    }

    fn scores(&self, lambda: &[f64], values: &[f64], z: &mut [f64], signal: &[f64], d_lambda: &mut [f64]) {
        let draws_len = z.len();
        for s in 0..draws_len {
            let mut total = 0.0;
            for (v, value) in values.iter().enumerate() {
                let weight = signal[v * draws_len + s];
                total += weight;
                if *value >= 1.0 && self.support().contains(*value) {
                    d_lambda[(*value as usize - 1) * draws_len + s] += weight;
                }
            }
            if total != 0.0 {
                let logits = Logits::new(lambda, draws_len, s);
                for k in 1..self.len {
                    d_lambda[(k - 1) * draws_len + s] -= total * logits.probability(k);
                }
            }
        }
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        let draws_len = z.len();
        for (s, (z, rng)) in z.iter_mut().zip(streams).enumerate() {
            let logits = Logits::new(lambda, draws_len, s);
            if logits.total.is_nan() {
                *z = f64::NAN;
                continue;
            }
            let mut left = rng.random::<f64>();
            // Rounding may leave some probability after the last value; the last value takes it.
            let below = (0..self.len - 1).find(|&k| {
                left -= logits.probability(k);
                left < 0.0
            });
            *z = below.unwrap_or(self.len - 1) as f64;
        }
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        let parameters_len = self.len - 1;
        let draws_len = lambda.len() / parameters_len;
        for s in 0..draws_len {
            let logits = Logits::new(lambda, draws_len, s);
            for p in 0..parameters_len {
                for q in 0..parameters_len {
                    let indicator = f64::from(p == q);
                    out[(p * parameters_len + q) * draws_len + s] =
                        logits.probability(p + 1) * (indicator - logits.probability(q + 1));
                }
            }
        }
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        let z = self.support().nearest(z);
        for (p, out) in out.iter_mut().enumerate().take(self.len - 1) {
            *out = if z == 0.0 { -1.5 } else { 1.5 * f64::from(z == (p + 1) as f64) };
        }
    }

    fn window(&self, _lambda: &[f64]) -> Option<(f64, f64)> {
        Some((0.0, (self.len - 1) as f64))
    }
}

//! Estimates from draws of every component of the prior, weighted by the components' probabilities.

use serde::{Deserialize, Serialize};

/// A Monte Carlo estimate. See [`evaluate`](super::evaluate).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// Values of the valid draws of each component, of which there were `draws`.
pub(super) struct Strata<'a> {
    pub(super) samples: Vec<Vec<f64>>,
    pub(super) log_pi: &'a [f64],
    pub(super) draws: usize,
}

impl Strata<'_> {
    /// Σ_k π_k mean_k f over all draws, where invalid ones count as zero, and its standard error.
    fn mean(&self, f: impl Fn(f64) -> f64) -> Estimate {
        let (n, mut total) = (self.draws as f64, 0.0);
        let (mut value, mut variance) = (0.0, 0.0);
        for (sample, log_pi) in self.samples.iter().zip(self.log_pi) {
            let mean = sample.iter().map(|x| f(*x)).sum::<f64>() / n;
            let zeros = (self.draws - sample.len()) as f64;
            let squares = sample.iter().map(|x| (f(*x) - mean).powi(2)).sum::<f64>() + zeros * mean * mean;
            total += log_pi.exp();
            value += log_pi.exp() * mean;
            variance += (2.0 * log_pi).exp() * squares / (n - 1.0).max(1.0) / n;
        }
        Estimate { value: value / total, standard_error: variance.sqrt() / total }
    }

    /// E[f | A] + ln q(A) for the valid draws A. By the delta method, a draw moves it by 1_A (f − E[f | A] + 1)/q(A).
    pub(super) fn restricted_bound(&self) -> Estimate {
        let share = self.mean(|_| 1.0).value;
        let conditional = self.mean(|f| f).value / share;
        let standard_error = self.mean(|f| (f - conditional + 1.0) / share).standard_error;
        Estimate { value: conditional + share.ln(), standard_error }
    }

    /// log Σ_k π_k mean_k e^value; the standard error is that of the mean divided by it (the delta method).
    pub(super) fn log_evidence(&self) -> Estimate {
        let top = self.samples.iter().flatten().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let mean = self.mean(|x| (x - top).exp());
        Estimate { value: top + mean.value.ln(), standard_error: mean.standard_error / mean.value }
    }
}

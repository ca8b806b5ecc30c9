//! The binomial family.

use super::{Family, Support, add_weighted, bernstein_window, cover_windows, map_draws, map_information, sample_draws};
use crate::random::Stream;
use crate::special::{ln_choose, sigmoid, softplus};
use rand_distr::Distribution;

/// Why a [`Binomial`] could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BinomialError {
    /// There is nothing to draw.
    #[error("a binomial needs at least one trial; use a constant for none")]
    NoTrials,
    /// Counts beyond 2⁵³ are not whole numbers in an f64.
    #[error("a binomial with {trials} trials does not fit an f64; use at most 2^53 trials")]
    TooManyTrials {
        /// The requested number.
        trials: u64,
    },
}

/// Successes in n trials: q(z | λ) = (n choose z) σ(λ)ᶻ σ(−λ)ⁿ⁻ᶻ, where λ is the logit of the probability of success.
///
/// ```
/// use hyperprior_math::family::{Binomial, Family};
/// let mut log_q = [0.0];
/// Binomial::new(2)?.log_density(&[0.0], &[1.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.5).abs() < 1e-15);
/// # Ok::<(), hyperprior_math::family::BinomialError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binomial {
    trials: u64,
}

impl Binomial {
    /// The binomial of `trials` trials.
    ///
    /// # Errors
    /// If there are no trials, or more than 2⁵³.
    pub fn new(trials: u64) -> Result<Self, BinomialError> {
        match trials {
            0 => Err(BinomialError::NoTrials),
            trials if trials > 1 << 53 => Err(BinomialError::TooManyTrials { trials }),
            trials => Ok(Self { trials }),
        }
    }

    /// How many trials.
    pub fn trials(&self) -> u64 {
        self.trials
    }
}

impl Family for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

    fn parameters_len(&self) -> usize {
        1
    }

    fn support(&self) -> Support {
        Support::Integers { lower: 0.0, upper: self.trials as f64 }
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        let trials = self.trials as f64;
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |[logit], z| {
            ln_choose(trials, z) - z * softplus(-logit) - (trials - z) * softplus(logit)
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        let trials = self.trials as f64;
        // z − n σ(λ), written so that neither end cancels.
        add_weighted(lambda, z, signal, d_lambda, |[logit], z| [z * sigmoid(-logit) - (trials - z) * sigmoid(logit)]);
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |[logit], rng| match rand_distr::Binomial::new(self.trials, sigmoid(logit)) {
            Ok(binomial) => binomial.sample(rng) as f64,
            Err(_) => f64::NAN,
        });
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        let trials = self.trials as f64;
        map_information(lambda, out, |[logit]| [[trials * sigmoid(logit) * sigmoid(-logit)]]);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        let z = self.support().nearest(z);
        out[0] = (z + 0.5).ln() - (self.trials as f64 - z + 0.5).ln();
    }

    /// Bernstein's bound, truncated to 0..=n.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        let trials = self.trials as f64;
        Some(cover_windows(lambda, |[logit]| {
            let mean = trials * sigmoid(logit);
            let (lower, upper) = bernstein_window(mean, mean * sigmoid(-logit));
            (lower, upper.min(trials))
        }))
    }
}

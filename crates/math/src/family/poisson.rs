//! The Poisson family.

use super::{
    Family, LOG_LIMIT, Support, add_weighted, bernstein_window, cover_windows, exp_bounded, map_information,
    sample_draws,
};
use crate::random::Stream;
use crate::special::ln_factorial;
use rand_distr::Distribution;

/// e^[`LOG_LIMIT`].
const LARGEST_EXP: f64 = 1.014_232_054_735_004_5e304;

/// The largest rate to sample from; larger ones are sampled as this one.
const LARGEST_RATE: f64 = 1e19;

/// Counts: q(z | λ) = e^{zλ − e^λ} / z!, where λ is the log of the rate.
///
/// Rates above 1e19 are sampled as 1e19.
///
/// ```
/// use hyperprior_math::family::{Family, Poisson};
/// let mut log_q = [0.0];
/// Poisson.log_density(&[0.0], &[0.0], &mut log_q);
/// assert_eq!(log_q, [-1.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poisson;

/// A Poisson draw with the given rate; at rate zero all mass is at zero.
pub(super) fn draw(rate: f64, rng: &mut Stream) -> f64 {
    rand_distr::Poisson::new(rate.min(LARGEST_RATE)).map_or(0.0, |poisson| poisson.sample(rng))
}

impl Family for Poisson {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn parameters_len(&self) -> usize {
        1
    }

    fn support(&self) -> Support {
        Support::Counts
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        crate::vector::exp(lambda, out);
        for ((out, log_rate), z) in out.iter_mut().zip(lambda).zip(z) {
            *out = if self.support().contains(*z) {
                let log_rate = log_rate.clamp(-LOG_LIMIT, LOG_LIMIT);
                z * log_rate - out.min(LARGEST_EXP) - ln_factorial(*z)
            } else {
                f64::NEG_INFINITY
            };
        }
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |[log_rate], z| [z - exp_bounded(log_rate)]);
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |[log_rate], rng| draw(exp_bounded(log_rate), rng));
    }

    fn difference_rate(&self, lambda: &[f64], out: &mut [f64]) -> bool {
        for (o, log_rate) in out.iter_mut().zip(lambda) {
            *o = exp_bounded(*log_rate);
        }
        true
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |[log_rate]| [[exp_bounded(log_rate)]]);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = (self.support().nearest(z) + 0.5).ln();
    }

    /// Bernstein's bound, which holds for the Poisson as a limit of binomials: about 8 standard deviations and 22 more.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        Some(cover_windows(lambda, |[log_rate]| {
            let rate = exp_bounded(log_rate);
            bernstein_window(rate, rate)
        }))
    }
}

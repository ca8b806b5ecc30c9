//! The Bernoulli family.

use super::{Family, Support, add_weighted, map_information, sample_draws};
use crate::random::Stream;
use crate::special::sigmoid;
use rand::RngExt;

/// Zero or one: q(z | λ) = σ(λ)ᶻ σ(−λ)¹⁻ᶻ, where λ is the logit of the probability of one.
///
/// ```
/// use hyperprior_math::family::{Bernoulli, Family};
/// let mut log_q = [0.0; 2];
/// Bernoulli.log_density(&[0.0, 0.0], &[1.0, 0.5], &mut log_q);
/// assert_eq!(log_q, [-(2f64.ln()), f64::NEG_INFINITY]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bernoulli;

impl Family for Bernoulli {
    fn name(&self) -> &'static str {
        "bernoulli"
    }

    fn parameters_len(&self) -> usize {
        1
    }

    fn support(&self) -> Support {
        Support::BINARY
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        crate::vector::log_bernoulli(lambda, z, out);
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        // z − σ(λ), as 1 − σ(λ) = σ(−λ) where z = 1 so that a small difference keeps its digits.
        add_weighted(lambda, z, signal, d_lambda, |[logit], z| {
            [if z == 1.0 { sigmoid(-logit) } else { z - sigmoid(logit) }]
        });
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |[logit], rng| f64::from(rng.random::<f64>() < sigmoid(logit)));
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |[logit]| [[sigmoid(logit) * sigmoid(-logit)]]);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = if self.support().nearest(z) == 1.0 { 1.5 } else { -1.5 };
    }

    fn window(&self, _lambda: &[f64]) -> Option<(f64, f64)> {
        Some((0.0, 1.0))
    }
}

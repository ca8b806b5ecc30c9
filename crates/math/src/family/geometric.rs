//! The geometric family.

use super::{
    Family, LOG_LIMIT, Support, WINDOW_DEPTH, add_weighted, cover_windows, map_draws, map_information, sample_draws,
};
use crate::random::Stream;
use crate::special::{sigmoid, softplus};
use rand_distr::{Distribution, Exp1};

/// Failures before the first success: q(z | λ) = σ(λ) σ(−λ)ᶻ, where λ is the logit of the probability of success.
///
/// Logits are clamped to ±700.
///
/// ```
/// use hyperprior_math::family::{Family, Geometric};
/// let mut log_q = [0.0];
/// Geometric.log_density(&[0.0], &[1.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.25).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometric;

/// −ln(1 − p), the cost of each failure.
fn cost_of_failure(logit: f64) -> f64 {
    softplus(logit.max(-LOG_LIMIT))
}

impl Family for Geometric {
    fn name(&self) -> &'static str {
        "geometric"
    }

    fn parameters_len(&self) -> usize {
        1
    }

    fn support(&self) -> Support {
        Support::Counts
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |[logit], z| {
            -softplus(-logit) - z * cost_of_failure(logit)
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |[logit], z| [sigmoid(-logit) - z * sigmoid(logit)]);
    }

    /// The whole part of an exponential variable is geometric.
    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |[logit], rng| {
            let exponential: f64 = Exp1.sample(rng);
            (exponential / cost_of_failure(logit)).floor()
        });
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |[logit]| [[sigmoid(-logit)]]);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = -(self.support().nearest(z) + 0.5).ln();
    }

    /// P(z > k) = (1 − p)ᵏ⁺¹, solved for k.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        Some(cover_windows(lambda, |[logit]| (0.0, (WINDOW_DEPTH / cost_of_failure(logit)).ceil())))
    }
}

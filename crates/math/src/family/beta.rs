//! The beta family.

use super::{Family, Support, add_weighted, gamma, map_draws, map_information, sample_draws, shape};
use crate::random::Stream;
use crate::special::{beta_pathwise, beta_scores, ln_beta_kernel, sigmoid, trigamma};

/// The beta: λ = (log a, log b), q(z | λ) = zᵃ⁻¹ (1 − z)ᵇ⁻¹ / B(a, b).
///
/// Both parameters are clamped to ±300, and draws lie strictly between zero and one: anything within 1e-16 of one is
/// drawn as the largest number below one, which for b < 1/2 is more than 1e-8 of the mass. The pathwise derivatives
/// are implicit: −(∂F/∂λ) / q.
///
/// ```
/// use hyperprior_math::family::{Beta, Family};
/// let mut log_q = [0.0];
/// Beta.log_density(&[2f64.ln(), 0.0], &[0.5], &mut log_q);
/// assert!(log_q[0].abs() < 1e-14);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beta;

impl Family for Beta {
    fn name(&self) -> &'static str {
        "beta"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::UnitInterval
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |lambda, z| {
            let [a, b] = lambda.map(shape);
            ln_beta_kernel(a, b, z, 1.0 - z) - z.ln() - (-z).ln_1p()
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |lambda, z| {
            let [a, b] = lambda.map(shape);
            let [score_a, score_b] = beta_scores(a, b, z, 1.0 - z);
            [a * score_a, b * score_b]
        });
    }

    /// z = x / (x + y) for gamma variables x and y, by their logs.
    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| {
            let [ln_x, ln_y] = lambda.map(|log_shape| gamma::draw_log(shape(log_shape), rng));
            self.support().nearest(sigmoid(ln_x - ln_y))
        });
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |lambda| {
            let [a, b] = lambda.map(shape);
            let shared = trigamma(a + b);
            let cross = -a * (b * shared);
            [
                [gamma::scaled_trigamma(a) - a * (a * shared), cross],
                [cross, gamma::scaled_trigamma(b) - b * (b * shared)],
            ]
        });
    }

    /// The mean is kept between 0.01 and 0.99; beyond that the distribution would be too concentrated.
    fn start_at(&self, z: f64, out: &mut [f64]) {
        let mean = self.support().nearest(z).clamp(0.01, 0.99);
        out[0] = (8.0 * mean).ln();
        out[1] = (8.0 * (1.0 - mean)).ln();
    }

    fn is_pathwise(&self) -> bool {
        true
    }

    fn pathwise(&self, lambda: &[f64], z: &[f64], d_z: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, d_z, d_lambda, |lambda, z| {
            let [a, b] = lambda.map(shape);
            let [d_a, d_b] = beta_pathwise(a, b, z);
            [a * d_a, b * d_b]
        });
    }

    fn d_log_density_d_z(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NAN, lambda, z, out, |lambda, z| {
            let [a, b] = lambda.map(shape);
            (a - 1.0) / z - (b - 1.0) / (1.0 - z)
        });
    }
}

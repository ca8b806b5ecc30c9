//! The log-normal family.

use super::{Family, Support, add_weighted, map_draws, map_information, normal, sample_draws};
use crate::random::Stream;

/// A positive variable whose log is normal: λ = (mean μ, log standard deviation ρ) of ln z,
/// q(z | λ) = N(ln z | μ, e^ρ) / z.
///
/// ρ is clamped to ±700, and draws to the finite positive numbers.
///
/// ```
/// use hyperprior_math::family::{Family, LogNormal};
/// let mut log_q = [0.0];
/// LogNormal.log_density(&[0.0, 0.0], &[1.0], &mut log_q);
/// assert!((log_q[0] + 0.918_938_533_204_672_8).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogNormal;

impl Family for LogNormal {
    fn name(&self) -> &'static str {
        "log-normal"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::Positive
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |lambda, z| {
            normal::log_density(lambda, z.ln()) - z.ln()
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |lambda, z| normal::score(lambda, z.ln()));
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| self.support().nearest(normal::draw(lambda, rng).exp()));
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, normal::information);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = self.support().nearest(z).ln();
        out[1] = 0.5_f64.ln();
    }

    fn is_pathwise(&self) -> bool {
        true
    }

    fn pathwise(&self, lambda: &[f64], z: &[f64], d_z: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, d_z, d_lambda, |[mean, _], z| [z, z * (z.ln() - mean)]);
    }

    fn d_log_density_d_z(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NAN, lambda, z, out, |lambda, z| -(1.0 + normal::score(lambda, z.ln())[0]) / z);
    }
}

//! The normal family.

use super::{Family, Support, add_weighted, exp_bounded, map_draws, map_information, sample_draws};
use crate::random::Stream;
use crate::special::HALF_LN_2_PI;
use rand_distr::{Distribution, StandardNormal};

/// The normal: λ = (mean μ, log standard deviation ρ), q(z | λ) = exp(−½ ((z − μ) / e^ρ)²) / (e^ρ √(2π)).
///
/// ρ is clamped to ±700.
///
/// ```
/// use hyperprior_math::family::{Family, Normal};
/// let mut log_q = [0.0];
/// Normal.log_density(&[1.0, 0.0], &[1.0], &mut log_q);
/// assert!((log_q[0] + 0.918_938_533_204_672_8).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normal;

/// log N(x | μ, e^ρ).
pub(super) fn log_density([mean, log_sd]: [f64; 2], x: f64) -> f64 {
    let residual = (x - mean) * exp_bounded(-log_sd);
    -HALF_LN_2_PI - log_sd - 0.5 * residual * residual
}

/// ∂ log N(x | μ, e^ρ) in μ and ρ; the first is also minus the derivative in x.
pub(super) fn score([mean, log_sd]: [f64; 2], x: f64) -> [f64; 2] {
    let precision_root = exp_bounded(-log_sd);
    let residual = (x - mean) * precision_root;
    [residual * precision_root, residual * residual - 1.0]
}

/// μ + e^ρ ε.
pub(super) fn draw([mean, log_sd]: [f64; 2], rng: &mut Stream) -> f64 {
    let noise: f64 = StandardNormal.sample(rng);
    mean + exp_bounded(log_sd) * noise
}

/// The information in (μ, ρ).
pub(super) fn information([_, log_sd]: [f64; 2]) -> [[f64; 2]; 2] {
    [[exp_bounded(-2.0 * log_sd), 0.0], [0.0, 2.0]]
}

impl Family for Normal {
    fn name(&self) -> &'static str {
        "normal"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::Real
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, log_density);
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, score);
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| self.support().nearest(draw(lambda, rng)));
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, information);
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = self.support().nearest(z);
        out[1] = 0.5_f64.ln();
    }

    fn is_pathwise(&self) -> bool {
        true
    }

    fn pathwise(&self, lambda: &[f64], z: &[f64], d_z: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, d_z, d_lambda, |[mean, _], z| [1.0, z - mean]);
    }

    fn d_log_density_d_z(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NAN, lambda, z, out, |lambda, z| -score(lambda, z)[0]);
    }
}

//! The gamma family.

use super::{Family, LOG_LIMIT, Support, add_weighted, exp_bounded, map_draws, map_information, sample_draws, shape};
use crate::random::Stream;
use crate::special::{digamma_minus_ln, gamma_pathwise, ln_gamma_kernel, ln_ratio, trigamma};
use rand_distr::{Distribution, Open01};

/// The gamma: λ = (log shape, log rate) with shape a = e^λ₀ and rate b = e^λ₁, q(z | λ) = bᵃ zᵃ⁻¹ e^{−bz} / Γ(a).
///
/// The log shape is clamped to ±300, the log rate to ±700, and draws to the finite positive numbers. The
/// pathwise derivative in the shape is implicit: −(∂F/∂a) / q.
///
/// ```
/// use hyperprior_math::family::{Family, Gamma};
/// let mut log_q = [0.0];
/// Gamma.log_density(&[0.0, 2f64.ln()], &[1.0], &mut log_q);
/// assert!((log_q[0] - (2f64.ln() - 2.0)).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gamma;

/// ln x for x ~ Gamma(a, 1). As a log it survives shapes so small that x itself would underflow.
pub(super) fn draw_log(shape: f64, rng: &mut Stream) -> f64 {
    // x = g u^{1/a} with g ~ Gamma(a + 1); the sampler is exact for shapes of one and above.
    let (boosted, log_factor) = if shape < 1.0 {
        let uniform: f64 = Open01.sample(rng);
        (shape + 1.0, uniform.ln() / shape)
    } else {
        (shape, 0.0)
    };
    rand_distr::Gamma::new(boosted, 1.0).map_or(f64::NAN, |gamma| gamma.sample(rng).ln() + log_factor)
}

/// a² ψ′(a), which tends to one as a → 0 although ψ′ diverges.
pub(super) fn scaled_trigamma(a: f64) -> f64 {
    if a < 1e-8 { 1.0 + a * (a * trigamma(1.0)) } else { a * (a * trigamma(a)) }
}

/// Shape a, z in units of its scale x = b z, and ln x.
fn standardise([log_shape, log_rate]: [f64; 2], z: f64) -> (f64, f64, f64) {
    let log_rate = log_rate.clamp(-LOG_LIMIT, LOG_LIMIT);
    (shape(log_shape), log_rate.exp() * z, log_rate + z.ln())
}

impl Family for Gamma {
    fn name(&self) -> &'static str {
        "gamma"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::Positive
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |lambda, z| {
            let (shape, x, ln_x) = standardise(lambda, z);
            ln_gamma_kernel(shape, x, ln_x) - z.ln()
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |lambda, z| {
            let (shape, x, ln_x) = standardise(lambda, z);
            [shape * (ln_ratio(ln_x, shape, x - shape) - digamma_minus_ln(shape)), shape - x]
        });
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |[log_shape, log_rate], rng| {
            let log_z = draw_log(shape(log_shape), rng) - log_rate;
            self.support().nearest(log_z.exp())
        });
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |[log_shape, _]| {
            let shape = shape(log_shape);
            [[scaled_trigamma(shape), -shape], [-shape, shape]]
        });
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = 4.0_f64.ln();
        out[1] = 4.0_f64.ln() - self.support().nearest(z).ln();
    }

    fn is_pathwise(&self) -> bool {
        true
    }

    fn pathwise(&self, lambda: &[f64], z: &[f64], d_z: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, d_z, d_lambda, |lambda, z| {
            let (shape, x, _) = standardise(lambda, z);
            let x = self.support().nearest(x);
            [shape * (gamma_pathwise(shape, x) / x) * z, -z]
        });
    }

    fn d_log_density_d_z(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NAN, lambda, z, out, |[log_shape, log_rate], z| {
            (shape(log_shape) - 1.0) / z - exp_bounded(log_rate)
        });
    }
}

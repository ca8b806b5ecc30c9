//! The negative binomial family.

use super::{
    Family, LOG_LIMIT, Support, WINDOW_DEPTH, WINDOW_LIMIT, add_weighted, cover_windows, exp_bounded, gamma, map_draws,
    map_information, poisson, sample_draws,
};
use crate::random::Stream;
use crate::special::{digamma_difference, ln_beta, sigmoid, softplus, tail_integrals};

/// Counts over-dispersed relative to the Poisson: λ = (log mean, log shape) with mean m and shape a, so that the variance is
/// m + m²/a; q(z | λ) = Γ(z + a) / (Γ(a) z!) · (a / (a + m))ᵃ (m / (a + m))ᶻ.
///
/// Both parameters are clamped to ±700; the Poisson rate behind a draw is kept below 1e19.
///
/// ```
/// use hyperprior_math::family::{Family, NegativeBinomial};
/// let mut log_q = [0.0];
/// // With shape one it is geometric; mean one gives 1/2, 1/4, …
/// NegativeBinomial.log_density(&[0.0, 0.0], &[1.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.25).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegativeBinomial;

/// The parameters in the form that the formulas use.
struct Member {
    mean: f64,
    shape: f64,
    /// ln(m / a)
    log_odds: f64,
}

impl Member {
    fn new(lambda: [f64; 2]) -> Self {
        let [log_mean, log_shape] = lambda.map(|l| l.clamp(-LOG_LIMIT, LOG_LIMIT));
        Self { mean: log_mean.exp(), shape: log_shape.exp(), log_odds: log_mean - log_shape }
    }

    /// a ln(1 + m/a), which tends to m where a is huge.
    fn log_cost(&self) -> f64 {
        if self.log_odds < -40.0 { self.mean } else { self.shape * softplus(self.log_odds) }
    }

    fn log_density(&self, z: f64) -> f64 {
        if z == 0.0 {
            return -self.log_cost();
        }
        let ln_coefficient = -ln_beta(self.shape, z + 1.0) - (self.shape + z).ln();
        ln_coefficient - self.log_cost() - z * softplus(-self.log_odds)
    }

    fn score(&self, z: f64) -> [f64; 2] {
        let pull = sigmoid(-self.log_odds) * (z - self.mean);
        [pull, self.shape * digamma_difference(self.shape, z) - self.log_cost() - pull]
    }

    /// Fisher's series a² Σ_{k≥2} qᵏ B(k, a) / k with q = m / (a + m), whose terms are all positive.
    ///
    /// If 200 terms are not enough (mean far above the shape), the rest is the integral of the terms plus the first two
    /// Euler–Maclaurin corrections; the error is below 1e-9 of the answer.
    fn shape_information(&self) -> f64 {
        const TERMS_LEN: usize = 200;
        let q = sigmoid(self.log_odds);
        let mut term = 0.5 * q * q * self.shape / (self.shape + 1.0);
        let (mut sum, mut ratio) = (0.0, 0.0);
        for k in 2..TERMS_LEN {
            sum += term;
            let k = k as f64;
            ratio = q * k / (self.shape + k) * (k / (k + 1.0));
            term *= ratio;
            if term <= 1e-16 * sum * (1.0 - ratio) {
                return sum;
            }
        }
        let first = TERMS_LEN as f64;
        let ln_first = ln_beta(first, self.shape);
        let log_cost = softplus(-self.log_odds);
        let curve = |u: f64| {
            let k = first * u.exp();
            (ln_beta(k, self.shape) - ln_first - (k - first) * log_cost, [1.0])
        };
        // Beyond e⁶⁰⁰ the terms are a pure power of k, and integrate to 1/a.
        let end = 600.0;
        let ([mut integral], g_end) = tail_integrals(end, curve);
        if g_end > -40.0 {
            integral += g_end.exp() / self.shape;
        }
        let slope = term * ratio.ln();
        sum + term * first * integral + 0.5 * term - slope / 12.0
    }

    /// Chernoff's exponent D(k) = k ln(k/m) − (a + k) ln((a + k)/(a + m)): the mass at or beyond k, on the side away
    /// from the mean, is below e^−D.
    fn exponent(&self, k: f64) -> f64 {
        let shared = (self.shape + k) * ((k - self.mean) / (self.shape + self.mean)).ln_1p();
        if k == 0.0 { self.log_cost() } else { k * (k / self.mean).ln() - shared }
    }

    fn window(&self) -> (f64, f64) {
        if self.mean > WINDOW_LIMIT {
            return (0.0, WINDOW_LIMIT);
        }
        // D falls towards the mean and rises after it, so bisection finds where it crosses on either side.
        let crossing = |mut deep: f64, mut shallow: f64| {
            while (deep - shallow).abs() > 1.0 {
                let middle = 0.5 * (deep + shallow);
                if self.exponent(middle) > WINDOW_DEPTH { deep = middle } else { shallow = middle }
            }
            deep
        };
        let lower = if self.exponent(0.0) > WINDOW_DEPTH { crossing(0.0, self.mean).floor() } else { 0.0 };
        (lower, crossing(2.0 * WINDOW_LIMIT, self.mean).ceil())
    }
}

impl Family for NegativeBinomial {
    fn name(&self) -> &'static str {
        "negative-binomial"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::Counts
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |lambda, z| Member::new(lambda).log_density(z));
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        add_weighted(lambda, z, signal, d_lambda, |lambda, z| Member::new(lambda).score(z));
    }

    /// A Poisson whose rate is gamma with shape a and mean m.
    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| {
            let member = Member::new(lambda);
            let log_rate = gamma::draw_log(member.shape, rng) + member.log_odds;
            poisson::draw(exp_bounded(log_rate), rng)
        });
    }

    /// The mean and the shape are orthogonal; the shape's entry is Fisher's series.
    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |lambda| {
            let member = Member::new(lambda);
            [[member.mean * sigmoid(-member.log_odds), 0.0], [0.0, member.shape_information()]]
        });
    }

    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = (self.support().nearest(z) + 0.5).ln();
        out[1] = 5.0_f64.ln();
    }

    /// Chernoff's bound on either side of the mean.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        Some(cover_windows(lambda, |lambda| Member::new(lambda).window()))
    }
}

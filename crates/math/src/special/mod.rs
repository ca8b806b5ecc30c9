//! Special functions: gamma and its relatives, incomplete gamma and beta with their derivatives, the normal quantile.

mod incomplete;
mod poisson_tail;

pub use incomplete::{
    beta_pathwise, gamma_pathwise, incomplete_beta, incomplete_beta_d_shapes, incomplete_gamma, incomplete_gamma_d_a,
    ln_incomplete_beta, ln_incomplete_gamma, ln_incomplete_gamma_upper,
};
pub(crate) use incomplete::{beta_scores, ln_beta_kernel, ln_gamma_kernel, tail_integrals};
pub use poisson_tail::ln_poisson_excess;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::LazyLock;

/// ½ ln 2π, the constant of a standard normal's log density.
pub const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_8;

const LN_2_PI: f64 = 1.837_877_066_409_345_5;

/// From here on Stirling's series is exact to rounding.
const STIRLING_FROM: f64 = 10.0;

/// ln Γ(x) for x > 0.
///
/// ```
/// assert!((hyperprior_math::special::ln_gamma(5.0) - 24f64.ln()).abs() < 1e-15);
/// ```
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ln n! for a whole number n ≥ 0; ln Γ(n + 1) for other n.
///
/// ```
/// assert!((hyperprior_math::special::ln_factorial(4.0) - 24f64.ln()).abs() < 1e-15);
/// ```
pub fn ln_factorial(n: f64) -> f64 {
    static TABLE: LazyLock<[f64; 256]> = LazyLock::new(|| std::array::from_fn(|n| ln_gamma(n as f64 + 1.0)));
    if (0.0..256.0).contains(&n) && n.fract() == 0.0 { TABLE[n as usize] } else { ln_gamma(n + 1.0) }
}

/// ln (n choose k) for whole numbers 0 ≤ k ≤ n.
///
/// ```
/// assert!((hyperprior_math::special::ln_choose(5.0, 2.0) - 10f64.ln()).abs() < 1e-14);
/// ```
pub fn ln_choose(n: f64, k: f64) -> f64 {
    if n < 256.0 {
        ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
    } else {
        -ln_beta(k + 1.0, n - k + 1.0) - n.ln_1p()
    }
}

/// ln B(a, b) = ln Γ(a) + ln Γ(b) − ln Γ(a + b), without cancellation for large shapes.
///
/// ```
/// assert!((hyperprior_math::special::ln_beta(2.0, 3.0) + 12f64.ln()).abs() < 1e-14);
/// ```
pub fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large < STIRLING_FROM {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    let total = small + large;
    let remainder = stirling_remainder(large) - stirling_remainder(total);
    if small < STIRLING_FROM {
        // ln Γ(large) − ln Γ(total), with the large terms of Stirling's formula cancelled analytically.
        ln_gamma(small) - (large - 0.5) * (small / large).ln_1p() - small * (total.ln() - 1.0) + remainder
    } else {
        0.5 * (LN_2_PI - small.ln()) + remainder + stirling_remainder(small) + small * (small / total).ln()
            - (large - 0.5) * (small / large).ln_1p()
    }
}

/// ln Γ(x) − (x − ½) ln x + x − ½ ln 2π for x ≥ [`STIRLING_FROM`].
fn stirling_remainder(x: f64) -> f64 {
    const TERMS: [f64; 6] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    let inverse = x.recip();
    inverse * polynomial(&TERMS, inverse * inverse)
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// ψ(x) = d ln Γ(x) / dx for x > 0; NaN elsewhere.
///
/// ```
/// assert!((hyperprior_math::special::digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
/// ```
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut shifted, mut steps) = (x, 0.0);
    while shifted < STIRLING_FROM {
        steps += shifted.recip();
        shifted += 1.0;
    }
    shifted.ln() + digamma_minus_ln(shifted) - steps
}

/// ψ(x) − ln x for x > 0, without the cancellation for large x.
pub(crate) fn digamma_minus_ln(x: f64) -> f64 {
    const TERMS: [f64; 7] =
        [-1.0 / 12.0, 1.0 / 120.0, -1.0 / 252.0, 1.0 / 240.0, -1.0 / 132.0, 691.0 / 32_760.0, -1.0 / 12.0];
    if x < STIRLING_FROM {
        return digamma(x) - x.ln();
    }
    let inverse = x.recip();
    let square = inverse * inverse;
    square * polynomial(&TERMS, square) - 0.5 * inverse
}

/// ψ(x + step) − ψ(x) for x > 0 and step ≥ 0, without cancellation.
pub(crate) fn digamma_difference(x: f64, step: f64) -> f64 {
    if x < STIRLING_FROM {
        digamma(x + step) - digamma(x)
    } else {
        (step / x).ln_1p() + digamma_minus_ln(x + step) - digamma_minus_ln(x)
    }
}

/// ψ′(x) for x > 0; NaN elsewhere.
///
/// ```
/// use std::f64::consts::PI;
/// assert!((hyperprior_math::special::trigamma(1.0) - PI * PI / 6.0).abs() < 1e-14);
/// ```
pub fn trigamma(x: f64) -> f64 {
    const TERMS: [f64; 7] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0];
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut shifted, mut steps) = (x, 0.0);
    while shifted < STIRLING_FROM {
        steps += shifted.recip() * shifted.recip();
        shifted += 1.0;
    }
    let inverse = shifted.recip();
    let square = inverse * inverse;
    inverse + 0.5 * square + inverse * square * polynomial(&TERMS, square) + steps
}

/// ln x − ln mean; `excess` = x − mean is passed too, so that nothing cancels when the two are close.
pub(crate) fn ln_ratio(ln_x: f64, mean: f64, excess: f64) -> f64 {
    if excess.abs() < 0.5 * mean { (excess / mean).ln_1p() } else { ln_x - mean.ln() }
}

/// Φ(x), the distribution function of the standard normal.
///
/// ```
/// assert_eq!(hyperprior_math::special::normal_cdf(0.0), 0.5);
/// ```
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Φ⁻¹(p), accurate to about 1e-15 for p from 1e-300 up; ±∞ at 0 and 1, NaN outside.
///
/// ```
/// let x = hyperprior_math::special::normal_quantile(0.975);
/// assert!((x - 1.959_963_984_540_054).abs() < 1e-14);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    // 1 − p is exact here, so the upper half loses nothing by the reflection.
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    // Hastings's rational approximation (Abramowitz & Stegun 26.2.23) is accurate to 4.5e-4; two steps of Halley's method
    // each triple the number of digits.
    let t = (-2.0 * p.ln()).sqrt();
    let start =
        polynomial(&[2.515_517, 0.802_853, 0.010_328], t) / polynomial(&[1.0, 1.432_788, 0.189_269, 0.001_308], t);
    let mut x = start - t;
    for _ in 0..2 {
        let step = (normal_cdf(x) - p) * (2.0 * PI).sqrt() * (0.5 * x * x).exp();
        x -= step / (1.0 + 0.5 * x * step);
    }
    x
}

/// ln(1 + eˣ) without overflow; also called `ln_1p_exp`.
///
/// ```
/// assert_eq!(hyperprior_math::special::softplus(800.0), 800.0);
/// ```
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1 / (1 + e⁻ˣ) without overflow.
///
/// ```
/// assert_eq!(hyperprior_math::special::sigmoid(0.0), 0.5);
/// ```
pub fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(p / (1 − p)).
///
/// ```
/// assert_eq!(hyperprior_math::special::logit(0.5), 0.0);
/// ```
pub fn logit(p: f64) -> f64 {
    // Near one half ln p − ln(1 − p) would cancel.
    if (0.25..0.75).contains(&p) { ((2.0 * p - 1.0) / (1.0 - p)).ln_1p() } else { p.ln() - (-p).ln_1p() }
}

/// ln(eˣ + eʸ); −∞ stands for zero.
///
/// ```
/// assert_eq!(hyperprior_math::special::log_add_exp(f64::NEG_INFINITY, 3.0), 3.0);
/// ```
pub fn log_add_exp(x: f64, y: f64) -> f64 {
    let (low, high) = if x < y { (x, y) } else { (y, x) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// ln Σ e^{xᵢ}; −∞ stands for zero, and for the empty sum.
///
/// ```
/// let total = hyperprior_math::special::log_sum_exp(&[0.0, 0.0, f64::NEG_INFINITY]);
/// assert!((total - 2f64.ln()).abs() < 1e-15);
/// ```
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high.is_infinite() { high } else { high + x.iter().map(|v| (v - high).exp()).sum::<f64>().ln() }
}

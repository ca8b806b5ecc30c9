//! The incomplete gamma and beta functions, with their derivatives in the shapes.
//!
//! Each is the integral of a log-concave curve from the given point into its nearer tail, in the variable (log, log-odds)
//! that makes the curve smooth. One quadrature then gives the probability *and* its derivatives in the shapes, without
//! cancellation and with the same method for small and huge shapes.

use super::{LN_2_PI, STIRLING_FROM, digamma_minus_ln, ln_beta, ln_gamma, ln_ratio, stirling_remainder};

/// ln(1 + x) − x.
fn ln_1p_minus(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return x.ln_1p() - x;
    }
    // ln(1 + x) = 2 artanh(y) with y = x / (2 + x); its first term minus x is exactly −x·y.
    let y = x / (2.0 + x);
    let square = y * y;
    let (mut sum, mut power, mut k) = (0.0_f64, 2.0 * y * square, 3.0);
    while power.abs() > 1e-17 * sum.abs() {
        sum += power / k;
        power *= square;
        k += 2.0;
    }
    sum - x * y
}

/// eˣ − 1 − x.
fn exp_m1_minus(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return x.exp_m1() - x;
    }
    let (mut sum, mut term, mut k) = (0.0, 0.5 * x * x, 3.0);
    while term.abs() > 1e-17 * sum {
        sum += term;
        term *= x / k;
        k += 1.0;
    }
    sum
}

/// Where the quadrature stops: e⁻⁴⁰ of the integrand at its start.
const TAIL_DROP: f64 = 40.0;

/// ∫₀^end e^{g(u)} w(u) du for several weights w, where g(0) = 0 and g falls and is concave; and g(end).
///
/// Sixteen-point Gauss–Legendre on panels over which g falls by 10 at most: exact to about 1e-14, since the integrands
/// here are analytic on a strip much wider than a panel.
pub(crate) fn tail_integrals<const N: usize>(end: f64, curve: impl Fn(f64) -> (f64, [f64; N])) -> ([f64; N], f64) {
    const NODES: [(f64, f64); 8] = [
        (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
        (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
        (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
        (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
        (0.755_404_408_355_003, 0.124_628_971_255_533_88),
        (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
        (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
        (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
    ];
    let (mut sums, mut u, mut g, mut width) = ([0.0; N], 0.0, 0.0, 2.0_f64);
    // With rounding errors the curve might never fall far enough; a sound one needs a few hundred panels at most.
    for _ in 0..1000 {
        if u >= end || g <= -TAIL_DROP || g.is_nan() {
            break;
        }
        width = width.min(end - u);
        let mut g_next = curve(u + width).0;
        while g - g_next > 10.0 {
            width *= 0.5;
            g_next = curve(u + width).0;
        }
        let half = 0.5 * width;
        for (node, weight) in NODES {
            for place in [-node, node] {
                let (g_at, weights) = curve(u + half + half * place);
                let mass = half * weight * g_at.exp();
                for (sum, w) in sums.iter_mut().zip(weights) {
                    *sum += mass * w;
                }
            }
        }
        u += width;
        g = g_next;
        width = (2.0 * width).min(2.0);
    }
    (sums, g)
}

/// The nearer tail of the gamma distribution at x: its sign (−1 below, 1 above), its mass, and ∂mass/∂a,
/// the last two divided by x·density(x).
///
/// With t = x eᵛ the tail is x·density(x)·∫ e^{g(v)} dv, g(v) = (a − x) v − x (eᵛ − 1 − v); the derivative has the score
/// ln t − ψ(a) under the same integral.
fn gamma_tail(a: f64, x: f64) -> (f64, f64, f64) {
    let sign = if x < a { -1.0 } else { 1.0 };
    // Below e⁻⁴⁰ the curve is a pure exponential, integrated analytically.
    let end = if sign < 0.0 { (x.ln() + TAIL_DROP).max(0.0) } else { f64::INFINITY };
    let curve = |u: f64| (sign * u * (a - x) - x * exp_m1_minus(sign * u), [1.0, u]);
    let ([mut mass, mut first], g_end) = tail_integrals(end, curve);
    if sign < 0.0 && g_end > -TAIL_DROP {
        mass += g_end.exp() / a;
        first += g_end.exp() * (end + a.recip()) / a;
    }
    let score = ln_ratio(x.ln(), a, x - a) - digamma_minus_ln(a);
    (sign, mass, score * mass + sign * first)
}

/// ln(xᵃ e⁻ˣ / Γ(a)): the log density of ln x for x ~ Gamma(a, 1). `ln_x` is passed as well because x may have underflowed.
pub(crate) fn ln_gamma_kernel(a: f64, x: f64, ln_x: f64) -> f64 {
    if a < STIRLING_FROM {
        return a * ln_x - x - ln_gamma(a);
    }
    let excess = (x - a) / a;
    let deviance = if excess.abs() < 0.5 { ln_1p_minus(excess) } else { ln_x - a.ln() - excess };
    a * deviance + 0.5 * (a.ln() - LN_2_PI) - stirling_remainder(a)
}

/// P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a), the distribution function of Gamma(a, 1); relative error about 1e-13.
///
/// ```
/// let p = hyperprior_math::special::incomplete_gamma(1.0, 2.0);
/// assert!((p - (1.0 - (-2f64).exp())).abs() < 1e-14);
/// ```
pub fn incomplete_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 || x == f64::INFINITY {
        return f64::from(x > 0.0);
    }
    let (sign, mass, _) = gamma_tail(a, x);
    let tail = ln_gamma_kernel(a, x, x.ln()).exp() * mass;
    if sign < 0.0 { tail } else { 1.0 - tail }
}

/// ∂P(a, x)/∂a; relative error about 1e-12.
///
/// ```
/// use hyperprior_math::special::{incomplete_gamma, incomplete_gamma_d_a};
/// let numeric = (incomplete_gamma(2.0001, 1.5) - incomplete_gamma(1.9999, 1.5)) / 0.0002;
/// assert!((incomplete_gamma_d_a(2.0, 1.5) - numeric).abs() < 1e-7);
/// ```
pub fn incomplete_gamma_d_a(a: f64, x: f64) -> f64 {
    if x <= 0.0 || x == f64::INFINITY {
        return 0.0;
    }
    let (sign, _, d_mass) = gamma_tail(a, x);
    -sign * ln_gamma_kernel(a, x, x.ln()).exp() * d_mass
}

/// ln P(a, x) with its derivatives along a and x, also far into the tail where P itself underflows.
///
/// ```
/// // P(1, x) = 1 − e⁻ˣ
/// let [value, _, d_x] = hyperprior_math::special::ln_incomplete_gamma(1.0, 1e-5);
/// assert!((value - (1e-5_f64).ln()).abs() < 1e-5 && (d_x - 1e5).abs() < 1.0);
/// ```
pub fn ln_incomplete_gamma(a: f64, x: f64) -> [f64; 3] {
    ln_gamma_share(a, x, -1.0)
}

/// ln(1 − P(a, x)) with its derivatives along a and x.
///
/// ```
/// let [value, _, d_x] = hyperprior_math::special::ln_incomplete_gamma_upper(1.0, 900.0);
/// assert!((value + 900.0).abs() < 1e-10 && (d_x + 1.0).abs() < 1e-10);
/// ```
pub fn ln_incomplete_gamma_upper(a: f64, x: f64) -> [f64; 3] {
    ln_gamma_share(a, x, 1.0)
}

/// The log of the mass below x (`side` −1) or above it (1), with its derivatives along a and x.
fn ln_gamma_share(a: f64, x: f64, side: f64) -> [f64; 3] {
    if !(a > 0.0) || x.is_nan() {
        return [f64::NAN; 3];
    }
    if x <= 0.0 || x == f64::INFINITY {
        return [if (x > 0.0) == (side < 0.0) { 0.0 } else { f64::NEG_INFINITY }, 0.0, 0.0];
    }
    let (sign, mass, d_mass) = gamma_tail(a, x);
    let ln_kernel = ln_gamma_kernel(a, x, x.ln());
    if sign == side {
        // The tail that was integrated: the kernel cancels in the derivatives.
        return [ln_kernel + mass.ln(), d_mass / mass, -side / (x * mass)];
    }
    let kernel = ln_kernel.exp();
    let share = 1.0 - kernel * mass;
    [(-kernel * mass).ln_1p(), -kernel * d_mass / share, -side * kernel / (x * share)]
}

/// ∂x/∂a of a Gamma(a, 1) variable at fixed P(a, x): −(∂P/∂a) / density(x), in which the normalising constant cancels.
///
/// ```
/// // The median of Gamma(a, 1) is near a − 1/3, so it moves by about one per unit of shape.
/// let slope = hyperprior_math::special::gamma_pathwise(20.0, 20.0 - 1.0 / 3.0);
/// assert!((slope - 1.0).abs() < 1e-3);
/// ```
pub fn gamma_pathwise(a: f64, x: f64) -> f64 {
    let (sign, _, d_mass) = gamma_tail(a, x);
    sign * x * d_mass
}

/// The lower tail of the beta distribution for x at or below its mean: its mass, ∂mass/∂a and ∂mass/∂b, divided by
/// x·y·density(x), y = 1 − x.
fn beta_lower_tail(a: f64, b: f64, x: f64, y: f64) -> [f64; 3] {
    // Keeps eᵘ finite.
    let (x, y) = (x.max(1e-290), y.max(1e-290));
    let is_short = x.max((a + b) * x / (a + 1.0)) <= SERIES_MAX;
    let [mass, d_a, d_b] = if is_short { beta_series(a, b, x) } else { beta_quadrature(a, b, x, y) };
    let [score_a, score_b] = beta_scores(a, b, x, y);
    [mass, score_a * mass + d_a, score_b * mass + d_b]
}

/// I_x(a, b) B(a, b) / (xᵃ yᵇ) and its derivatives along a and b.
///
/// With log-odds logit t = logit x − u this is ∫ e^{g(u)} du, g = a ln(t/x) + b ln((1−t)/y).
fn beta_quadrature(a: f64, b: f64, x: f64, y: f64) -> [f64; 3] {
    let total = a + b;
    let excess = b * x - a * y;
    let end = (x.ln() - y.ln() + TAIL_DROP).max(0.0);
    // Two forms of the same logarithms; each is free of cancellation on its half.
    let logs = |u: f64| {
        if x < 0.5 {
            let w = x * (-u).exp_m1();
            (w, x * exp_m1_minus(-u), -w.ln_1p() - u, -w.ln_1p())
        } else {
            let w = y * u.exp_m1();
            (w, y * exp_m1_minus(u), -w.ln_1p(), u - w.ln_1p())
        }
    };
    let curve = |u: f64| {
        let (w, bend, ln_t, ln_rest) = logs(u);
        // Near the start, which dominates for huge shapes, the terms linear in u are cancelled analytically.
        let g = if u < 0.5 { excess * u - total * (bend + ln_1p_minus(w)) } else { a * ln_t + b * ln_rest };
        (g, [1.0, ln_t, ln_rest])
    };
    let ([mut mass, mut first, mut second], g_end) = tail_integrals(end, curve);
    if g_end > -TAIL_DROP {
        let (_, [_, ln_t, ln_rest]) = curve(end);
        let rest = g_end.exp() / a;
        mass += rest;
        first += rest * (ln_t - a.recip());
        second += rest * ln_rest;
    }
    [mass, first, second]
}

/// The largest ratio of consecutive terms with which a series is faster than the quadrature.
const SERIES_MAX: f64 = 0.75;

/// The same, by 1/a Σ_n Π_{k<n} (a + b + k) x / (a + 1 + k), in which every term is positive (Abramowitz and Stegun, 1964, 26.5.4).
fn beta_series(a: f64, b: f64, x: f64) -> [f64; 3] {
    let (mut term, mut of_a, mut of_b, mut k) = (a.recip(), -a.recip(), 0.0, 0.0);
    let [mut mass, mut d_a, mut d_b] = [term, term * of_a, 0.0];
    loop {
        let (above, below) = ((a + b + k).recip(), (a + 1.0 + k).recip());
        let ratio = (a + b + k) * x * below;
        term *= ratio;
        // The derivatives of the log of the term.
        (of_a, of_b, k) = (of_a + above - below, of_b + above, k + 1.0);
        mass += term;
        d_a += term * of_a;
        d_b += term * of_b;
        // The ratios go to x, from one side.
        let ratio = ratio.max(x);
        if !(term * ratio > (1.0 - ratio) * 1e-17 * mass) {
            return [mass, d_a, d_b];
        }
    }
}

/// ∂/∂a and ∂/∂b of the log density of Beta(a, b) at x, y = 1 − x.
pub(crate) fn beta_scores(a: f64, b: f64, x: f64, y: f64) -> [f64; 2] {
    let total = a + b;
    let shared = digamma_minus_ln(total);
    let excess = b * x - a * y;
    [
        ln_ratio(x.ln() + total.ln(), a, excess) - digamma_minus_ln(a) + shared,
        ln_ratio(y.ln() + total.ln(), b, -excess) - digamma_minus_ln(b) + shared,
    ]
}

/// ln(xᵃ yᵇ / B(a, b)) with y = 1 − x: the log density of logit x for x ~ Beta(a, b).
pub(crate) fn ln_beta_kernel(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if a.min(b) < STIRLING_FROM {
        return a * x.ln() + b * y.ln() - ln_beta(a, b);
    }
    let total = a + b;
    let excess = b * x - a * y;
    let deviance = |x: f64, shape: f64, excess: f64| {
        let excess = excess / shape;
        if excess.abs() < 0.5 { ln_1p_minus(excess) } else { x.ln() + (total / shape).ln() - excess }
    };
    a * deviance(x, a, excess)
        + b * deviance(y, b, -excess)
        + 0.5 * ((a / total).ln() + b.ln() - LN_2_PI)
        + stirling_remainder(total)
        - stirling_remainder(a)
        - stirling_remainder(b)
}

/// The beta tail nearer to x as (whether it is the lower one, mass, ∂mass/∂a, ∂mass/∂b), divided by x·y·density(x).
fn beta_tail(a: f64, b: f64, x: f64, y: f64) -> (bool, f64, [f64; 2]) {
    if b * x <= a * y {
        let [mass, d_a, d_b] = beta_lower_tail(a, b, x, y);
        (true, mass, [d_a, d_b])
    } else {
        let [mass, d_b, d_a] = beta_lower_tail(b, a, y, x);
        (false, mass, [d_a, d_b])
    }
}

/// I_x(a, b), the distribution function of Beta(a, b); relative error about 1e-13.
///
/// ```
/// let p = hyperprior_math::special::incomplete_beta(2.0, 1.0, 0.3);
/// assert!((p - 0.09).abs() < 1e-15);
/// ```
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return f64::from(x > 0.0);
    }
    let (is_lower, mass, _) = beta_tail(a, b, x, 1.0 - x);
    let tail = ln_beta_kernel(a, b, x, 1.0 - x).exp() * mass;
    if is_lower { tail } else { 1.0 - tail }
}

/// ∂I_x(a, b)/∂a and ∂I_x(a, b)/∂b; relative error about 1e-12.
///
/// ```
/// // I_x(a, 1) = xᵃ
/// let [d_a, _] = hyperprior_math::special::incomplete_beta_d_shapes(2.0, 1.0, 0.3);
/// assert!((d_a - 0.09 * 0.3f64.ln()).abs() < 1e-14);
/// ```
pub fn incomplete_beta_d_shapes(a: f64, b: f64, x: f64) -> [f64; 2] {
    if x <= 0.0 || x >= 1.0 {
        return [0.0; 2];
    }
    let (is_lower, _, d_mass) = beta_tail(a, b, x, 1.0 - x);
    let scale = ln_beta_kernel(a, b, x, 1.0 - x).exp();
    d_mass.map(|d| if is_lower { scale * d } else { -scale * d })
}

/// ln I_x(a, b) with its derivatives along a, b and x, also far into the tail where I itself underflows.
///
/// ```
/// // I_x(a, 1) = xᵃ
/// let [value, d_a, _, d_x] = hyperprior_math::special::ln_incomplete_beta(200.0, 1.0, 1e-3);
/// assert!((value - 200.0 * 1e-3_f64.ln()).abs() < 1e-9);
/// assert!((d_a - 1e-3_f64.ln()).abs() < 1e-9 && (d_x - 2e5).abs() < 1e-6);
/// ```
pub fn ln_incomplete_beta(a: f64, b: f64, x: f64) -> [f64; 4] {
    if !(a > 0.0 && b > 0.0) || x.is_nan() {
        return [f64::NAN; 4];
    }
    if x <= 0.0 || x >= 1.0 {
        return [if x > 0.0 { 0.0 } else { f64::NEG_INFINITY }, 0.0, 0.0, 0.0];
    }
    let y = 1.0 - x;
    let (is_lower, mass, [d_a, d_b]) = beta_tail(a, b, x, y);
    let ln_kernel = ln_beta_kernel(a, b, x, y);
    if is_lower {
        return [ln_kernel + mass.ln(), d_a / mass, d_b / mass, 1.0 / (x * y * mass)];
    }
    let kernel = ln_kernel.exp();
    let share = 1.0 - kernel * mass;
    [(-kernel * mass).ln_1p(), -kernel * d_a / share, -kernel * d_b / share, kernel / (x * y * share)]
}

/// ∂x/∂a and ∂x/∂b of a Beta(a, b) variable at fixed I_x(a, b).
///
/// ```
/// // x = u^(1/a) for Beta(a, 1)
/// let [d_a, _] = hyperprior_math::special::beta_pathwise(2.0, 1.0, 0.3);
/// assert!((d_a + 0.3 * 0.3f64.ln() / 2.0).abs() < 1e-14);
/// ```
pub fn beta_pathwise(a: f64, b: f64, x: f64) -> [f64; 2] {
    let y = 1.0 - x;
    let (is_lower, _, d_mass) = beta_tail(a, b, x, y);
    d_mass.map(|d| if is_lower { -x * y * d } else { x * y * d })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a wrong term of the series, a wrong derivative, and a series that ends too early.
    #[test]
    fn the_series_is_the_integral() {
        let mut compared = 0;
        for a in [0.02, 0.3, 1.0, 2.7, 11.0, 89.0, 4e3] {
            for b in [0.05, 0.98, 1.0, 6.0, 40.0, 700.0] {
                for share in [1e-12_f64, 1e-4, 0.03, 0.2, 0.45, 0.7, 0.74] {
                    let x = (share * (a + 1.0) / (a + b)).min(share);
                    if b * x > a * (1.0 - x) {
                        continue;
                    }
                    let (found, expected) = (beta_series(a, b, x), beta_quadrature(a, b, x, 1.0 - x));
                    let mass = expected[0];
                    for (found, expected) in found.into_iter().zip(expected) {
                        let error = (found - expected).abs();
                        assert!(error < 2e-12 * (expected.abs() + mass), "{a} {b} {x}: {found}, not {expected}");
                    }
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }
}

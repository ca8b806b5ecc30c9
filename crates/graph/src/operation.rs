//! The operations of an expression: their values and derivatives.

use hyperprior_math::special::{
    digamma, ln_gamma, ln_incomplete_beta, ln_incomplete_gamma, ln_incomplete_gamma_upper, ln_poisson_excess,
    log_sum_exp, normal_cdf, normal_quantile, sigmoid, softplus,
};
use std::f64::consts::LN_2;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Unary {
    Exp,
    Log,
    /// log(1 − eˣ), for x < 0.
    LogOneMinusExp,
    Square,
    Reciprocal,
    Sqrt,
    Abs,
    /// log(1 + eˣ).
    Softplus,
    Sigmoid,
    /// The standard normal's distribution function, and its logarithm.
    Phi,
    LogPhi,
    Probit,
    LogGamma,
    /// 1 if x ≥ 0, else 0.
    Step,
    /// 1 if x = 0, else 0.
    IsZero,
    Round,
    Trunc,
    Sin,
    Cos,
    Tan,
    ArcSin,
    ArcCos,
    ArcTan,
    SinH,
    CosH,
    TanH,
    ArcSinH,
    ArcCosH,
    ArcTanH,
}

impl Unary {
    /// f(x).
    pub(crate) fn apply(self, x: f64) -> f64 {
        let indicator = |is: bool| if x.is_nan() { x } else { f64::from(is) };
        match self {
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::LogOneMinusExp => log_one_minus_exp(x),
            Self::Square => x * x,
            Self::Reciprocal => 1.0 / x,
            Self::Sqrt => x.sqrt(),
            Self::Abs => x.abs(),
            Self::Softplus => softplus(x),
            Self::Sigmoid => sigmoid(x),
            Self::Phi => normal_cdf(x),
            Self::LogPhi => log_normal_cdf(x),
            Self::Probit => normal_quantile(x),
            Self::LogGamma if x > 0.0 => ln_gamma(x),
            // A pole at 0, −1, −2, …; between the poles no distribution uses it.
            Self::LogGamma if x == x.floor() => f64::INFINITY,
            Self::LogGamma => f64::NAN,
            Self::Step => indicator(x >= 0.0),
            Self::IsZero => indicator(x == 0.0),
            Self::Round => x.round(),
            Self::Trunc => x.trunc(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::ArcSin => x.asin(),
            Self::ArcCos => x.acos(),
            Self::ArcTan => x.atan(),
            Self::SinH => x.sinh(),
            Self::CosH => x.cosh(),
            Self::TanH => x.tanh(),
            Self::ArcSinH => x.asinh(),
            Self::ArcCosH => x.acosh(),
            Self::ArcTanH => x.atanh(),
        }
    }

    /// f′(x), given y = f(x).
    pub(crate) fn derivative(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Exp => y,
            Self::Log => 1.0 / x,
            Self::LogOneMinusExp => -1.0 / (-x).exp_m1(),
            Self::Square => 2.0 * x,
            Self::Reciprocal => -y * y,
            Self::Sqrt => 0.5 / y,
            Self::Abs => x.signum(),
            Self::Softplus => sigmoid(x),
            Self::Sigmoid => y * (1.0 - y),
            Self::Phi => log_normal_density(x).exp(),
            Self::LogPhi => (log_normal_density(x) - y).exp(),
            Self::Probit => (-log_normal_density(y)).exp(),
            Self::LogGamma => digamma(x),
            Self::Step | Self::IsZero | Self::Round | Self::Trunc => 0.0,
            Self::Sin => x.cos(),
            Self::Cos => -x.sin(),
            Self::Tan => 1.0 + y * y,
            Self::ArcSin => 1.0 / (1.0 - x * x).sqrt(),
            Self::ArcCos => -1.0 / (1.0 - x * x).sqrt(),
            Self::ArcTan => 1.0 / (1.0 + x * x),
            Self::SinH => x.cosh(),
            Self::CosH => x.sinh(),
            Self::TanH => 1.0 - y * y,
            Self::ArcSinH => 1.0 / (x * x + 1.0).sqrt(),
            Self::ArcCosH => 1.0 / (x * x - 1.0).sqrt(),
            Self::ArcTanH => 1.0 / (1.0 - x * x),
        }
    }
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Binary {
    /// x y; 0 if either is 0, whatever the other is.
    Multiply,
    Divide,
    Power,
    /// x log y; 0 if x is 0, whatever y is.
    XLogY,
    Max,
    Min,
    /// y if x ≥ 0, else −∞: the support of a distribution.
    Require,
    /// y, but −∞ if y is NaN and x is not ≥ 0: an index out of range.
    Within,
    /// log P(X ≤ y) and log P(X > y) of a gamma distribution with shape x and rate 1.
    LogGammaBelow,
    LogGammaAbove,
    /// log(P(X ≥ x) / P(X = x)) of a Poisson distribution with rate y; x is constant.
    LogPoissonExcess,
    /// A bound of log Σ p over the values beyond the last one of a sum, given log p of the last value and of the one before it:
    /// for a distribution whose successive ratios only fall from there on. ∞ if they do not fall yet.
    LogRest,
}

impl Binary {
    /// f(x, y).
    pub(crate) fn apply(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Multiply => product(x, y),
            Self::Divide => x / y,
            Self::Power => x.powf(y),
            Self::XLogY => x_log_y(x, y),
            Self::Max => {
                if x.is_nan() || x > y {
                    x
                } else {
                    y
                }
            }
            Self::Min => {
                if x.is_nan() || x < y {
                    x
                } else {
                    y
                }
            }
            Self::Require if x >= 0.0 => y,
            Self::Require if x.is_nan() => x,
            Self::Require => f64::NEG_INFINITY,
            Self::Within if y.is_nan() && !(x >= 0.0) => f64::NEG_INFINITY,
            Self::Within => y,
            Self::LogGammaBelow => ln_incomplete_gamma(x, y)[0],
            Self::LogGammaAbove => ln_incomplete_gamma_upper(x, y)[0],
            Self::LogPoissonExcess => ln_poisson_excess(x, y)[0],
            Self::LogRest => log_rest(x, y),
        }
    }

    /// (∂f/∂x, ∂f/∂y), given f = f(x, y).
    pub(crate) fn derivatives(self, x: f64, y: f64, f: f64) -> (f64, f64) {
        match self {
            Self::Multiply => (y, x),
            Self::Divide => (1.0 / y, -f / y),
            Self::Power => (if y == 0.0 { 0.0 } else { y * x.powf(y - 1.0) }, if f == 0.0 { 0.0 } else { f * x.ln() }),
            Self::XLogY => (y.ln(), if x == 0.0 { 0.0 } else { x / y }),
            Self::Max => (f64::from(x > y), f64::from(!(x > y))),
            Self::Min => (f64::from(x < y), f64::from(!(x < y))),
            Self::Require => (0.0, f64::from(x >= 0.0)),
            Self::Within => (0.0, f64::from(x >= 0.0 || !y.is_nan())),
            Self::LogGammaBelow => {
                let [_, d_x, d_y] = ln_incomplete_gamma(x, y);
                (d_x, d_y)
            }
            Self::LogGammaAbove => {
                let [_, d_x, d_y] = ln_incomplete_gamma_upper(x, y);
                (d_x, d_y)
            }
            Self::LogPoissonExcess => (0.0, ln_poisson_excess(x, y)[1]),
            // Only compared, never part of a density.
            Self::LogRest => (0.0, 0.0),
        }
    }
}

/// A function of three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Ternary {
    /// y if x is not 0, else z.
    Choose,
    /// log P(X ≤ z) of a beta distribution with parameters x and y.
    LogBetaBelow,
    /// A bound of the values beyond the last one of a function that rises to one mode and falls after it, given its last value,
    /// the one before it and its largest: the last one once it falls.
    Falling,
}

impl Ternary {
    /// f(x, y, z).
    pub(crate) fn apply(self, [x, y, z]: [f64; 3]) -> f64 {
        match self {
            Self::Choose if x.is_nan() => x,
            Self::Choose if x == 0.0 => z,
            Self::Choose => y,
            Self::LogBetaBelow => ln_incomplete_beta(x, y, z)[0],
            Self::Falling if x < y => x.min(z),
            Self::Falling => z,
        }
    }

    /// (∂f/∂x, ∂f/∂y, ∂f/∂z).
    pub(crate) fn derivatives(self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Choose => [0.0, f64::from(x != 0.0), f64::from(x == 0.0)],
            // Only compared, never part of a density.
            Self::Falling => [0.0; 3],
            Self::LogBetaBelow => {
                let [_, d_x, d_y, d_z] = ln_incomplete_beta(x, y, z);
                [d_x, d_y, d_z]
            }
        }
    }
}

/// x y; 0 if either is 0, whatever the other is: a term that is switched off may be undefined.
pub(crate) fn product(x: f64, y: f64) -> f64 {
    if x == 0.0 || y == 0.0 { 0.0 } else { x * y }
}

/// x log y; 0 if x is 0, whatever y is.
pub(crate) fn x_log_y(x: f64, y: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x * y.ln() }
}

fn log_rest(last: f64, previous: f64) -> f64 {
    if last == f64::NEG_INFINITY {
        return last;
    }
    let ratio = last - previous;
    if ratio < -LN_2 {
        // 1 / (1 − ratio) is at most 2.
        last + ratio + LN_2
    } else if ratio < 0.0 {
        last + ratio - log_one_minus_exp(ratio)
    } else if ratio.is_nan() {
        ratio
    } else {
        f64::INFINITY
    }
}

/// The log of a sum of exponentials; −∞ for an empty one.
pub(crate) fn log_sum(values: &[f64]) -> f64 {
    log_sum_exp(values)
}

fn log_one_minus_exp(x: f64) -> f64 {
    if x > -LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

fn log_normal_density(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln()
}

/// log Φ(x), by an asymptotic series far in the lower tail.
pub(crate) fn log_normal_cdf(x: f64) -> f64 {
    if x > -20.0 {
        return if x > 5.0 { (-normal_cdf(-x)).ln_1p() } else { normal_cdf(x).ln() };
    }
    // Φ(x) = φ(x)/|x| · (1 − 1/x² + 3/x⁴ − 15/x⁶ + 105/x⁸ …): at x = −20 the first term left out is 2e-11 of the last kept.
    let w = 1.0 / (x * x);
    let series = 1.0 - w * (1.0 - w * (3.0 - w * (15.0 - w * (105.0 - w * 945.0))));
    log_normal_density(x) - (-x).ln() + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Unary, &[f64]); 20] = [
        (Unary::Exp, &[-1.0, 0.3]),
        (Unary::Log, &[0.2, 3.0]),
        (Unary::LogOneMinusExp, &[-2.0, -0.1]),
        (Unary::Square, &[-1.5, 2.0]),
        (Unary::Reciprocal, &[-1.5, 2.0]),
        (Unary::Sqrt, &[0.5, 2.0]),
        (Unary::Abs, &[-0.5, 2.0]),
        (Unary::Softplus, &[-3.0, 2.0]),
        (Unary::Sigmoid, &[-3.0, 2.0]),
        (Unary::Phi, &[-1.0, 2.0]),
        (Unary::LogPhi, &[-30.0, -3.0, 0.4, 7.0]),
        (Unary::Probit, &[0.1, 0.8]),
        (Unary::LogGamma, &[0.4, 5.0]),
        (Unary::Sin, &[0.4, 5.0]),
        (Unary::Tan, &[0.4, 1.0]),
        (Unary::ArcCos, &[-0.4, 0.7]),
        (Unary::ArcTan, &[-0.4, 0.7]),
        (Unary::TanH, &[-0.4, 0.7]),
        (Unary::ArcCosH, &[1.4, 2.7]),
        (Unary::ArcTanH, &[-0.4, 0.7]),
    ];

    #[test]
    fn derivatives_are_the_slopes() {
        for (f, points) in ALL {
            for &x in points {
                let h = 1e-5 * x.abs().max(0.1);
                let slope = (f.apply(x + h) - f.apply(x - h)) / (2.0 * h);
                let found = f.derivative(x, f.apply(x));
                assert!((found - slope).abs() < 1e-6 * slope.abs().max(1e-3), "{f:?} at {x}: {found} against {slope}");
            }
        }
        let binary = [
            Binary::Multiply,
            Binary::Power,
            Binary::XLogY,
            Binary::Max,
            Binary::Min,
            Binary::LogGammaBelow,
            Binary::LogGammaAbove,
        ];
        for f in binary {
            for (x, y) in [(0.7, 1.9), (2.5, 0.4)] {
                let h = 1e-6;
                let slopes = (
                    (f.apply(x + h, y) - f.apply(x - h, y)) / (2.0 * h),
                    (f.apply(x, y + h) - f.apply(x, y - h)) / (2.0 * h),
                );
                let found = f.derivatives(x, y, f.apply(x, y));
                assert!((found.0 - slopes.0).abs() < 1e-7 && (found.1 - slopes.1).abs() < 1e-7, "{f:?} at {x}, {y}");
            }
        }
        for f in [Ternary::Choose, Ternary::LogBetaBelow] {
            for at in [[0.7, 1.9, 0.2], [2.5, 0.4, 0.9]] {
                for (k, found) in f.derivatives(at).into_iter().enumerate() {
                    let moved = |h: f64| {
                        let mut at = at;
                        at[k] += h;
                        f.apply(at)
                    };
                    let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                    assert!((found - slope).abs() < 1e-7 * slope.abs().max(1.0), "{f:?} at {at:?}, {k}");
                }
            }
        }
    }

    #[test]
    fn the_tail_of_the_normal_is_continuous() {
        let (inside, outside) = (log_normal_cdf(-19.999_999), log_normal_cdf(-20.000_001));
        assert!((inside - outside - 20.05 * 2e-6).abs() < 1e-7);
        // Φ(−30), from tables of the Mills ratio: log φ(30) − log 30 + log(1 − 1/900 + 3/810000 − …).
        assert!((log_normal_cdf(-30.0) + 454.321_243_6).abs() < 1e-6);
    }
}

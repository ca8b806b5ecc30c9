//! Bijectors: smooth increasing maps from the real line onto a variable's support.

use crate::family::Support;
use crate::special::{sigmoid, softplus};

/// Why an [`Interval`] could not be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IntervalError {
    /// The ends are in the wrong order, infinite, not numbers, or leave no room between them.
    #[error("an interval needs finite ends with lower < upper and room between them, not {lower} and {upper}")]
    Ends {
        /// The requested lower end.
        lower: f64,
        /// The requested upper end.
        upper: f64,
    },
}

/// The open interval from a finite lower to a finite upper end.
///
/// ```
/// use hyperprior_math::bijector::Interval;
/// assert!(Interval::new(-1.0, 2.0).is_ok());
/// assert!(Interval::new(2.0, -1.0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    lower: f64,
    upper: f64,
}

impl Interval {
    /// The numbers strictly between zero and one.
    pub const UNIT: Self = Self { lower: 0.0, upper: 1.0 };

    /// The interval (lower, upper).
    ///
    /// # Errors
    /// If the width is not a finite number above zero, or no f64 lies strictly between the ends.
    pub fn new(lower: f64, upper: f64) -> Result<Self, IntervalError> {
        let interval = Self { lower, upper };
        let is_open = lower < upper && interval.lowest() <= interval.highest();
        if is_open && interval.width().is_finite() { Ok(interval) } else { Err(IntervalError::Ends { lower, upper }) }
    }

    /// The lower end, excluded.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// The upper end, excluded.
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// The smallest number inside; above zero a normal number, since arithmetic on subnormals loses digits.
    fn lowest(&self) -> f64 {
        if self.lower == 0.0 { f64::MIN_POSITIVE } else { self.lower.next_up() }
    }

    fn highest(&self) -> f64 {
        self.upper.next_down()
    }

    fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// A map y(x) from the real line onto a set, applied to every number of a slice.
///
/// If rounding would put y on the edge of its set, `forward` gives the nearest number inside.
///
/// ```
/// use hyperprior_math::bijector::Bijector;
/// use hyperprior_math::family::Support;
/// let bijector = Bijector::for_support(Support::Positive).unwrap();
/// let mut y = [0.0; 2];
/// bijector.forward(&[0.0, 1.0], &mut y);
/// assert_eq!(y, [1.0, 1f64.exp()]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bijector {
    /// y = x
    Identity,
    /// y = eˣ, onto the positive numbers.
    Exp,
    /// y = lower + (upper − lower) σ(x); with [`Interval::UNIT`] the logistic function.
    Logistic(Interval),
}

impl Bijector {
    /// The bijector onto a continuous support; `None` for a discrete one.
    pub fn for_support(support: Support) -> Option<Self> {
        match support {
            Support::Real => Some(Self::Identity),
            Support::Positive => Some(Self::Exp),
            Support::UnitInterval => Some(Self::Logistic(Interval::UNIT)),
            Support::Integers { .. } | Support::Counts => None,
        }
    }

    /// Whether every y lies in `support`.
    ///
    /// ```
    /// use hyperprior_math::{bijector::Bijector, family::Support};
    /// assert!(Bijector::Exp.is_within(&Support::Positive));
    /// assert!(!Bijector::Identity.is_within(&Support::Positive));
    /// ```
    pub fn is_within(&self, support: &Support) -> bool {
        match (self, support) {
            (_, Support::Real) | (Self::Exp, Support::Positive) => true,
            (Self::Logistic(interval), Support::Positive) => interval.lower() >= 0.0,
            (Self::Logistic(interval), Support::UnitInterval) => interval.lower() >= 0.0 && interval.upper() <= 1.0,
            _ => false,
        }
    }

    /// out = y(x).
    pub fn forward(&self, x: &[f64], out: &mut [f64]) {
        match *self {
            Self::Identity => out.copy_from_slice(x),
            Self::Exp => map(x, out, |x| x.exp().clamp(f64::MIN_POSITIVE, f64::MAX)),
            Self::Logistic(interval) => map(x, out, |x| {
                // From the nearer end, so that a y close to it keeps its digits.
                let inside = interval.width() * sigmoid(-x.abs());
                let y = if x < 0.0 { interval.lower + inside } else { interval.upper - inside };
                y.clamp(interval.lowest(), interval.highest())
            }),
        }
    }

    /// out = x(y), the inverse of `forward`. NaN where y is not in the set.
    pub fn inverse(&self, y: &[f64], out: &mut [f64]) {
        match *self {
            Self::Identity => out.copy_from_slice(y),
            Self::Exp => map(y, out, f64::ln),
            Self::Logistic(interval) => {
                map(y, out, |y| (y - interval.lower).ln() - (interval.upper - y).ln());
            }
        }
    }

    /// out = ln |dy/dx| at x.
    pub fn log_derivative(&self, x: &[f64], out: &mut [f64]) {
        match *self {
            Self::Identity => out.fill(0.0),
            Self::Exp => out.copy_from_slice(x),
            Self::Logistic(interval) => {
                let log_width = interval.width().ln();
                map(x, out, |x| log_width - softplus(x) - softplus(-x));
            }
        }
    }

    /// d_x += d_y · dy/dx + d_log_derivative · d ln|dy/dx| / dx.
    pub fn pullback(&self, x: &[f64], d_y: &[f64], d_log_derivative: &[f64], d_x: &mut [f64]) {
        for (s, (d_x, &x)) in d_x.iter_mut().zip(x).enumerate() {
            let (slope, log_slope) = match self {
                Self::Identity => (1.0, 0.0),
                Self::Exp => (x.exp(), 1.0),
                Self::Logistic(interval) => (interval.width() * sigmoid(x) * sigmoid(-x), -(0.5 * x).tanh()),
            };
            *d_x += d_y[s] * slope + d_log_derivative[s] * log_slope;
        }
    }
}

fn map(x: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = f(x);
    }
}

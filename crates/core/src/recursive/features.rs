//! What a factorised approximation sees of z_i: a few smooth functions of it, chosen by its support.

use hyperprior_math::family::Support;

/// A small basis over the values of one latent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Features {
    /// z itself; enough for two values.
    Binary,
    /// One indicator per value but the first: a table.
    Table(usize),
    /// ln(1 + z) and z/8: near-linear in the log rate, and in the rate.
    Count,
    /// asinh z and its square.
    Real,
    /// ln z and a quarter of its square.
    Positive,
    /// The logit of z.
    Unit,
}

impl Features {
    /// Tables beyond this many values cost more to learn than they give.
    const TABLE_MAX: f64 = 15.0;

    pub(super) fn for_support(support: Support) -> Self {
        match support {
            Support::BINARY => Self::Binary,
            Support::Integers { lower, upper } if lower == 0.0 && upper <= Self::TABLE_MAX => {
                Self::Table(upper as usize)
            }
            Support::Integers { .. } | Support::Counts => Self::Count,
            Support::Positive => Self::Positive,
            Support::UnitInterval => Self::Unit,
            _ => Self::Real,
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Binary | Self::Unit => 1,
            Self::Table(len) => len,
            Self::Count | Self::Real | Self::Positive => 2,
        }
    }

    /// Feature `f` at `z`.
    pub(super) fn value(self, f: usize, z: f64) -> f64 {
        match (self, f) {
            (Self::Binary, _) => z,
            (Self::Table(_), f) => f64::from(z == (f + 1) as f64),
            (Self::Count, 0) => z.max(0.0).ln_1p(),
            (Self::Count, _) => z / 8.0,
            (Self::Real, 0) => z.asinh(),
            (Self::Real, _) => z.asinh() * z.asinh(),
            (Self::Positive, 0) => log_inside(z),
            (Self::Positive, _) => 0.25 * log_inside(z) * log_inside(z),
            (Self::Unit, _) => log_inside(z) - log_inside(1.0 - z),
        }
    }

    /// The derivative of feature `f` at `z`, for continuous latents.
    pub(super) fn derivative(self, f: usize, z: f64) -> f64 {
        match (self, f) {
            (Self::Real, 0) => 1.0 / (1.0 + z * z).sqrt(),
            (Self::Real, _) => 2.0 * z.asinh() / (1.0 + z * z).sqrt(),
            (Self::Positive, 0) => inverse_inside(z),
            (Self::Positive, _) => 0.5 * log_inside(z) * inverse_inside(z),
            (Self::Unit, _) => inverse_inside(z) + inverse_inside(1.0 - z),
            _ => 0.0,
        }
    }
}

/// Draws this close to the edge of a support see a constant.
const EDGE: f64 = 1e-12;

fn log_inside(z: f64) -> f64 {
    z.max(EDGE).ln()
}

fn inverse_inside(z: f64) -> f64 {
    if z > EDGE { 1.0 / z } else { 0.0 }
}

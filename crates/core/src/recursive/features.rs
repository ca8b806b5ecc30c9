//! The features of z_i in a factorised approximation: a few smooth functions, chosen by its support.

use crate::likelihood::Likelihood;
use hyperprior_math::batch::Batch;
use hyperprior_math::family::Support;
use std::ops::Range;

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
    /// Larger tables cost more to learn than they gain.
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

/// Within this distance of the edge of a support the features are constant.
const EDGE: f64 = 1e-12;

fn log_inside(z: f64) -> f64 {
    z.max(EDGE).ln()
}

fn inverse_inside(z: f64) -> f64 {
    if z > EDGE { 1.0 / z } else { 0.0 }
}

/// The features of all latents, side by side.
#[derive(Clone, Debug)]
pub(super) struct FeatureTable {
    /// Each latent's features and where they start.
    pub(super) latents: Vec<(Features, usize)>,
    /// How many features there are in all.
    pub(super) len: usize,
}

impl FeatureTable {
    pub(super) fn new(likelihood: &dyn Likelihood) -> Self {
        let mut len = 0;
        let mut latents = Vec::with_capacity(likelihood.latents_len());
        for i in 0..likelihood.latents_len() {
            let features = Features::for_support(likelihood.support(i));
            latents.push((features, len));
            len += features.len();
        }
        Self { latents, len }
    }

    /// The columns of latent `i`'s features.
    pub(super) fn range(&self, i: usize) -> Range<usize> {
        let (features, first) = self.latents[i];
        first..first + features.len()
    }

    /// out ← t(z).
    pub(super) fn write(&self, z: &Batch, out: &mut Batch) {
        out.reshape(self.len, z.draws_len());
        for (i, (features, first)) in self.latents.iter().enumerate() {
            for f in 0..features.len() {
                for (o, z) in out.column_mut(first + f).iter_mut().zip(z.column(i)) {
                    *o = features.value(f, *z);
                }
            }
        }
    }

    /// d_z += the pullback of latent `i`'s features.
    pub(super) fn pullback(&self, i: usize, z: &Batch, d_features: &Batch, d_z: &mut Batch) {
        let (features, first) = self.latents[i];
        for f in 0..features.len() {
            let d_t = d_features.column(first + f);
            for ((d_z, d_t), z) in d_z.column_mut(i).iter_mut().zip(d_t).zip(z.column(i)) {
                *d_z += d_t * features.derivative(f, *z);
            }
        }
    }
}

//! Coordinates of latents relative to the location and scale of their distributions.

use super::distribution::Distribution;
use super::expression::{Expr, Expressions};

/// The degree of centring of a latent: 1 if it is centred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Degree {
    Fixed(f64),
    /// A coordinate of its own, to be learnt.
    Learnt,
}

/// A degree, and typical values of the location and the log scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Centring {
    pub(crate) degree: Degree,
    pub(crate) reference: [f64; 2],
    /// Whether the location is that of the beginning of a chain: for a random walk, its first value, and not the one before.
    pub(crate) is_chained: bool,
}

/// The degree of each latent of the graph. Those without one are centred.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Degrees(pub(crate) Vec<Option<Centring>>);

impl Degrees {
    /// The degree of a latent of the graph.
    pub(super) fn of(&self, leaf: usize) -> Option<Centring> {
        self.0.get(leaf).copied().flatten()
    }
}

/// The location and the log scale of a distribution.
pub(crate) struct Place {
    pub(crate) location: Expr,
    pub(crate) log_scale: Expr,
    /// Whether they are those of the logarithm.
    pub(crate) is_log: bool,
}

impl Expressions {
    /// The place of a location–scale or scale distribution, whose parameters become `made`.
    pub(super) fn place_of(&mut self, distribution: &Distribution, made: impl Fn(Expr) -> Expr) -> Option<Place> {
        let zero = self.constant(0.0);
        let place = match *distribution {
            Distribution::Normal { mean, precision } | Distribution::StudentT { mean, precision, .. } => {
                let log_precision = self.log(made(precision));
                Place { location: made(mean), log_scale: self.scale(log_precision, -0.5), is_log: false }
            }
            Distribution::LogNormal { mean, precision } => {
                let log_precision = self.log(made(precision));
                Place { location: made(mean), log_scale: self.scale(log_precision, -0.5), is_log: true }
            }
            Distribution::Laplace { mean, rate } | Distribution::Logistic { mean, rate } => {
                let log_rate = self.log(made(rate));
                Place { location: made(mean), log_scale: self.scale(log_rate, -1.0), is_log: false }
            }
            Distribution::Gamma { shape, rate } => {
                let (log_shape, log_rate) = (self.log(made(shape)), self.log(made(rate)));
                Place { location: self.subtract(log_shape, log_rate), log_scale: zero, is_log: true }
            }
            Distribution::Exponential { rate } => {
                let log_rate = self.log(made(rate));
                Place { location: self.scale(log_rate, -1.0), log_scale: zero, is_log: true }
            }
            _ => return None,
        };
        Some(place)
    }
}

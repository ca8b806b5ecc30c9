//! Parts of a variational model by name, for who wants to choose them one by one: q(z | λ), q(λ; θ) and r(λ | z; φ).

use super::approximation::covariance;
use crate::error::Result;
use crate::likelihood::MeanField;
use crate::prior::{
    Bend, Copula, CouplingFlow, Covariance, Gaussian, LowRank, Mixture, PlanarFlow, Prior, SinhArcsinh,
};
use crate::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error as ThisError;

/// Bins of a flow's splines, and the hidden numbers of its networks.
const BINS: usize = 8;
const HIDDEN: usize = 16;

/// The factors of discrete latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LikelihoodPart {
    /// A free distribution over each range that is not long, and Poissons.
    Usual,
    /// A binomial over each range.
    Binomial,
    /// A negative binomial for each count.
    NegativeBinomial,
}

/// The variational prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum PriorPart {
    /// Independent Gaussians.
    Diagonal,
    /// One Gaussian with a full covariance.
    Gaussian,
    /// One Gaussian whose covariance is a diagonal and a part of that rank.
    LowRank(usize),
    /// A mixture of that many Gaussians.
    Mixture(usize),
    /// A Gaussian copula of that rank with flexible margins.
    Copula(usize),
    /// A planar flow of that length.
    Planar(usize),
    /// A spline flow of that many layers.
    Spline(usize),
}

/// The recursive approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RecursivePart {
    /// r = prior.
    Prior,
    /// Independent Gaussians given z.
    Factorised,
    /// An inverse planar flow of that length.
    InverseFlow(usize),
    /// Mode and curvature, for each component of the prior.
    Laplace,
    /// Matched moments, for each component of the prior.
    ExpectationPropagation,
}

/// The parts that are chosen; a method decides about the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parts {
    /// q(z | λ).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<LikelihoodPart>,
    /// q(λ; θ).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorPart>,
    /// r(λ | z; φ).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive: Option<RecursivePart>,
}

/// A part that there is not.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("there is no {what} `{name}`; use {known}")]
pub struct PartError {
    what: &'static str,
    name: String,
    known: &'static str,
}

/// A name, and the number after its colon; nothing where that is no number above zero.
pub(super) fn numbered(text: &str) -> Option<(&str, Option<usize>)> {
    match text.split_once(':') {
        None => Some((text, None)),
        Some((name, number)) => number.parse().ok().filter(|n| *n > 0).map(|n| (name, Some(n))),
    }
}

/// Text both ways for a part.
macro_rules! by_name {
    ($part:ident, $what:literal, $known:literal, $($plain:literal => $unit:ident,)* ; $($name:literal, $usual:literal => $sized:ident,)*) => {
        impl fmt::Display for $part {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                match self {
                    $(Self::$unit => f.write_str($plain),)*
                    $(Self::$sized(size) => write!(f, "{}:{size}", $name),)*
                }
            }
        }

        impl FromStr for $part {
            type Err = PartError;

            fn from_str(text: &str) -> std::result::Result<Self, PartError> {
                match numbered(text) {
                    $(Some(($plain, None)) => Ok(Self::$unit),)*
                    $(Some(($name, size)) => Ok(Self::$sized(size.unwrap_or($usual))),)*
                    _ => Err(PartError { what: $what, name: text.to_owned(), known: $known }),
                }
            }
        }

        impl From<$part> for String {
            fn from(part: $part) -> Self {
                part.to_string()
            }
        }

        impl TryFrom<String> for $part {
            type Error = PartError;

            fn try_from(text: String) -> std::result::Result<Self, PartError> {
                text.parse()
            }
        }
    };
}

by_name!(LikelihoodPart, "likelihood", "usual, binomial or negative-binomial",
    "usual" => Usual, "binomial" => Binomial, "negative-binomial" => NegativeBinomial, ; );
by_name!(PriorPart, "prior", "diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L or spline:L",
    "diagonal" => Diagonal, "gaussian" => Gaussian, ;
    "low-rank", 4 => LowRank, "mixture", 4 => Mixture, "copula", 4 => Copula, "planar", 4 => Planar, "spline", 6 => Spline,);
by_name!(RecursivePart, "recursive approximation", "prior, factorised, inverse-flow:L, laplace or ep",
    "prior" => Prior, "factorised" => Factorised, "laplace" => Laplace, "ep" => ExpectationPropagation, ;
    "inverse-flow", 4 => InverseFlow,);

impl PriorPart {
    /// The prior over that many parameters.
    pub(super) fn build(self, n: usize) -> Result<Box<dyn Prior>> {
        Ok(match self {
            Self::Diagonal => Box::new(Gaussian::new(n, Covariance::Diagonal)?),
            Self::Gaussian => Box::new(Gaussian::new(n, covariance(n))?),
            Self::LowRank(rank) => Box::new(LowRank::new(n, rank.min(n))?),
            Self::Mixture(components) => Box::new(Mixture::new(n, components, covariance(n))?),
            Self::Copula(rank) => Box::new(Copula::of(SinhArcsinh, n, rank.min(n))?),
            Self::Planar(layers) => Box::new(PlanarFlow::new(n, layers)?),
            Self::Spline(layers) => Box::new(CouplingFlow::new(n, layers, HIDDEN, Bend::Spline { bins: BINS })?),
        })
    }
}

impl RecursivePart {
    /// The approximation for a likelihood and a prior.
    pub(super) fn build(self, likelihood: &MeanField, prior: &dyn Prior) -> Result<Box<dyn Recursive>> {
        let flow = |layers| Box::new(InverseFlow::new(likelihood, prior.components_len(), layers, Space::Noise));
        let gaussian = |fit| MixtureGaussian::new(likelihood, prior, fit, Space::Noise);
        Ok(match self {
            Self::Prior => Box::new(SameAsPrior),
            Self::Factorised => flow(0),
            Self::InverseFlow(layers) => flow(layers),
            Self::Laplace => Box::new(gaussian(GaussianFit::Laplace)?),
            Self::ExpectationPropagation => Box::new(gaussian(GaussianFit::ExpectationPropagation)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["diagonal", "gaussian", "low-rank:3", "mixture:4", "copula:2", "planar:4", "spline:6"] {
            assert_eq!(name.parse::<PriorPart>().map(|part| part.to_string()).as_deref(), Ok(name));
        }
        for name in ["prior", "factorised", "inverse-flow:10", "laplace", "ep"] {
            assert_eq!(name.parse::<RecursivePart>().map(|part| part.to_string()).as_deref(), Ok(name));
        }
        assert_eq!("mixture".parse(), Ok(PriorPart::Mixture(4)));
        let error = "gaussian:3".parse::<PriorPart>().map_err(|e| e.to_string()).expect_err("no number here");
        assert!(error.starts_with("there is no prior `gaussian:3`; use diagonal"), "{error}");
        assert!("mixture:0".parse::<PriorPart>().is_err());
    }
}

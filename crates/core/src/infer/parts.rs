//! The parts of a variational model by name, to choose them individually: q(z | λ), q(λ; θ) and r(λ | z; φ).

use crate::error::Result;
use crate::likelihood::{Likelihood, MeanField};
use crate::prior::{
    Atoms, Bend, Copula, CouplingFlow, Covariance, Delta, FactorialMixture, Gaussian, GaussianProcessMap, Hierarchical,
    LinearMap, LowRank, Mixture, PlanarFlow, Prior, SinhArcsinh,
};
use crate::recursive::{
    GaussianFit, HierarchicalRecursive, InverseFlow, MixtureGaussian, Recursive, Responsibilities, SameAsPrior, Space,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error as ThisError;

/// The bins of a flow's splines, and the hidden units of its networks.
const BINS: usize = 8;
const HIDDEN: usize = 16;

/// The inputs of a Gaussian process.
const INPUTS: usize = 2;

/// More parameters than this get a diagonal covariance: in whitened coordinates little dependence is left.
const FULL_MAX: usize = 300;
pub(super) fn covariance(lambda_len: usize) -> Covariance {
    if lambda_len <= FULL_MAX { Covariance::Full } else { Covariance::Diagonal }
}

/// The factors of discrete latents. See [`Parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LikelihoodPart {
    /// Categoricals for ranges that are not too long, Poissons for counts.
    Usual,
    /// A binomial for each range.
    Binomial,
    /// A negative binomial for each count.
    NegativeBinomial,
}

/// The variational prior. See [`Parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum PriorPart {
    /// Independent Gaussians.
    Diagonal,
    /// One Gaussian with a full covariance.
    Gaussian,
    /// One Gaussian with a covariance that is diagonal plus this rank.
    LowRank(usize),
    /// A mixture of this many Gaussians.
    Mixture(usize),
    /// A Gaussian copula of this rank with flexible marginals.
    Copula(usize),
    /// A planar flow of this length.
    Planar(usize),
    /// A spline flow of this many layers.
    Spline(usize),
    /// A flow of this many affine coupling layers.
    Coupling(usize),
    /// A mixture of this many points, each a mean-field approximation of its own; for discrete latents only.
    Atoms(usize),
    /// A factorial mixture: this many binary switches, each of which shifts all parameters; over points if all latents are discrete.
    Switches(usize),
    /// Gaussians whose means and scales depend on so many normal variables a level above.
    Levels(usize),
    /// A Gaussian process of two normal variables with this many variational data (Tran, Ranganath and Blei, 2016).
    GaussianProcess(usize),
}

/// The recursive approximation. See [`Parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RecursivePart {
    /// r = prior.
    Prior,
    /// Independent Gaussians given z.
    Factorised,
    /// An inverse planar flow of this length.
    InverseFlow(usize),
    /// A Gaussian at the mode for each component of the prior, with the curvature there.
    Laplace,
    /// A Gaussian with matched moments for each component of the prior.
    ExpectationPropagation,
    /// The exact probabilities of a mixture of points.
    Exact,
    /// Approximations of all levels of the prior and of its switches.
    Levels,
}

/// Parts that are chosen individually; the method decides the others.
///
/// ```
/// use hyperprior::infer::{InferSettings, Parts, PriorPart, RecursivePart};
/// let parts = Parts { prior: Some(PriorPart::Mixture(4)), recursive: "laplace".parse().ok(), ..Parts::default() };
/// assert_eq!(parts.recursive, Some(RecursivePart::Laplace));
/// let settings = InferSettings::default().parts(parts);
/// ```
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

/// An unknown name of a part. See [`Parts`].
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("there is no {what} `{name}`; use {known}")]
pub struct PartError {
    what: &'static str,
    name: String,
    known: &'static str,
}

/// A name, and the number after its colon; `None` if that is not a whole number above zero.
pub(super) fn numbered(text: &str) -> Option<(&str, Option<usize>)> {
    match text.split_once(':') {
        None => Some((text, None)),
        Some((name, number)) => number.parse().ok().filter(|n| *n > 0).map(|n| (name, Some(n))),
    }
}

/// Writes a part as text and reads it back.
macro_rules! by_name {
    (
        $part:ident, $what:literal, $known:literal,
        $($plain:literal => $unit:ident,)* ; $($name:literal, $usual:literal => $sized:ident,)*
    ) => {
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

        impl $part {
            /// The number after the colon, if the part has one.
            pub fn size(self) -> Option<usize> {
                match self {
                    $(Self::$unit => None,)*
                    $(Self::$sized(size) => Some(size),)*
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
by_name!(PriorPart, "prior",
    "diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L, coupling:L, spline:L, atoms:K, switches:S, levels:U or \
     gaussian-process:M",
    "diagonal" => Diagonal, "gaussian" => Gaussian, ;
    "low-rank", 4 => LowRank, "mixture", 4 => Mixture, "copula", 4 => Copula, "planar", 4 => Planar, "spline", 6 => Spline,
    "coupling", 8 => Coupling, "atoms", 8 => Atoms, "switches", 4 => Switches, "levels", 2 => Levels,
    "gaussian-process", 8 => GaussianProcess,);
by_name!(RecursivePart, "recursive approximation", "prior, factorised, inverse-flow:L, laplace, ep, exact or levels",
    "prior" => Prior, "factorised" => Factorised, "laplace" => Laplace, "ep" => ExpectationPropagation, "exact" => Exact,
    "levels" => Levels, ;
    "inverse-flow", 4 => InverseFlow,);

impl PriorPart {
    /// The r that suits it best, if it is not that of Gaussians.
    pub(super) fn recursive(self) -> Option<RecursivePart> {
        match self {
            Self::Atoms(_) => Some(RecursivePart::Exact),
            Self::Switches(_) | Self::Levels(_) | Self::GaussianProcess(_) => Some(RecursivePart::Levels),
            _ => None,
        }
    }

    /// The prior over the parameters of a likelihood.
    pub(super) fn build(self, likelihood: &MeanField) -> Result<Box<dyn Prior>> {
        let n = likelihood.lambda_len();
        Ok(match self {
            Self::Diagonal => Box::new(Gaussian::new(n, Covariance::Diagonal)?),
            Self::Gaussian => Box::new(Gaussian::new(n, covariance(n))?),
            Self::LowRank(rank) => Box::new(LowRank::new(n, rank.min(n))?),
            Self::Mixture(components) => Box::new(Mixture::new(n, components, covariance(n))?),
            Self::Copula(rank) => Box::new(Copula::of(SinhArcsinh, n, rank.min(n))?),
            Self::Planar(layers) => Box::new(PlanarFlow::new(n, layers)?),
            Self::Spline(layers) => Box::new(CouplingFlow::new(n, layers, HIDDEN, Bend::Spline { bins: BINS })?),
            Self::Coupling(layers) => Box::new(CouplingFlow::new(n, layers, HIDDEN, Bend::Affine)?),
            Self::Atoms(points) => Box::new(Atoms::new(n, points)?),
            // Of point masses the prior is the whole approximation, which needs a density.
            Self::Switches(switches) if likelihood.point_mass_len() > 0 => {
                Box::new(FactorialMixture::new(Gaussian::new(n, Covariance::Diagonal)?, switches)?)
            }
            Self::Switches(switches) => Box::new(FactorialMixture::new(Delta { lambda_len: n }, switches)?),
            Self::Levels(above) => {
                Box::new(Hierarchical::new(Gaussian::new(above, Covariance::Diagonal)?, LinearMap::new(n, above))?)
            }
            Self::GaussianProcess(data) => {
                let map = GaussianProcessMap::new(n, INPUTS, data)?;
                Box::new(Hierarchical::new(Gaussian::new(INPUTS, Covariance::Diagonal)?, map)?)
            }
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
            Self::Exact => Box::new(Responsibilities),
            Self::Levels => Box::new(HierarchicalRecursive::new(likelihood, prior)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "diagonal",
            "gaussian",
            "low-rank:3",
            "mixture:4",
            "copula:2",
            "planar:4",
            "spline:6",
            "coupling:8",
            "atoms:8",
            "switches:3",
            "levels:2",
            "gaussian-process:8",
        ] {
            assert_eq!(name.parse::<PriorPart>().map(|part| part.to_string()).as_deref(), Ok(name));
        }
        for name in ["prior", "factorised", "inverse-flow:10", "laplace", "ep", "exact", "levels"] {
            assert_eq!(name.parse::<RecursivePart>().map(|part| part.to_string()).as_deref(), Ok(name));
        }
        assert_eq!("mixture".parse(), Ok(PriorPart::Mixture(4)));
        let error = "gaussian:3".parse::<PriorPart>().map_err(|e| e.to_string()).expect_err("no number here");
        assert!(error.starts_with("there is no prior `gaussian:3`; use diagonal"), "{error}");
        assert!("mixture:0".parse::<PriorPart>().is_err());
    }
}

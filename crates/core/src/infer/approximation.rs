//! Which approximation: the methods by name, and the variational model that each is for a model's latents.

use crate::error::{Error, Result};
use crate::likelihood::{Factor, Likelihood, MeanField};
use crate::model::{Latents, Support};
use crate::prior::{Bend, Copula, CouplingFlow, Covariance, Gaussian, Mixture, Prior, SinhArcsinh};
use crate::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use crate::variational::Variational;
use hyperprior_math::family::{Bernoulli, Binomial, Categorical, Family, Normal, Poisson};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error as ThisError;

/// A method by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Method {
    /// What suits the model.
    #[default]
    Auto,
    /// Every latent on its own.
    MeanField,
    /// One Gaussian with a full covariance over all parameters.
    FullRank,
    /// A mixture of that many Gaussians.
    Mixture(usize),
    /// A spline flow of that many layers.
    Flow(usize),
    /// A Gaussian copula of that rank with flexible margins.
    Copula(usize),
    /// A hierarchical variational model: one joint mixture prior over the parameters of discrete and continuous latents.
    Hvm,
}

/// A method that there is not.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error(
    "there is no method `{0}`; use auto, mean-field, full-rank, mixture:K, flow:L, copula:R or hvm, with a whole number above 0 \
     after the colon"
)]
pub struct MethodError(String);

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::MeanField => f.write_str("mean-field"),
            Self::FullRank => f.write_str("full-rank"),
            Self::Mixture(k) => write!(f, "mixture:{k}"),
            Self::Flow(l) => write!(f, "flow:{l}"),
            Self::Copula(r) => write!(f, "copula:{r}"),
            Self::Hvm => f.write_str("hvm"),
        }
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> std::result::Result<Self, MethodError> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let bad = || MethodError(text.to_owned());
        let count = |usual: usize| match number {
            None => Ok(usual),
            Some(number) => number.parse().ok().filter(|n| *n > 0).ok_or_else(bad),
        };
        let plain = |method| if number.is_none() { Ok(method) } else { Err(bad()) };
        match name {
            "auto" => plain(Self::Auto),
            "mean-field" => plain(Self::MeanField),
            "full-rank" => plain(Self::FullRank),
            "hvm" => plain(Self::Hvm),
            "mixture" => Ok(Self::Mixture(count(4)?)),
            "flow" => Ok(Self::Flow(count(6)?)),
            "copula" => Ok(Self::Copula(count(4)?)),
            _ => Err(bad()),
        }
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.to_string()
    }
}

impl TryFrom<String> for Method {
    type Error = MethodError;

    fn try_from(text: String) -> std::result::Result<Self, MethodError> {
        text.parse()
    }
}

/// Longer ranges than this get a binomial factor, shorter ones a free distribution.
const TABLE_MAX: f64 = 512.0;
/// Bins of a flow's splines; and below, the hidden numbers of its networks.
const BINS: usize = 8;
const HIDDEN: usize = 16;

/// More parameters than this get independent Gaussians: in the posterior's own units little dependence is left.
const FULL_MAX: usize = 300;
/// More parameters than this get a learned r.
const LAPLACE_MAX: usize = 16;

fn covariance(lambda_len: usize) -> Covariance {
    if lambda_len <= FULL_MAX { Covariance::Full } else { Covariance::Diagonal }
}

/// How many Gaussians a hierarchical model's prior has: every one costs an evaluation of the model.
fn hvm_components(lambda_len: usize) -> usize {
    match lambda_len {
        0..=64 => 8,
        _ => 2,
    }
}

/// The factor of a discrete latent.
fn discrete(support: Support) -> Result<Box<dyn Family>> {
    let bad = |reason: String| Error::BadPart { part: "the mean-field likelihood".to_owned(), reason };
    Ok(match support {
        Support::BINARY => Box::new(Bernoulli),
        Support::Integers { lower: 0.0, upper } if upper < TABLE_MAX => {
            Box::new(Categorical::new(upper as usize + 1).map_err(|e| bad(e.to_string()))?)
        }
        Support::Integers { lower: 0.0, upper } => {
            Box::new(Binomial::new(upper as u64).map_err(|e| bad(e.to_string()))?)
        }
        Support::Counts => Box::new(Poisson),
        other => return Err(bad(format!("no factor covers the support {other:?}"))),
    })
}

/// q(z | λ) for a model's latents: a family for each discrete one, a point mass for each continuous one, or a normal where
/// `alone`, so that mean-field needs no prior.
fn likelihood(latents: &Latents, alone: bool) -> Result<MeanField> {
    let factor = |i: usize| match latents.support(i) {
        support if support.is_discrete() => Ok(Factor::Family(discrete(support)?)),
        Support::Real if alone => Ok(Factor::Family(Box::new(Normal) as Box<dyn Family>)),
        support => Factor::for_support(support),
    };
    MeanField::new((0..latents.len()).map(factor).collect::<Result<_>>()?)
}

impl Method {
    /// The variational model that this method is for these latents.
    ///
    /// # Errors
    /// [`Error::EmptyModel`], [`Error::BadPart`] or [`Error::Mismatch`] where it cannot be.
    pub fn variational(self, latents: &Latents) -> Result<Variational> {
        if latents.is_empty() {
            return Err(Error::EmptyModel);
        }
        let has_discrete = (0..latents.len()).any(|i| latents.support(i).is_discrete());
        if self == Self::MeanField && has_discrete {
            return Ok(Variational::mean_field(likelihood(latents, true)?));
        }
        let likelihood = likelihood(latents, false)?;
        let n = likelihood.lambda_len();
        let prior: Box<dyn Prior> = match self {
            Self::Mixture(k) => Box::new(Mixture::new(n, k, covariance(n))?),
            Self::Hvm => Box::new(Mixture::new(n, hvm_components(n), covariance(n))?),
            Self::Flow(layers) => Box::new(CouplingFlow::new(n, layers, HIDDEN, Bend::Spline { bins: BINS })?),
            Self::Copula(rank) => Box::new(Copula::of(SinhArcsinh, n, rank.min(n))?),
            Self::MeanField => Box::new(Gaussian::new(n, Covariance::Diagonal)?),
            _ => Box::new(Gaussian::new(n, covariance(n))?),
        };
        let discrete: Vec<usize> = (0..latents.len()).filter(|i| latents.support(*i).is_discrete()).collect();
        // Mode and curvature are exact enough where a latent has one parameter and there are few; else r is learned.
        let is_small = n <= LAPLACE_MAX && discrete.iter().all(|i| likelihood.lambda_range(*i).len() == 1);
        let recursive: Box<dyn Recursive> = if discrete.is_empty() {
            Box::new(SameAsPrior)
        } else if is_small && prior.gaussians().is_some() {
            Box::new(MixtureGaussian::new(&likelihood, &*prior, GaussianFit::Laplace, Space::Noise)?)
        } else {
            Box::new(InverseFlow::factorised(&likelihood, prior.components_len(), Space::Noise))
        };
        Variational::from_parts(Arc::new(likelihood), prior, recursive)
    }
}

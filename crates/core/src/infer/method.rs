//! The methods by name, and the variational model that each stands for.

use super::parts::{LikelihoodPart, Parts, PriorPart, RecursivePart, numbered};
use crate::error::{Error, Result};
use crate::likelihood::{Factor, Likelihood, MeanField};
use crate::model::{Latents, Support};
use crate::variational::Variational;
use hyperprior_math::family::{Bernoulli, Binomial, Categorical, Family, NegativeBinomial, Normal, Poisson};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error as ThisError;

/// A method by name.
///
/// ```
/// use hyperprior::infer::Method;
/// use hyperprior::model::{Latents, Support};
/// assert_eq!("mixture:3".parse(), Ok(Method::Mixture(3)));
/// let q = Method::FullRank.variational(&Latents::new().vector("z", 2, Support::Real)?)?;
/// assert_eq!(q.theta_len(), 2 + 3);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Method {
    /// Chosen to suit the model.
    #[default]
    Auto,
    /// Independent latents.
    MeanField,
    /// One Gaussian with a full covariance over all parameters.
    FullRank,
    /// One Gaussian with a covariance that is diagonal plus this rank.
    LowRank(usize),
    /// A mixture of this many Gaussians.
    Mixture(usize),
    /// A spline flow of this many layers.
    Flow(usize),
    /// A Gaussian copula of this rank with flexible marginals.
    Copula(usize),
    /// A hierarchical variational model: one joint mixture prior over the parameters of discrete and continuous latents.
    Hvm,
    /// Chains of the No-U-Turn sampler from overdispersed starts around a Gaussian approximation.
    Nuts,
}

/// An unknown method name. See [`Method`].
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error(
    "there is no method `{0}`; use auto, mean-field, low-rank:R, full-rank, mixture:K, flow:L, copula:R, hvm or nuts, with a \
     whole number above 0 after the colon"
)]
pub struct MethodError(String);

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::MeanField => f.write_str("mean-field"),
            Self::FullRank => f.write_str("full-rank"),
            Self::LowRank(r) => write!(f, "low-rank:{r}"),
            Self::Mixture(k) => write!(f, "mixture:{k}"),
            Self::Flow(l) => write!(f, "flow:{l}"),
            Self::Copula(r) => write!(f, "copula:{r}"),
            Self::Hvm => f.write_str("hvm"),
            Self::Nuts => f.write_str("nuts"),
        }
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> std::result::Result<Self, MethodError> {
        match numbered(text) {
            Some(("auto", None)) => Ok(Self::Auto),
            Some(("mean-field", None)) => Ok(Self::MeanField),
            Some(("full-rank", None)) => Ok(Self::FullRank),
            Some(("hvm", None)) => Ok(Self::Hvm),
            Some(("nuts", None)) => Ok(Self::Nuts),
            Some(("low-rank", size)) => Ok(Self::LowRank(size.unwrap_or(4))),
            Some(("mixture", size)) => Ok(Self::Mixture(size.unwrap_or(4))),
            Some(("flow", size)) => Ok(Self::Flow(size.unwrap_or(6))),
            Some(("copula", size)) => Ok(Self::Copula(size.unwrap_or(4))),
            _ => Err(MethodError(text.to_owned())),
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

/// Longer ranges get a binomial factor, shorter ones a categorical.
const TABLE_MAX: f64 = 512.0;

/// With more parameters than this, r is learned.
const LAPLACE_MAX: usize = 16;

/// The number of Gaussians in the prior of a hierarchical model; each costs an evaluation of the model.
fn hvm_components(lambda_len: usize) -> usize {
    match lambda_len {
        0..=64 => 8,
        _ => 2,
    }
}

/// The factor of a discrete latent.
fn discrete(support: Support, part: LikelihoodPart) -> Result<Box<dyn Family>> {
    let bad = |reason: String| Error::BadPart { part: "the mean-field likelihood".to_owned(), reason };
    let is_table = |upper: f64| upper < TABLE_MAX && part != LikelihoodPart::Binomial;
    Ok(match support {
        Support::BINARY => Box::new(Bernoulli),
        Support::Integers { lower: 0.0, upper } if is_table(upper) => {
            Box::new(Categorical::new(upper as usize + 1).map_err(|e| bad(e.to_string()))?)
        }
        Support::Integers { lower: 0.0, upper } => {
            Box::new(Binomial::new(upper as u64).map_err(|e| bad(e.to_string()))?)
        }
        Support::Counts if part == LikelihoodPart::NegativeBinomial => Box::new(NegativeBinomial),
        Support::Counts => Box::new(Poisson),
        other => return Err(bad(format!("no factor covers the support {other:?}"))),
    })
}

/// q(z | λ) for a model's latents: a family for each discrete one, a point mass for each continuous one, or a normal if `alone`,
/// so that mean-field needs no prior.
fn likelihood(latents: &Latents, alone: bool, part: LikelihoodPart) -> Result<MeanField> {
    let factor = |i: usize| match latents.support(i) {
        support if support.is_discrete() => Ok(Factor::Family(discrete(support, part)?)),
        Support::Real if alone => Ok(Factor::Family(Box::new(Normal) as Box<dyn Family>)),
        support => Factor::for_support(support),
    };
    MeanField::new((0..latents.len()).map(factor).collect::<Result<_>>()?)
}

impl Method {
    /// The variational model of this method for these latents.
    ///
    /// # Errors
    /// [`Error::EmptyModel`], or [`Error::BadPart`] or [`Error::Mismatch`] if the method does not suit them.
    pub fn variational(self, latents: &Latents) -> Result<Variational> {
        self.variational_with(latents, &Parts::default())
    }

    /// As [`variational`](Self::variational), with some parts chosen individually.
    ///
    /// # Errors
    /// As [`variational`](Self::variational), and if the parts do not fit together.
    pub fn variational_with(self, latents: &Latents, parts: &Parts) -> Result<Variational> {
        if latents.is_empty() {
            return Err(Error::EmptyModel);
        }
        let factors = parts.likelihood.unwrap_or(LikelihoodPart::Usual);
        let has_discrete = (0..latents.len()).any(|i| latents.support(i).is_discrete());
        if self == Self::MeanField && has_discrete && parts.prior.is_none() {
            return Ok(Variational::mean_field(likelihood(latents, true, factors)?));
        }
        let likelihood = likelihood(latents, false, factors)?;
        let n = likelihood.lambda_len();
        let prior = parts.prior.unwrap_or(match self {
            Self::LowRank(rank) => PriorPart::LowRank(rank),
            Self::Mixture(components) => PriorPart::Mixture(components),
            Self::Hvm => PriorPart::Mixture(hvm_components(n)),
            Self::Flow(layers) => PriorPart::Spline(layers),
            Self::Copula(rank) => PriorPart::Copula(rank),
            Self::MeanField => PriorPart::Diagonal,
            Self::Auto | Self::FullRank | Self::Nuts => PriorPart::Gaussian,
        });
        let prior = prior.build(n)?;
        // Mode and curvature are accurate enough for few parameters, one per latent; otherwise r is learned.
        let mut discrete = (0..latents.len()).filter(|i| latents.support(*i).is_discrete());
        let is_small = n <= LAPLACE_MAX && discrete.all(|i| likelihood.lambda_range(i).len() == 1);
        let recursive = match parts.recursive {
            // Without discrete latents λ determines z, and r has nothing to approximate.
            _ if !has_discrete => RecursivePart::Prior,
            Some(part) => part,
            None if is_small && prior.gaussians().is_some() => RecursivePart::Laplace,
            None => RecursivePart::Factorised,
        };
        let recursive = recursive.build(&likelihood, &*prior)?;
        Variational::from_parts(Arc::new(likelihood), prior, recursive)
    }
}

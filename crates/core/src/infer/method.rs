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

/// With more parameters than this, r is learned for latents that are not all binary.
const LAPLACE_MAX: usize = 16;
/// The most work of moment matching for binary latents, (parameters of discrete latents)³ × (components)²: a step has draws of every
/// component, and each is matched by every component.
const MATCHING_MAX: usize = 125_000;

/// The discrete latents of a model, as far as they decide the parts of a hierarchical model.
#[derive(Clone, Copy)]
struct Discrete {
    len: usize,
    is_binary: bool,
    /// Whether there are no continuous latents beside them.
    is_all: bool,
}

impl Discrete {
    fn of(latents: &Latents) -> Self {
        let supports = || (0..latents.len()).map(|i| latents.support(i)).filter(|support| support.is_discrete());
        let len = supports().count();
        Self { len, is_binary: supports().all(|support| support == Support::BINARY), is_all: len == latents.len() }
    }

    /// Whether r matches moments for a prior of this many Gaussians. Continuous latents beside the binary ones often have modes with
    /// them, which one Gaussian cannot cover, and with them the shares of several would move, which the gradient leaves out.
    fn is_matched(self, components_len: usize) -> bool {
        self.is_binary && self.is_all && self.len.pow(3).saturating_mul(components_len * components_len) <= MATCHING_MAX
    }

    /// The number of Gaussians in the prior of a hierarchical model over this many parameters; each costs an evaluation of the model.
    /// One Gaussian whose r is good already joins all binary latents; more follow if they gain.
    fn components(self, lambda_len: usize) -> usize {
        match lambda_len {
            _ if self.is_matched(1) => 1,
            0..=64 => 8,
            _ => 2,
        }
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
    /// The methods that a hierarchical model with one Gaussian grows into as long as they gain: mixtures of twice as many Gaussians
    /// each time, while r is as good.
    pub(super) fn larger(latents: &Latents) -> Vec<Self> {
        let discrete = Discrete::of(latents);
        [2, 4, 8].into_iter().filter(|components| discrete.is_matched(*components)).map(Self::Mixture).collect()
    }

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
        let discrete = Discrete::of(latents);
        let has_discrete = discrete.len > 0;
        if self == Self::MeanField && has_discrete && parts.prior.is_none() {
            return Ok(Variational::mean_field(likelihood(latents, true, factors)?));
        }
        let likelihood = likelihood(latents, false, factors)?;
        let n = likelihood.lambda_len();
        let part = parts.prior.unwrap_or(match self {
            Self::LowRank(rank) => PriorPart::LowRank(rank),
            Self::Mixture(components) => PriorPart::Mixture(components),
            Self::Hvm => match discrete.components(n) {
                1 => PriorPart::Gaussian,
                components => PriorPart::Mixture(components),
            },
            Self::Flow(layers) => PriorPart::Spline(layers),
            Self::Copula(rank) => PriorPart::Copula(rank),
            Self::MeanField => PriorPart::Diagonal,
            Self::Auto | Self::FullRank | Self::Nuts => PriorPart::Gaussian,
        });
        let prior = part.build(&likelihood)?;
        // Logits have skewed posteriors, whose moments are far from mode and curvature. For counts those are accurate enough if there
        // are few parameters, one per latent. Otherwise r is learned.
        let has_gaussians = prior.gaussians().is_some();
        let mut ranges = (0..latents.len()).filter(|i| latents.support(*i).is_discrete());
        let is_small = n <= LAPLACE_MAX && ranges.all(|i| likelihood.lambda_range(i).len() == 1);
        let recursive = match parts.recursive.or(part.recursive()) {
            // Without discrete latents λ determines z, and r has nothing to approximate.
            _ if !has_discrete => RecursivePart::Prior,
            Some(part) => part,
            None if has_gaussians && discrete.is_matched(prior.components_len()) => {
                RecursivePart::ExpectationPropagation
            }
            None if has_gaussians && is_small => RecursivePart::Laplace,
            None => RecursivePart::Factorised,
        };
        let recursive = recursive.build(&likelihood, &*prior)?;
        Variational::from_parts(Arc::new(likelihood), prior, recursive)
    }
}

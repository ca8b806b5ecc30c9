//! The parts of a method by name: likelihood, prior and recursive approximation.

use hyperprior::likelihood::{Factor, Likelihood, MeanField};
use hyperprior::math::family::{ConwayMaxwell, Family};
use hyperprior::prior::{
    Atoms, Bend, Copula, CouplingFlow, Covariance, Delta, FactorialMixture, Gaussian, Mixture, PlanarFlow, Prior,
    SinhArcsinh,
};
use hyperprior::recursive::{
    GaussianFit, HierarchicalRecursive, InverseFlow, MixtureGaussian, Recursive, Responsibilities, SameAsPrior, Space,
};
use hyperprior::{Error, Model, Result, Variational};
use std::sync::Arc;

/// Which likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LikelihoodChoice {
    /// Each latent's usual factor.
    #[default]
    Usual,
    /// A Conway–Maxwell–Poisson on 0 to the given count for every latent, which can be narrower than a Poisson.
    ConwayMaxwell(u64),
}

/// Which variational prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorChoice {
    /// A point: mean-field.
    Delta,
    /// Independent Gaussians.
    Independent,
    /// A Gaussian with a full covariance.
    Gaussian,
    /// A mixture of this many Gaussians with full covariances.
    Mixture(usize),
    /// A mixture of this many atoms.
    Atoms(usize),
    /// A copula of this rank with sinh-arcsinh marginals.
    Copula(usize),
    /// A planar flow of this length.
    Planar(usize),
    /// A flow of this many coupling layers.
    Coupling(usize, Bend),
    /// A factorial mixture with this many switches.
    FactorialMixture(usize),
}

/// Hidden units of each network in a coupling flow.
const COUPLING_HIDDEN: usize = 16;

/// Which recursive approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecursiveChoice {
    /// r = prior.
    Prior,
    /// A factorised Gaussian.
    Factorised,
    /// An inverse planar flow of this length.
    InverseFlow(usize),
    /// Mode and curvature per component.
    MixtureLaplace,
    /// Matched moments per component.
    MixtureEp,
    /// The exact probabilities of a mixture's atoms.
    Responsibilities,
    /// A hierarchical r: one approximation per level of the prior.
    HierarchicalRecursive,
}

/// A variational method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// q(z | λ).
    pub likelihood: LikelihoodChoice,
    /// q(λ; θ).
    pub prior: PriorChoice,
    /// r(λ | z; φ).
    pub recursive: RecursiveChoice,
}

impl Parts {
    /// With each latent's usual factor.
    pub fn new(prior: PriorChoice, recursive: RecursiveChoice) -> Self {
        Self { likelihood: LikelihoodChoice::Usual, prior, recursive }
    }

    /// The variational model for a model's latents.
    pub fn build(self, model: &dyn Model) -> Result<Variational> {
        let likelihood = self.likelihood.build(model)?;
        let prior = self.prior.build(likelihood.lambda_len())?;
        let gaussian = |fit| MixtureGaussian::new(&likelihood, &*prior, fit, Space::Noise);
        let flow = |layers| InverseFlow::new(&likelihood, prior.components_len(), layers, Space::Noise);
        let recursive: Box<dyn Recursive> = match self.recursive {
            RecursiveChoice::Prior => Box::new(SameAsPrior),
            RecursiveChoice::Factorised => Box::new(flow(0)),
            RecursiveChoice::InverseFlow(layers) => Box::new(flow(layers)),
            RecursiveChoice::MixtureLaplace => Box::new(gaussian(GaussianFit::Laplace)?),
            RecursiveChoice::MixtureEp => Box::new(gaussian(GaussianFit::ExpectationPropagation)?),
            RecursiveChoice::Responsibilities => Box::new(Responsibilities),
            RecursiveChoice::HierarchicalRecursive => Box::new(HierarchicalRecursive::new(&likelihood, &*prior)),
        };
        Variational::from_parts(Arc::new(likelihood), prior, recursive)
    }
}

impl LikelihoodChoice {
    fn build(self, model: &dyn Model) -> Result<MeanField> {
        let latents = model.latents();
        match self {
            Self::Usual => MeanField::for_latents(latents),
            Self::ConwayMaxwell(upper) => {
                let bad = |reason: String| Error::BadPart { part: "the mean-field likelihood".to_owned(), reason };
                let family = ConwayMaxwell::new(upper).map_err(|e| bad(e.to_string()))?;
                let factor = || Factor::Family(Box::new(family) as Box<dyn Family>);
                MeanField::new((0..latents.len()).map(|_| factor()).collect())
            }
        }
    }
}

impl PriorChoice {
    fn build(self, n: usize) -> Result<Box<dyn Prior>> {
        Ok(match self {
            Self::Delta => Box::new(Delta { lambda_len: n }),
            Self::Independent => Box::new(Gaussian::new(n, Covariance::Diagonal)?),
            Self::Gaussian => Box::new(Gaussian::new(n, Covariance::Full)?),
            Self::Mixture(components) => Box::new(Mixture::new(n, components, Covariance::Full)?),
            Self::Atoms(components) => Box::new(Atoms::new(n, components)?),
            Self::Copula(rank) => Box::new(Copula::of(SinhArcsinh, n, rank.min(n))?),
            Self::Planar(layers) => Box::new(PlanarFlow::new(n, layers)?),
            Self::Coupling(layers, bend) => Box::new(CouplingFlow::new(n, layers, COUPLING_HIDDEN, bend)?),
            Self::FactorialMixture(switches) => Box::new(FactorialMixture::new(Delta { lambda_len: n }, switches)?),
        })
    }
}

//! A method by name: the triple it stands for, and the settings it is fitted with.

use hyperprior::fit::{FitSettings, StartSettings};
use hyperprior::gradient::GradientSettings;
use hyperprior::likelihood::{Likelihood, MeanField};
use hyperprior::prior::{Covariance, Delta, Gaussian, Mixture, Prior};
use hyperprior::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use hyperprior::{Model, Result, Variational};
use std::sync::Arc;

/// Which variational prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorChoice {
    /// A point: mean-field.
    Delta,
    /// A Gaussian with a full covariance.
    Gaussian,
    /// A mixture of that many Gaussians with full covariances.
    Mixture(usize),
}

/// Which recursive approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecursiveChoice {
    /// r = prior.
    Prior,
    /// A factorised Gaussian.
    Factorised,
    /// An inverse planar flow of that length.
    InverseFlow(usize),
    /// Mode and curvature per component.
    MixtureLaplace,
    /// Matched moments per component.
    MixtureEp,
}

/// A variational method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// q(λ; θ).
    pub prior: PriorChoice,
    /// r(λ | z; φ).
    pub recursive: RecursiveChoice,
}

impl Method {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self.prior {
            PriorChoice::Delta => "mean-field",
            PriorChoice::Gaussian => "hvm-gaussian",
            PriorChoice::Mixture(_) => "hvm-mixture",
        }
    }

    /// The recursive approximation's name; mean-field has none.
    pub fn recursive_name(self) -> String {
        match (self.prior, self.recursive) {
            (PriorChoice::Delta, _) => "none".to_owned(),
            (_, RecursiveChoice::Prior) => "prior".to_owned(),
            (_, RecursiveChoice::Factorised) => "factorised".to_owned(),
            (_, RecursiveChoice::InverseFlow(layers)) => format!("inverse-flow:{layers}"),
            (_, RecursiveChoice::MixtureLaplace) => "mixture-laplace".to_owned(),
            (_, RecursiveChoice::MixtureEp) => "mixture-ep".to_owned(),
        }
    }

    /// How many components the prior has.
    pub fn components_len(self) -> usize {
        match self.prior {
            PriorChoice::Mixture(components) => components,
            _ => 1,
        }
    }

    /// The variational model for a model's latents.
    pub fn build(self, model: &dyn Model) -> Result<Variational> {
        let likelihood = MeanField::for_latents(model.latents())?;
        let n = likelihood.lambda_len();
        let prior: Box<dyn Prior> = match self.prior {
            PriorChoice::Delta => Box::new(Delta { lambda_len: n }),
            PriorChoice::Gaussian => Box::new(Gaussian::new(n, Covariance::Full)?),
            PriorChoice::Mixture(components) => Box::new(Mixture::new(n, components, Covariance::Full)?),
        };
        let gaussian = |fit| MixtureGaussian::new(&likelihood, &*prior, fit, Space::Noise);
        let flow = |layers| InverseFlow::new(&likelihood, prior.components_len(), layers, Space::Noise);
        let recursive: Box<dyn Recursive> = match self.recursive {
            RecursiveChoice::Prior => Box::new(SameAsPrior),
            RecursiveChoice::Factorised => Box::new(flow(0)),
            RecursiveChoice::InverseFlow(layers) => Box::new(flow(layers)),
            RecursiveChoice::MixtureLaplace => Box::new(gaussian(GaussianFit::Laplace)?),
            RecursiveChoice::MixtureEp => Box::new(gaussian(GaussianFit::ExpectationPropagation)?),
        };
        Variational::from_parts(Arc::new(likelihood), prior, recursive)
    }

    /// How it is fitted.
    pub fn settings(self, seed: u64) -> FitSettings {
        let base = FitSettings { seed, ..FitSettings::default() };
        match self.recursive {
            // Binary latents that are nearly tied want wide logits, whose posteriors no Gaussian fits; importance weights take
            // up what expectation propagation leaves. One Gaussian has one place to start.
            RecursiveChoice::MixtureEp => FitSettings {
                steps: 3000,
                step_size: 0.05,
                gradient: GradientSettings { draws: 48, replicates: 1, importance: 16, ..GradientSettings::default() },
                start: StartSettings::single(),
                ..base
            },
            _ => base,
        }
    }
}

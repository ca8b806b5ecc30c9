//! The methods of a study, with their names and settings.

use crate::parts::{Parts, PriorChoice, RecursiveChoice};
use hyperprior::fit::{FitSettings, StartSettings};
use hyperprior::gradient::GradientSettings;

/// A method of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Likelihood, prior and r.
    pub parts: Parts,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self.parts.prior {
            PriorChoice::Delta => "mean-field",
            PriorChoice::Mixture(_) => "hvm-mixture",
            _ => "hvm-gaussian",
        }
    }

    /// The recursive approximation's name; mean-field has none.
    pub fn recursive_name(self) -> String {
        let name = match (self.parts.prior, self.parts.recursive) {
            (PriorChoice::Delta, _) => "none",
            (_, RecursiveChoice::InverseFlow(layers)) => return format!("inverse-flow:{layers}"),
            (_, RecursiveChoice::Prior) => "prior",
            (_, RecursiveChoice::Factorised) => "factorised",
            (_, RecursiveChoice::MixtureLaplace) => "mixture-laplace",
            (_, RecursiveChoice::MixtureEp) => "mixture-ep",
            (_, RecursiveChoice::Responsibilities) => "responsibilities",
            (_, RecursiveChoice::HierarchicalRecursive) => "hierarchical",
        };
        name.to_owned()
    }

    /// The number of components of the prior.
    pub fn components_len(self) -> usize {
        match self.parts.prior {
            PriorChoice::Mixture(components) => components,
            _ => 1,
        }
    }

    /// The settings of its fit.
    pub fn settings(self, seed: u64) -> FitSettings {
        settings(self.parts, seed)
    }
}

/// The settings for a method with these parts.
pub fn settings(parts: Parts, seed: u64) -> FitSettings {
    let base = FitSettings::default().seed(seed);
    match parts.recursive {
        // Strongly coupled binary latents need wide logits, whose posteriors no Gaussian fits; importance weights close the gap
        // that expectation propagation leaves. A single Gaussian needs only one start.
        RecursiveChoice::MixtureEp => base
            .steps(3000)
            .step_size(0.05)
            .gradient(GradientSettings::default().draws(48).replicates(1).importance(16))
            .start(StartSettings::single()),
        _ => base,
    }
}

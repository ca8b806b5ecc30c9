//! The methods of the paper's first table, each a combination of likelihood, prior and recursive approximation.

use super::target::{Kind, Target};
use crate::parts::{LikelihoodChoice, Parts, PriorChoice, RecursiveChoice};
use crate::studies::reproduce;
use clap::ValueEnum;
use hyperprior::fit::{FitSettings, StartSettings};
use hyperprior::gradient::GradientSettings;
use hyperprior::prior::Bend;

/// A method by its name in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Mean-field: independent latents
    Bbvi,
    /// One Gaussian with a full covariance over continuous latents
    Dsvi,
    /// A Gaussian copula of low rank with flexible marginals
    Copula,
    /// A mixture: of Gaussians over continuous latents, of mean-field atoms over discrete ones
    Mixture,
    /// A coupling flow over continuous latents
    NormalizingFlow,
    /// A planar flow over the parameters of discrete latents, with an inverse flow as r
    HvmFlow,
    /// A mixture of Gaussians over the parameters of discrete latents
    HvmMixture,
    /// One Gaussian over the parameters of discrete latents
    HvmGaussian,
    /// A factorial mixture (binary switches) over the parameters of discrete latents
    HvmSwitches,
}

/// A method for a target, with the settings of its fit.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Likelihood, prior and r.
    pub parts: Parts,
    /// The settings of the fit.
    pub settings: FitSettings,
}

const NEEDS_CONTINUOUS: &str = "needs continuous latents";
const NEEDS_DISCRETE: &str = "needs discrete latents";

impl Method {
    /// Its name on the command line and in JSON.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The method for this target, or why it does not apply.
    pub fn recipe(self, target: Target, seed: u64) -> Result<Recipe, String> {
        let parts = match target.kind() {
            Kind::Continuous => self.continuous(target)?,
            Kind::Counts => self.discrete(target, RecursiveChoice::MixtureLaplace)?,
            Kind::Binary => self.discrete(target, RecursiveChoice::MixtureEp)?,
        };
        Ok(Recipe { parts, settings: self.settings(parts, target, seed) })
    }

    /// With point masses as likelihood: the prior is the whole approximation, and no r is needed.
    fn continuous(self, target: Target) -> Result<Parts, String> {
        let same_as = |other: &str| Err(format!("{NEEDS_DISCRETE}; here it is the same as {other}"));
        let prior = match self {
            Self::Bbvi => PriorChoice::Independent,
            Self::Dsvi => PriorChoice::Gaussian,
            Self::Copula => PriorChoice::Copula(2),
            Self::Mixture => PriorChoice::Mixture(4),
            // Affine layers can only bend a Gaussian; splitting it into four corners takes splines.
            Self::NormalizingFlow if target == Target::GaussianMixture => {
                PriorChoice::Coupling(6, Bend::Spline { bins: 8 })
            }
            Self::NormalizingFlow => PriorChoice::Coupling(8, Bend::Affine),
            Self::HvmFlow => return same_as("normalizing-flow"),
            Self::HvmMixture => return same_as("mixture"),
            Self::HvmGaussian => return same_as("dsvi"),
            Self::HvmSwitches => return Err(NEEDS_DISCRETE.to_owned()),
        };
        Ok(Parts::new(prior, RecursiveChoice::Prior))
    }

    /// With discrete factors; `gaussian` is the r for priors made of Gaussians.
    fn discrete(self, target: Target, gaussian: RecursiveChoice) -> Result<Parts, String> {
        let is_binary = target.kind() == Kind::Binary;
        let (prior, recursive) = match self {
            Self::Bbvi => (PriorChoice::Delta, RecursiveChoice::Prior),
            Self::Dsvi | Self::NormalizingFlow => return Err(NEEDS_CONTINUOUS.to_owned()),
            Self::Copula => (PriorChoice::Copula(if is_binary { 4 } else { 2 }), RecursiveChoice::Factorised),
            Self::Mixture => (PriorChoice::Atoms(atoms_len(target)), RecursiveChoice::Responsibilities),
            Self::HvmFlow => (PriorChoice::Planar(if is_binary { 8 } else { 4 }), RecursiveChoice::InverseFlow(10)),
            Self::HvmMixture => (PriorChoice::Mixture(gaussians_len(target)), gaussian),
            Self::HvmGaussian => (PriorChoice::Gaussian, gaussian),
            Self::HvmSwitches => {
                (PriorChoice::FactorialMixture(switches_len(target)), RecursiveChoice::HierarchicalRecursive)
            }
        };
        let likelihood = match self {
            // No mixture of Poissons is narrow enough.
            Self::Mixture if target == Target::CorrelatedPoissonE => LikelihoodChoice::ConwayMaxwell(63),
            _ => LikelihoodChoice::Usual,
        };
        Ok(Parts { likelihood, prior, recursive })
    }

    fn settings(self, parts: Parts, target: Target, seed: u64) -> FitSettings {
        let base = reproduce::settings(parts, seed);
        match self {
            Self::NormalizingFlow => base
                .step_size(if target == Target::GaussianMixture { 0.005 } else { 0.01 })
                .gradient(GradientSettings::default().draws(64))
                .start(StartSettings::single()),
            // As for the Gaussians of a study: without importance weights neither leaves mean-field if spins are strongly coupled.
            Self::Copula | Self::HvmFlow if target.kind() == Kind::Binary => base
                .steps(2000)
                .step_size(0.05)
                .gradient(GradientSettings::default().draws(32).replicates(1).importance(8))
                .start(StartSettings::single()),
            // Spins on a ring are strongly coupled: more steps and more importance draws than in the study.
            Self::HvmGaussian if target == Target::IsingRing8 => {
                let gradient = base.gradient.clone().importance(32);
                base.steps(6000).gradient(gradient)
            }
            Self::HvmSwitches => base.step_size(0.05).start(StartSettings::default().scale(1.0)),
            _ => base,
        }
    }
}

/// The number of atoms of a mixture: more than modes, so that one between two modes does no harm.
fn atoms_len(target: Target) -> usize {
    match target {
        Target::CorrelatedPoissonFigure | Target::CorrelatedPoissonB | Target::CorrelatedPoissonC => 6,
        Target::CorrelatedPoissonE => 3,
        _ => 8,
    }
}

/// The number of components of a mixture of Gaussians.
fn gaussians_len(target: Target) -> usize {
    match target {
        Target::CorrelatedPoissonFigure => 6,
        Target::CorrelatedPoissonB | Target::CorrelatedPoissonC | Target::CorrelatedPoissonE => 3,
        _ => 2,
    }
}

/// One switch per group of spins on the switchboard.
fn switches_len(target: Target) -> usize {
    if target == Target::Switchboard { 5 } else { 3 }
}

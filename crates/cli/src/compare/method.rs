//! The methods of the paper's first table, each a point of the product (likelihood, prior, recursive approximation).

use super::target::{Kind, Target};
use crate::parts::{LikelihoodChoice, Parts, PriorChoice, RecursiveChoice};
use crate::study;
use clap::ValueEnum;
use hyperprior::fit::{FitSettings, StartSettings};
use hyperprior::gradient::GradientSettings;
use hyperprior::prior::Bend;

/// A method by the name that it has in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Mean-field: every latent on its own
    Bbvi,
    /// One Gaussian with a full covariance over continuous latents
    Dsvi,
    /// A Gaussian copula of low rank with flexible marginals
    Copula,
    /// A mixture: of Gaussians over continuous latents, of mean-field points over discrete ones
    Mixture,
    /// A coupling flow over continuous latents
    NormalizingFlow,
    /// A planar flow over the parameters of discrete latents, with an inverse flow as r
    HvmFlow,
    /// A mixture of Gaussians over the parameters of discrete latents
    HvmMixture,
    /// One Gaussian over the parameters of discrete latents
    HvmGaussian,
    /// Binary switches over the parameters of discrete latents
    HvmSwitches,
}

/// What a method is on a target, and how it is fitted there.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Likelihood, prior and r.
    pub parts: Parts,
    /// How it is fitted.
    pub settings: FitSettings,
}

const NEEDS_CONTINUOUS: &str = "needs continuous latents";
const NEEDS_DISCRETE: &str = "no latent has randomness of its own";

impl Method {
    /// Its name on the command line and in JSON.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it is on this target, or why it does not apply there.
    pub fn recipe(self, target: Target, seed: u64) -> Result<Recipe, String> {
        let parts = match target.kind() {
            Kind::Continuous => self.continuous(target)?,
            Kind::Counts => self.discrete(target, RecursiveChoice::MixtureLaplace)?,
            Kind::Binary => self.discrete(target, RecursiveChoice::MixtureEp)?,
        };
        Ok(Recipe { parts, settings: self.settings(parts, target, seed) })
    }

    /// Over point masses: the prior is the whole approximation, and there is nothing for r to guess.
    fn continuous(self, target: Target) -> Result<Parts, String> {
        let alone = |same: &str| Err(format!("{NEEDS_DISCRETE}; this is {same}"));
        let prior = match self {
            Self::Bbvi => PriorChoice::Independent,
            Self::Dsvi => PriorChoice::Gaussian,
            Self::Copula => PriorChoice::Copula(2),
            Self::Mixture => PriorChoice::Mixture(4),
            // Affine layers bend one Gaussian into one curve; to tear it into four corners takes splines.
            Self::NormalizingFlow if target == Target::GaussianMixture => {
                PriorChoice::Coupling(6, Bend::Spline { bins: 8 })
            }
            Self::NormalizingFlow => PriorChoice::Coupling(8, Bend::Affine),
            Self::HvmFlow => return alone("the normalizing flow"),
            Self::HvmMixture => return alone("the mixture"),
            Self::HvmGaussian => return alone("dsvi"),
            Self::HvmSwitches => return Err(format!("{NEEDS_DISCRETE} for the switches to act on")),
        };
        Ok(Parts::new(prior, RecursiveChoice::Prior))
    }

    /// Over factors that are drawn; `gaussian` is the r for priors made of Gaussians.
    fn discrete(self, target: Target, gaussian: RecursiveChoice) -> Result<Parts, String> {
        let is_binary = target.kind() == Kind::Binary;
        let (prior, recursive) = match self {
            Self::Bbvi => (PriorChoice::Delta, RecursiveChoice::Prior),
            Self::Dsvi | Self::NormalizingFlow => return Err(NEEDS_CONTINUOUS.to_owned()),
            Self::Copula => (PriorChoice::Copula(if is_binary { 4 } else { 2 }), RecursiveChoice::Factorised),
            Self::Mixture => (PriorChoice::Points(points_len(target)), RecursiveChoice::Responsibilities),
            Self::HvmFlow => (PriorChoice::Planar(if is_binary { 8 } else { 4 }), RecursiveChoice::InverseFlow(10)),
            Self::HvmMixture => (PriorChoice::Mixture(gaussians_len(target)), gaussian),
            Self::HvmGaussian => (PriorChoice::Gaussian, gaussian),
            Self::HvmSwitches => (PriorChoice::Switched(switches_len(target)), RecursiveChoice::Mirror),
        };
        let likelihood = match self {
            // No mixture of Poissons is narrow enough for it.
            Self::Mixture if target == Target::CorrelatedPoissonE => LikelihoodChoice::ConwayMaxwell(63),
            _ => LikelihoodChoice::Usual,
        };
        Ok(Parts { likelihood, prior, recursive })
    }

    fn settings(self, parts: Parts, target: Target, seed: u64) -> FitSettings {
        let base = study::settings(parts, seed);
        match self {
            Self::NormalizingFlow => FitSettings {
                step_size: if target == Target::GaussianMixture { 0.005 } else { 0.01 },
                gradient: GradientSettings { draws: 64, ..GradientSettings::default() },
                start: StartSettings::single(),
                ..base
            },
            // As for the Gaussians of a study: without importance weights neither leaves mean-field where spins are nearly tied.
            Self::Copula | Self::HvmFlow if target.kind() == Kind::Binary => FitSettings {
                steps: 2000,
                step_size: 0.05,
                gradient: GradientSettings { draws: 32, replicates: 1, importance: 8, ..GradientSettings::default() },
                start: StartSettings::single(),
                ..base
            },
            // Spins on a ring are nearly tied: longer, and with more weights, than the study takes.
            Self::HvmGaussian if target == Target::IsingRing8 => {
                FitSettings { steps: 6000, gradient: GradientSettings { importance: 32, ..base.gradient }, ..base }
            }
            Self::HvmSwitches => {
                FitSettings { step_size: 0.05, start: StartSettings { scale: 1.0, ..StartSettings::default() }, ..base }
            }
            _ => base,
        }
    }
}

/// How many points a mixture of points has: more than modes, since one that starts between two modes costs nothing then.
fn points_len(target: Target) -> usize {
    match target {
        Target::CorrelatedPoissonFigure | Target::CorrelatedPoissonB | Target::CorrelatedPoissonC => 6,
        Target::CorrelatedPoissonE => 3,
        _ => 8,
    }
}

/// How many Gaussians a mixture of Gaussians has.
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

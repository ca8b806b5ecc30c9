//! The posteriors on which methods are compared.

use crate::error::CliError;
use clap::ValueEnum;
use hyperprior::math::random::Stream;
use hyperprior::targets::{
    Banana, CorrelatedCounts, CountTarget, ExactDraws, Funnel, GaussianMixture, Ising, LogisticRegression, Switchboard,
};
use hyperprior::{Batch, Model};

/// A posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Two counts, four products of Poissons, as in the paper's figure
    CorrelatedPoissonFigure,
    /// Two counts, three products of Poissons
    CorrelatedPoissonB,
    /// Two counts, three negative multinomials
    CorrelatedPoissonC,
    /// Two counts with a known product, narrower than any Poisson
    CorrelatedPoissonE,
    /// Eight spins on a ring; --coupling sets J [default: 1]
    #[value(name = "ising-ring-8")]
    IsingRing8,
    /// Sixteen spins on a grid; --coupling sets J [default: 0.4]
    #[value(name = "ising-grid-4x4")]
    IsingGrid4x4,
    /// Twenty spins in five groups: 32 modes
    Switchboard,
    /// Two numbers along a parabola
    Banana,
    /// Neal's funnel in five dimensions
    Funnel,
    /// Two numbers around one of four corners
    GaussianMixture,
    /// Five coefficients of a logistic regression
    LogisticRegression,
}

/// The kind of a target's latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Non-negative integers.
    Counts,
    /// Zero or one.
    Binary,
    /// Real numbers.
    Continuous,
}

impl Target {
    /// Its name on the command line and in JSON.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The kind of its latents.
    pub fn kind(self) -> Kind {
        match self {
            Self::CorrelatedPoissonFigure
            | Self::CorrelatedPoissonB
            | Self::CorrelatedPoissonC
            | Self::CorrelatedPoissonE => Kind::Counts,
            Self::IsingRing8 | Self::IsingGrid4x4 | Self::Switchboard => Kind::Binary,
            Self::Banana | Self::Funnel | Self::GaussianMixture | Self::LogisticRegression => Kind::Continuous,
        }
    }

    /// Independent draws of continuous latents, if they are easy.
    pub fn exact_draws(self, draws_len: usize, rng: &mut Stream) -> Option<Batch> {
        match self {
            Self::Banana => Some(Banana::new().exact_draws(draws_len, rng)),
            Self::Funnel => Some(Funnel::default().exact_draws(draws_len, rng)),
            Self::GaussianMixture => Some(GaussianMixture::new().exact_draws(draws_len, rng)),
            _ => None,
        }
    }

    /// log p(x), if the target is normalised.
    pub fn log_evidence(self) -> Option<f64> {
        matches!(self, Self::Banana | Self::Funnel | Self::GaussianMixture).then_some(0.0)
    }

    /// The coupling of its spins, if it has one to choose.
    pub fn coupling(self, given: Option<f64>) -> Result<Option<f64>, CliError> {
        let default = match self {
            Self::IsingRing8 => Some(1.0),
            Self::IsingGrid4x4 => Some(0.4),
            _ => None,
        };
        match (default, given) {
            (None, Some(_)) => Err(CliError::Usage(format!(
                "{} has no coupling; omit --coupling, or use ising-ring-8 or ising-grid-4x4",
                self.name()
            ))),
            (Some(_), Some(given)) if !given.is_finite() => {
                Err(CliError::Usage(format!("--coupling {given}: write a finite number, such as 0.4")))
            }
            (default, given) => Ok(given.or(default)),
        }
    }

    /// A description.
    pub fn describe(self, coupling: Option<f64>) -> String {
        let help = self.to_possible_value().and_then(|value| Some(value.get_help()?.to_string())).unwrap_or_default();
        match (help.split_once(';'), coupling) {
            (Some((what, _)), Some(coupling)) => format!("{what}, J = {coupling}"),
            _ => help,
        }
    }

    /// The model.
    pub fn model(self, coupling: Option<f64>) -> hyperprior::Result<Box<dyn Model>> {
        let counts = |target| Box::new(CorrelatedCounts::new(target));
        Ok(match self {
            Self::CorrelatedPoissonFigure => counts(CountTarget::Figure),
            Self::CorrelatedPoissonB => counts(CountTarget::B),
            Self::CorrelatedPoissonC => counts(CountTarget::C),
            Self::CorrelatedPoissonE => counts(CountTarget::E),
            Self::IsingRing8 => Box::new(Ising::ring(8, coupling.unwrap_or(1.0))?),
            Self::IsingGrid4x4 => Box::new(Ising::grid(4, 4, coupling.unwrap_or(0.4), false)?),
            Self::Switchboard => Box::new(Switchboard::new()),
            Self::Banana => Box::new(Banana::new()),
            Self::Funnel => Box::new(Funnel::default()),
            Self::GaussianMixture => Box::new(GaussianMixture::new()),
            Self::LogisticRegression => Box::new(LogisticRegression::new()),
        })
    }
}

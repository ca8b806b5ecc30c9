//! Studies with exact answers: targets, methods, and a row of results for each.

mod method;
pub mod pictures;
mod run;

pub use method::{Method, settings};
pub use run::{BOUND_DRAWS, BOUND_SAMPLES, LARGEST_COUNT, Outcome, Row, run};

use crate::parts::{Parts, PriorChoice, RecursiveChoice};
use clap::ValueEnum;
use hyperprior::Model;
use hyperprior::targets::{CorrelatedCounts, CountTarget, Ising};

/// A study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Pairs of correlated counts: targets figure, b, c and e
    CorrelatedPoisson,
    /// Eight spins on a ring with coupling J: targets j0.5 and j1
    Ising,
}

impl Experiment {
    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::CorrelatedPoisson => "correlated-poisson",
            Self::Ising => "ising",
        }
    }

    /// Its targets.
    pub fn targets(self) -> Vec<Target> {
        match self {
            Self::CorrelatedPoisson => CountTarget::ALL.map(Target::Counts).to_vec(),
            Self::Ising => vec![Target::Ring(0.5), Target::Ring(1.0)],
        }
    }
}

/// A posterior with a known answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// A pair of correlated counts.
    Counts(CountTarget),
    /// Eight spins on a ring.
    Ring(f64),
}

/// The number of spins on the ring.
pub const SPINS: usize = 8;

impl Target {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Counts(target) => target.name().to_owned(),
            Self::Ring(coupling) => format!("j{coupling}"),
        }
    }

    /// A description.
    pub fn describe(self) -> String {
        match self {
            Self::Counts(CountTarget::Figure) => "four products of Poissons, as in the paper's figure".to_owned(),
            Self::Counts(CountTarget::B) => "three products of Poissons".to_owned(),
            Self::Counts(CountTarget::C) => "three negative multinomials".to_owned(),
            Self::Counts(CountTarget::E) => "two counts with a known product (under-dispersed)".to_owned(),
            Self::Ring(coupling) => format!("{SPINS} spins on a ring, J = {coupling}"),
        }
    }

    /// The model.
    pub fn model(self) -> hyperprior::Result<Box<dyn Model>> {
        Ok(match self {
            Self::Counts(target) => Box::new(CorrelatedCounts::new(target)),
            Self::Ring(coupling) => Box::new(Ising::ring(SPINS, coupling)?),
        })
    }

    /// The methods to compare on it, mean-field first.
    pub fn methods(self) -> Vec<Method> {
        use PriorChoice::{Delta, Gaussian, Mixture};
        use RecursiveChoice::{Factorised, InverseFlow, MixtureEp, MixtureLaplace, Prior};
        let method = |prior, recursive| Method { parts: Parts::new(prior, recursive) };
        let mean_field = method(Delta, Prior);
        match self {
            // More components than modes, so that one between two modes does no harm.
            Self::Counts(CountTarget::Figure) => vec![mean_field, method(Mixture(6), MixtureLaplace)],
            Self::Counts(CountTarget::B | CountTarget::E) => vec![mean_field, method(Mixture(3), MixtureLaplace)],
            Self::Counts(CountTarget::C) => [Prior, Factorised, InverseFlow(10), MixtureLaplace]
                .into_iter()
                .map(|recursive| method(Mixture(3), recursive))
                .fold(vec![mean_field], |mut all, m| {
                    all.push(m);
                    all
                }),
            Self::Ring(_) => vec![mean_field, method(Gaussian, MixtureEp)],
        }
    }
}

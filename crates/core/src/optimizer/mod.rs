//! Stochastic gradient ascent: how an estimate of the gradient moves the parameters.

mod adam;
mod rms_prop_nesterov;

pub use adam::Adam;
pub use rms_prop_nesterov::RmsPropNesterov;

use serde::{Deserialize, Serialize};

/// Moves parameters uphill.
pub trait Optimizer: std::fmt::Debug + Send {
    /// x ← x moved along `gradient`, with steps of about `size`.
    fn ascend(&mut self, x: &mut [f64], gradient: &[f64], size: f64);

    /// What it remembers of the steps before.
    fn memory(&self) -> Vec<f64>;

    /// Takes back what it remembered; whether that is as many numbers as it needs.
    #[must_use]
    fn recall(&mut self, memory: &[f64]) -> bool;
}

/// Which optimiser to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Adam.
    #[default]
    Adam,
    /// RMSProp with Nesterov momentum, as in the paper.
    RmsPropNesterov,
}

impl OptimizerKind {
    /// A fresh optimiser for `len` parameters.
    pub fn build(self, len: usize) -> Box<dyn Optimizer> {
        match self {
            Self::Adam => Box::new(Adam::new(len)),
            Self::RmsPropNesterov => Box::new(RmsPropNesterov::new(len)),
        }
    }
}

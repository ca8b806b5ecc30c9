//! Stochastic gradient ascent: how an estimate of the gradient moves the parameters.

mod adam;
mod rms_prop_nesterov;

pub use adam::Adam;
pub use rms_prop_nesterov::RmsPropNesterov;

use serde::{Deserialize, Serialize};

/// Moves parameters towards a maximum. See [`Adam`].
pub trait Optimizer: std::fmt::Debug + Send {
    /// x ← x moved along `gradient`, with steps of about `size`.
    fn ascend(&mut self, x: &mut [f64], gradient: &[f64], size: f64);

    /// Its state after the steps so far.
    fn memory(&self) -> Vec<f64>;

    /// Restores a state; returns false if it has the wrong length.
    #[must_use]
    fn recall(&mut self, memory: &[f64]) -> bool;
}

/// Which optimiser to use.
///
/// ```
/// use hyperprior::optimizer::OptimizerKind;
/// let (mut x, mut optimizer) = ([1.0], OptimizerKind::RmsPropNesterov.build(1));
/// optimizer.ascend(&mut x, &[-1.0], 0.1);
/// assert!(x[0] < 1.0);
/// ```
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

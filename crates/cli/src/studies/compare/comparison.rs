//! What is compared.

use super::method::Method;
use super::target::Target;

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The posterior.
    pub target: Target,
    /// J, if the target has one.
    pub coupling: Option<f64>,
    /// The methods, in the order of their rows.
    pub methods: Vec<Method>,
    /// The seed.
    pub seed: u64,
    /// The largest number of states for which q(z) is integrated over a continuous λ.
    pub states_max: usize,
    /// The numbers of temperatures of annealed bounds.
    pub annealed: Vec<usize>,
}

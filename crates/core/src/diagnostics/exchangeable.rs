//! Components whose order means nothing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Elements of some arrays that may change places, in all of these together, without changing the posterior, and do between draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exchangeable {
    /// The names of the arrays.
    pub arrays: Vec<String>,
    /// The number of their elements.
    pub elements: usize,
}

impl Exchangeable {
    pub(crate) fn new(arrays: Vec<String>, elements: usize) -> Self {
        Self { arrays, elements }
    }
}

impl fmt::Display for Exchangeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.arrays.first() else { return Ok(()) };
        write!(
            f,
            "the posterior is the same whatever the order of the {} elements of {}, so that each of them has the same marginal and its \
             mean does not describe a component. Order the components in the model (as {first}[1] < {first}[2]), or report what does \
             not depend on the order",
            self.elements,
            self.arrays.join(" and of ")
        )
    }
}

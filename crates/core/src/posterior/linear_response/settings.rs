//! The settings of linear response.

use serde::{Deserialize, Serialize};

/// How the curvature is estimated. See [`linear_response`](super::linear_response).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LinearResponseSettings {
    /// The number of draws in the mean of each gradient; all gradients use the same draws.
    pub draws: usize,
    /// The seed.
    pub seed: u64,
}

crate::setters!(LinearResponseSettings {
    draws: usize, seed: u64;
});

impl Default for LinearResponseSettings {
    fn default() -> Self {
        Self { draws: 512, seed: 1 }
    }
}

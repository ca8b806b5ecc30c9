//! Errors of a graph, each with the node concerned.

use thiserror::Error;

/// A node that cannot be part of a model.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An observation that its distribution makes impossible.
    #[error("`{name}` is observed as {value}, which is impossible under its {distribution} distribution: {reason}")]
    Outside {
        /// The node.
        name: String,
        /// Its distribution.
        distribution: &'static str,
        /// The observation.
        value: f64,
        /// Which values are possible.
        reason: String,
    },
    /// An invalid parameter.
    #[error("the {distribution} distribution of `{name}` has {parameter} = {value}: {reason}")]
    Parameter {
        /// The node.
        name: String,
        /// Its distribution.
        distribution: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        reason: &'static str,
    },
    /// A node whose density is not finite for any values of the latents.
    #[error("{node} is impossible whatever the latents are: its log density is {density}")]
    Impossible {
        /// The node with its value, its distribution and the numbers in it.
        node: String,
        /// Its log density.
        density: &'static str,
    },
    /// A vector or matrix of the wrong length.
    #[error("the {what} of `{name}` ({distribution} distribution) has {found} elements; {expected} are needed")]
    Length {
        /// The node.
        name: String,
        /// Its distribution.
        distribution: &'static str,
        /// Which part.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that it should have.
        expected: usize,
    },
    /// Something that is not supported.
    #[error("`{name}`: {reason}")]
    Unsupported {
        /// The node.
        name: String,
        /// What is not supported, and what to do instead.
        reason: String,
    },
    /// A starting value for something that is not a latent.
    #[error("there is no latent `{name}`; starting values are for nodes with a distribution and no observation")]
    UnknownStart {
        /// The name given.
        name: String,
    },
    /// A starting value that is impossible.
    #[error("`{name}` cannot start at {value}: {reason}")]
    BadStart {
        /// The latent.
        name: String,
        /// The value given.
        value: f64,
        /// Which values are possible.
        reason: String,
    },
    /// Two nodes with the same name.
    #[error("`{name}` is declared twice; give each node its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
}

impl From<GraphError> for hyperprior::Error {
    fn from(error: GraphError) -> Self {
        Self::BadModel(error.to_string())
    }
}

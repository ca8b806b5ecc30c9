//! What is wrong with a graph, said at the node where it is wrong.

use thiserror::Error;

/// A node that cannot be part of a model.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An observation that its law gives no probability.
    #[error("`{name}` is observed as {value}, which a {law} law cannot give: {reason}")]
    Outside {
        /// The node.
        name: String,
        /// Its law.
        law: &'static str,
        /// The observation.
        value: f64,
        /// Which values are possible.
        reason: String,
    },
    /// A parameter whose value has no meaning.
    #[error("`{name}` has a {law} law with {parameter} = {value}: {reason}")]
    Parameter {
        /// The node.
        name: String,
        /// Its law.
        law: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        reason: &'static str,
    },
    /// A node whose density is not finite, whatever else is in the model.
    #[error("{node} is impossible whatever the latents are: its log density is {density}")]
    Impossible {
        /// The node with its value, its law and the numbers in it.
        node: String,
        /// What its log density is.
        density: &'static str,
    },
    /// A vector or matrix of the wrong length.
    #[error("`{name}` has a {law} law whose {what} has {found} elements where {expected} are needed")]
    Length {
        /// The node.
        name: String,
        /// Its law.
        law: &'static str,
        /// Which part.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What it should be.
        expected: usize,
    },
    /// Something that this program cannot do.
    #[error("`{name}`: {reason}")]
    Unsupported {
        /// The node.
        name: String,
        /// What, and what to do instead.
        reason: String,
    },
    /// A starting value for something that is not a latent.
    #[error("there is no latent `{name}` to start; starting values are for nodes with a law and no observation")]
    UnknownStart {
        /// The name given.
        name: String,
    },
    /// A starting value that its law cannot give.
    #[error("`{name}` cannot start at {value}: {reason}")]
    BadStart {
        /// The latent.
        name: String,
        /// The value given.
        value: f64,
        /// Which values are possible.
        reason: String,
    },
    /// Two nodes with one name.
    #[error("`{name}` is declared twice; give each node its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
}

//! What can go wrong, said so that a person can mend it.

use thiserror::Error;

/// An error of the engine.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The model has no hidden variable.
    #[error("the model has no latent variables, so there is no posterior to fit; declare at least one")]
    EmptyModel,
    /// A latent was declared with a shape that holds nothing or a support that holds nothing.
    #[error("latent `{name}` cannot be declared: {reason}")]
    BadLatent {
        /// The latent's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of the variational model was asked for with a size that has no meaning.
    #[error("{part} cannot be built: {reason}")]
    BadPart {
        /// The part: a prior, a likelihood, a recursive approximation.
        part: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Two parts of the variational model do not fit together.
    #[error("{first} and {second} do not fit together: {reason}")]
    Mismatch {
        /// One part.
        first: String,
        /// The other.
        second: String,
        /// Why not, and what to use instead.
        reason: String,
    },
    /// A field of the settings has a value that has no meaning.
    #[error("setting `{field}` = {value} is not possible: {reason}")]
    BadSetting {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        reason: &'static str,
    },
    /// Too many draws had a log density that is not a finite number.
    #[error(
        "{dropped} of {drawn} draws at step {step} had no finite log joint density (first: {example}); the model is \
         impossible or undefined where the approximation puts its mass. Check the data for impossible values, check the \
         model for 0/0 or log of a negative number, or start elsewhere"
    )]
    NotFinite {
        /// The optimisation step.
        step: u64,
        /// How many draws were not finite.
        dropped: usize,
        /// How many draws there were.
        drawn: usize,
        /// The first such draw: its latents' values and its log density.
        example: String,
    },
    /// The draws were finite, but the gradient that they gave is not.
    #[error(
        "the gradient at step {step} is not finite, although the bound is ({elbo:.3e}); check the model's own gradient and its \
         locals, or take smaller steps"
    )]
    GradientNotFinite {
        /// The optimisation step.
        step: u64,
        /// The bound's estimate at that step.
        elbo: f64,
    },
    /// The curvature at a fit is not that of a maximum.
    #[error(
        "the bound is not at a maximum along its {parameters} parameters: minus its curvature is not positive definite, so that \
         there is no linear response. Take more steps; a mean-field fit may also lie between two modes"
    )]
    NotAnOptimum {
        /// How many parameters there are.
        parameters: usize,
    },
    /// A node of a factor graph cannot be part of a model.
    #[error("{0}")]
    Graph(#[from] crate::model::graph::GraphError),
    /// The model itself failed.
    #[error("the model failed: {0}")]
    Model(String),
    /// A model's capability disagrees with its log joint.
    #[error("the model's {capability} disagrees with its log joint for latent {latent}: {found} against {expected}")]
    Capability {
        /// Which capability: locals, conditionals or gradient.
        capability: &'static str,
        /// The latent's name and index.
        latent: String,
        /// What the capability says.
        found: f64,
        /// What log_joint says.
        expected: f64,
    },
    /// Something that only a finite support allows was asked of an infinite one, or of one that is too large.
    #[error("the latents cannot be enumerated: {0}")]
    NotEnumerable(String),
    /// The state of a run cannot be kept, or what was kept cannot be gone on from.
    #[error("the checkpoint is of no use: {reason}")]
    Checkpoint {
        /// Why.
        reason: String,
    },
    /// The run was asked to stop.
    #[error("stopped at step {step} on request")]
    Stopped {
        /// The step it had reached.
        step: u64,
    },
}

/// The result of an operation of the engine.
pub type Result<T> = std::result::Result<T, Error>;

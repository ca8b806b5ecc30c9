//! Errors, with messages that say what to do about them.

use thiserror::Error;

/// An error of the engine.
///
/// ```
/// use hyperprior::{Error, prior::{Covariance, Gaussian}};
/// let error = Gaussian::new(0, Covariance::Full).unwrap_err();
/// assert!(matches!(error, Error::BadPart { .. }));
/// assert!(error.to_string().starts_with("a Gaussian prior cannot be built"));
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The model has no latent variables.
    #[error("the model has no latent variables, so there is no posterior to fit; declare at least one")]
    EmptyModel,
    /// A latent was declared with an empty shape, an empty support or a name already in use.
    #[error("latent `{name}` cannot be declared: {reason}")]
    BadLatent {
        /// The latent's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of the variational model was given an invalid size.
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
    /// A setting has an invalid value.
    #[error("setting `{field}` = {value} is invalid: {reason}")]
    BadSetting {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        reason: &'static str,
    },
    /// Too many draws had a log density that is not finite.
    #[error(
        "{dropped} of {drawn} draws at step {step} had no finite log joint density (first: {example}): the model gives zero \
         or undefined density where the approximation puts its mass. Check the data for impossible values and the model for \
         0/0 or the log of a negative number, or choose other starting values"
    )]
    NotFinite {
        /// The optimisation step.
        step: u64,
        /// How many draws were not finite.
        dropped: usize,
        /// How many draws there were.
        drawn: usize,
        /// The first such draw: the values of its latents and its log density.
        example: String,
    },
    /// The draws were finite, but the gradient is not.
    #[error(
        "the gradient at step {step} is not finite, although the ELBO is ({elbo:.3e}); check the model's gradient and locals, \
         or use a smaller step size"
    )]
    GradientNotFinite {
        /// The optimisation step.
        step: u64,
        /// The estimate of the bound at that step.
        elbo: f64,
    },
    /// The fit is not at a maximum of the bound.
    #[error(
        "the fit is not at a maximum of the ELBO: minus the Hessian along its {parameters} parameters is not positive definite, \
         so there is no linear response. Take more steps; a mean-field fit may also lie between two modes"
    )]
    NotAnOptimum {
        /// How many parameters there are.
        parameters: usize,
    },
    /// The model cannot be built as stated.
    #[error("{0}")]
    BadModel(String),
    /// The model itself failed.
    #[error("the model failed: {0}")]
    Model(String),
    /// A model's capability disagrees with its log joint.
    #[error(
        "the model's {capability} disagrees with its log joint for latent {latent}: {found}, expected {expected}, at {point}"
    )]
    Capability {
        /// Which capability: locals, conditionals or gradient.
        capability: &'static str,
        /// The latent's name and index.
        latent: String,
        /// The value from the capability.
        found: f64,
        /// The value from the log joint.
        expected: f64,
        /// The latents where they disagree.
        point: String,
    },
    /// The latents have too many values to enumerate, or infinitely many.
    #[error("the latents cannot be enumerated: {0}")]
    NotEnumerable(String),
    /// A checkpoint cannot be written, or a run cannot resume from it.
    #[error("the checkpoint cannot be used: {reason}")]
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

/// The result of an operation of the engine. See [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

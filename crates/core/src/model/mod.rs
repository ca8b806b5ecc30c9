//! The model p(x, z): what a person states, and the capabilities that make inference about it cheaper.
//!
//! A model that can only calculate log p(x, z) works. With *locals* the gradients have less variance, with
//! *conditionals* much less, and a *gradient* serves its continuous latents. [`check`] holds a model's capabilities
//! against its log joint.

mod check;
mod fault;
pub mod graph;
mod latents;

pub(crate) use check::describe;
pub use check::{CheckReport, check, random_points};
pub use fault::{CommonFault, Fault};
pub use hyperprior_math::family::Support;
pub use latents::{Latent, Latents};

use crate::error::Result;
use hyperprior_math::batch::Batch;

/// A probabilistic model with its data inside: log p(x, z) as a function of the hidden variables z.
///
/// Everything is asked for a batch of draws at once: column i of `z` holds latent i. A value of −∞ means impossible; NaN
/// means that the model is not defined there. Either way the draw is dropped and counted.
///
/// ```
/// use hyperprior::model::{Latents, Model, Support};
/// use hyperprior::Batch;
///
/// /// Two spins that like to agree.
/// struct Pair(Latents);
///
/// impl Model for Pair {
///     fn latents(&self) -> &Latents {
///         &self.0
///     }
///     fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
///         for s in 0..out.len() {
///             out[s] = if z.get(0, s) == z.get(1, s) { 1.0 } else { -1.0 };
///         }
///         Ok(())
///     }
/// }
///
/// let pair = Pair(Latents::new().vector("spin", 2, Support::BINARY)?);
/// hyperprior::check(&pair, 7)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Model: Send + Sync {
    /// The hidden variables.
    fn latents(&self) -> &Latents;

    /// out\[s\] = log p(x, z_s).
    ///
    /// # Errors
    /// Only when the model itself is broken; a bad draw is a value that is not finite.
    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()>;

    /// The terms that contain each latent, if the model knows them.
    fn locals(&self) -> Option<&dyn Locals> {
        None
    }

    /// The density with one latent set to each of several values, if the model can do that cheaply.
    fn conditionals(&self) -> Option<&dyn Conditionals> {
        None
    }

    /// The derivative along the continuous latents, if there is one.
    fn gradient(&self) -> Option<&dyn Gradient> {
        None
    }

    /// About how many additions the log joint of one draw costs, together with the conditionals of every discrete latent: a guide
    /// for how often it can be asked for.
    fn work(&self) -> usize {
        1000
    }

    /// The factor that makes draw `s` impossible or its density undefined, if the model knows its factors.
    fn fault(&self, _z: &Batch, _s: usize) -> Option<Fault> {
        None
    }

    /// Which draws cost about as much as that, and not many times more: a search starts from these where it can.
    fn is_ordinary(&self, _z: &Batch, out: &mut [bool]) {
        out.fill(true);
    }
}

/// log p_i: the terms of the log joint that contain latent i (its Markov blanket's factors).
pub trait Locals {
    /// out\[i, s\] = log p_i(x, z_s). Locality: log p − log p_i does not move when z_i moves.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()>;
}

/// log p_i with z_i replaced, everything else as drawn.
pub trait Conditionals {
    /// out\[v, s\] = log p_i(x, z_s with z_i := values\[v\]), up to a number that depends on s alone.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()>;
}

/// ∂ log p(x, z) / ∂z.
pub trait Gradient {
    /// out\[s\] = log p(x, z_s), d_z\[i, s\] = ∂ log p / ∂z_i for the continuous latents (what it writes for discrete ones
    /// is not read).
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()>;
}

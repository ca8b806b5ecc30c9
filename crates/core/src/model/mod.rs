//! The model p(x, z), and optional capabilities that make inference cheaper.
//!
//! A model only has to compute log p(x, z). With *locals* the gradients have less variance, with *conditionals* much less, and
//! continuous latents use a *gradient*. [`check`] compares a model's capabilities with its log joint.

mod check;
mod fault;
mod latents;

pub(crate) use check::describe;
pub use check::{CheckReport, check, random_points};
pub use fault::{CommonFault, Fault};
pub use hyperprior_math::family::Support;
pub use latents::{Latent, Latents};

use crate::error::Result;
use hyperprior_math::batch::Batch;

/// A probabilistic model including its data: log p(x, z) as a function of the latent variables z.
///
/// Everything is evaluated for a batch of draws at once: column i of `z` holds latent i. A value of −∞ means impossible; NaN
/// means that the model is not defined there. Either way the draw is left out and counted as invalid.
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
    /// The latent variables.
    fn latents(&self) -> &Latents;

    /// out\[s\] = log p(x, z_s).
    ///
    /// # Errors
    /// Only if the model itself fails; an invalid draw has a value that is not finite.
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

    /// The approximate cost, in additions, of the log joint of one draw and the conditionals of every discrete latent: a guide to
    /// how often the model can be evaluated.
    fn work(&self) -> usize {
        1000
    }

    /// The same without the conditionals.
    fn joint_work(&self) -> usize {
        self.work()
    }

    /// The factor that makes draw `s` impossible or its density undefined, if the model knows its factors.
    fn fault(&self, _z: &Batch, _s: usize) -> Option<Fault> {
        None
    }

    /// Continuous latents whose priors may be improper. The posterior is examined for being improper along these; a model that does not
    /// know its priors leaves this as it is, and all are.
    fn flat_priors(&self) -> Vec<usize> {
        (0..self.latents().len()).filter(|i| !self.latents().support(*i).is_discrete()).collect()
    }

    /// Pairs of latents that are coupled, if the model knows them. Given all others, the log joint is the sum of a function of one and a
    /// function of the other for every pair that is left out: no term contains both, and their second derivative is zero. With more than a few hundred latents, the approximation of a posterior keeps the dependence of these pairs.
    fn coupled(&self) -> Option<&[[u32; 2]]> {
        None
    }

    /// Latents that are jointly Gaussian given all others, in increasing order, if the model knows some: its log joint is a polynomial of
    /// degree two in these, whatever the others are. `None` if there are none, or if more than so many continuous latents are left.
    fn gaussian_given_others(&self, _others_max: usize) -> Option<Vec<usize>> {
        None
    }

    /// The coefficients of that polynomial along these latents, if the model knows them and they cost less than gradients do.
    fn quadratic(&self, _gaussian: &[usize]) -> Option<Box<dyn Quadratic>> {
        None
    }

    /// Which draws cost about as much as [`work`](Self::work), and not many times more: a mode search prefers to start from these.
    fn is_ordinary(&self, _z: &Batch, out: &mut [bool]) {
        out.fill(true);
    }
}

/// The coefficients of a log joint that is a polynomial of degree two in some latents x, whatever the others are:
/// log p = c + gᵀx − ½ xᵀPx, where c, g and P are functions of the others.
pub trait Quadratic: std::fmt::Debug + Send + Sync {
    /// The entries of P that may be other than zero, each as a pair i ≤ j of positions among the x.
    fn pairs(&self) -> &[[u32; 2]];

    /// The approximate cost of the coefficients of one draw, in additions.
    fn work(&self) -> usize;

    /// c of every draw, g with a column for each x, and a column for each of the pairs. The x of the draws are not read.
    fn coefficients(&self, z: &Batch, constant: &mut [f64], linear: &mut Batch, entries: &mut Batch);
}

/// log p_i: the terms of the log joint that contain latent i (its Markov blanket's factors).
///
/// ```
/// use hyperprior::{Batch, Model, targets::Ising};
/// let model = Ising::ring(4, 0.5)?;
/// let mut out = Batch::zeros(4, 1);
/// model.locals().expect("spins have locals").log_local(&Batch::zeros(4, 1), &mut out)?;
/// assert_eq!(out.get(0, 0), 1.0); // a spin agrees with both neighbours
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Locals {
    /// out\[i, s\] = log p_i(x, z_s). Locality: log p − log p_i does not depend on z_i.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()>;
}

/// log p_i with z_i replaced and everything else as drawn.
///
/// ```
/// use hyperprior::{Batch, Model, targets::Ising};
/// let model = Ising::ring(4, 0.5)?;
/// let mut out = Batch::zeros(2, 1);
/// let conditionals = model.conditionals().expect("spins have conditionals");
/// conditionals.log_conditional(0, &Batch::zeros(4, 1), &[0.0, 1.0], &mut out)?;
/// assert_eq!(out.get(0, 0) - out.get(1, 0), 2.0); // both neighbours are down
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Conditionals {
    /// out\[v, s\] = log p_i(x, z_s with z_i := values\[v\]), up to a number that depends on s alone.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()>;
}

/// ∂ log p(x, z) / ∂z. [`linear_response`](crate::posterior::linear_response) has an example of a model that implements it.
///
/// ```
/// use hyperprior::{Batch, Model, targets::Banana};
/// let (mut log_p, mut d_z) = ([0.0], Batch::zeros(2, 1));
/// let model = Banana::new();
/// let gradient = model.gradient().expect("the banana has a gradient");
/// gradient.log_joint_gradient(&Batch::zeros(2, 1), &mut log_p, &mut d_z)?;
/// assert_eq!(d_z.as_slice(), [0.0, -4.0]);
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Gradient {
    /// out\[s\] = log p(x, z_s), d_z\[i, s\] = ∂ log p / ∂z_i for the continuous latents (entries of discrete ones are ignored).
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()>;
}

//! The recursive approximation r(λ | z; φ): an approximation of q(λ | z), the variational parameters behind a draw of the latents.
//!
//! It bounds the entropy of q(z; θ) (`eq:entropy-bound`), and the closer it is to q(λ | z), the tighter the bound. It can be
//! written on λ or on the noise ε behind λ. On the noise, log r(λ | z) − log q(λ) = log r(ε | z) − log s(ε): the
//! Jacobians cancel, any map λ(ε) serves as a prior, and the location of q can move without r having to follow.

mod features;
mod hierarchical;
mod inverse_flow;
mod mixture_gaussian;
mod responsibilities;
mod same_as_prior;

pub use hierarchical::HierarchicalRecursive;
pub use inverse_flow::InverseFlow;
pub use mixture_gaussian::{GaussianFit, MixtureGaussian};
pub use responsibilities::Responsibilities;
pub use same_as_prior::SameAsPrior;

use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::prior::{Prior, Start};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use serde::{Deserialize, Serialize};

/// What r is a density of. See [`InverseFlow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// The noise ε (and the component k) from which the prior made λ.
    #[default]
    Noise,
    /// λ itself, with the mixture's component marginalised.
    Lambda,
}

/// What an approximation may depend on. See [`Recursive`].
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The prior's parameters.
    pub theta: &'a [f64],
    /// r's own parameters.
    pub phi: &'a [f64],
    /// The prior.
    pub prior: &'a dyn Prior,
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood,
    /// The prior's component of these draws.
    pub component: usize,
}

/// The sizes that an approximation was built with. See [`Recursive::made_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// How many latents there are.
    pub latents_len: usize,
    /// How many parameters λ has.
    pub lambda_len: usize,
    /// How many of the leading parameters belong to point masses.
    pub point_mass_len: usize,
    /// How many components the prior has; `None` if it does not matter.
    pub components_len: Option<usize>,
}

impl MadeFor {
    /// The sizes of a prior and a likelihood.
    pub fn parts(prior: &dyn Prior, likelihood: &dyn Likelihood) -> Self {
        Self {
            latents_len: likelihood.latents_len(),
            lambda_len: likelihood.lambda_len(),
            point_mass_len: likelihood.point_mass_len(),
            components_len: Some(prior.components_len()),
        }
    }

    /// Whether an approximation made for these sizes can be used with `other`.
    pub fn fits(self, other: Self) -> bool {
        Self { components_len: self.components_len.or(other.components_len), ..self } == other
    }
}

impl std::fmt::Display for MadeFor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { latents_len, lambda_len, point_mass_len, .. } = self;
        write!(f, "{latents_len} latents with {lambda_len} parameters ({point_mass_len} of them point masses)")?;
        self.components_len.map_or(Ok(()), |k| write!(f, " and {k} components"))
    }
}

/// Results that an approximation stores for later calls on the same batch. See [`Recursive`].
#[derive(Debug, Default)]
pub struct Cache {
    /// Batches; their meaning is up to the approximation.
    pub batches: Vec<Batch>,
}

impl Cache {
    /// At least `len` batches to use.
    pub fn reserve(&mut self, len: usize) -> &mut [Batch] {
        if self.batches.len() < len {
            self.batches.resize_with(len, Batch::default);
        }
        &mut self.batches[..len]
    }
}

/// Stored results for a batch: those of its z, and those of its x. See [`Recursive`].
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Those of [`Recursive::prepare`].
    pub prepared: &'a Cache,
    /// Those of [`Recursive::forward`].
    pub cache: &'a Cache,
}

/// One batch of draws with its stored results, on its way through a recursive approximation. See [`Recursive`].
#[derive(Clone, Copy, Debug)]
pub struct RecursivePass<'a> {
    /// What the approximation may depend on.
    pub at: Surroundings<'a>,
    /// The draws of x, which is λ or ε.
    pub x: &'a Batch,
    /// The latents.
    pub z: &'a Batch,
    /// The stored results.
    pub known: Known<'a>,
}

/// r(x | z; φ) over a batch of draws, where x is λ or ε according to [`space`](Self::space).
///
/// Only the parameters of factors that are random given λ are covered: r is conditional on the leading point-mass coordinates
/// of x. On the noise of a mixture, r includes the component: log r(k, ε | z), where k is the surroundings' component.
///
/// ```
/// use hyperprior::math::{family::Bernoulli, scratch::Scratch};
/// use hyperprior::prior::{Covariance, Gaussian};
/// use hyperprior::recursive::{Cache, InverseFlow, Space};
/// use hyperprior::{Batch, Variational, likelihood::MeanField};
/// let likelihood = MeanField::of(Bernoulli, 1)?;
/// let r = InverseFlow::factorised(&likelihood, 1, Space::Noise);
/// let q = Variational::new(likelihood, Gaussian::new(1, Covariance::Diagonal)?, r)?;
/// let phi = vec![0.0; q.phi_len()];
/// let at = q.surroundings(&[0.0; 2], &phi, 0);
/// let (eps, z, mut log_r) = (Batch::zeros(1, 1), Batch::zeros(1, 1), [0.0]);
/// let (mut prepared, mut cache, mut scratch) = (Cache::default(), Cache::default(), Scratch::default());
/// q.recursive().prepare(at, &eps, &z, &mut prepared, &mut scratch);
/// q.recursive().forward(at, &eps, &prepared, &mut log_r, &mut cache, &mut scratch);
/// assert!((log_r[0] + 0.918939).abs() < 1e-6); // with φ = 0, log N(0; 0, 1)
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Recursive: std::fmt::Debug + Send + Sync {
    /// A short name with its sizes.
    fn name(&self) -> String;

    /// What r is a density of.
    fn space(&self) -> Space;

    /// The length of φ.
    fn parameters_len(&self) -> usize;

    /// Whether r is split into terms that each contain one z_i (apart from the component's share), so that
    /// [`conditional`](Self::conditional) is cheap.
    fn is_local(&self) -> bool;

    /// Whether r depends on z.
    fn depends_on_z(&self) -> bool {
        true
    }

    /// Whether it is made of Gaussians with matched moments.
    fn matches_moments(&self) -> bool {
        false
    }

    /// The sizes it was built for, if any.
    fn made_for(&self) -> Option<MadeFor> {
        None
    }

    /// Checks that it fits this prior and this likelihood, apart from sizes. By default an approximation on the noise covers one
    /// normal per λ and nothing else.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the reason.
    fn check(&self, prior: &dyn Prior, likelihood: &dyn Likelihood) -> Result<()> {
        let _ = likelihood;
        let reason = match (prior.noise_len(), prior.switches_len()) {
            (0, 0) => {
                "a point has no density to approximate; use r = prior, or responsibilities for several atoms".to_owned()
            }
            _ if self.space() == Space::Lambda => return Ok(()),
            (noises, 0) if noises == prior.lambda_len() => return Ok(()),
            (noises, switches) => format!(
                "the prior has {noises} normals and {switches} switches behind {} parameters; use r = prior or the \
                 hierarchical r",
                prior.lambda_len()
            ),
        };
        Err(Error::Mismatch {
            first: format!("the prior `{}`", prior.name()),
            second: format!("the recursive approximation `{}`", self.name()),
            reason,
        })
    }

    /// Computes what depends on z alone (and on the leading point-mass coordinates of `x`), once for all x with the same z.
    fn prepare(&self, at: Surroundings, x: &Batch, z: &Batch, prepared: &mut Cache, scratch: &mut Scratch);

    /// out\[s\] = log r(x_s | z_s); stores in `cache` what the calls below need.
    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    );

    /// out\[s\] = r_i, the terms of log r that contain z_i; all of log r if it does not split.
    fn local(&self, at: Surroundings, i: usize, known: Known, out: &mut [f64]);

    /// out\[v, s\] = r_i with z_i replaced by values\[v\], up to a number that depends on s alone.
    fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch);

    /// Adds to `d_x`, `d_z` (continuous latents) and `d_phi`, given the cotangent of log r.
    fn pullback(
        &self,
        pass: RecursivePass,
        d_log_r: &[f64],
        d_x: &mut Batch,
        d_z: &mut Batch,
        d_phi: &mut [f64],
        scratch: &mut Scratch,
    );

    /// Draws x ~ r(· | z), and on the noise of a mixture also the component of each draw. The leading point-mass coordinates of
    /// `x` are given, not drawn.
    fn sample(
        &self,
        at: Surroundings,
        prepared: &Cache,
        streams: &mut [Stream],
        x: &mut Batch,
        components: &mut [usize],
        scratch: &mut Scratch,
    );

    /// Writes an initial φ.
    fn initialize(&self, start: &Start, rng: &mut Stream, phi: &mut [f64]);
}

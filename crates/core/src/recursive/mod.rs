//! The recursive approximation r(λ | z; φ): a guess at the variational parameters behind a draw of the latents.
//!
//! It bounds the entropy of q(z; θ) (`eq:entropy-bound`), and the closer it is to q(λ | z), the tighter the bound. It can be
//! written on λ or on the noise ε behind λ. On the noise, log r(λ | z) − log q(λ) = log r(ε | z) − log s(ε): the
//! Jacobians cancel, any map λ(ε) serves as a prior, and the location of q is free to move without r having to follow.

mod features;
mod inverse_flow;
mod mirror;
mod mixture_gaussian;
mod responsibilities;
mod same_as_prior;

pub use inverse_flow::InverseFlow;
pub use mirror::Mirror;
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

/// What r is a density of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// The noise ε (and the component k) from which the prior made λ.
    #[default]
    Noise,
    /// λ itself, the mixture's component summed out.
    Lambda,
}

/// What an approximation may look at besides its own parameters.
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
    /// The prior's component that made these draws.
    pub component: usize,
}

/// The sizes that an approximation was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// How many latents there are.
    pub latents_len: usize,
    /// How many parameters λ has.
    pub lambda_len: usize,
    /// How many of the leading parameters belong to point masses.
    pub point_mass_len: usize,
    /// How many components the prior has; `None` where that does not matter.
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

    /// Whether what was made for these sizes can be used with `other`.
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

/// Where an approximation keeps what it computed for a batch, for the calls that follow.
#[derive(Debug, Default)]
pub struct Cache {
    /// Batches, each with a meaning that its owner knows.
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

/// What was computed for a batch: about its z, and about its x.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What [`Recursive::prepare`] left.
    pub prepared: &'a Cache,
    /// What [`Recursive::forward`] left.
    pub cache: &'a Cache,
}

/// r(x | z; φ) over a batch of draws, x being λ or ε as [`space`](Self::space) says.
///
/// Only the parameters behind factors with randomness of their own are covered: the leading point-mass coordinates of x
/// are conditioned on. On the noise of a mixture, r is over the component too: log r(k, ε | z), k being the
/// surroundings' component.
pub trait Recursive: std::fmt::Debug + Send + Sync {
    /// A short name with its sizes.
    fn name(&self) -> String;

    /// What r is a density of.
    fn space(&self) -> Space;

    /// The length of φ.
    fn parameters_len(&self) -> usize;

    /// Whether r is split into terms that each contain one z_i (but for the component's share), so that
    /// [`conditional`](Self::conditional) is cheap.
    fn is_local(&self) -> bool;

    /// The sizes it was built with, where it was built for some.
    fn made_for(&self) -> Option<MadeFor> {
        None
    }

    /// Whether it goes together with this prior and this likelihood, sizes apart. Unless it says otherwise, an approximation on
    /// the noise covers one normal per λ and nothing else.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the reason.
    fn check(&self, prior: &dyn Prior, likelihood: &dyn Likelihood) -> Result<()> {
        let _ = likelihood;
        let reason = match (prior.noise_len(), prior.switches_len()) {
            (0, 0) => "a point has no density to approximate; use r = prior, or responsibilities for several points"
                .to_owned(),
            _ if self.space() == Space::Lambda => return Ok(()),
            (noises, 0) if noises == prior.lambda_len() => return Ok(()),
            (noises, switches) => format!(
                "the prior has {noises} normals and {switches} switches behind {} parameters; use r = prior or one that mirrors \
                 its levels",
                prior.lambda_len()
            ),
        };
        Err(Error::Mismatch {
            first: format!("the prior `{}`", prior.name()),
            second: format!("the recursive approximation `{}`", self.name()),
            reason,
        })
    }

    /// What r knows from z alone (and from the point masses' leading coordinates of `x`), once for all x that are asked of the
    /// same z.
    fn prepare(&self, at: Surroundings, x: &Batch, z: &Batch, prepared: &mut Cache, scratch: &mut Scratch);

    /// out\[s\] = log r(x_s | z_s); what the calls below need is left in `cache`.
    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    );

    /// out\[s\] = r_i, the terms of log r that contain z_i; the whole of log r where it does not split.
    fn local(&self, at: Surroundings, i: usize, known: Known, out: &mut [f64]);

    /// out\[v, s\] = r_i with z_i replaced by values\[v\], up to a number that depends on s alone.
    fn conditional(
        &self,
        at: Surroundings,
        i: usize,
        x: &Batch,
        z: &Batch,
        values: &[f64],
        known: Known,
        out: &mut Batch,
        scratch: &mut Scratch,
    );

    /// Adds to `d_x`, `d_z` (continuous latents) and `d_phi`, given the cotangent of log r.
    fn pullback(
        &self,
        at: Surroundings,
        x: &Batch,
        z: &Batch,
        d_log_r: &[f64],
        known: Known,
        d_x: &mut Batch,
        d_z: &mut Batch,
        d_phi: &mut [f64],
        scratch: &mut Scratch,
    );

    /// Draws x ~ r(· | z), and on the noise of a mixture the component of each draw. The leading point-mass coordinates of
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

    /// Writes a φ to start from.
    fn initialize(&self, start: &Start, rng: &mut Stream, phi: &mut [f64]);
}

//! The variational prior q(λ; θ), which makes the latent variables depend on each other.
//!
//! A prior transforms given noise into λ; it never draws random numbers itself. `eq:mixed-mf`:
//! q(z; θ) = ∫ q(λ; θ) Π_i q(z_i | λ_i) dλ.

mod atoms;
mod copula;
mod coupling;
mod delta;
mod factorial_mixture;
mod flow;
mod gaussian;
mod hierarchical;
mod low_rank;
mod marginal;
mod mixture;
mod network;
mod noise;
mod planar;
mod weights;

pub use atoms::Atoms;
pub use copula::Copula;
pub use coupling::CouplingFlow;
pub use delta::Delta;
pub use factorial_mixture::FactorialMixture;
pub use flow::FlowPrior;
pub use gaussian::{Covariance, Gaussian};
pub use hierarchical::{GaussianProcessMap, Hierarchical, LevelMap, LinearMap};
pub use hyperprior_math::flow::Bend;
pub use low_rank::LowRank;
pub use marginal::{Marginal, NormalMarginal, SinhArcsinh};
pub use mixture::Mixture;
pub use network::{MlpMap, NetworkPrior, NoiseMap};
pub(crate) use noise::{log_bernoulli, log_noise, log_standard_normal, throw_switches};
pub use planar::PlanarFlow;

use crate::error::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;

/// One batch of noise on its way through a prior. See [`Prior`].
#[derive(Clone, Copy, Debug)]
pub struct PriorPass<'a> {
    /// θ.
    pub theta: &'a [f64],
    /// The component of the draws.
    pub component: usize,
    /// The noise.
    pub eps: &'a Batch,
    /// How much of the density is needed.
    pub density: Density,
}

/// Which density of λ a transformation should report. See [`Prior`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// None: the recursive approximation is on the noise, where the Jacobian cancels.
    Unneeded,
    /// log q(λ), with the component marginalised.
    Whole,
    /// log q(λ_1..n | k): the point masses' parameters within the component, if the recursive approximation is on the
    /// noise of the others.
    Leading(usize),
}

/// Where a fit starts: a few points in λ with their spread.
///
/// ```
/// use hyperprior::prior::Start;
/// let start = Start::at(vec![0.0, 1.0], 0.5);
/// assert!(start.check(2).is_ok() && start.check(3).is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// One location per component; a short list is repeated.
    pub locations: Vec<Vec<f64>>,
    /// The standard deviation around each location, one per λ, for each component.
    pub scales: Vec<Vec<f64>>,
    /// The covariance of λ for each component, row by row, if known (small λ only).
    pub covariances: Vec<Option<Vec<f64>>>,
}

impl Start {
    /// Every component at `location`, with equal scales.
    pub fn at(location: Vec<f64>, scale: f64) -> Self {
        let len = location.len();
        Self { locations: vec![location], scales: vec![vec![scale; len]], covariances: vec![None] }
    }

    /// Checks that it is a start for λ of this length.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if a location or a scale is missing or has another length.
    pub fn check(&self, lambda_len: usize) -> Result<()> {
        let rows = self.locations.iter().chain(&self.scales);
        let square = |len: usize| if len == lambda_len * lambda_len { lambda_len } else { len };
        let matrices = self.covariances.iter().flatten().map(|matrix| square(matrix.len()));
        let wrong = rows.map(Vec::len).chain(matrices).find(|len| *len != lambda_len);
        let missing = self.locations.is_empty() || self.scales.is_empty();
        let found = wrong.or(missing.then_some(0));
        match found {
            None => Ok(()),
            Some(found) => Err(Error::Mismatch {
                first: "the start".to_owned(),
                second: "the prior".to_owned(),
                reason: format!("one has {found} parameters, the other {lambda_len}; make them equal"),
            }),
        }
    }
}

/// q(λ; θ) over a batch of draws.
///
/// A mixture is *stratified*: the caller evaluates every component and weights them, so that the weights are learned without
/// a score term. All other priors have one component.
///
/// Costs are per draw; d is the length of λ.
///
/// ```
/// use hyperprior::prior::{Covariance, Density, Gaussian, Prior, PriorPass};
/// use hyperprior::{Batch, math::scratch::Scratch};
/// let prior = Gaussian::new(1, Covariance::Diagonal)?;
/// let theta = [2.0, 0.0]; // the mean and the log standard deviation
/// let (eps, mut lambda, mut log_q) = (Batch::from_columns(vec![0.5], 1), Batch::zeros(1, 1), [0.0]);
/// let pass = PriorPass { theta: &theta, component: 0, eps: &eps, density: Density::Whole };
/// prior.transform(pass, &mut lambda, &mut log_q, &mut Scratch::default());
/// assert_eq!(lambda.get(0, 0), 2.5);
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Prior: std::fmt::Debug + Send + Sync {
    /// A short name with its sizes, such as `mixture of 3 gaussians (full)`.
    fn name(&self) -> String;

    /// How many parameters λ has.
    fn lambda_len(&self) -> usize;

    /// How many standard normals a draw needs.
    fn noise_len(&self) -> usize {
        self.lambda_len()
    }

    /// How many binary switches a draw needs as well, a discrete level above λ. A batch of noise holds them after the normals, as
    /// columns of zeros and ones.
    fn switches_len(&self) -> usize {
        0
    }

    /// How many columns a batch of noise has: the normals, then the switches.
    fn columns_len(&self) -> usize {
        self.noise_len() + self.switches_len()
    }

    /// out\[m\] = the logit of switch m being one.
    fn switch_logits(&self, theta: &[f64], out: &mut [f64]) {
        let _ = (theta, out);
    }

    /// d_theta += the derivative along θ, given that along the switches' logits.
    fn switch_logits_pullback(&self, d_logits: &[f64], d_theta: &mut [f64]) {
        let _ = (d_logits, d_theta);
    }

    /// The length of θ.
    fn parameters_len(&self) -> usize;

    /// How many components there are to stratify over.
    fn components_len(&self) -> usize {
        1
    }

    /// out\[k\] = log π_k.
    fn log_weights(&self, theta: &[f64], out: &mut [f64]) {
        let _ = theta;
        out.fill(0.0);
    }

    /// d_theta += the gradient of Σ_k π_k values\[k\] along the weights alone: π_k (values\[k\] − Σ_j π_j values\[j\]).
    fn weights_pullback(&self, theta: &[f64], values: &[f64], d_theta: &mut [f64]) {
        let _ = (theta, values, d_theta);
    }

    /// d_theta += Σ_k counts\[k\] · ∂ log π_k/∂θ: for a bound in which log π_k itself appears.
    fn log_weights_pullback(&self, theta: &[f64], counts: &[f64], d_theta: &mut [f64]) {
        let _ = (theta, counts, d_theta);
    }

    /// Whether the density of λ is available. A prior without one works wherever the bound needs only [`Density::Unneeded`]: with
    /// r on the noise, or r = prior, and a family behind every latent. [`log_density`](Self::log_density) is then NaN.
    fn has_density(&self) -> bool {
        true
    }

    /// Whether [`Density::Leading`] is available.
    fn has_leading_density(&self) -> bool {
        false
    }

    /// λ = λ(ε; θ) for component `k`, and log_q\[s\] as `density` specifies.
    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch);

    /// d_theta += the total derivative along θ at fixed ε, given the cotangents of λ and of log_q.
    fn pullback(
        &self,
        pass: PriorPass,
        lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    );

    /// out\[s\] = log q(λ_s; θ) at any λ, with the component marginalised; NaN if there is no density.
    fn log_density(&self, theta: &[f64], lambda: &Batch, out: &mut [f64], scratch: &mut Scratch);

    /// The prior's Gaussian components, if it consists of Gaussians.
    fn gaussians(&self) -> Option<&dyn Gaussians> {
        None
    }

    /// Writes a θ that starts at `start`.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]);
}

/// A prior made of Gaussians N(μ_k, L_k L_kᵀ).
///
/// ```
/// use hyperprior::prior::{Covariance, Gaussian, Prior};
/// let prior = Gaussian::new(1, Covariance::Diagonal)?;
/// let (mut mean, mut scale) = ([0.0], [0.0]);
/// let gaussians = prior.gaussians().expect("a Gaussian consists of one");
/// gaussians.component(&[2.0, 0.0], 0, &mut mean, &mut scale);
/// assert_eq!((mean, scale), ([2.0], [1.0]));
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Gaussians {
    /// Whether the scales are diagonal.
    fn is_diagonal(&self) -> bool;

    /// Writes μ_k and the packed lower triangle L_k.
    fn component(&self, theta: &[f64], k: usize, mean: &mut [f64], scale: &mut [f64]);
}

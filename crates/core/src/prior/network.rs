//! Any map of noise as a prior: λ = λ(ε; θ), without a density of λ.
//!
//! With r on the noise, log r(λ | z) − log q(λ) = log r(ε | z) − log s(ε): the Jacobian cancels, so the map need be neither
//! invertible nor square. A network is one such map, O(its weights).

use super::{Density, Prior, Start};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::network::Mlp;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector;

/// A differentiable map from noise to λ; the caller passes its parameters.
///
/// It works on batches, column by column, and takes its buffers from `scratch`, so that a step does not allocate. See
/// [`NetworkPrior`].
pub trait NoiseMap: std::fmt::Debug + Send + Sync {
    /// A short name with its sizes, such as `network of 3, 8, 3`.
    fn name(&self) -> String;

    /// How many standard normals a draw needs. An inverse flow on the noise requires as many as λ has parameters.
    fn noise_len(&self) -> usize;

    /// How many parameters λ has.
    fn lambda_len(&self) -> usize;

    /// The length of θ.
    fn parameters_len(&self) -> usize;

    /// λ = λ(ε; θ).
    fn forward(&self, theta: &[f64], eps: &Batch, lambda: &mut Batch, scratch: &mut Scratch);

    /// d_theta += the derivative along θ at fixed ε, given the cotangent of λ.
    fn pullback(&self, theta: &[f64], eps: &Batch, d_lambda: &Batch, d_theta: &mut [f64], scratch: &mut Scratch);

    /// Writes a θ that starts at `start`.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]);
}

/// A prior defined by a map of noise. It has no density, so r must be on the noise or be the prior itself.
///
/// ```
/// use hyperprior::prior::{MlpMap, NetworkPrior, Prior};
/// let prior = NetworkPrior::new(MlpMap::new(3, &[8], 3)?)?;
/// assert!(!prior.has_density());
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPrior<M> {
    map: M,
}

impl<M: NoiseMap> NetworkPrior<M> {
    /// The prior of this map.
    ///
    /// # Errors
    /// [`Error::BadPart`] for a map without inputs or outputs.
    pub fn new(map: M) -> Result<Self> {
        let reason = match (map.noise_len(), map.lambda_len()) {
            (_, 0) => "it has no parameters; the likelihood must have at least one",
            (0, _) => "a map without noise is a point; use at least 1 noise variable, or the prior Delta",
            _ => return Ok(Self { map }),
        };
        Err(Error::BadPart { part: "a network prior".to_owned(), reason: reason.to_owned() })
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }
}

impl<M: NoiseMap> Prior for NetworkPrior<M> {
    fn name(&self) -> String {
        self.map.name()
    }

    fn lambda_len(&self) -> usize {
        self.map.lambda_len()
    }

    fn noise_len(&self) -> usize {
        self.map.noise_len()
    }

    fn parameters_len(&self) -> usize {
        self.map.parameters_len()
    }

    fn has_density(&self) -> bool {
        false
    }

    /// λ alone; a requested density is NaN.
    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        self.map.forward(theta, eps, lambda, scratch);
        if density != Density::Unneeded {
            log_q.fill(f64::NAN);
        }
    }

    fn pullback(
        &self,
        pass: PriorPass,
        _lambda: &Batch,
        d_lambda: &Batch,
        _d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let PriorPass { theta, eps, .. } = pass;
        self.map.pullback(theta, eps, d_lambda, d_theta, scratch);
    }

    /// NaN: there is none.
    fn log_density(&self, _theta: &[f64], _lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        out.fill(f64::NAN);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        self.map.initialize(start, rng, theta);
    }
}

/// λ_i = μ_i + e^ℓ_i ε_i + network(ε)_i; θ is μ, then ℓ, then the network's parameters.
///
/// The linear part covers as many λ as there are noises; λ's beyond those have only a location and the network, and
/// noises beyond the λ only enter the network. At the start the network's output is zero, so that λ is a diagonal Gaussian
/// with the start's location and scales (a λ without its own noise is fixed at its location). See [`NetworkPrior`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlpMap {
    network: Mlp,
}

impl MlpMap {
    /// A network from `noise_len` noises through hidden layers of the given sizes to `lambda_len` parameters.
    ///
    /// # Errors
    /// [`Error::BadPart`] for a size of 0.
    pub fn new(noise_len: usize, hidden: &[usize], lambda_len: usize) -> Result<Self> {
        let sizes: Vec<usize> = [&[noise_len], hidden, &[lambda_len]].concat();
        if sizes.contains(&0) {
            let reason = format!("its sizes are {sizes:?}; each must be at least 1");
            return Err(Error::BadPart { part: "a network prior".to_owned(), reason });
        }
        Ok(Self { network: Mlp::new(sizes) })
    }

    /// How many λ have their own noise.
    fn straight_len(&self) -> usize {
        self.noise_len().min(self.lambda_len())
    }

    /// Where μ ends and where ℓ ends.
    fn ends(&self) -> [usize; 2] {
        [self.lambda_len(), self.lambda_len() + self.straight_len()]
    }
}

impl NoiseMap for MlpMap {
    fn name(&self) -> String {
        let sizes: Vec<String> = self.network.sizes().iter().map(usize::to_string).collect();
        format!("network of {}", sizes.join(", "))
    }

    fn noise_len(&self) -> usize {
        self.network.input_len()
    }

    fn lambda_len(&self) -> usize {
        self.network.output_len()
    }

    fn parameters_len(&self) -> usize {
        self.ends()[1] + self.network.parameters_len()
    }

    fn forward(&self, theta: &[f64], eps: &Batch, lambda: &mut Batch, scratch: &mut Scratch) {
        let [location_end, scale_end] = self.ends();
        let draws_len = eps.draws_len();
        let mut hidden = scratch.take(self.network.hidden_len() * draws_len);
        let network = &theta[scale_end..];
        self.network.forward(network, draws_len, eps.as_slice(), &mut hidden, lambda.as_mut_slice());
        scratch.give(hidden);
        for (i, location) in theta[..location_end].iter().enumerate() {
            lambda.column_mut(i).iter_mut().for_each(|l| *l += location);
        }
        for (i, log_scale) in theta[location_end..scale_end].iter().enumerate() {
            vector::add_scaled(log_scale.exp(), eps.column(i), lambda.column_mut(i));
        }
    }

    fn pullback(&self, theta: &[f64], eps: &Batch, d_lambda: &Batch, d_theta: &mut [f64], scratch: &mut Scratch) {
        let [location_end, scale_end] = self.ends();
        let draws_len = eps.draws_len();
        for (i, d) in d_theta[..location_end].iter_mut().enumerate() {
            *d += d_lambda.column(i).iter().sum::<f64>();
        }
        for (i, log_scale) in theta[location_end..scale_end].iter().enumerate() {
            d_theta[location_end + i] += log_scale.exp() * vector::dot(d_lambda.column(i), eps.column(i));
        }
        let mut hidden = scratch.take(self.network.hidden_len() * draws_len);
        let mut output = scratch.take(self.lambda_len() * draws_len);
        let mut d_eps = scratch.take(self.noise_len() * draws_len);
        // Running the network again is cheaper than storing its hidden layers between calls.
        let (network, d_network) = (&theta[scale_end..], &mut d_theta[scale_end..]);
        self.network.forward(network, draws_len, eps.as_slice(), &mut hidden, &mut output);
        let (eps, d_lambda) = (eps.as_slice(), d_lambda.as_slice());
        self.network.pullback(network, draws_len, eps, &hidden, d_lambda, d_network, &mut d_eps, scratch);
        scratch.give(d_eps);
        scratch.give(output);
        scratch.give(hidden);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let [location_end, scale_end] = self.ends();
        theta[..location_end].copy_from_slice(&start.locations[0]);
        for (log_scale, scale) in theta[location_end..scale_end].iter_mut().zip(&start.scales[0]) {
            *log_scale = scale.max(1e-6).ln();
        }
        self.network.initialize(0.0, rng, &mut theta[scale_end..]);
    }
}

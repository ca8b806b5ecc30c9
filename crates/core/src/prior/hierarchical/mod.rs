//! The hierarchical prior: a prior on the parameters of a diagonal Gaussian over λ.
//!
//! λ_i = m_i(u) + e^{l_i(u)} ε_i, where u has a prior of its own and a [`LevelMap`] defines how m and l depend on it: linearly
//! ([`LinearMap`]), through a Gaussian process ([`GaussianProcessMap`], the variational Gaussian process), or through a user's
//! own map. The λ are independent given u; with u marginalised they are not, and need not be Gaussian. The upper prior may
//! itself be hierarchical.
//!
//! The noise holds one ε per λ, then the upper prior's. q(λ) has no closed form, so r is on the noise:
//! [`HierarchicalRecursive`](crate::recursive::HierarchicalRecursive) has the same levels.

mod gaussian_process;
mod linear;

pub use gaussian_process::GaussianProcessMap;
pub use linear::LinearMap;

use super::{Density, Prior, Start};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector;

/// The mean and the log scale of every λ as functions of the level above. See [`Hierarchical`].
pub trait LevelMap: std::fmt::Debug + Send + Sync {
    /// A short name.
    fn name(&self) -> String;

    /// How many numbers the level above has.
    fn upper_len(&self) -> usize;

    /// How many parameters λ has.
    fn lambda_len(&self) -> usize;

    /// How many parameters the map has.
    fn parameters_len(&self) -> usize;

    /// Writes the means and the log scales at `upper`.
    fn forward(&self, theta: &[f64], upper: &Batch, mean: &mut Batch, log_scale: &mut Batch, scratch: &mut Scratch);

    /// Adds to d_upper and d_theta, given the cotangents of the means and the log scales.
    fn pullback(
        &self,
        theta: &[f64],
        upper: &Batch,
        d_mean: &Batch,
        d_log_scale: &Batch,
        d_upper: &mut Batch,
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    );

    /// Parameters with which λ lies at the start's location, no wider than its scales, and depends only weakly on the level above.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]);
}

/// λ = m(u) + e^{l(u)} ε with u from another prior; θ is the map's, then the upper prior's.
///
/// ```
/// use hyperprior::prior::{Covariance, Gaussian, Hierarchical, LinearMap, Prior};
/// let upper = Gaussian::new(2, Covariance::Diagonal)?;
/// let prior = Hierarchical::new(upper, LinearMap::new(5, 2))?;
/// assert_eq!((prior.lambda_len(), prior.noise_len()), (5, 5 + 2));
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct Hierarchical {
    upper: Box<dyn Prior>,
    map: Box<dyn LevelMap>,
}

impl Hierarchical {
    /// A level of λ under `upper`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the sizes differ, or if the upper prior is a mixture or has switches (put those on top of all
    /// levels with [`FactorialMixture`](super::FactorialMixture)).
    pub fn new(upper: impl Prior + 'static, map: impl LevelMap + 'static) -> Result<Self> {
        Self::over(Box::new(upper), Box::new(map))
    }

    /// As [`new`](Self::new), with parts chosen at run time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn over(upper: Box<dyn Prior>, map: Box<dyn LevelMap>) -> Result<Self> {
        let mismatch = |reason: String| {
            let (first, second) = (format!("the upper prior `{}`", upper.name()), format!("the map `{}`", map.name()));
            Err(Error::Mismatch { first, second, reason })
        };
        if upper.lambda_len() != map.upper_len() {
            let (found, expected) = (upper.lambda_len(), map.upper_len());
            return mismatch(format!("one has {found} outputs, the other {expected} inputs; make them equal"));
        }
        if upper.components_len() > 1 || upper.switches_len() > 0 {
            return mismatch(
                "mixtures and switches belong on top of all levels; use `FactorialMixture` there".to_owned(),
            );
        }
        Ok(Self { upper, map })
    }

    fn split<'a>(&self, theta: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        theta.split_at(self.map.parameters_len())
    }

    /// The level above, from its part of the noise.
    fn raise(&self, theta: &[f64], eps: &Batch, scratch: &mut Scratch) -> (Batch, Batch) {
        let draws_len = eps.draws_len();
        let mut noise = scratch.take_batch(self.upper.noise_len(), draws_len);
        noise.as_mut_slice().copy_from_slice(eps.columns(self.lambda_len()..self.noise_len()));
        let mut upper = scratch.take_batch(self.upper.lambda_len(), draws_len);
        let mut unused = scratch.take(draws_len);
        self.upper.transform(
            PriorPass { theta, component: 0, eps: &noise, density: Density::Unneeded },
            &mut upper,
            &mut unused,
            scratch,
        );
        scratch.give(unused);
        (noise, upper)
    }
}

impl Prior for Hierarchical {
    fn name(&self) -> String {
        format!("hierarchical ({}) over {}", self.map.name(), self.upper.name())
    }

    fn lambda_len(&self) -> usize {
        self.map.lambda_len()
    }

    fn noise_len(&self) -> usize {
        self.map.lambda_len() + self.upper.noise_len()
    }

    fn parameters_len(&self) -> usize {
        self.map.parameters_len() + self.upper.parameters_len()
    }

    fn has_density(&self) -> bool {
        false
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, _log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, .. } = pass;
        let (of_map, of_upper) = self.split(theta);
        let (noise, upper) = self.raise(of_upper, eps, scratch);
        let mut scale = scratch.take_batch(self.lambda_len(), eps.draws_len());
        self.map.forward(of_map, &upper, lambda, &mut scale, scratch);
        for i in 0..self.lambda_len() {
            for ((l, scale), e) in lambda.column_mut(i).iter_mut().zip(scale.column(i)).zip(eps.column(i)) {
                *l += scale.exp() * e;
            }
        }
        scratch.give_batch(scale);
        scratch.give_batch(upper);
        scratch.give_batch(noise);
    }

    fn pullback(
        &self,
        pass: PriorPass,
        _lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let PriorPass { theta, eps, .. } = pass;
        let (of_map, of_upper) = self.split(theta);
        let (d_of_map, d_of_upper) = d_theta.split_at_mut(self.map.parameters_len());
        let (n, draws_len) = (self.lambda_len(), eps.draws_len());
        let (noise, upper) = self.raise(of_upper, eps, scratch);
        let mut mean = scratch.take_batch(n, draws_len);
        let mut d_log_scale = scratch.take_batch(n, draws_len);
        self.map.forward(of_map, &upper, &mut mean, &mut d_log_scale, scratch);
        for i in 0..n {
            for ((d, e), d_lambda) in d_log_scale.column_mut(i).iter_mut().zip(eps.column(i)).zip(d_lambda.column(i)) {
                *d = d.exp() * e * d_lambda;
            }
        }
        let mut d_upper = scratch.take_batch(self.upper.lambda_len(), draws_len);
        self.map.pullback(of_map, &upper, d_lambda, &d_log_scale, &mut d_upper, d_of_map, scratch);
        let density = Density::Unneeded;
        self.upper.pullback(
            PriorPass { theta: of_upper, component: 0, eps: &noise, density },
            &upper,
            &d_upper,
            d_log_q,
            d_of_upper,
            scratch,
        );
        for batch in [d_upper, d_log_scale, mean, upper, noise] {
            scratch.give_batch(batch);
        }
    }

    fn log_density(&self, _theta: &[f64], _lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        out.fill(f64::NAN);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let (of_map, of_upper) = theta.split_at_mut(self.map.parameters_len());
        self.map.initialize(start, rng, of_map);
        self.upper.initialize(&Start::at(vec![0.0; self.upper.lambda_len()], 1.0), rng, of_upper);
    }
}

/// out ← column sums of `d` weighted by `x`: Σ_s d_i x_j, added to `d_w[i · n + j]`.
fn add_outer(d: &Batch, x: &Batch, d_w: &mut [f64]) {
    for i in 0..d.columns_len() {
        for j in 0..x.columns_len() {
            d_w[i * x.columns_len() + j] += vector::dot(d.column(i), x.column(j));
        }
    }
}

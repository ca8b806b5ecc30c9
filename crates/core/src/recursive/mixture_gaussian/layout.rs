//! What the approximation covers, and the Gaussian fitted to a draw.

use crate::recursive::Space;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How each Gaussian is fitted. See [`MixtureGaussian`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaussianFit {
    /// At the mode, with the curvature there: mixture-Laplace.
    #[default]
    Laplace,
    /// By matching moments, expectation propagation: mixture-EP.
    ExpectationPropagation,
}

/// The analytic r for Gaussian and mixture priors.
///
/// ```
/// use hyperprior::prior::{Covariance, Mixture};
/// use hyperprior::recursive::{GaussianFit, MixtureGaussian, Space};
/// use hyperprior::{Variational, likelihood::MeanField, math::family::Bernoulli};
/// let likelihood = MeanField::of(Bernoulli, 2)?;
/// let prior = Mixture::new(2, 3, Covariance::Full)?;
/// let recursive = MixtureGaussian::new(&likelihood, &prior, GaussianFit::Laplace, Space::Noise)?;
/// let q = Variational::new(likelihood, prior, recursive)?;
/// assert_eq!(q.phi_len(), 0);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MixtureGaussian {
    pub(super) fit: GaussianFit,
    pub(super) space: Space,
    pub(super) components_len: usize,
    pub(super) shape: Shape,
}

/// The covered part of λ.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) latents_len: usize,
    pub(super) lambda_len: usize,
    /// How many leading parameters are given.
    pub(super) given: usize,
    /// The covered latents, with their ranges among the covered parameters.
    pub(super) covered: Vec<(usize, Range<usize>)>,
}

impl Shape {
    pub(super) fn covered_len(&self) -> usize {
        self.lambda_len - self.given
    }

    /// λ's covered columns ← offset + L ε.
    pub(super) fn place(&self, block: &[f64], offset: &Batch, eps: &[f64], lambda: &mut Batch) {
        let columns = lambda.columns_mut(self.given..self.lambda_len);
        columns.copy_from_slice(offset.as_slice());
        linalg::lower_multiply(block, eps, columns, offset.draws_len());
    }
}

/// The Gaussian fitted to each draw: a column per number.
pub(super) struct Fitted<'a> {
    /// m.
    pub(super) mode: &'a mut [f64],
    /// The packed Cholesky factor of V⁻¹.
    pub(super) precision: &'a mut [f64],
    /// log ∫ N(ε; 0, I) q(z | λ(ε)) dε, as the fit approximates it.
    pub(super) evidence: &'a mut [f64],
}

/// What [`prepare`](crate::recursive::Recursive::prepare) stores: the log shares, modes and Cholesky factors of the precisions
/// of all components.
pub(super) const PREPARED: usize = 3;

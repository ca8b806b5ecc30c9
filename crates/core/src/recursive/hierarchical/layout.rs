//! The sizes of a hierarchical r, and the layout of its parameters φ.

use crate::likelihood::{Kind, Likelihood};
use crate::prior::Prior;
use crate::recursive::features::FeatureTable;
use std::ops::Range;

/// r(b, u, ε | z) for a hierarchical prior or a factorial mixture; φ is, for each switch, c and C; for each normal above, a, A
/// and e; for each λ, a, b, e, f and g.
///
/// ```
/// use hyperprior::prior::{Delta, FactorialMixture};
/// use hyperprior::{Variational, likelihood::MeanField, math::family::Bernoulli, recursive::HierarchicalRecursive};
/// let likelihood = MeanField::of(Bernoulli, 3)?;
/// let prior = FactorialMixture::new(Delta { lambda_len: 3 }, 2)?;
/// let recursive = HierarchicalRecursive::new(&likelihood, &prior);
/// let q = Variational::new(likelihood, prior, recursive)?;
/// assert_eq!(q.phi_len(), 2 * (1 + 3)); // for each switch a constant and a weight for each latent
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HierarchicalRecursive {
    pub(super) table: FeatureTable,
    /// How many normals lie behind the λ, one each; none if the prior is a point given its switches.
    pub(super) lower_len: usize,
    pub(super) upper_len: usize,
    pub(super) switches_len: usize,
    pub(super) lambda_len: usize,
    /// Each latent's λ, and where their parameters start.
    pub(super) latents: Vec<(Range<usize>, usize)>,
    pub(super) parameters_len: usize,
    pub(super) is_pathwise: Vec<bool>,
}

impl HierarchicalRecursive {
    /// For this likelihood and prior.
    pub fn new(likelihood: &dyn Likelihood, prior: &dyn Prior) -> Self {
        let table = FeatureTable::new(likelihood);
        let lambda_len = likelihood.lambda_len();
        let lower_len = if prior.noise_len() >= lambda_len { lambda_len } else { 0 };
        let (upper_len, switches_len) = (prior.noise_len() - lower_len, prior.switches_len());
        let mut end = switches_len * (1 + table.len) + upper_len * (2 + table.len);
        let mut latents = Vec::with_capacity(likelihood.latents_len());
        for i in 0..likelihood.latents_len() {
            let coordinates = likelihood.lambda_range(i);
            latents.push((coordinates.clone(), end));
            if lower_len > 0 {
                end += coordinates.len() * (2 + 2 * table.range(i).len() + upper_len + switches_len);
            }
        }
        let is_pathwise = (0..likelihood.latents_len()).map(|i| likelihood.kind(i) == Kind::Pathwise).collect();
        Self { table, lower_len, upper_len, switches_len, lambda_len, latents, parameters_len: end, is_pathwise }
    }

    /// The columns of x on which the bottom depends: the normals above, then the switches.
    pub(super) fn top(&self) -> Range<usize> {
        self.lower_len..self.lower_len + self.upper_len + self.switches_len
    }

    pub(super) fn switch(&self, m: usize) -> Range<usize> {
        let len = 1 + self.table.len;
        m * len..(m + 1) * len
    }

    /// a, A and e of a normal above.
    pub(super) fn upper(&self, u: usize) -> Range<usize> {
        let len = 2 + self.table.len;
        let first = self.switches_len * (1 + self.table.len);
        first + u * len..first + (u + 1) * len
    }

    pub(super) fn coordinate(&self, i: usize, c: usize) -> Range<usize> {
        let len = 2 + 2 * self.table.range(i).len() + self.top().len();
        let first = self.latents[i].1 + c * len;
        first..first + len
    }
}

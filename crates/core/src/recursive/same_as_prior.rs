//! r = prior: the recursive approximation that ignores z, which gives the conditional-entropy bound.

use super::{Cache, Known, Recursive, Space, Surroundings};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::prior::{Prior, Start, log_noise, throw_switches};
use crate::recursive::RecursivePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, standard_normals};
use hyperprior_math::scratch::Scratch;
use rand::RngExt;

/// r(λ | z) = q(λ; θ), that is r(k, ε | z) = π_k s(ε). Nothing to learn.
///
/// It is written on the noise; on λ it would be the same, since log r − log q(λ) is zero either way. The hierarchical
/// ELBO is then E_q\[L_MF(λ)\], never above the best mean-field ELBO.
///
/// ```
/// use hyperprior::prior::{Covariance, Gaussian};
/// use hyperprior::{Variational, likelihood::MeanField, math::family::Bernoulli, recursive::SameAsPrior};
/// let q = Variational::new(MeanField::of(Bernoulli, 2)?, Gaussian::new(2, Covariance::Full)?, SameAsPrior)?;
/// assert_eq!(q.phi_len(), 0);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SameAsPrior;

impl Recursive for SameAsPrior {
    fn name(&self) -> String {
        "prior".to_owned()
    }

    fn space(&self) -> Space {
        Space::Noise
    }

    fn parameters_len(&self) -> usize {
        0
    }

    fn is_local(&self) -> bool {
        true
    }

    fn check(&self, _prior: &dyn Prior, _likelihood: &dyn Likelihood) -> Result<()> {
        Ok(())
    }

    fn depends_on_z(&self) -> bool {
        false
    }

    fn prepare(&self, _at: Surroundings, _x: &Batch, _z: &Batch, _prepared: &mut Cache, _scratch: &mut Scratch) {}

    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        _prepared: &Cache,
        out: &mut [f64],
        _cache: &mut Cache,
        scratch: &mut Scratch,
    ) {
        log_noise(at.prior, at.theta, x, at.likelihood.point_mass_len(), out, scratch);
        let mut log_pi = scratch.take(at.prior.components_len());
        at.prior.log_weights(at.theta, &mut log_pi);
        for o in out {
            *o += log_pi[at.component];
        }
        scratch.give(log_pi);
    }

    fn local(&self, _at: Surroundings, _i: usize, _known: Known, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn conditional(&self, _pass: RecursivePass, _i: usize, _values: &[f64], out: &mut Batch, _scratch: &mut Scratch) {
        out.as_mut_slice().fill(0.0);
    }

    fn pullback(
        &self,
        _pass: RecursivePass,
        _d_log_r: &[f64],
        _d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        // On the noise r depends on θ only through log π_k and the switches' probability, which cancel with those of the bound.
    }

    fn sample(
        &self,
        at: Surroundings,
        _prepared: &Cache,
        streams: &mut [Stream],
        x: &mut Batch,
        components: &mut [usize],
        scratch: &mut Scratch,
    ) {
        let given = at.likelihood.point_mass_len();
        let mut fresh = scratch.take_batch(x.columns_len(), x.draws_len());
        standard_normals(streams, &mut fresh);
        throw_switches(at.prior, at.theta, &mut fresh, scratch);
        for i in given..x.columns_len() {
            x.column_mut(i).copy_from_slice(fresh.column(i));
        }
        scratch.give_batch(fresh);
        let mut log_pi = scratch.take(at.prior.components_len());
        at.prior.log_weights(at.theta, &mut log_pi);
        for (rng, k) in streams.iter_mut().zip(components) {
            *k = pick(&log_pi, rng);
        }
        scratch.give(log_pi);
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}

/// An index drawn with the given log probabilities.
pub(super) fn pick(log_probabilities: &[f64], rng: &mut Stream) -> usize {
    let u: f64 = rng.random();
    let mut below = 0.0;
    for (k, log_p) in log_probabilities.iter().enumerate() {
        below += log_p.exp();
        if u < below {
            return k;
        }
    }
    log_probabilities.len() - 1
}

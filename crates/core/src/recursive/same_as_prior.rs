//! r = prior: the recursive approximation that has not looked at z, which makes the bound the conditional-entropy bound.

use super::{Cache, Known, Recursive, Space, Surroundings};
use crate::prior::Start;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, standard_normals};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::HALF_LN_2_PI;
use rand::RngExt;

/// r(λ | z) = q(λ; θ), that is r(k, ε | z) = π_k s(ε). Nothing to learn.
///
/// It is written on the noise; on λ it would be the same, since log r − log q(λ) is zero either way. The hierarchical
/// ELBO is then E_q\[L_MF(λ)\], never above the best mean-field ELBO.
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
        log_standard_normal(x, at.likelihood.point_mass_len(), out);
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

    fn conditional(
        &self,
        _at: Surroundings,
        _i: usize,
        _x: &Batch,
        _z: &Batch,
        _values: &[f64],
        _known: Known,
        out: &mut Batch,
        _scratch: &mut Scratch,
    ) {
        out.as_mut_slice().fill(0.0);
    }

    fn pullback(
        &self,
        _at: Surroundings,
        _x: &Batch,
        _z: &Batch,
        _d_log_r: &[f64],
        _known: Known,
        _d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        // On the noise nothing of r moves with θ but log π_k, and the bound's own −log π_k cancels that.
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
        if given == 0 {
            standard_normals(streams, x);
        } else {
            let mut fresh = scratch.take_batch(x.columns_len(), x.draws_len());
            standard_normals(streams, &mut fresh);
            for i in given..x.columns_len() {
                x.column_mut(i).copy_from_slice(fresh.column(i));
            }
            scratch.give_batch(fresh);
        }
        let mut log_pi = scratch.take(at.prior.components_len());
        at.prior.log_weights(at.theta, &mut log_pi);
        for (rng, k) in streams.iter_mut().zip(components) {
            *k = pick(&log_pi, rng);
        }
        scratch.give(log_pi);
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}

/// out\[s\] = Σ_{i ≥ first} log N(x_i; 0, 1).
pub(crate) fn log_standard_normal(x: &Batch, first: usize, out: &mut [f64]) {
    let columns = x.columns_len().saturating_sub(first);
    out.fill(-HALF_LN_2_PI * columns as f64);
    for i in first..x.columns_len() {
        for (o, x) in out.iter_mut().zip(x.column(i)) {
            *o -= 0.5 * x * x;
        }
    }
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

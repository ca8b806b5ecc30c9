//! Exact responsibilities: r(k | z) = q(k | z) for a prior that is a mixture of atoms, which makes the bound exact.

use super::same_as_prior::pick;
use super::{Cache, Known, Recursive, Space, Surroundings};
use crate::error::{Error, Result};
use crate::likelihood::{Kind, Likelihood};
use crate::prior::PriorPass;
use crate::prior::{Density, Prior, Start};
use crate::recursive::RecursivePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::{add_scaled, log_sum_exp_columns};

/// r(k | z) = π_k q(z | λ_k) / Σ_j π_j q(z | λ_j), for priors without noise. The hierarchical ELBO is then exactly the ELBO of
/// q(z), and there is nothing to learn. O(Kd).
///
/// It is held fixed in θ, like the other analytic approximations; since it is exact, this does not bias the gradient.
///
/// ```
/// use hyperprior::{Variational, likelihood::MeanField, math::family::Bernoulli};
/// use hyperprior::{prior::Atoms, recursive::Responsibilities};
/// let q = Variational::new(MeanField::of(Bernoulli, 2)?, Atoms::new(2, 3)?, Responsibilities)?;
/// assert_eq!(q.phi_len(), 0);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Responsibilities;

/// What [`Recursive::prepare`] stores: log π_k + log q(z | λ_k) of every component and their log sum, a column each; then λ_k
/// of every component, a batch each.
mod prepared {
    pub const JOINT: usize = 0;
    pub const POINTS: usize = 1;
}

/// What [`Recursive::forward`] stores: log r.
const LOG_R: usize = 0;

impl Recursive for Responsibilities {
    fn name(&self) -> String {
        "responsibilities".to_owned()
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

    fn check(&self, prior: &dyn Prior, likelihood: &dyn Likelihood) -> Result<()> {
        let mismatch = |second: String, reason: &str| {
            let first = format!("the recursive approximation `{}`", self.name());
            Err(Error::Mismatch { first, second, reason: reason.to_owned() })
        };
        if prior.columns_len() > 0 {
            return mismatch(format!("the prior `{}`", prior.name()), "it is for mixtures of atoms; use another r");
        }
        if (0..likelihood.latents_len()).any(|i| likelihood.kind(i) == Kind::Pathwise) {
            return mismatch("the likelihood".to_owned(), "r would depend on a factor's draw; use a learned r");
        }
        Ok(())
    }

    fn prepare(&self, at: Surroundings, x: &Batch, z: &Batch, prepared: &mut Cache, scratch: &mut Scratch) {
        let (draws_len, components_len) = (z.draws_len(), at.prior.components_len());
        let (joint, points) = prepared.reserve(prepared::POINTS + components_len).split_at_mut(prepared::POINTS);
        let joint = &mut joint[prepared::JOINT];
        joint.reshape(components_len + 1, draws_len);
        let mut log_pi = scratch.take(components_len);
        at.prior.log_weights(at.theta, &mut log_pi);
        let mut log_q = scratch.take_batch(at.likelihood.latents_len(), draws_len);
        let mut unused = scratch.take(draws_len);
        for (k, lambda) in points.iter_mut().enumerate() {
            lambda.reshape(at.prior.lambda_len(), draws_len);
            at.prior.transform(
                PriorPass { theta: at.theta, component: k, eps: x, density: Density::Unneeded },
                lambda,
                &mut unused,
                scratch,
            );
            at.likelihood.log_density(lambda, z, &mut log_q, scratch);
            let column = joint.column_mut(k);
            column.fill(log_pi[k]);
            for i in 0..log_q.columns_len() {
                add_scaled(1.0, log_q.column(i), column);
            }
        }
        sum_up(joint, components_len);
        scratch.give(unused);
        scratch.give_batch(log_q);
        scratch.give(log_pi);
    }

    fn forward(
        &self,
        at: Surroundings,
        _x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        _scratch: &mut Scratch,
    ) {
        let joint = &prepared.batches[prepared::JOINT];
        difference(joint, at.component, at.prior.components_len(), out);
        let log_r = &mut cache.reserve(LOG_R + 1)[LOG_R];
        log_r.reshape(1, out.len());
        log_r.column_mut(0).copy_from_slice(out);
    }

    fn local(&self, _at: Surroundings, _i: usize, known: Known, out: &mut [f64]) {
        out.copy_from_slice(known.cache.batches[LOG_R].column(0));
    }

    fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch) {
        let RecursivePass { at, z, known, .. } = pass;
        let (draws_len, components_len) = (z.draws_len(), at.prior.components_len());
        let (joint, points) = known.prepared.batches.split_at(prepared::POINTS);
        let joint = &joint[prepared::JOINT];
        let mut others = scratch.take_batch(components_len, draws_len);
        let mut term = scratch.take(draws_len);
        for (k, lambda) in points[..components_len].iter().enumerate() {
            at.likelihood.log_density_of(i, lambda, z.column(i), &mut term);
            for ((o, j), t) in others.column_mut(k).iter_mut().zip(joint.column(k)).zip(&term) {
                *o = j - t;
            }
        }
        // The atom of a component is the same for all draws, so one table serves them all.
        let mut table = scratch.take_batch(components_len * values.len(), 1);
        let mut one = scratch.take_batch(values.len(), 1);
        let mut point = scratch.take_batch(at.prior.lambda_len(), 1);
        for (k, lambda) in points[..components_len].iter().enumerate() {
            for j in 0..lambda.columns_len() {
                point.set(j, 0, lambda.get(j, 0));
            }
            at.likelihood.log_densities_of(i, &point, values, &mut term[..1], &mut one);
            for v in 0..values.len() {
                table.set(v * components_len + k, 0, one.get(v, 0));
            }
        }
        let mut moved = scratch.take_batch(components_len + 1, draws_len);
        for (v, own) in table.as_slice().chunks_exact(components_len).enumerate() {
            for (k, own) in own.iter().enumerate() {
                for (m, o) in moved.column_mut(k).iter_mut().zip(others.column(k)) {
                    *m = o + own;
                }
            }
            sum_up(&mut moved, components_len);
            difference(&moved, at.component, components_len, out.column_mut(v));
        }
        scratch.give_batch(point);
        scratch.give_batch(one);
        scratch.give_batch(table);
        scratch.give_batch(moved);
        scratch.give(term);
        scratch.give_batch(others);
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
        // Held fixed in θ, and without parameters.
    }

    fn sample(
        &self,
        at: Surroundings,
        prepared: &Cache,
        streams: &mut [Stream],
        _x: &mut Batch,
        components: &mut [usize],
        scratch: &mut Scratch,
    ) {
        let components_len = at.prior.components_len();
        let joint = &prepared.batches[prepared::JOINT];
        let mut log_r = scratch.take(components_len);
        for (s, (rng, component)) in streams.iter_mut().zip(components).enumerate() {
            for (k, r) in log_r.iter_mut().enumerate() {
                *r = joint.get(k, s) - joint.get(components_len, s);
            }
            *component = pick(&log_r, rng);
        }
        scratch.give(log_r);
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}

/// The last column ← the log sum of the others.
fn sum_up(joint: &mut Batch, components_len: usize) {
    let draws_len = joint.draws_len();
    let (columns, total) = joint.as_mut_slice().split_at_mut(components_len * draws_len);
    log_sum_exp_columns(columns, total);
}

fn difference(joint: &Batch, k: usize, components_len: usize, out: &mut [f64]) {
    for ((o, j), total) in out.iter_mut().zip(joint.column(k)).zip(joint.column(components_len)) {
        *o = j - total;
    }
}

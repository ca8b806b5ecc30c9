//! log q̂(z) = log mean(e^a_0, …, e^a_J), one fresh λ at a time, and its derivative along latents that are differentiated.
//!
//! If r does not depend on z, ∂ log q̂(z)/∂z_i = Σ_j w_j ∂ log q(z_i | λ_ji)/∂z_i, with w_j the share of e^a_j. The backward pass
//! takes that of λ_0 alone, so the difference is left to be added to the derivatives along z.

use super::draws::Draws;
use super::importance::Inner;
use crate::likelihood::Kind;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_add_exp;

/// The sums so far.
pub(super) struct Average {
    /// log Σ_j e^a_j.
    pub(super) log_sum: Vec<f64>,
    /// Σ_j w_j ∂ log q(z_i | λ_ji)/∂z_i, a column for each latent that is differentiated along its draw.
    slope: Batch,
    /// The term of one λ.
    own: Vec<f64>,
}

/// The latents that are differentiated along their draws, numbered.
fn pathwise(q: &Variational) -> impl Iterator<Item = (usize, usize)> {
    let likelihood = q.likelihood();
    (0..likelihood.latents_len()).filter(|i| likelihood.kind(*i) == Kind::Pathwise).enumerate()
}

impl Average {
    /// With λ_0, the λ that generated z, and its a_0.
    pub(super) fn begin(
        q: &Variational,
        draws: &Draws,
        own: impl Iterator<Item = f64>,
        d_z: &mut Batch,
        scratch: &mut Scratch,
    ) -> Self {
        let draws_len = draws.z.draws_len();
        let mut log_sum = scratch.take(draws_len);
        log_sum.iter_mut().zip(own).for_each(|(sum, own)| *sum = own);
        let mut slope = scratch.take_batch(pathwise(q).count(), draws_len);
        for (column, i) in pathwise(q) {
            let column = slope.column_mut(column);
            q.likelihood().d_log_density_d_z(i, &draws.lambda, draws.z.column(i), column);
            d_z.column_mut(i).iter_mut().zip(column).for_each(|(d, own)| *d += *own);
        }
        Self { log_sum, slope, own: scratch.take(draws_len) }
    }

    /// Adds a fresh λ.
    pub(super) fn add(&mut self, q: &Variational, draws: &Draws, fresh: &Inner) {
        for (sum, a) in self.log_sum.iter_mut().zip(&fresh.log_weight) {
            *sum = log_add_exp(*sum, *a);
        }
        for (column, i) in pathwise(q) {
            q.likelihood().d_log_density_d_z(i, &fresh.lambda, draws.z.column(i), &mut self.own);
            let slope = self.slope.column_mut(column);
            for s in 0..slope.len() {
                let share = (fresh.log_weight[s] - self.log_sum[s]).exp();
                // A weight of zero adds nothing, even if its derivative is not finite.
                if share > 0.0 {
                    slope[s] += share * (self.own[s] - slope[s]);
                }
            }
        }
    }

    /// Subtracts the derivatives along z, and returns the memory.
    pub(super) fn end(self, q: &Variational, d_z: &mut Batch, scratch: &mut Scratch) {
        for (column, i) in pathwise(q) {
            let slope = self.slope.column(column);
            d_z.column_mut(i).iter_mut().zip(slope).for_each(|(d, slope)| *d -= slope);
        }
        scratch.give(self.own);
        scratch.give_batch(self.slope);
        scratch.give(self.log_sum);
    }
}

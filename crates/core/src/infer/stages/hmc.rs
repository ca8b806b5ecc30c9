//! Hamiltonian Monte Carlo (Duane, Kennedy, Pendleton and Roweth, 1987) for a block of draws in whitened coordinates.

use crate::error::Result;
use crate::model::Gradient;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The length of a trajectory, in standard deviations: about a quarter of a revolution.
const LENGTH: f64 = 1.6;
/// The maximum number of leapfrog steps.
const LEAPFROGS_MAX: usize = 24;

/// Draws with their log density and its gradient.
pub(super) struct Phase<'a> {
    pub(super) u: &'a mut Batch,
    pub(super) log_p: &'a mut [f64],
    pub(super) d_u: &'a mut Batch,
    pub(super) streams: &'a mut [Stream],
}

/// One move of every draw, each accepted or rejected separately; returns the sum of the acceptance probabilities.
pub(super) fn hamiltonian(gradient: &dyn Gradient, continuous: &[usize], step: f64, state: Phase) -> Result<f64> {
    let len = state.u.draws_len();
    let (before, d_before, log_p) = (state.u.clone(), state.d_u.clone(), state.log_p.to_vec());
    let mut momentum = Batch::zeros(state.u.columns_len(), len);
    let mut energy = vec![0.0; len];
    for i in continuous {
        for s in 0..len {
            let p: f64 = StandardNormal.sample(&mut state.streams[s]);
            momentum.set(*i, s, p);
            energy[s] += 0.5 * p * p;
        }
    }
    // A random step size, one for the block, from its first draw's stream: with a fixed one trajectories could be periodic.
    let step = step * (0.6 + 0.8 * state.streams[0].random::<f64>());
    let leaps = ((LENGTH / step).round() as usize).clamp(1, LEAPFROGS_MAX);
    for _ in 0..leaps {
        for i in continuous {
            for s in 0..len {
                let p = momentum.get(*i, s) + 0.5 * step * state.d_u.get(*i, s);
                momentum.set(*i, s, p);
                state.u.column_mut(*i)[s] += step * p;
            }
        }
        gradient.log_joint_gradient(state.u, state.log_p, state.d_u)?;
        for i in continuous {
            for s in 0..len {
                momentum.column_mut(*i)[s] += 0.5 * step * state.d_u.get(*i, s);
            }
        }
    }
    let mut accepted = 0.0;
    for s in 0..len {
        let after: f64 = continuous.iter().map(|i| 0.5 * momentum.get(*i, s).powi(2)).sum();
        let rise = (state.log_p[s] - after) - (log_p[s] - energy[s]);
        // An infinite density is as undefined as NaN.
        let is_defined = state.log_p[s] < f64::INFINITY && !rise.is_nan();
        let chance = if is_defined { rise.min(0.0).exp() } else { 0.0 };
        let u: f64 = state.streams[s].random();
        accepted += chance;
        if !(u < chance) {
            for i in continuous {
                state.u.set(*i, s, before.get(*i, s));
                state.d_u.set(*i, s, d_before.get(*i, s));
            }
            state.log_p[s] = log_p[s];
        }
    }
    Ok(accepted)
}

//! Hamiltonian Monte Carlo (Duane, Kennedy, Pendleton and Roweth, 1987) for a block of draws in whitened coordinates.
//!
//! Split steps (Shahbaba, Lan, Johnson and Neal, 2014) follow the standard normal exactly, a rotation of position and momentum, and the rest
//! of the log density by its gradient. If that rest is small, the steps may be long however many latents there are. Leapfrog steps are
//! better where it is not, far out in heavy tails above all.

use crate::error::Result;
use crate::model::{Gradient, Model};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The length of a trajectory, in standard deviations: about a quarter of a revolution.
const LENGTH: f64 = 1.6;
/// The maximum number of leapfrog steps.
const LEAPFROGS_MAX: usize = 24;

/// How a trajectory is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Integrator {
    Leapfrog,
    /// Rotations, and what the gradient differs from that of a standard normal.
    Split,
}

impl Integrator {
    /// The change of momentum for a step at a position with this gradient.
    fn push(self, step: f64, u: f64, d: f64) -> f64 {
        match self {
            Self::Leapfrog => 0.5 * step * d,
            Self::Split => 0.5 * step * (d + u),
        }
    }
}

/// Draws with their log density and its gradient.
pub(super) struct Phase<'a> {
    pub(super) u: &'a mut Batch,
    pub(super) log_p: &'a mut [f64],
    pub(super) d_u: &'a mut Batch,
    pub(super) streams: &'a mut [Stream],
}

/// Trajectories whose energy rises by more than this have diverged.
pub(super) const DIVERGENT: f64 = 1000.0;

/// The cost of a move of one draw: about four gradients, each as expensive as three evaluations.
pub(in crate::infer) fn work_of_move(model: &dyn Model) -> f64 {
    12.0 * model.work() as f64
}

/// How the moves of a block went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockMove {
    /// The sum of the acceptance probabilities.
    pub(super) accepted: f64,
    /// The number of trajectories that diverged.
    pub(super) divergent: f64,
}

/// One move of every draw, each accepted or rejected separately.
pub(super) fn hamiltonian(
    gradient: &dyn Gradient,
    continuous: &[usize],
    (integrator, step): (Integrator, f64),
    state: Phase,
) -> Result<BlockMove> {
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
    let (sine, cosine) = step.sin_cos();
    for _ in 0..leaps {
        for i in continuous {
            let (u, p, d) = (state.u.column_mut(*i), momentum.column_mut(*i), state.d_u.column(*i));
            for ((u, p), d) in u.iter_mut().zip(p).zip(d) {
                *p += integrator.push(step, *u, *d);
                (*u, *p) = match integrator {
                    Integrator::Leapfrog => (*u + step * *p, *p),
                    Integrator::Split => (cosine * *u + sine * *p, cosine * *p - sine * *u),
                };
            }
        }
        gradient.log_joint_gradient(state.u, state.log_p, state.d_u)?;
        for i in continuous {
            let (u, p, d) = (state.u.column(*i), momentum.column_mut(*i), state.d_u.column(*i));
            u.iter().zip(p).zip(d).for_each(|((u, p), d)| *p += integrator.push(step, *u, *d));
        }
    }
    let mut made = BlockMove::default();
    for s in 0..len {
        let after: f64 = continuous.iter().map(|i| 0.5 * momentum.get(*i, s).powi(2)).sum();
        let rise = (state.log_p[s] - after) - (log_p[s] - energy[s]);
        // An infinite density is as undefined as NaN.
        let is_defined = state.log_p[s] < f64::INFINITY && !rise.is_nan();
        let chance = if is_defined { rise.min(0.0).exp() } else { 0.0 };
        let u: f64 = state.streams[s].random();
        made.accepted += chance;
        made.divergent += f64::from(u8::from(!(rise > -DIVERGENT)));
        if !(u < chance) {
            for i in continuous {
                state.u.set(*i, s, before.get(*i, s));
                state.d_u.set(*i, s, d_before.get(*i, s));
            }
            state.log_p[s] = log_p[s];
        }
    }
    Ok(made)
}

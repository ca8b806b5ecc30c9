//! The No-U-Turn sampler (Hoffman and Gelman, 2014), in its multinomial form (Betancourt, 2017), for chains whose gradients are
//! evaluated together.
//!
//! Each chain doubles its trajectory, forwards or backwards, until it begins to return. The recursion is unrolled: the momenta that later
//! comparisons need are kept, one for each level of the tree. So every chain asks for one gradient at a time, and one batch serves
//! them all.

use super::hmc::{DIVERGENT, Phase};
use crate::error::Result;
use crate::model::Gradient;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The largest number of doublings.
const DEPTH_MAX: usize = 10;

/// What the transitions of some chains took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Transitions {
    /// The sum over the chains of the mean acceptance probability along the trajectory.
    pub(super) accepted: f64,
    /// Gradients.
    pub(super) gradients: usize,
    /// Trajectories that diverged.
    pub(super) divergent: usize,
}

/// A position with its momentum and gradient.
#[derive(Clone, Debug, Default)]
struct Point {
    u: Vec<f64>,
    momentum: Vec<f64>,
    d_u: Vec<f64>,
    log_p: f64,
}

impl Point {
    /// The log density of position and momentum.
    fn log_density(&self) -> f64 {
        self.log_p - 0.5 * self.momentum.iter().map(|p| p * p).sum::<f64>()
    }
}

/// Part of a trajectory: what is needed to choose a point from it and to see whether it returns.
#[derive(Clone, Debug)]
struct Part {
    chosen: Point,
    log_weight: f64,
    momentum_sum: Vec<f64>,
}

impl Part {
    fn empty(n: usize) -> Self {
        Self { chosen: Point::default(), log_weight: f64::NEG_INFINITY, momentum_sum: vec![0.0; n] }
    }

    /// Adds a point, and chooses it with its share of the weight.
    fn add(&mut self, point: &Point, log_weight: f64, rng: &mut Stream) {
        self.log_weight = ln_sum(self.log_weight, log_weight);
        if rng.random::<f64>() < (log_weight - self.log_weight).exp() {
            self.chosen.clone_from(point);
        }
        self.momentum_sum.iter_mut().zip(&point.momentum).for_each(|(sum, p)| *sum += p);
    }
}

fn ln_sum(a: f64, b: f64) -> f64 {
    let most = a.max(b);
    if most == f64::NEG_INFINITY { most } else { most + ((a - most).exp() + (b - most).exp()).ln() }
}

/// Whether a trajectory with these momenta at its ends, and this sum of momenta, begins to return.
fn is_returning(first: &[f64], last: &[f64], sum: &[f64]) -> bool {
    let (mut at_first, mut at_last) = (0.0, 0.0);
    for ((a, b), sum) in first.iter().zip(last).zip(sum) {
        let way = sum - 0.5 * (a + b);
        at_first += a * way;
        at_last += b * way;
    }
    !(at_first > 0.0 && at_last > 0.0)
}

/// The trajectory of one chain.
struct Trajectory {
    /// Its first and last point.
    ends: [Point; 2],
    whole: Part,
    depth: usize,
    /// The log density at the start.
    start: f64,
    /// The part that the last doubling adds: its direction, its newest point, and how many it has.
    is_forward: bool,
    at: Point,
    part: Part,
    made: usize,
    /// Momenta of the new part, and the sums up to them, one for each level.
    kept: Vec<(Vec<f64>, Vec<f64>)>,
    accepted: f64,
    gradients: usize,
    is_divergent: bool,
    is_complete: bool,
}

impl Trajectory {
    fn new(at: Point, rng: &mut Stream) -> Self {
        let (n, start) = (at.u.len(), at.log_density());
        let mut whole = Part::empty(n);
        whole.add(&at, 0.0, rng);
        let mut trajectory = Self {
            ends: [at.clone(), at.clone()],
            whole,
            depth: 0,
            start,
            is_forward: true,
            at,
            part: Part::empty(n),
            made: 0,
            kept: vec![(vec![0.0; n], vec![0.0; n]); DEPTH_MAX],
            accepted: 0.0,
            gradients: 0,
            is_divergent: false,
            is_complete: false,
        };
        trajectory.double(rng);
        trajectory
    }

    /// Begins a new part at one of the ends.
    fn double(&mut self, rng: &mut Stream) {
        self.is_forward = rng.random();
        self.at.clone_from(&self.ends[usize::from(self.is_forward)]);
        self.part = Part::empty(self.at.u.len());
        self.made = 0;
    }

    /// The first half of a leapfrog step, up to the gradient.
    fn leap(&mut self, step: f64) {
        let step = if self.is_forward { step } else { -step };
        let Point { u, momentum, d_u, .. } = &mut self.at;
        for ((u, p), d) in u.iter_mut().zip(momentum).zip(d_u) {
            *p += 0.5 * step * *d;
            *u += step * *p;
        }
    }

    /// The second half, and what follows from the new point.
    fn land(&mut self, step: f64, rng: &mut Stream) {
        let step = if self.is_forward { step } else { -step };
        self.at.momentum.iter_mut().zip(&self.at.d_u).for_each(|(p, d)| *p += 0.5 * step * d);
        let rise = self.at.log_density() - self.start;
        // An infinite density is as undefined as NaN.
        let rise = if self.at.log_p < f64::INFINITY && !rise.is_nan() { rise } else { f64::NEG_INFINITY };
        self.gradients += 1;
        self.accepted += rise.min(0.0).exp();
        if rise < -DIVERGENT {
            (self.is_divergent, self.is_complete) = (true, true);
            return;
        }
        self.part.add(&self.at, rise, rng);
        let number = self.made;
        self.made += 1;
        // Point `number` ends as many subtrees as its binary digits end in ones; each began at a point that was kept.
        let level = (number >> 1).count_ones() as usize;
        if number.is_multiple_of(2) {
            let (momentum, sum) = &mut self.kept[level];
            momentum.clone_from(&self.at.momentum);
            sum.clone_from(&self.part.momentum_sum);
        } else {
            let ending = number.trailing_ones() as usize;
            let mut sum = vec![0.0; self.at.u.len()];
            for (first, before) in self.kept[level + 1 - ending..=level].iter().rev() {
                for (i, sum) in sum.iter_mut().enumerate() {
                    *sum = self.part.momentum_sum[i] - before[i] + first[i];
                }
                if is_returning(first, &self.at.momentum, &sum) {
                    self.is_complete = true;
                    return;
                }
            }
        }
        if self.made == 1 << self.depth {
            self.join(rng);
        }
    }

    /// Adds the new part to the trajectory. A point of the new part is preferred, which keeps the target invariant.
    fn join(&mut self, rng: &mut Stream) {
        if rng.random::<f64>() < (self.part.log_weight - self.whole.log_weight).exp() {
            std::mem::swap(&mut self.whole.chosen, &mut self.part.chosen);
        }
        self.whole.log_weight = ln_sum(self.whole.log_weight, self.part.log_weight);
        self.whole.momentum_sum.iter_mut().zip(&self.part.momentum_sum).for_each(|(sum, p)| *sum += p);
        std::mem::swap(&mut self.ends[usize::from(self.is_forward)], &mut self.at);
        self.depth += 1;
        let [first, last] = &self.ends;
        if self.depth == DEPTH_MAX || is_returning(&first.momentum, &last.momentum, &self.whole.momentum_sum) {
            self.is_complete = true;
        } else {
            self.double(rng);
        }
    }
}

/// One transition of every chain, over the columns in `continuous`.
pub(super) fn no_u_turn(gradient: &dyn Gradient, continuous: &[usize], step: f64, state: Phase) -> Result<Transitions> {
    let Phase { u, log_p, d_u, streams } = state;
    let mut trajectories: Vec<Trajectory> = (0..u.draws_len())
        .map(|s| {
            let of = |batch: &Batch| continuous.iter().map(|i| batch.get(*i, s)).collect();
            let momentum = continuous.iter().map(|_| StandardNormal.sample(&mut streams[s])).collect();
            let at = Point { u: of(u), momentum, d_u: of(d_u), log_p: log_p[s] };
            Trajectory::new(at, &mut streams[s])
        })
        .collect();
    let (mut points, mut d_points) = (Batch::default(), Batch::default());
    let mut log_points = Vec::new();
    loop {
        let moving: Vec<usize> = (0..trajectories.len()).filter(|s| !trajectories[*s].is_complete).collect();
        if moving.is_empty() {
            break;
        }
        points.reset(u.columns_len(), moving.len());
        d_points.reset(u.columns_len(), moving.len());
        log_points.clear();
        log_points.resize(moving.len(), 0.0);
        for (k, s) in moving.iter().enumerate() {
            (0..u.columns_len()).for_each(|i| points.set(i, k, u.get(i, *s)));
            trajectories[*s].leap(step);
            continuous.iter().zip(&trajectories[*s].at.u).for_each(|(i, x)| points.set(*i, k, *x));
        }
        gradient.log_joint_gradient(&points, &mut log_points, &mut d_points)?;
        for (k, s) in moving.iter().enumerate() {
            let trajectory = &mut trajectories[*s];
            trajectory.at.log_p = log_points[k];
            continuous.iter().zip(&mut trajectory.at.d_u).for_each(|(i, d)| *d = d_points.get(*i, k));
            trajectory.land(step, &mut streams[*s]);
        }
    }
    let mut transitions = Transitions::default();
    for (s, trajectory) in trajectories.iter().enumerate() {
        let chosen = &trajectory.whole.chosen;
        for (k, i) in continuous.iter().enumerate() {
            u.set(*i, s, chosen.u[k]);
            d_u.set(*i, s, chosen.d_u[k]);
        }
        log_p[s] = chosen.log_p;
        transitions.accepted += trajectory.accepted / trajectory.gradients as f64;
        transitions.gradients += trajectory.gradients;
        transitions.divergent += usize::from(trajectory.is_divergent);
    }
    Ok(transitions)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use hyperprior_math::random::{standard_normals, stream};

    /// A normal, bent: z = (e₁, e₂ + .7 (e₁² − 1)).
    struct Banana;

    impl Gradient for Banana {
        fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
            for s in 0..out.len() {
                let (x, e) = (z.get(0, s), z.get(1, s) - 0.7 * (z.get(0, s).powi(2) - 1.0));
                out[s] = -0.5 * (x * x + e * e);
                d_z.set(0, s, -x + 1.4 * x * e);
                d_z.set(1, s, -e);
            }
            Ok(())
        }
    }

    fn moved(step: f64, transitions: usize) -> (Batch, Transitions) {
        let len = 60_000;
        let mut streams: Vec<Stream> = (0..len).map(|s| stream(3, 0, 0, s as u64)).collect();
        let mut u = Batch::zeros(2, len);
        standard_normals(&mut streams, &mut u);
        for s in 0..len {
            let bent = u.get(1, s) + 0.7 * (u.get(0, s).powi(2) - 1.0);
            u.set(1, s, bent);
        }
        let (mut log_p, mut d_u) = (vec![0.0; len], Batch::zeros(2, len));
        Banana.log_joint_gradient(&u, &mut log_p, &mut d_u).unwrap();
        let mut total = Transitions::default();
        for _ in 0..transitions {
            let state = Phase { u: &mut u, log_p: &mut log_p, d_u: &mut d_u, streams: &mut streams };
            total = no_u_turn(&Banana, &[0, 1], step, state).unwrap();
        }
        (u, total)
    }

    /// Catches a point chosen with the wrong weight, a trajectory that stops at the wrong point, a part that is added although it
    /// returned, and densities or gradients that belong to another chain.
    #[test]
    fn transitions_leave_a_banana_invariant() {
        // The last step size is too large, so that some trajectories are short and points have unequal weights.
        for (step, transitions) in [(0.15, 2), (0.5, 4), (1.1, 8)] {
            let (u, total) = moved(step, transitions);
            assert!(total.accepted / 60_000.0 > 0.4, "{step}: {total:?}");
            let e: Vec<f64> = (0..u.draws_len()).map(|s| u.get(1, s) - 0.7 * (u.get(0, s).powi(2) - 1.0)).collect();
            for x in [u.column(0), &e] {
                let n = x.len() as f64;
                let mean = x.iter().sum::<f64>() / n;
                let variance = x.iter().map(|x| x * x).sum::<f64>() / n;
                let tail = x.iter().filter(|x| **x < -1.281_551_565_544_600_4).count() as f64 / n;
                // Five standard errors.
                assert!(mean.abs() < 0.0205, "{step}: mean {mean}");
                assert!((variance - 1.0).abs() < 0.029, "{step}: variance {variance}");
                assert!((tail - 0.1).abs() < 0.0062, "{step}: tail {tail}");
            }
        }
    }

    #[test]
    fn trajectories_are_as_long_as_the_target_is_wide() {
        // A quarter of a revolution, π/2, takes about 16 steps of .1; doubling ends between that and four times as many.
        let (_, total) = moved(0.1, 1);
        let mean = total.gradients as f64 / 60_000.0;
        assert!((12.0..64.0).contains(&mean), "{mean}");
    }
}

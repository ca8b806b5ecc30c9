//! The tails of draws while they are moved: whether they still widen.

use crate::diagnostics::convergence::moments;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The share of draws that makes up a tail.
const TAIL: f64 = 0.05;

/// The tails of one latent: the mean of each, and the variance of all draws.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ends {
    means: [f64; 2],
    variance: f64,
}

impl Ends {
    fn of(mut x: Vec<f64>) -> Self {
        let variance = moments(&x).1;
        let len = ((TAIL * x.len() as f64) as usize).max(1);
        let last = x.len() - len;
        x.select_nth_unstable_by(last, f64::total_cmp);
        let upper = moments(&x[last..]).0;
        x.select_nth_unstable_by(len - 1, f64::total_cmp);
        Self { means: [moments(&x[..len]).0, upper], variance }
    }
}

/// The tails of all latents after some number of moves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tails {
    moves: usize,
    ends: Vec<Ends>,
}

impl Tails {
    /// Of these latents, with these values.
    pub(super) fn of(moves: usize, latents: &[usize], values: impl Fn(usize) -> Vec<f64> + Sync) -> Self {
        Self { moves, ends: latents.par_iter().map(|i| Ends::of(values(*i))).collect() }
    }

    /// The number of moves.
    pub(super) fn moves(&self) -> usize {
        self.moves
    }

    /// The number of latents.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The largest change of a tail since then, in standard deviations and beyond what chance explains for the largest of so many, and its
    /// latent. The draws count as many times as they have distinct starts.
    pub(super) fn drift_from(&self, before: &Self, latents: &[usize], distinct: usize) -> (f64, usize) {
        let largest = 2.0 * (2.0 * latents.len() as f64 + 1.0).ln();
        let tail_len = TAIL * distinct as f64;
        let of_latent = |k: usize| {
            let (from, to) = (&before.ends[k], &self.ends[k]);
            // The variance of a tail's mean is about half that of the draws over their number in the tail; this is a difference of two.
            // For a long tail it is more, but such a tail is not known either.
            let by_chance = (largest * to.variance / tail_len).sqrt();
            let far = (0..2).map(|end| (to.means[end] - from.means[end]).abs() - by_chance).fold(0.0, f64::max);
            (if to.variance > 0.0 { far / to.variance.sqrt() } else { 0.0 }, latents[k])
        };
        let each: Vec<(f64, usize)> = (0..latents.len()).into_par_iter().map(of_latent).collect();
        each.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    /// Independent draws of 200 normal latents, of which the first has this scale.
    fn tails(scale: f64, number: u64) -> Tails {
        let latents: Vec<usize> = (0..200).collect();
        let values = |i: usize| {
            let mut rng = stream(number, 0, 0, i as u64);
            let scale = if i == 0 { scale } else { 1.0 };
            (0..4000).map(|_| scale * Distribution::<f64>::sample(&StandardNormal, &mut rng)).collect()
        };
        Tails::of(number as usize, &latents, values)
    }

    /// Catches a tail that is said to widen by chance, and one that widens and is not noticed.
    #[test]
    fn tails_do_not_widen_by_chance() {
        let (latents, distinct): (Vec<usize>, usize) = ((0..200).collect(), 4000);
        let chance = (1..9).map(|k| tails(1.0, 2 * k).drift_from(&tails(1.0, 2 * k + 1), &latents, distinct).0);
        assert!(chance.fold(0.0, f64::max) < 0.05);
        let (drift, latent) = tails(2.0, 1).drift_from(&tails(1.0, 2), &latents, distinct);
        assert!(drift > 0.5 && latent == 0, "{drift} of {latent}");
    }
}

//! The exact distributions of latents that are independent of each other given a few others.
//!
//! If no two of them share a term, each has a density of its own, and moving them all at once changes the gradient along each by its own
//! move only. So a few dozen gradients yield the slope of every density on a grid, and thereby all of them, their integrals and draws.

use super::log_linear::{mass_of, place};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::vector::exp_shifted_columns;
use rand::RngExt;

/// The nodes on either side of the mode, and their distance, in standard deviations of the Gaussian there.
const SIDE: usize = 20;
const APART: f64 = 0.35;
const NODES: usize = 2 * SIDE + 1;
/// At the ends of the grid a density must have fallen by this many nats, and be falling.
const FALLEN: f64 = 12.0;
/// How much wider a grid gets that does not cover its density, and how often.
const WIDER: f64 = 1.6;
const WIDENED: usize = 3;

/// The densities of independent latents, each on its own grid.
pub(super) struct ConditionalGrid {
    /// Σ log ∫ p(xⱼ) dxⱼ, relative to the density at the modes.
    pub(super) log_integral: f64,
    /// The modes and scales.
    modes: Vec<f64>,
    scales: Vec<f64>,
    /// For each latent, the log density at the nodes, in units of its scale, of the distribution that is log-linear between them; and its
    /// distribution function there.
    log_densities: Vec<f64>,
    below: Vec<f64>,
}

impl ConditionalGrid {
    /// The densities of the latents `others` around their modes in `point`, on grids in units of these scales. `None` if a density is not
    /// covered by a grid that is several times as wide either.
    pub(super) fn new(
        model: &dyn Model,
        point: &[f64],
        others: &[usize],
        mut scales: Vec<f64>,
    ) -> Result<Option<Self>> {
        let Some(gradient) = model.gradient() else { return Ok(None) };
        let n = others.len();
        let (mut log_p, mut d_z) = (vec![0.0; NODES], Batch::zeros(point.len(), NODES));
        let mut z = Batch::zeros(point.len(), NODES);
        (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
        let mut log_densities = vec![0.0; n * NODES];
        for _ in 0..=WIDENED {
            for (i, scale) in others.iter().zip(&scales) {
                let column = z.column_mut(*i).iter_mut().enumerate();
                column.for_each(|(k, x)| *x = point[*i] + (k as f64 - SIDE as f64) * APART * scale);
            }
            gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
            let mut is_covered = true;
            for (j, i) in others.iter().enumerate() {
                let own = &mut log_densities[j * NODES..(j + 1) * NODES];
                integrated(d_z.column(*i), APART * scales[j], own);
                if !covers(own) {
                    is_covered = false;
                    scales[j] *= WIDER;
                }
            }
            if is_covered {
                let modes = others.iter().map(|i| point[*i]).collect();
                return Ok(Some(Self::normalised(modes, scales, log_densities)));
            }
        }
        Ok(None)
    }

    /// Normalises log densities on grids.
    fn normalised(modes: Vec<f64>, scales: Vec<f64>, mut log_densities: Vec<f64>) -> Self {
        let (mut log_integral, mut below) = (0.0, vec![0.0; log_densities.len()]);
        for ((own, below), scale) in log_densities.chunks_mut(NODES).zip(below.chunks_mut(NODES)).zip(&scales) {
            let top = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // On a regular grid the trapezoidal rule is as exact as the density is smooth.
            let mut heights = [0.0; NODES];
            heights.copy_from_slice(own);
            exp_shifted_columns(&mut heights, &[top; NODES]);
            log_integral += top + (APART * scale * heights.iter().sum::<f64>()).ln();
            let mut total = 0.0;
            for k in 1..NODES {
                total += APART * mass_of([own[k - 1], own[k]], [heights[k - 1], heights[k]]);
                below[k] = total;
            }
            below.iter_mut().for_each(|x| *x /= total);
            own.iter_mut().for_each(|x| *x -= top + total.ln());
        }
        Self { log_integral, modes, scales, log_densities, below }
    }

    /// Draws the latent `j`, each number with its mirror image; adds the negative log densities to `energy`.
    pub(super) fn draw(&self, j: usize, rng: &mut Stream, x: &mut [f64], energy: &mut [f64]) {
        let (own, below) = (&self.log_densities[j * NODES..(j + 1) * NODES], &self.below[j * NODES..(j + 1) * NODES]);
        let log_scale = self.scales[j].ln();
        for (x, energy) in x.chunks_mut(2).zip(energy.chunks_mut(2)) {
            let u: f64 = rng.random();
            for ((x, energy), u) in x.iter_mut().zip(energy).zip([u, 1.0 - u]) {
                let k = below.partition_point(|p| *p <= u).clamp(1, NODES - 1) - 1;
                let slope = own[k + 1] - own[k];
                let t = place(own[k], own[k + 1], [(u - below[k]) / APART, (below[k + 1] - u) / APART]);
                *x = self.modes[j] + self.scales[j] * APART * (k as f64 + t - SIDE as f64);
                *energy += log_scale - (own[k] + slope * t);
            }
        }
    }
}

/// Whether a density on a grid is finite, and negligible and falling at both ends.
fn covers(own: &[f64]) -> bool {
    let top = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_covered = |end: usize, next: usize| own[end] < top - FALLEN && own[end] < own[next];
    own.iter().all(|x| x.is_finite()) && is_covered(0, 1) && is_covered(NODES - 1, NODES - 2)
}

/// The log density at nodes at this distance from its slopes, relative to that in the middle: each cell by the cubic through four slopes.
pub(super) fn integrated(slopes: &[f64], step: f64, out: &mut [f64]) {
    let (last, middle) = (slopes.len() - 1, slopes.len() / 2);
    let rise = |k: usize| {
        let weights: [(usize, f64); 4] = match k {
            0 => [(0, 9.0), (1, 19.0), (2, -5.0), (3, 1.0)],
            k if k + 1 == last => [(last, 9.0), (last - 1, 19.0), (last - 2, -5.0), (last - 3, 1.0)],
            _ => [(k - 1, -1.0), (k, 13.0), (k + 1, 13.0), (k + 2, -1.0)],
        };
        weights.iter().map(|(at, w)| w * slopes[*at]).sum::<f64>() * step / 24.0
    };
    out[middle] = 0.0;
    for k in middle..last {
        out[k + 1] = out[k] + rise(k);
    }
    for k in (0..middle).rev() {
        out[k] = out[k + 1] - rise(k);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;
    use hyperprior_math::random::stream;

    /// Catches overflow: a density that rises by hundreds of nats from node to node has the mass and the draws of its higher end.
    #[test]
    fn steep_flanks_are_no_fault() {
        let mut own: Vec<f64> = (0..NODES).map(|k| -800.0 * (k as f64 - SIDE as f64).abs()).collect();
        own[SIDE + 1] = -0.1;
        let grid = ConditionalGrid::normalised(vec![2.0], vec![1.0], own);
        assert!(grid.below.iter().all(|x| x.is_finite()) && grid.log_integral.is_finite());
        let (mut x, mut energy) = (vec![0.0; 1000], vec![0.0; 1000]);
        grid.draw(0, &mut stream(1, 0, 0, 0), &mut x, &mut energy);
        assert!(x.iter().all(|x| (1.99..2.0 + APART + 0.01).contains(x)) && energy.iter().all(|x| x.is_finite()));
    }

    /// Binomial effects: their integrals are those of a fine grid, and the draws have their means and variances.
    #[test]
    fn integrals_and_draws_are_those_of_the_densities() {
        let effects = Coupled::effects(4);
        let point = [-0.3, -1.2, -0.4, 0.3, 1.0];
        let others = [1, 2, 3, 4];
        let scales = vec![0.7, 0.6, 0.65, 0.8];
        let grid = ConditionalGrid::new(&effects, &point, &others, scales).unwrap().unwrap();
        // The density along one latent, relative to the point.
        let at = |j: usize, x: f64| {
            let mut z = point.to_vec();
            z[j] = x;
            let (mut moved, mut fixed) = ([0.0], [0.0]);
            effects.log_joint(&Batch::from_columns(z, 1), &mut moved).unwrap();
            effects.log_joint(&Batch::from_columns(point.to_vec(), 1), &mut fixed).unwrap();
            (moved[0] - fixed[0]).exp()
        };
        let moments = |j: usize| {
            let points: Vec<f64> = (0..4000).map(|k| point[j] - 8.0 + 0.004 * f64::from(k)).collect();
            let sum = |f: &dyn Fn(f64) -> f64| points.iter().map(|x| 0.004 * at(j, *x) * f(*x)).sum::<f64>();
            let (total, mean) = (sum(&|_| 1.0), sum(&|x| x) / sum(&|_| 1.0));
            (total, mean, sum(&|x| (x - mean).powi(2)) / total)
        };
        let exact: f64 = others.iter().map(|j| moments(*j).0.ln()).sum();
        // Less than 10⁻⁵ for each.
        assert!((grid.log_integral - exact).abs() < 4e-5, "{} {exact}", grid.log_integral);
        let mut rng = stream(3, 0, 0, 0);
        for (k, j) in others.iter().enumerate() {
            let (mut x, mut energy) = (vec![0.0; 20_000], vec![0.0; 20_000]);
            grid.draw(k, &mut rng, &mut x, &mut energy);
            let (total, mean, variance) = moments(*j);
            let own = x.iter().sum::<f64>() / 20_000.0;
            let spread = x.iter().map(|x| (x - own).powi(2)).sum::<f64>() / 20_000.0;
            assert!((own - mean).abs() < 0.03 * variance.sqrt(), "{own} {mean}");
            assert!((spread / variance - 1.0).abs() < 0.05, "{spread} {variance}");
            // Weights against the density that was drawn from are nearly 1.
            for (x, energy) in x.iter().zip(&energy) {
                let log_weight = at(*j, *x).ln() - total.ln() + energy;
                assert!(log_weight.abs() < 0.05, "{x}: {log_weight}");
            }
        }
    }
}

//! The curvature of a log density at a point, the whitening that it implies, and the Gaussian there.

use super::sparse_curvature::{FULL_MAX, SparseCurvature};
use super::whitening::Whitening;
use crate::error::Result;
use crate::model::{Gradient, Model};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::{Purpose, Stream, standard_normals, stream};
use hyperprior_math::special::{HALF_LN_2_PI, log_sum_exp};
use hyperprior_math::vector::dot;
use rand::RngExt;

/// Points at which the gradient is evaluated together.
const PROBES: usize = 32;
/// The most Newton steps towards a mode, the lengths that are tried for each, and the ratio of two of them.
const NEWTON_STEPS: usize = 30;
const TRIES: usize = 16;
const SHORTER: f64 = 0.4;
/// The longest step along a latent, relative to its size or to 1.
const LONGEST: f64 = 10.0;
/// The least curvature along a latent: of a Gaussian, for the steps of Newton's method, and for Laplace's.
const FLAT: f64 = 1e-4;
const FLAT_STEPS: f64 = 1e-16;
const FLAT_LAPLACE: f64 = 1e-300;
/// The number of draws from which the ELBO of a Gaussian is estimated.
const DRAWS: usize = 128;
/// The number of largest weights that are left out of a mean.
const LARGEST: usize = 4;
/// A log density as a function of the continuous latents, with the discrete ones fixed.
#[derive(Clone, Copy)]
pub(super) struct LogDensity<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) gradient: &'a dyn Gradient,
    pub(super) continuous: &'a [usize],
    /// For many latents, if the model knows which are coupled.
    pub(super) sparse: Option<&'a SparseCurvature>,
}

impl<'a> LogDensity<'a> {
    /// Without knowledge of which latents are coupled.
    pub(super) fn new(model: &'a dyn Model, gradient: &'a dyn Gradient, continuous: &'a [usize]) -> Self {
        Self { model, gradient, continuous, sparse: None }
    }

    /// The scale of the Gaussian with the curvature at a point, if that can be known; no curvature along a latent counts as less than
    /// `flat`.
    fn whitening(&self, point: &[f64], flat: f64) -> Result<Option<Whitening>> {
        let n = self.continuous.len();
        if let Some(sparse) = self.sparse {
            let entries = sparse.mean(self.model, self.continuous, &Batch::from_columns(point.to_vec(), 1))?;
            let found = entries.and_then(|entries| sparse.definite(entries, flat));
            return Ok(found.map(|(_, factor)| Whitening::Sparse(factor)));
        }
        if n > FULL_MAX {
            return Ok(None);
        }
        Ok(curvature(self.gradient, self.continuous, point)?.and_then(|c| full_whitening(&c, n, flat)))
    }
}

/// Copies of a point.
fn copies(point: &[f64], len: usize) -> Batch {
    let mut z = Batch::zeros(point.len(), len);
    for (i, x) in point.iter().enumerate() {
        z.column_mut(i).fill(*x);
    }
    z
}

/// −∂²log p by central differences of the gradient, row by row.
pub(super) fn curvature(gradient: &dyn Gradient, continuous: &[usize], point: &[f64]) -> Result<Option<Vec<f64>>> {
    let n = continuous.len();
    let mut out = vec![0.0; n * n];
    let (mut log_p, mut d_z) = (vec![0.0; PROBES], Batch::zeros(point.len(), PROBES));
    let mut z = Batch::zeros(point.len(), PROBES);
    for first in (0..n).step_by(PROBES / 2) {
        let len = (PROBES / 2).min(n - first);
        for (i, x) in point.iter().enumerate() {
            z.column_mut(i).fill(*x);
        }
        let step = |k: usize| 1e-4 * point[continuous[k]].abs().max(1.0);
        for j in 0..len {
            let (i, h) = (continuous[first + j], step(first + j));
            z.set(i, 2 * j, point[i] + h);
            z.set(i, 2 * j + 1, point[i] - h);
        }
        gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        for j in 0..len {
            let row = first + j;
            for k in 0..n {
                let i = continuous[k];
                out[row * n + k] = -(d_z.get(i, 2 * j) - d_z.get(i, 2 * j + 1)) / (2.0 * step(row));
            }
        }
    }
    for i in 0..n {
        for j in 0..i {
            let mean = 0.5 * (out[i * n + j] + out[j * n + i]);
            (out[i * n + j], out[j * n + i]) = (mean, mean);
        }
    }
    Ok(out.iter().all(|x| x.is_finite()).then_some(out))
}

/// The diagonal of −∂²log p, from differences of the gradient along random signs: vᵢ (H v)ᵢ has mean Hᵢᵢ (Hutchinson, 1990).
pub(super) fn diagonal(
    gradient: &dyn Gradient,
    continuous: &[usize],
    point: &[f64],
    seed: u64,
) -> Result<Option<Vec<f64>>> {
    let mut rng = stream(seed, Purpose::ModeSearch.step(), 2, 0);
    let (mut log_p, mut d_z) = (vec![0.0; PROBES], Batch::zeros(point.len(), PROBES));
    let mut z = copies(point, PROBES);
    let mut moved = Batch::zeros(continuous.len(), PROBES);
    for (k, i) in continuous.iter().enumerate() {
        for s in (0..PROBES).step_by(2) {
            let h = 1e-4 * point[*i].abs().max(1.0) * if rng.random::<bool>() { 1.0 } else { -1.0 };
            moved.set(k, s, h);
            z.set(*i, s, point[*i] + h);
            z.set(*i, s + 1, point[*i] - h);
        }
    }
    gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let out: Vec<f64> = continuous
        .iter()
        .enumerate()
        .map(|(k, i)| {
            let probes = (0..PROBES).step_by(2);
            probes.map(|s| -(d_z.get(*i, s) - d_z.get(*i, s + 1)) / (2.0 * moved.get(k, s))).sum::<f64>()
                / (PROBES / 2) as f64
        })
        .collect();
    Ok(out.iter().all(|x| x.is_finite()).then_some(out))
}

/// The Cholesky factor of the inverse curvature, with a ridge if the curvature is not positive definite; no curvature along a latent
/// counts as less than `flat`.
pub(super) fn full_whitening(curvature: &[f64], n: usize, flat: f64) -> Option<Whitening> {
    ridged_whitening(curvature, n, flat).map(|(whitening, _)| whitening)
}

/// The same, and whether there is no ridge.
fn ridged_whitening(curvature: &[f64], n: usize, flat: f64) -> Option<(Whitening, bool)> {
    let size: Vec<f64> = (0..n).map(|i| curvature[i * n + i].abs().max(flat).sqrt()).collect();
    let mut ridge = 0.0;
    // The factor of the matrix in reverse order.
    let factor = loop {
        let scaled: Vec<f64> = (0..n * n)
            .map(|e| {
                let (i, j) = (n - 1 - e / n, n - 1 - e % n);
                curvature[i * n + j] / (size[i] * size[j]) + if i == j { ridge } else { 0.0 }
            })
            .collect();
        match cholesky(&scaled, n) {
            Some(factor) if (0..n).all(|i| factor[packed(i, i)] > 1e-4) => break factor,
            _ if ridge > 1e3 => return None,
            _ => ridge = if ridge == 0.0 { 1e-3 } else { 4.0 * ridge },
        }
    };
    // With P the reversal, P C Cᵀ P is the curvature, so that P C⁻ᵀ P, a lower triangle, is a factor of its inverse. Its entry (i, j) is
    // that of C⁻¹ at (n − 1 − j, n − 1 − i), which a column of the identity gives.
    let mut whitening = vec![0.0; n * (n + 1) / 2];
    let mut x = vec![0.0; n];
    for k in 0..n {
        x[k] = 1.0 / factor[packed(k, k)];
        for i in k + 1..n {
            let row = &factor[packed(i, 0)..=packed(i, i)];
            x[i] = -dot(&row[k..i], &x[k..i]) / row[i];
        }
        let i = n - 1 - k;
        (0..=i).for_each(|j| whitening[packed(i, j)] = x[n - 1 - j] / size[i]);
    }
    Some((Whitening::Full(whitening), ridge == 0.0))
}

/// Moves a point towards the nearest mode by a few Newton steps, each shortened until the density rises; returns whether it got there.
pub(super) fn climb(density: LogDensity, point: &mut [f64]) -> Result<bool> {
    let LogDensity { gradient, continuous, .. } = density;
    let n = continuous.len();
    let here = Batch::from_columns(point.to_vec(), 1);
    let (mut own, mut d_here) = (vec![0.0], Batch::zeros(point.len(), 1));
    gradient.log_joint_gradient(&here, &mut own, &mut d_here)?;
    let mut slope = Batch::from_columns(continuous.iter().map(|i| d_here.get(*i, 0)).collect(), 1);
    let (mut log_p, mut d_z) = (vec![0.0; TRIES], Batch::zeros(point.len(), TRIES));
    let mut kept = None;
    for _ in 0..NEWTON_STEPS {
        // The curvature costs more than all else. After a whole step it is used once more.
        let is_fresh = kept.is_none();
        let Some(whitening) = (match kept.take() {
            Some(whitening) => Some(whitening),
            None => density.whitening(point, FLAT_STEPS)?,
        }) else {
            return Ok(false);
        };
        let (mut half, mut step) = (Batch::zeros(n, 1), Batch::zeros(n, 1));
        whitening.transpose_multiply(&slope, &mut half);
        whitening.multiply(&half, &mut step);
        // Where the density is flat, a Newton step has no limit.
        let longest = |k: usize| LONGEST * point[continuous[k]].abs().max(1.0) / step.get(k, 0).abs();
        let share = (0..n).map(longest).fold(1.0, f64::min);
        let mut tries = copies(point, TRIES);
        for (k, i) in continuous.iter().enumerate() {
            for (t, x) in tries.column_mut(*i).iter_mut().enumerate() {
                *x += share * step.get(k, 0) * SHORTER.powi(t as i32);
            }
        }
        gradient.log_joint_gradient(&tries, &mut log_p, &mut d_z)?;
        let Some(best) = (0..TRIES).filter(|t| log_p[*t] > own[0]).max_by(|a, b| log_p[*a].total_cmp(&log_p[*b]))
        else {
            if is_fresh {
                return Ok(false);
            }
            continue;
        };
        point.iter_mut().enumerate().for_each(|(i, x)| *x = tries.get(i, best));
        let rise = log_p[best] - own[0];
        own[0] = log_p[best];
        slope.as_mut_slice().iter_mut().zip(continuous).for_each(|(slope, i)| *slope = d_z.get(*i, best));
        if is_fresh && rise < 1e-3 {
            return Ok(true);
        }
        kept = (is_fresh && best == 0 && share == 1.0).then_some(whitening);
    }
    Ok(false)
}

/// Laplace's approximation to the log of the integral over the continuous latents, at their mode; `None` if it is not finite, if it is
/// not a mode, or if there are too many.
pub(super) fn laplace(density: LogDensity, mode: &[f64]) -> Result<Option<f64>> {
    let LogDensity { model, gradient, continuous, .. } = density;
    let n = continuous.len();
    let (mut log_p, point) = ([0.0], Batch::from_columns(mode.to_vec(), 1));
    model.log_joint(&point, &mut log_p)?;
    let whitening = match density.sparse {
        Some(sparse) => {
            let factor = sparse.mean(model, continuous, &point)?.and_then(|entries| sparse.cholesky(&entries));
            factor.map(Whitening::Sparse)
        }
        None if n > FULL_MAX => None,
        None => {
            let found = curvature(gradient, continuous, mode)?.and_then(|c| ridged_whitening(&c, n, FLAT_LAPLACE));
            // Along one latent, no curvature means a plateau; of several, the point is no mode.
            found.filter(|(_, is_definite)| *is_definite || n == 1).map(|(whitening, _)| whitening)
        }
    };
    let Some(whitening) = whitening else { return Ok(None) };
    let log_integral = log_p[0] + whitening.log_volume(n) + n as f64 * HALF_LN_2_PI;
    Ok(Some(log_integral).filter(|x| x.is_finite()))
}

/// The Gaussian with the curvature at a point, and importance weights of draws from it.
pub(super) struct LocalGaussian {
    pub(super) whitening: Whitening,
    /// Of the possible draws.
    log_weights: Vec<f64>,
}

impl LocalGaussian {
    /// At this point, over the continuous latents, with the discrete ones fixed; `None` without a finite curvature.
    pub(super) fn new(density: LogDensity, point: &[f64], seed: u64) -> Result<Option<Self>> {
        let Some(whitening) = local_whitening(density, point, seed)? else { return Ok(None) };
        let log_weights = log_weights(density.model, density.continuous, point, &whitening, seed)?;
        Ok(Some(Self { whitening, log_weights }))
    }

    /// Its ELBO; `None` if more than a tenth of the draws are impossible.
    pub(super) fn elbo(&self) -> Option<f64> {
        let possible = self.log_weights.len();
        let elbo = self.log_weights.iter().sum::<f64>() / possible as f64;
        (elbo.is_finite() && (DRAWS - possible) * 10 <= DRAWS).then_some(elbo)
    }

    /// A lower bound on the log of the mass here, closer than the ELBO if the place is not shaped like a Gaussian.
    pub(super) fn log_mass(&self) -> Option<f64> {
        Some(log_mean_weight(self.log_weights.clone(), DRAWS)).filter(|log_mass| log_mass.is_finite())
    }
}

/// The log of the mean of `len` importance weights without the largest few, which may stand for more than is there: with these it would
/// be a lower bound only on average. Impossible draws may be left out.
pub(super) fn log_mean_weight(mut log_weights: Vec<f64>, len: usize) -> f64 {
    log_weights.sort_by(f64::total_cmp);
    log_weights.truncate(log_weights.len().saturating_sub(LARGEST));
    log_sum_exp(&log_weights) - (len as f64).ln()
}

/// The scale of the Gaussian with the curvature at a point; only its diagonal if no more can be known.
fn local_whitening(density: LogDensity, point: &[f64], seed: u64) -> Result<Option<Whitening>> {
    let full = density.whitening(point, FLAT)?;
    if full.is_some() {
        return Ok(full);
    }
    let scale = |diagonal: Vec<f64>| diagonal.iter().map(|c| 1.0 / c.max(FLAT).sqrt()).collect();
    Ok(diagonal(density.gradient, density.continuous, point, seed)?
        .map(|diagonal| Whitening::Diagonal(scale(diagonal))))
}

/// The log importance weights of the possible draws of a Gaussian.
fn log_weights(
    model: &dyn Model,
    continuous: &[usize],
    point: &[f64],
    whitening: &Whitening,
    seed: u64,
) -> Result<Vec<f64>> {
    let n = continuous.len();
    let mut streams: Vec<Stream> = (0..DRAWS).map(|s| stream(seed, Purpose::ModeSearch.step(), 1, s as u64)).collect();
    let (mut noise, mut moved) = (Batch::zeros(n, DRAWS), Batch::zeros(n, DRAWS));
    standard_normals(&mut streams, &mut noise);
    whitening.multiply(&noise, &mut moved);
    let mut z = copies(point, DRAWS);
    for (k, i) in continuous.iter().enumerate() {
        for (z, x) in z.column_mut(*i).iter_mut().zip(moved.column(k)) {
            *z += x;
        }
    }
    let mut log_p = vec![0.0; DRAWS];
    model.log_joint(&z, &mut log_p)?;
    let constant = whitening.log_volume(n) + n as f64 * HALF_LN_2_PI;
    let energy = |s: usize| 0.5 * (0..n).map(|k| noise.get(k, s).powi(2)).sum::<f64>();
    let possible = (0..DRAWS).filter(|s| log_p[*s].is_finite());
    Ok(possible.map(|s| log_p[s] + energy(s) + constant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;

    /// Catches a curvature that is kept for too long: far up, where it is thousands of times larger, all steps would be too short.
    #[test]
    fn newton_steps_reach_a_mode_with_another_curvature() {
        let model = Coupled::log_rate();
        for start in [-3.0, 0.5, 5.0, 10.0] {
            let mut point = [start];
            let is_there = climb(LogDensity::new(&model, &model, &[0]), &mut point).expect("no fault");
            assert!(is_there && point[0].abs() < 0.05, "from {start} to {}", point[0]);
        }
    }
}

//! Whether latents are Gaussian given others, near and far from their mode.

use super::conditional_laplace::{Conditional, Parts};
use super::places::{Place, Seen};
use crate::error::Result;
use hyperprior_math::batch::Batch;

/// The error of the log density that counts as none, and more for each nat below the mode.
const ERROR: [f64; 2] = [0.05, 1e-4];
/// How far from the mode the density is compared, in standard deviations along all axes at once; and along one axis.
const DISTANCES: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];
const ON_AXIS: [f64; 14] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0];
/// For how many draws, and for how many along each axis.
const DRAWS: usize = 16;
const DRAWS_ON_AXIS: usize = 4;
/// The most points that are compared, by how many nats the density may be higher there, and below what it does not matter, but for one nat
/// for each latent.
const POINTS_MAX: usize = 64;
const HIGHER: f64 = 1.0;
const NEGLIGIBLE: f64 = 40.0;

/// Whether the other latents are Gaussian given θ, for θ of some draws, along each axis and along others; and at modes and other points
/// that are known.
pub(super) fn is_gaussian_everywhere(parts: &Parts, places: &[Place], seen: &Seen) -> Result<bool> {
    let draws = evenly(seen.z, DRAWS);
    for (number, one) in parts.conditionals(&thetas(parts, &draws))?.into_iter().enumerate() {
        let Some(one) = one else { return Ok(false) };
        for (pattern, distance) in DISTANCES.iter().enumerate() {
            if !is_gaussian_at(parts, &one, pattern + 2, *distance)? {
                return Ok(false);
            }
        }
        if number % (DRAWS / DRAWS_ON_AXIS) == 0 && !is_gaussian_on_axes(parts, &one, places)? {
            return Ok(false);
        }
    }
    let mut points = evenly(seen.modes, POINTS_MAX);
    points.extend(evenly(seen.ends, POINTS_MAX));
    points.extend(seen.chains.map(|chains| evenly(chains, POINTS_MAX)).into_iter().flatten());
    is_nowhere_higher(parts, &points)
}

/// At most so many of these points.
fn evenly(z: &Batch, most: usize) -> Vec<Vec<f64>> {
    let len = z.draws_len().min(most);
    (0..len).map(|k| (0..z.columns_len()).map(|i| z.get(i, k * z.draws_len() / len)).collect()).collect()
}

fn thetas(parts: &Parts, points: &[Vec<f64>]) -> Vec<Vec<f64>> {
    points.iter().map(|point| parts.theta.iter().map(|i| point[*i]).collect()).collect()
}

/// Whether a log density is that of the Gaussian, so many nats below its mode.
fn is_same(log_p: f64, one: &Conditional, fall: f64) -> bool {
    (log_p - one.log_p + fall).abs() < ERROR[0] + ERROR[1] * fall
}

/// Whether the density is that of the Gaussian at a pair of points, this many standard deviations from the mode along each axis.
pub(super) fn is_gaussian_at(parts: &Parts, one: &Conditional, pattern: usize, distance: f64) -> Result<bool> {
    let n = parts.others.len();
    let mut away: Vec<f64> = (0..n).map(|j| if j % pattern == 0 { -distance } else { distance }).collect();
    one.factor.solve_transpose(&mut away, 1);
    let fall = 0.5 * n as f64 * distance * distance;
    Ok(along(parts, one, &away, &[1.0, -1.0])?.into_iter().all(|log_p| is_same(log_p, one, fall)))
}

/// The log density at some multiples of a vector from the mode.
fn along(parts: &Parts, one: &Conditional, away: &[f64], by: &[f64]) -> Result<Vec<f64>> {
    let mut points = Batch::zeros(one.point.len(), by.len());
    (0..one.point.len()).for_each(|i| points.column_mut(i).fill(one.point[i]));
    for (i, away) in parts.others.iter().zip(away) {
        points.column_mut(*i).iter_mut().zip(by).for_each(|(x, by)| *x += by * away);
    }
    let mut log_p = vec![0.0; by.len()];
    parts.model.log_joint(&points, &mut log_p)?;
    Ok(log_p)
}

/// The same where each latent is moved, while the others stay and while they follow, also to values that it is known to have: another mode
/// of one alone is on its axis.
fn is_gaussian_on_axes(parts: &Parts, one: &Conditional, places: &[Place]) -> Result<bool> {
    let n = parts.others.len();
    for (j, i) in parts.others.iter().enumerate() {
        let mut alone = vec![0.0; n];
        alone[j] = 1.0;
        let mut followed = alone.clone();
        one.factor.solve(&mut followed, 1);
        one.factor.solve_transpose(&mut followed, 1);
        for mut away in [alone, followed] {
            let mut squared = away.clone();
            one.factor.transpose_multiply(&mut squared);
            let scale = squared.iter().map(|x| x * x).sum::<f64>().sqrt();
            away.iter_mut().for_each(|x| *x /= scale);
            let known = places[*i].known.iter().map(|x| (x - one.point[*i]) / away[j]).filter(|t| t.is_finite());
            let by: Vec<f64> = ON_AXIS.iter().flat_map(|t| [*t, -t]).chain(known).collect();
            let log_p = along(parts, one, &away, &by)?;
            if !log_p.into_iter().zip(by).all(|(log_p, t)| is_same(log_p, one, 0.5 * t * t)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether the density at points is nowhere higher than that of the Gaussian given θ there.
fn is_nowhere_higher(parts: &Parts, points: &[Vec<f64>]) -> Result<bool> {
    for (point, one) in points.iter().zip(parts.conditionals(&thetas(parts, points))?) {
        // Far away the Gaussian may not be known.
        let Some(one) = one else { continue };
        if !is_gaussian_at(parts, &one, 2, 1.0)? {
            continue;
        }
        let mut log_p = [0.0];
        parts.model.log_joint(&Batch::from_columns(point.clone(), 1), &mut log_p)?;
        let mut away: Vec<f64> = parts.others.iter().map(|i| point[*i] - one.point[*i]).collect();
        one.factor.transpose_multiply(&mut away);
        let fall = 0.5 * away.iter().map(|x| x * x).sum::<f64>();
        let is_negligible = !(log_p[0] > one.log_p - NEGLIGIBLE - parts.others.len() as f64);
        if !is_negligible && log_p[0] - one.log_p + fall > HIGHER {
            return Ok(false);
        }
    }
    Ok(true)
}

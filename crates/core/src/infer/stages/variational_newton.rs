//! The Gaussian with the largest ELBO, by Newton's method, for a sparse curvature.
//!
//! At the optimum the precision is the mean curvature −E ∂²log p under the Gaussian, and the mean gradient E ∂log p is zero (Opper and
//! Archambeau, 2009). So the precision has the pattern of the curvature: zero for latents that share no term. Each step moves the mean
//! by Newton's method, with both expectations over the same few draws, and the precision towards the mean curvature; a step that lowers the
//! ELBO is halved.

use super::pathfinder::Mode;
use super::sparse_curvature::SparseCurvature;
use super::whitening::Whitening;
use crate::checkpoint::Stage;
use crate::error::{Error, Result};
use crate::model::{Gradient, Model};
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, standard_normals, stream};
use hyperprior_math::special::HALF_LN_2_PI;

/// The draws of the expectations, half of them the mirror images of the others.
const DRAWS: usize = 64;
/// Those at which the curvature is evaluated.
const CURVED: usize = 8;
/// The most steps, and how often one is halved.
const STEPS: usize = 60;
const HALVINGS: usize = 6;
/// The steps over which the errors of the draws are averaged.
const AVERAGED: usize = 32;
/// How their lengths decrease.
const DECAY: f64 = 0.7;
/// It has converged after two steps that gain less than this many nats.
const GAIN_MIN: f64 = 0.05;
/// The least curvature along a latent.
const FLAT: f64 = 1e-12;

/// What is known at a Gaussian.
struct Position {
    mean: Vec<f64>,
    /// The entries of the precision, and the coordinates in which it is the identity.
    precision: Vec<f64>,
    whitening: Whitening,
    elbo: f64,
    /// The mean gradient over the draws, and some of them.
    slope: Vec<f64>,
    draws: Batch,
}

/// Standard normal numbers, each with its negative.
fn noise(n: usize, seed: u64, number: u64) -> Batch {
    let step = Purpose::VariationalNewton.step();
    let mut streams: Vec<Stream> = (0..DRAWS / 2).map(|s| stream(seed, step, number, s as u64)).collect();
    let mut half = Batch::zeros(n, DRAWS / 2);
    standard_normals(&mut streams, &mut half);
    let mut noise = Batch::zeros(n, DRAWS);
    for i in 0..n {
        for (s, x) in half.column(i).iter().enumerate() {
            noise.set(i, 2 * s, *x);
            noise.set(i, 2 * s + 1, -x);
        }
    }
    noise
}

/// A search for the best Gaussian.
struct Ascent<'a> {
    gradient: &'a dyn Gradient,
    curvature: &'a SparseCurvature,
    noise: Batch,
}

impl Ascent<'_> {
    /// The Gaussian with this mean and precision; `None` if the precision is not positive definite, or if more than a tenth of the draws
    /// are impossible.
    fn position(&self, mean: Vec<f64>, precision: Vec<f64>) -> Result<Option<Position>> {
        let Some(factor) = self.curvature.cholesky(&precision) else { return Ok(None) };
        let (n, whitening) = (mean.len(), Whitening::Sparse(factor));
        let mut z = Batch::zeros(n, DRAWS);
        whitening.multiply(&self.noise, &mut z);
        for (i, m) in mean.iter().enumerate() {
            z.column_mut(i).iter_mut().for_each(|x| *x += m);
        }
        let (mut log_p, mut d_z) = (vec![0.0; DRAWS], Batch::zeros(n, DRAWS));
        self.gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        let is_possible = |s: &usize| log_p[*s].is_finite() && (0..n).all(|i| d_z.get(i, *s).is_finite());
        let possible: Vec<usize> = (0..DRAWS).filter(is_possible).collect();
        if possible.len() * 10 < DRAWS * 9 {
            return Ok(None);
        }
        let average = |of: &dyn Fn(usize) -> f64| possible.iter().map(|s| of(*s)).sum::<f64>() / possible.len() as f64;
        let entropy = whitening.log_volume(n) + n as f64 * (HALF_LN_2_PI + 0.5);
        let elbo = average(&|s| log_p[s]) + entropy;
        let slope = (0..n).map(|i| average(&|s| d_z.get(i, s))).collect();
        let mut draws = Batch::zeros(n, CURVED);
        for i in 0..n {
            let column = draws.column_mut(i);
            column.iter_mut().enumerate().for_each(|(k, x)| *x = z.get(i, k / 2 * (2 * DRAWS / CURVED) + k % 2));
        }
        Ok(Some(Position { mean, precision, whitening, elbo, slope, draws }))
    }

    /// A step of this length from a position.
    fn step(&self, from: &Position, curvature: &[f64], length: f64) -> Result<Option<Position>> {
        let precision: Vec<f64> =
            from.precision.iter().zip(curvature).map(|(old, new)| old + length * (new - old)).collect();
        let Some(factor) = self.curvature.cholesky(&precision) else { return Ok(None) };
        let mut move_by = from.slope.clone();
        factor.solve(&mut move_by, 1);
        factor.solve_transpose(&mut move_by, 1);
        let mean = from.mean.iter().zip(&move_by).map(|(m, by)| m + length * by).collect();
        self.position(mean, precision)
    }
}

/// The Gaussian with the largest ELBO near a mode, and whether the search had converged; `None` if there is no Gaussian at the mode.
pub(in crate::infer) fn variational_newton(
    model: &dyn Model,
    curvature: &SparseCurvature,
    from: &Mode,
    seed: u64,
    session: &mut Session,
) -> Result<Option<(Mode, bool)>> {
    if let Stage::Finished(found) = session.begin::<Option<(Mode, bool)>>()? {
        let n = from.z.len();
        if found.as_ref().is_some_and(|(mode, _)| mode.z.len() != n || !mode.whitening.is_for(n)) {
            return Err(Error::Checkpoint { reason: "it belongs to another model".to_owned() });
        }
        return Ok(found);
    }
    let found = ascend(model, curvature, from, seed, session)?;
    session.finish(|| found.clone())?;
    Ok(found)
}

fn ascend(
    model: &dyn Model,
    curvature: &SparseCurvature,
    from: &Mode,
    seed: u64,
    session: &mut Session,
) -> Result<Option<(Mode, bool)>> {
    let (Some(gradient), n) = (model.gradient(), from.z.len()) else { return Ok(None) };
    let continuous: Vec<usize> = (0..n).collect();
    let mut ascent = Ascent { gradient, curvature, noise: noise(n, seed, 0) };
    let at_mode = curvature.mean(model, &continuous, &Batch::from_columns(from.z.clone(), 1))?;
    let Some((entries, _)) = at_mode.and_then(|entries| curvature.definite(entries, FLAT)) else { return Ok(None) };
    let Some(mut at) = ascent.position(from.z.clone(), entries)? else { return Ok(None) };
    let (mut length, mut idle) = (1.0_f64, 0);
    for step in 0..STEPS {
        if session.advance("Gaussian", step, STEPS).is_break() {
            break;
        }
        let Some(mean_curvature) = curvature.mean(model, &continuous, &at.draws)? else { break };
        let mut next = None;
        for _ in 0..HALVINGS {
            next = ascent.step(&at, &mean_curvature, length)?.filter(|next| next.elbo > at.elbo - GAIN_MIN);
            if next.is_some() {
                break;
            }
            length *= 0.5;
        }
        let Some(next) = next else { break };
        idle = if next.elbo < at.elbo + GAIN_MIN { idle + 1 } else { 0 };
        at = next;
        length = (2.0 * length).min(1.0);
        if idle == 2 {
            break;
        }
    }
    // The optimum over some draws is not that over all. With others at each step, and ever shorter steps, their errors average out.
    for step in 1..=AVERAGED {
        if session.advance("Gaussian", step, AVERAGED).is_break() {
            break;
        }
        ascent.noise = noise(n, seed, step as u64);
        let Some(here) = ascent.position(at.mean.clone(), at.precision.clone())? else { break };
        let Some(mean_curvature) = curvature.mean(model, &continuous, &here.draws)? else { break };
        let Some(next) = ascent.step(&here, &mean_curvature, (step as f64 + 1.0).powf(-DECAY))? else { break };
        at = next;
    }
    let mode = Mode { z: at.mean, whitening: at.whitening, elbo: at.elbo };
    Ok(Some((mode, idle == 2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;
    use crate::observer::Quiet;

    /// At the optimum the mean gradient is zero and the mean curvature is the precision. Along the precision of the walk the ELBO is so flat
    /// that the search ends up to .3 standard deviations away; a wrong factor or sign would leave it whole ones away.
    #[test]
    fn the_optimum_has_no_slope_and_its_own_curvature() {
        let walk = Coupled::walk(60);
        let continuous: Vec<usize> = (0..61).collect();
        let curvature = SparseCurvature::new(&walk, &continuous).expect("a sparse curvature");
        let mut z = vec![0.5; 61];
        z[0] = 3.0;
        let start = Mode { z, whitening: Whitening::Diagonal(vec![1.0; 61]), elbo: 0.0 };
        let mut quiet = Quiet;
        let mut session = Session::new(&mut quiet);
        let found = variational_newton(&walk, &curvature, &start, 1, &mut session).expect("no fault");
        let (mode, has_converged) = found.expect("a Gaussian");
        assert!(has_converged);
        // Fresh draws.
        let len = 4096;
        let mut streams: Vec<Stream> = (0..len).map(|s| stream(9, 0, 0, s)).collect();
        let (mut noise, mut draws) = (Batch::zeros(61, len as usize), Batch::zeros(61, len as usize));
        standard_normals(&mut streams, &mut noise);
        mode.whitening.multiply(&noise, &mut draws);
        for (i, m) in mode.z.iter().enumerate() {
            draws.column_mut(i).iter_mut().for_each(|x| *x += m);
        }
        let (mut log_p, mut slope) = (vec![0.0; len as usize], Batch::zeros(61, len as usize));
        walk.log_joint_gradient(&draws, &mut log_p, &mut slope).expect("no fault");
        let mut in_sd = Batch::zeros(61, len as usize);
        mode.whitening.transpose_multiply(&slope, &mut in_sd);
        for i in 0..61 {
            let mean = in_sd.column(i).iter().sum::<f64>() / len as f64;
            assert!(mean.abs() < 0.3, "{i}: {mean} standard deviations from the optimum");
        }
        let entries = curvature.mean(&walk, &continuous, &draws).expect("no fault").expect("a finite curvature");
        let factor = curvature.cholesky(&entries).expect("a definite curvature");
        let (own, at_optimum) = (mode.whitening.diagonal(), Whitening::Sparse(factor).diagonal());
        for i in 0..61 {
            let ratio = own.get(i, i) / at_optimum.get(i, i);
            assert!((0.93..1.08).contains(&ratio), "{i}: {ratio}");
        }
    }
}

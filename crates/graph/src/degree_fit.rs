//! The fit of the degrees of centring, together with a factorised Gaussian.

use super::model::GraphModel;
use hyperprior::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, standard_normals, stream};

/// The steps of the fit, its draws per step, and the step size, in standard deviations at the start.
const STEPS: usize = 400;
const DRAWS: usize = 16;
const STEP_SIZE: f64 = 0.05;

/// Fits a factorised Gaussian and the degrees together, by Adam; returns the location and the scale of each coordinate. Those of degrees
/// are logits.
pub(super) fn maximise(
    model: &GraphModel,
    centre: &[f64],
    scale: &[f64],
    is_degree: &[bool],
    seed: u64,
) -> Option<Vec<(f64, f64)>> {
    let gradient = model.gradient()?;
    let n = centre.len();
    // A location and a log scale for each coordinate, relative to the start; a degree has a location only.
    let (mut x, mut first, mut second) = (vec![0.0; 2 * n], vec![0.0; 2 * n], vec![0.0; 2 * n]);
    let (mut noise, mut z, mut d_z) = (Batch::zeros(n, DRAWS), Batch::zeros(n, DRAWS), Batch::zeros(n, DRAWS));
    let (mut log_p, mut averaged) = (vec![0.0; DRAWS], vec![0.0; n]);
    for step in 0..STEPS {
        let mut streams: Vec<_> =
            (0..DRAWS as u64).map(|s| stream(seed, Purpose::Centring.step(), 1 + step as u64, s)).collect();
        standard_normals(&mut streams, &mut noise);
        for i in 0..n {
            let (m, sd) = (centre[i] + scale[i] * x[i], scale[i] * x[n + i].exp());
            for s in 0..DRAWS {
                z.set(i, s, if is_degree[i] { m } else { m + sd * noise.get(i, s) });
            }
        }
        gradient.log_joint_gradient(&z, &mut log_p, &mut d_z).ok()?;
        let good: Vec<usize> =
            (0..DRAWS).filter(|s| log_p[*s].is_finite() && (0..n).all(|i| d_z.get(i, *s).is_finite())).collect();
        if good.is_empty() {
            return None;
        }
        let mean = |f: &dyn Fn(usize) -> f64| good.iter().map(|s| f(*s)).sum::<f64>() / good.len() as f64;
        let size = STEP_SIZE * (2.0 * (1.0 - step as f64 / STEPS as f64)).min(1.0);
        for at in 0..2 * n {
            let i = at % n;
            let rise = match at < n {
                true => scale[i] * mean(&|s| d_z.get(i, s)),
                false if is_degree[i] => continue,
                false => 1.0 + scale[i] * x[at].exp() * mean(&|s| d_z.get(i, s) * noise.get(i, s)),
            };
            first[at] = 0.9 * first[at] + 0.1 * rise;
            second[at] = 0.99 * second[at] + 0.01 * rise * rise;
            let corrected = |x: f64, decay: f64| x / (1.0 - decay.powi(step as i32 + 1));
            x[at] += size * corrected(first[at], 0.9) / (corrected(second[at], 0.99).sqrt() + 1e-12);
        }
        if step >= STEPS * 3 / 4 {
            (0..n).for_each(|i| averaged[i] += x[i] / (STEPS - STEPS * 3 / 4) as f64);
        }
    }
    Some((0..n).map(|i| (centre[i] + scale[i] * averaged[i], scale[i] * x[n + i].exp())).collect())
}

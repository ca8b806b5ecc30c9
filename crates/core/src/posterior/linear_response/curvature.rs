//! H and J. Along the parameters of continuous latents they come from central differences at fixed noise. The draw of a discrete
//! latent does not move smoothly with its parameters, so along those they are sums over its values:
//! ∂E\[f\]/∂λ_d = Σ_v ∂q(v)/∂λ_d E\[f | z_d = v\], which is exact for any f.

use super::base::Base;
use crate::error::{Error, Result};
use crate::gradient::Plan;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use rayon::prelude::*;

/// The step of central differences; parameters are logits, logarithms, or means on a scale of about one.
const STEP: f64 = 1e-4;
/// Less probable values are negligible.
const NEGLIGIBLE: f64 = 1e-14;
/// The maximum number of values to sum over.
const VALUES_MAX: f64 = 1024.0;

/// H, row by row; E_q\[g\]; and Jᵀ, a row per parameter.
pub(super) struct Jacobians {
    pub(super) curvature: Vec<f64>,
    pub(super) means: Vec<f64>,
    pub(super) response: Vec<f64>,
}

/// A part of H and Jᵀ that is computed from one or two gradients.
enum Part {
    /// The column of a parameter of a continuous latent.
    Path(usize),
    /// The column of a discrete latent's parameter within its own block.
    Own(usize, usize),
    /// A discrete latent at one of its values, with the derivatives of that value's probability.
    Value(usize, f64, Vec<f64>),
}

type Quantities<'a> = &'a (dyn Fn(&Batch) -> Result<Batch> + Sync);

pub(super) fn jacobians(model: &dyn Model, q: &Variational, base: &Base, quantities: Quantities) -> Result<Jacobians> {
    let parts = parts(model, q, base)?;
    let mean = |z: &Batch| -> Result<Vec<f64>> {
        let g = quantities(z)?;
        let one =
            |k: usize| g.column(k).iter().zip(&base.weights).map(|(g, w)| if *w == 0.0 { 0.0 } else { g * w }).sum();
        Ok((0..g.columns_len()).map(one).collect())
    };
    let n = base.theta.len();
    let at = |j: usize, by: f64| {
        let mut theta = base.theta.to_vec();
        theta[j] += by;
        theta
    };
    // For each part: the change of the gradient, and that of the means.
    let run = |part: &Part| -> Result<(Vec<f64>, Vec<f64>)> {
        match part {
            Part::Path(j) => {
                let (up, down) = (at(*j, STEP), at(*j, -STEP));
                let (z_up, z_down) = (base.moved(q, &up), base.moved(q, &down));
                let gradient = halved(base.gradient(model, q, &up, &z_up)?, &base.gradient(model, q, &down, &z_down)?);
                Ok((gradient, halved(mean(&z_up)?, &mean(&z_down)?)))
            }
            Part::Own(j, _) => {
                let (up, down) = (at(*j, STEP), at(*j, -STEP));
                let gradients = [base.gradient(model, q, &up, &base.z)?, base.gradient(model, q, &down, &base.z)?];
                let [up, down] = gradients;
                Ok((halved(up, &down), Vec::new()))
            }
            Part::Value(latent, value, _) => {
                let mut z = base.z.clone();
                z.column_mut(*latent).fill(*value);
                Ok((base.gradient(model, q, base.theta, &z)?, mean(&z)?))
            }
        }
    };
    let results: Vec<(Vec<f64>, Vec<f64>)> = parts.par_iter().map(run).collect::<Result<_>>()?;
    let means = mean(&base.z)?;
    let count = means.len();
    let (mut curvature, mut response) = (vec![0.0; n * n], vec![0.0; n * count]);
    for (part, (gradient, moved)) in parts.iter().zip(results) {
        match part {
            Part::Path(j) => {
                (0..n).for_each(|i| curvature[i * n + j] = gradient[i]);
                response[j * count..(j + 1) * count].copy_from_slice(&moved);
            }
            Part::Own(j, latent) => {
                q.likelihood().lambda_range(*latent).for_each(|i| curvature[i * n + j] = gradient[i]);
            }
            Part::Value(latent, _, d_probability) => {
                let own = q.likelihood().lambda_range(*latent);
                for (j, d) in own.clone().zip(d_probability) {
                    for i in (0..n).filter(|i| !own.contains(i)) {
                        curvature[i * n + j] += d * gradient[i];
                    }
                    for (to, mean) in response[j * count..(j + 1) * count].iter_mut().zip(&moved) {
                        *to += d * mean;
                    }
                }
            }
        }
    }
    Ok(Jacobians { curvature, means, response })
}

fn halved(up: Vec<f64>, down: &[f64]) -> Vec<f64> {
    up.into_iter().zip(down).map(|(up, down)| (up - down) / (2.0 * STEP)).collect()
}

fn parts(model: &dyn Model, q: &Variational, base: &Base) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    if q.prior().columns_len() > 0 {
        // Everything moves with the noise.
        parts.extend((0..base.theta.len()).map(Part::Path));
        return Ok(parts);
    }
    for (i, plan) in base.plans.iter().enumerate() {
        let range = q.likelihood().lambda_range(i);
        if *plan == Plan::Path {
            parts.extend(range.map(Part::Path));
            continue;
        }
        let (low, high) = match q.likelihood().window(i, &base.lambda) {
            Some((low, high)) if high - low < VALUES_MAX => (low, high),
            _ => {
                return Err(Error::Mismatch {
                    first: "linear response".to_owned(),
                    second: model.latents().name(i),
                    reason: format!("it has more than {VALUES_MAX} values to sum over"),
                });
            }
        };
        parts.extend(range.clone().map(|j| Part::Own(j, i)));
        let values: Vec<f64> = (0..=(high - low) as usize).map(|v| low + v as f64).collect();
        let mut table = Batch::zeros(values.len(), 1);
        q.likelihood().log_densities_of(i, &base.lambda, &values, &mut [0.0], &mut table);
        for (v, value) in values.into_iter().enumerate() {
            let probability = table.get(v, 0).exp();
            if probability < NEGLIGIBLE {
                continue;
            }
            let mut score = Batch::zeros(base.lambda.columns_len(), 1);
            q.likelihood().score(i, &base.lambda, &[value], &[1.0], &mut score);
            let d_probability = range.clone().map(|j| probability * score.get(j, 0)).collect();
            parts.push(Part::Value(i, value, d_probability));
        }
    }
    Ok(parts)
}

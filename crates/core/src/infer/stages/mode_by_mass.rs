//! Where the mass of a model with few latents is, given which of them are scales.

use super::conditional_laplace::Parts;
use super::curvature::{LogDensity, climb};
use super::nested_laplace::{SEARCHED_MAX, centre};
use super::pathfinder::{Mode, gaussian_at};
use super::sparse_curvature::SparseCurvature;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;

/// How often the search is repeated from where a longer climb ends, and the nats that such a climb gains.
const CLIMBS: usize = 4;
const CLIMBED: f64 = 0.5;

/// The Gaussian in the middle of the posterior of a model with few latents, all continuous, of which these are the scales of others: where
/// their marginal has its mass, with the others integrated out by Laplace's method, though the density may be larger elsewhere. The search
/// starts from some points, which are draws of all latents. It is `None` if nothing was found, or if there are too many scales.
///
/// # Errors
/// Errors of the model.
pub fn mode_by_mass(model: &dyn Model, scales: &[usize], points: &Batch, seed: u64) -> Result<Option<Mode>> {
    let n = points.columns_len();
    let (theta, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| scales.contains(i));
    if theta.is_empty() || theta.len() > SEARCHED_MAX || others.is_empty() || points.draws_len() == 0 {
        return Ok(None);
    }
    let Some(gradient) = model.gradient().filter(|_| !(0..n).any(|i| model.latents().support(i).is_discrete())) else {
        return Ok(None);
    };
    let mut log_p = vec![0.0; points.draws_len()];
    model.log_joint(points, &mut log_p)?;
    let finite = (0..points.draws_len()).filter(|s| log_p[*s].is_finite());
    let Some(best) = finite.max_by(|a, b| log_p[*a].total_cmp(&log_p[*b])) else { return Ok(None) };
    let mut first: Vec<f64> = (0..n).map(|i| points.get(i, best)).collect();
    let given_theta = LogDensity::new(model, gradient, &others);
    let mut points = points.clone();
    // Newton's method for many values at once takes few steps, and from far away more are needed.
    for _ in 0..CLIMBS {
        climb(given_theta, &mut first)?;
        let Some(curvature) = SparseCurvature::of_few(model, &others) else { return Ok(None) };
        let parts = Parts::at(model, (theta.clone(), others.clone()), curvature, first.clone());
        let Some(mut point) = centre(parts, &points, seed)? else { return Ok(None) };
        let mut log_p = [0.0; 2];
        model.log_joint(&Batch::from_columns(point.clone(), 1), &mut log_p[..1])?;
        climb(given_theta, &mut point)?;
        points = Batch::from_columns(point.clone(), 1);
        first.clone_from(&point);
        model.log_joint(&points, &mut log_p[1..])?;
        if !(log_p[1] > log_p[0] + CLIMBED) {
            return gaussian_at(model, point, seed);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::given_theta::log_integral;
    use super::super::test_models::Coupled;
    use super::*;
    use hyperprior_math::special::log_sum_exp;

    /// Catches a search that ends where the density is highest, at a scale of zero: the mass of a walk's precision is elsewhere, as
    /// Laplace's method, which is exact here, has it on a grid.
    #[test]
    fn the_mass_of_few_latents_is_found_from_far_away() {
        let (walk, n) = (Coupled::levels(12), 13);
        let mut start = vec![0.0; n];
        start[0] = 12.0;
        let found = mode_by_mass(&walk, &[0], &Batch::from_columns(start, 1), 1).expect("no fault").expect("a mode");
        let curvature = SparseCurvature::of_few(&walk, &(1..n).collect::<Vec<_>>()).expect("a curvature");
        let parts = Parts::at(&walk, (vec![0], (1..n).collect()), curvature, found.z.clone());
        let theta: Vec<Vec<f64>> = (0..160).map(|k| vec![-5.0 + 0.05 * f64::from(k)]).collect();
        let there = parts.conditionals(&theta).expect("no fault");
        let log_m: Vec<f64> = there.iter().map(|one| one.as_ref().map_or(f64::NEG_INFINITY, log_integral)).collect();
        let log_sum = log_sum_exp(&log_m);
        let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
            log_m.iter().zip(&theta).map(|(m, theta)| (m - log_sum).exp() * f(theta[0])).sum()
        };
        let mean = moment(&|x| x);
        let sd = moment(&|x| (x - mean).powi(2)).sqrt();
        assert!((found.z[0] - mean).abs() < 0.5 * sd, "{} and {mean} ± {sd}", found.z[0]);
        assert!(mode_by_mass(&walk, &[], &Batch::zeros(n, 1), 1).expect("no fault").is_none());
    }
}

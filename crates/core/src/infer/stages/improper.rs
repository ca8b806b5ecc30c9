//! Improper posteriors: densities whose integral is infinite, because a flat prior leaves a latent undetermined.
//!
//! A latent with a flat prior is fixed ever farther from its mean, at distances t that double, and the other latents are integrated out
//! by Laplace's method. The result M(t) is proportional to the latent's marginal density. In ln t the integrand is t M(t), so the
//! posterior is improper if t M(t) does not fall.

use super::marginal::{Marginal, Scaled};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;

/// The distances, in standard deviations.
const DISTANCES: [f64; 8] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// The first distance that is tried: nearly all marginals are negligible there.
const FIRST: f64 = 8.0;
/// t M(t) is negligible below this share of M(0). It falls if its logarithm does by more than this at twice the distance, and must not
/// fall at so many distances in a row, the last ones.
const NEGLIGIBLE: f64 = 1e-3;
const FALL: f64 = 0.1;
const RISES: usize = 2;
/// The cost, in additions, within which latents are examined.
const WORK: f64 = 2e10;

/// The latents along which the posterior is improper, of those that may have flat priors. Empty if the curvature of the density is
/// unknown or has too many latents.
pub(in crate::infer) fn improper_latents(model: &dyn Model, z: &Batch) -> Result<Vec<String>> {
    let flat = model.flat_priors();
    if flat.is_empty() || model.gradient().is_none() {
        return Ok(Vec::new());
    }
    let Some(scaled) = Scaled::new(model, z) else { return Ok(Vec::new()) };
    let each = 100.0 * scaled.model.continuous().len() as f64 * model.work() as f64;
    let most = ((WORK / each) as usize).max(1);
    let mut found = Vec::new();
    for latent in flat.into_iter().take(most) {
        let marginal = scaled.marginal(latent);
        if is_improper(&marginal, 1.0)? || is_improper(&marginal, -1.0)? {
            found.push(model.latents().name(latent));
        }
    }
    Ok(found)
}

/// Whether the integral of the marginal is infinite on this side of the mean.
fn is_improper(marginal: &Marginal, side: f64) -> Result<bool> {
    let mut point = marginal.farthest(side);
    let Some(centre) = marginal.laplace(0.0, &mut point)? else { return Ok(false) };
    let is_negligible = |log_tm: f64| log_tm < NEGLIGIBLE.ln();
    let log_tm = |distance: f64, point: &mut Vec<f64>| -> Result<Option<f64>> {
        Ok(marginal.laplace(side * distance, point)?.map(|log_m| distance.ln() + log_m - centre))
    };
    if log_tm(FIRST, &mut point.clone())?.is_none_or(is_negligible) {
        return Ok(false);
    }
    let (mut rises, mut before) = (0, None);
    for distance in DISTANCES {
        // Far away the density may overflow.
        let Some(here) = log_tm(distance, &mut point)? else { break };
        if is_negligible(here) {
            return Ok(false);
        }
        rises = if before.is_some_and(|before| here >= before - FALL) { rises + 1 } else { 0 };
        before = Some(here);
    }
    Ok(rises >= RISES)
}

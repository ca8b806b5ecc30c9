//! A tail of one latent that the draws miss, such as the neck of a funnel: a scale near zero with its effects close together.
//!
//! Chains that cannot enter a narrow place agree with each other about the rest. So the marginal density of a latent is evaluated beyond
//! the draws, with the other latents integrated out near their mode, and its integral is compared with the share of the draws there.

use super::marginal::{Marginal, Scaled};
use crate::error::Result;
use crate::infer::result::MissedTail;
use crate::model::Model;
use hyperprior_math::batch::Batch;

/// The distances from the mean at which the density is evaluated, in standard deviations.
const DISTANCES: [f64; 9] = [3.0, 4.0, 5.5, 7.5, 10.0, 14.0, 20.0, 28.0, 40.0];
/// A density is negligible if it, times its distance, is below this share.
const NEGLIGIBLE: f64 = 0.01;
/// A tail with a smaller share of the posterior does not matter, and one with less than `FEW` of its share of the draws was missed.
const SHARE_MIN: f64 = 0.03;
const FEW: f64 = 0.4;
/// The cost, in additions, within which latents are examined, and how many are in any case.
const WORK: f64 = 5e9;
const LEAST: usize = 4;

/// The tail with the largest share of the posterior that the draws miss. Latents whose draws are skewed are examined first, and only as
/// many as the cost allows.
pub(in crate::infer) fn missed_tail(
    model: &dyn Model,
    z: &Batch,
    log_evidence: f64,
    seed: u64,
) -> Result<Option<MissedTail>> {
    let Some(scaled) = Scaled::new(model, z).filter(|_| model.gradient().is_some()) else { return Ok(None) };
    let skewness = |i: usize| scaled.u.column(i).iter().map(|x| x.powi(3)).sum::<f64>().abs();
    let mut latents: Vec<(usize, f64)> = scaled.model.continuous().iter().map(|i| (*i, skewness(*i))).collect();
    latents.sort_by(|a, b| b.1.total_cmp(&a.1));
    let each = 100.0 * latents.len() as f64 * model.work() as f64;
    let mut found: Option<MissedTail> = None;
    for (latent, _) in latents.into_iter().take(((WORK / each) as usize).max(LEAST)) {
        let marginal = scaled.marginal(latent);
        for side in [1.0, -1.0] {
            let share = share_beyond(&marginal, side, log_evidence, seed)?;
            let is_there = |x: &&f64| side * **x > DISTANCES[0];
            let drawn = scaled.u.column(latent).iter().filter(is_there).count() as f64 / z.draws_len() as f64;
            if share > SHARE_MIN && drawn < FEW * share && found.as_ref().is_none_or(|other| share > other.share) {
                found = Some(MissedTail { latent: model.latents().name(latent), share, drawn });
            }
        }
    }
    Ok(found)
}

/// The log of the marginal density of a latent, up to a constant, at distances from its mean over some draws, in their standard
/// deviations: the other latents are integrated out by importance sampling near their mode. It is `None` where it is not finite.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::infer::log_marginal;
/// use hyperprior::targets::Funnel;
/// // The funnel's log scale is normal with a standard deviation of 3; these draws have one of 1.
/// let z = Batch::from_columns([vec![-1.0, 0.0, 1.0], vec![-1.0, 2.0, -1.0]].concat(), 3);
/// let log_m = log_marginal(&Funnel::new(2)?, &z, 0, &[0.0, -3.0], 1)?;
/// assert!((log_m[0].unwrap() - log_m[1].unwrap() - 0.5).abs() < 0.01);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model.
pub fn log_marginal(model: &dyn Model, z: &Batch, latent: usize, at: &[f64], seed: u64) -> Result<Vec<Option<f64>>> {
    let Some(scaled) = Scaled::new(model, z).filter(|_| model.gradient().is_some()) else {
        return Ok(vec![None; at.len()]);
    };
    let marginal = scaled.marginal(latent);
    let mut point = vec![0.0; z.columns_len()];
    at.iter().map(|at| marginal.log_mass(*at, &mut point, seed)).collect()
}

/// The share of the posterior beyond the first distance, by the trapezium rule.
fn share_beyond(marginal: &Marginal, side: f64, log_evidence: f64, seed: u64) -> Result<f64> {
    let mut point = marginal.farthest(side);
    let (mut share, mut before): (f64, Option<(f64, f64)>) = (0.0, None);
    for distance in DISTANCES {
        let Some(log_mass) = marginal.log_mass(side * distance, &mut point, seed)? else { break };
        let density = (log_mass - log_evidence).exp();
        if let Some((last, there)) = before {
            share += 0.5 * (distance - last) * (density + there);
        }
        if density * distance < NEGLIGIBLE {
            break;
        }
        before = Some((distance, density));
    }
    Ok(share / (1.0 + share))
}

//! A tail of one latent that the draws miss, such as the neck of a funnel: a scale near zero with its effects close together.
//!
//! Chains that cannot enter a narrow place agree with each other about the rest. So the marginal density of a latent is evaluated beyond
//! the draws, with the other latents integrated out near their mode, and its integral is compared with the share of the draws there.

use super::marginal::{Marginal, Scaled};
use crate::error::Result;
use crate::infer::result::MissedTail;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use rayon::prelude::*;

/// The distances from the mean at which the density is evaluated, in standard deviations.
const DISTANCES: [f64; 15] = [3.0, 4.0, 5.5, 7.5, 10.0, 14.0, 20.0, 28.0, 40.0, 56.0, 80.0, 112.0, 160.0, 224.0, 320.0];
/// A density is negligible if it, times the cube of its distance, adds less than this to the variance.
const NEGLIGIBLE: f64 = 0.005;
/// So is what lies beyond a place at least this far, by a power law this steep or steeper, if it adds less than this. Nearer, a normal
/// middle would hide a rare wide part.
const EXAMINED: f64 = 7.5;
const STEEP: f64 = -1.0;
const NEGLIGIBLE_BEYOND: f64 = 0.02;
/// A tail with a smaller share of the posterior does not matter, and one with less than `FEW` of its share of the draws was missed. One that
/// moves the mean by more standard deviations than this, or adds more to the variance, was missed too.
const SHARE_MIN: f64 = 0.03;
const FEW: f64 = 0.4;
const SHIFT_MIN: f64 = 0.2;
const VARIANCE_MIN: f64 = 0.35;
/// The draws lack variance if they have less than this share of what there is in the tails.
const HALF: f64 = 0.5;
/// The largest log density that is told from a larger one.
const LARGEST: f64 = 300.0;
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
    latents.truncate(((WORK / each) as usize).max(LEAST));
    let of_latent = |(latent, _): (usize, f64)| -> Result<Option<MissedTail>> {
        let marginal = scaled.marginal(latent);
        let of_side = |side: f64| -> Result<[Beyond; 2]> {
            Ok([beyond(&marginal, side, log_evidence, seed)?, Beyond::of_draws(scaled.u.column(latent), side)])
        };
        let (above, below) = rayon::join(|| of_side(1.0), || of_side(-1.0));
        Ok(missed(&[above?, below?], || model.latents().name(latent)))
    };
    let tails: Vec<Option<MissedTail>> = latents.into_par_iter().map(of_latent).collect::<Result<_>>()?;
    let larger = |a: MissedTail, b: MissedTail| if b.matters() > a.matters() { b } else { a };
    Ok(tails.into_iter().flatten().reduce(larger))
}

/// What the draws miss on both sides together.
fn missed(sides: &[[Beyond; 2]; 2], name: impl Fn() -> String) -> Option<MissedTail> {
    let [above, below] = sides;
    let sum = |k: usize| above[k].variance + below[k].variance;
    let shift = |k: usize| above[k].shift - below[k].shift;
    // An evidence that is a little too low makes every tail look a little too large.
    let is_missing = sum(1) < HALF * sum(0);
    let variance = if is_missing { sum(0) - sum(1) } else { 0.0 };
    let wider = (1.0 + variance).sqrt();
    let is_shifted = is_missing && (shift(0) - shift(1)).abs() > SHIFT_MIN * wider;
    let has_few = |[all, drawn]: &[Beyond; 2]| all.share > SHARE_MIN && drawn.share < FEW * all.share;
    let is_large = is_shifted || sides.iter().any(has_few);
    let [all, drawn] = if below[0].share - below[1].share > above[0].share - above[1].share { below } else { above };
    let tail = || MissedTail { latent: name(), share: all.share, drawn: drawn.share, is_large, wider };
    (is_large || variance > VARIANCE_MIN).then(tail)
}

impl MissedTail {
    /// Which of two tails matters more.
    fn matters(&self) -> (bool, f64) {
        (self.is_large, if self.is_large { self.share } else { self.wider })
    }
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

/// What lies beyond the first distance on one side.
#[derive(Clone, Copy, Default)]
struct Beyond {
    /// Its share of the posterior.
    share: f64,
    /// What it adds to the mean, and to the variance.
    shift: f64,
    variance: f64,
}

impl Beyond {
    /// Of draws with mean 0 and variance 1.
    fn of_draws(u: &[f64], side: f64) -> Self {
        let far = || u.iter().map(|x| side * x).filter(|x| *x > DISTANCES[0]);
        let len = u.len() as f64;
        let (shift, variance) = (far().sum::<f64>() / len, far().map(|x| x * x).sum::<f64>() / len);
        Self { share: far().count() as f64 / len, shift, variance }
    }
}

/// The integral of a function with these logarithms at the ends of an interval of this length, if it is log-linear between them.
fn log_linear(length: f64, from: f64, to: f64) -> f64 {
    let rise = to - from;
    if rise.abs() < 1e-3 { 0.5 * length * (from.exp() + to.exp()) } else { length * (to.exp() - from.exp()) / rise }
}

/// What lies beyond the first distance, if the density is log-linear between those at which it is known.
fn beyond(marginal: &Marginal, side: f64, log_evidence: f64, seed: u64) -> Result<Beyond> {
    let mut point = marginal.farthest(side);
    let mut found = Beyond::default();
    let mut before: Option<(f64, f64, f64)> = None;
    for at in DISTANCES {
        let Some(log_mass) = marginal.log_mass(side * at, &mut point, seed)? else { break };
        let log_density = (log_mass - log_evidence).min(LARGEST);
        let of_variance = log_density + 3.0 * at.ln();
        if let Some((last, there, of_last)) = before {
            let of_power = |power: f64| log_linear(at - last, there + power * last.ln(), log_density + power * at.ln());
            found.share += of_power(0.0);
            found.shift += of_power(1.0);
            found.variance += of_power(2.0);
            // A flat tail may be negligible at first.
            if of_variance < of_last.min(NEGLIGIBLE.ln()) && of_last < NEGLIGIBLE.ln() {
                break;
            }
            // Where places cost many times more, a power law tells what lies beyond.
            let slope = (of_variance - of_last) / (at / last).ln();
            let beyond = of_variance.exp() / -slope;
            if at >= EXAMINED && slope < STEEP && beyond < NEGLIGIBLE_BEYOND && !marginal.is_ordinary(&point) {
                break;
            }
        }
        before = Some((at, log_density, of_variance));
    }
    // The evidence may not know of it either.
    let all = 1.0 + found.share;
    Ok(Beyond { share: found.share / all, shift: found.shift / all, variance: found.variance / all })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::super::test_models::Coupled;
    use super::*;
    use hyperprior_math::random::stream;
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    /// Draws of two latents of which a share is thirty times as wide.
    fn draws(share: f64) -> Batch {
        let mut rng = stream(1, 0, 0, 0);
        let mut one = || {
            let e: f64 = StandardNormal.sample(&mut rng);
            if rng.random::<f64>() < share { 30.0 * e } else { e }
        };
        Batch::from_columns((0..8000).map(|_| one()).collect(), 4000)
    }

    /// Catches a standard deviation that rare values determine and no draw shows: 1, and in truth √(0.99 + 0.01 · 900) = 3.16.
    #[test]
    fn rare_values_that_determine_the_spread_are_missed() {
        let missed = missed_tail(&Coupled::rare(2), &draws(0.0), 0.0, 1).unwrap().unwrap();
        assert!(!missed.is_large && (missed.wider - 3.16).abs() < 0.2, "{missed:?}");
        // With an evidence that is half a nat too low.
        assert_eq!(missed_tail(&Coupled::rare(2), &draws(0.01), -0.5, 1).unwrap(), None);
        assert_eq!(missed_tail(&Coupled::rare(2), &draws(0.01), 0.0, 1).unwrap(), None);
    }

    /// Catches a search that gives a tail up, rather than what lies beyond it, where places cost more.
    #[test]
    fn costly_places_are_examined_until_what_lies_beyond_is_negligible() {
        let costly = Coupled::rare(2).costly_beyond(5.0);
        let missed = missed_tail(&costly, &draws(0.0), 0.0, 1).unwrap().unwrap();
        assert!((missed.wider - 3.16).abs() < 0.2, "{missed:?}");
    }
}

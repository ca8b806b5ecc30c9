//! Mixture population Monte Carlo (Cappé, Douc, Guillin, Marin and Robert, 2008) of a few latents whose posterior is far from one Gaussian:
//! a mixture of Student t distributions is fitted to weighted draws, and new draws from it get weights in turn.

use super::adaptive_importance::{
    KHAT_MAX, Part, Proposal, TMixture, effective, relevance, tempered, weighted_moments,
};
use super::resample::{BLOCK, MIDDLE, systematic};
use super::whitened::WhitenedModel;
use crate::diagnostics::psis::psis;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::special::log_sum_exp;
use rayon::prelude::*;

/// The most latents: a component has a covariance of its own.
const LATENTS_MAX: usize = 12;
/// The most components, and the points to which each is fitted at least, for each latent.
const COMPONENTS_MAX: usize = 32;
const POINTS: usize = 8;
/// The points to which a mixture is fitted, the iterations of a fit, and the smallest share that a component keeps.
const FITTED: usize = 4000;
const ITERATIONS: usize = 8;
const SHARE_MIN: f64 = 1e-3;
/// The draws of a round, the most rounds, and how many of these may have as many draws as are wanted.
const ROUND: usize = 4000;
const ROUNDS: u64 = 8;
const LONG_ROUNDS: u64 = 4;

/// A mixture fitted by expectation-maximisation to these points. `None` if they do not span the space.
fn fitted(points: &[Vec<f64>], components: usize) -> Option<TMixture> {
    let (k, equal) = (points.first()?.len(), vec![0.0; points.len()]);
    let (mean, covariance) = weighted_moments(points, &equal)?;
    let wide = Proposal::new(mean, &covariance)?.much_wider();
    let narrower = (components as f64).powf(-2.0 / k as f64);
    let narrow: Vec<f64> = covariance.into_iter().map(|x| narrower * x).collect();
    let at = |c: usize| Proposal::new(points[c * points.len() / components].clone(), &narrow);
    let mut parts = (0..components).map(|c| Some(Part::new(1.0, at(c)?))).collect::<Option<Vec<_>>>()?;
    for _ in 0..ITERATIONS {
        parts = next(&parts, points, &narrow)?;
    }
    Some(TMixture::of_parts(parts, wide))
}

/// `len` draws of a mixture with their log importance weights.
fn weighted(
    mixture: &TMixture,
    model: &dyn Model,
    len: usize,
    seed: u64,
    number: u64,
) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
    let blocks: Vec<usize> = (0..len).step_by(BLOCK).collect();
    let found: Vec<(Vec<Vec<f64>>, Vec<f64>)> = blocks
        .into_par_iter()
        .map(|first| {
            let own = first..(first + BLOCK).min(len);
            let of = |s: usize| mixture.draw(&mut stream(seed, Purpose::MixtureImportance.step(), number, s as u64));
            let (values, log_densities): (Vec<Vec<f64>>, Vec<f64>) = own.map(of).unzip();
            let mut log_weights = vec![0.0; values.len()];
            model.log_joint(&batch(&values), &mut log_weights)?;
            log_weights.iter_mut().zip(log_densities).for_each(|(w, log_density)| *w = known(*w - log_density));
            Ok((values, log_weights))
        })
        .collect::<Result<_>>()?;
    let (values, log_weights): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Ok((values.concat(), log_weights.concat()))
}

/// The next components of an expectation-maximisation. Each has a few further points, so that its covariance is known, which are spread
/// as all are but closer together.
fn next(parts: &[Part], points: &[Vec<f64>], narrow: &[f64]) -> Option<Vec<Part>> {
    let k = points[0].len();
    let further = k as f64 + 2.0;
    // The share of each component in each point, and how much the point tells of it.
    let shares: Vec<Vec<(f64, f64)>> = points
        .par_iter()
        .map(|x| {
            let room = &mut vec![0.0; k];
            let found: Vec<(f64, f64)> = parts.iter().map(|part| part.log_density(x, room)).collect();
            let total = log_sum_exp(&found.iter().map(|f| f.0).collect::<Vec<_>>());
            found.into_iter().map(|(log, squared)| ((log - total).exp(), relevance(squared, k))).collect()
        })
        .collect();
    let next = |c: usize| {
        let count: f64 = shares.iter().map(|s| s[c].0).sum();
        let share = count / points.len() as f64;
        if share < SHARE_MIN {
            return None;
        }
        let counted: Vec<f64> = shares.iter().map(|s| (s[c].0 * s[c].1).ln()).collect();
        let total: f64 = counted.iter().map(|w| w.exp()).sum();
        let (mean, covariance) = weighted_moments(points, &counted)?;
        let entry = |(own, narrow): (&f64, &f64)| (total * own + further * narrow) / (count + further);
        let covariance: Vec<f64> = covariance.iter().zip(narrow).map(entry).collect();
        Some(Part::new(share, Proposal::new(mean, &covariance)?))
    };
    let found: Vec<Part> =
        (0..parts.len()).into_par_iter().map(next).collect::<Vec<_>>().into_iter().flatten().collect();
    (!found.is_empty()).then_some(found)
}

/// A log weight; −∞ if it is not a number.
fn known(w: f64) -> f64 {
    if w.is_nan() { f64::NEG_INFINITY } else { w }
}

/// Points as draws.
fn batch(points: &[Vec<f64>]) -> Batch {
    let mut out = Batch::zeros(points.first().map_or(0, Vec::len), points.len());
    for i in 0..out.columns_len() {
        out.column_mut(i).iter_mut().zip(points).for_each(|(to, x)| *to = x[i]);
    }
    out
}

/// Draws of a mixture.
pub(super) struct Adapted {
    pub(super) u: Batch,
    pub(super) log_weights: Vec<f64>,
    /// The number of components.
    pub(super) components: usize,
}

/// `len` draws with their log importance weights from a mixture that is learnt from these draws and theirs. `None` if there are too many
/// latents, or some are discrete.
pub(super) fn mixture_importance(
    whitened: &WhitenedModel<dyn Model + '_>,
    (drawn, log_weights): (&Batch, &[f64]),
    len: usize,
    seed: u64,
) -> Result<Option<Adapted>> {
    let k = whitened.latents().len();
    if k > LATENTS_MAX || whitened.continuous().len() < k {
        return Ok(None);
    }
    let mut values: Vec<Vec<f64>> = (0..drawn.draws_len()).map(|s| (0..k).map(|i| drawn.get(i, s)).collect()).collect();
    let mut log_weights: Vec<f64> = log_weights.iter().copied().map(known).collect();
    let mut is_last = false;
    for round in 0..ROUNDS {
        let (weights, _) = tempered(&log_weights, (POINTS * (k + 1)) as f64);
        if !effective(&weights).is_finite() {
            break;
        }
        let points: Vec<Vec<f64>> =
            systematic(&weights, log_sum_exp(&weights), FITTED, MIDDLE).map(|s| values[s].clone()).collect();
        let components = ((effective(&weights) as usize) / (POINTS * k)).clamp(1, COMPONENTS_MAX);
        let Some(mixture) = fitted(&points, components) else { break };
        let own = if is_last { len } else { ROUND };
        (values, log_weights) = weighted(&mixture, whitened, own, seed, round)?;
        let khat = psis(&mut log_weights.clone()).khat;
        if is_last && khat <= KHAT_MAX || round + 1 == ROUNDS {
            return Ok(Some(Adapted { u: batch(&values), log_weights, components: mixture.len() }));
        }
        is_last = is_last || khat <= KHAT_MAX || round + LONG_ROUNDS >= ROUNDS;
    }
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::diagnostics::convergence::moments;
    use crate::infer::stages::whitening::Whitening;
    use crate::targets::{Banana, GaussianMixture};
    use rand_distr::{Distribution, StandardNormal};

    /// Draws of a Gaussian with its log weights, and then of a mixture.
    fn adapted(model: &dyn Model, sd: f64, seed: u64) -> Adapted {
        let whitened = WhitenedModel::new(model, vec![0.0; 2], Whitening::Diagonal(vec![1.0; 2]));
        let mut drawn = Batch::zeros(2, 4000);
        let mut rng = stream(seed, 0, 0, 0);
        for i in 0..2 {
            drawn
                .column_mut(i)
                .iter_mut()
                .for_each(|x| *x = sd * Distribution::<f64>::sample(&StandardNormal, &mut rng));
        }
        let mut log_weights = vec![0.0; 4000];
        whitened.log_joint(&drawn, &mut log_weights).unwrap();
        for (s, w) in log_weights.iter_mut().enumerate() {
            let squared = (drawn.get(0, s).powi(2) + drawn.get(1, s).powi(2)) / (sd * sd);
            *w += 0.5 * squared + (2.0 * std::f64::consts::PI * sd * sd).ln();
        }
        mixture_importance(&whitened, (&drawn, &log_weights), 16_000, seed).unwrap().unwrap()
    }

    /// Catches a density that is not that of the draws, and a mixture that loses a mode: the evidence of both targets is 1, one corner of
    /// the square has .1 of the mass, and the weights become even.
    #[test]
    fn weights_of_a_mixture_become_even_and_keep_the_evidence() {
        let targets: [(&dyn Model, f64); 2] = [(&GaussianMixture::new(), 2.5), (&Banana::new(), 1.5)];
        for (model, sd) in targets {
            for seed in 1..4 {
                let Adapted { u, log_weights, .. } = adapted(model, sd, seed);
                let weights: Vec<f64> = log_weights.iter().map(|w| w.exp()).collect();
                let (mean, variance) = moments(&weights);
                let error = (variance / weights.len() as f64).sqrt();
                assert!(error < 0.02 && (mean - 1.0).abs() < 4.0 * error, "{mean} ± {error}");
                assert!(effective(&log_weights) > 6000.0, "{}", effective(&log_weights));
                if sd == 2.5 {
                    let corner = |s: &usize| u.get(0, *s) < 0.0 && u.get(1, *s) < 0.0;
                    let share: f64 = (0..weights.len()).filter(corner).map(|s| weights[s]).sum::<f64>() / 16_000.0;
                    assert!((share - 0.1).abs() < 0.015, "{share}");
                }
            }
        }
    }
}

//! Mixture population Monte Carlo (Cappé, Douc, Guillin, Marin and Robert, 2008) of a few latents whose posterior is far from one Gaussian:
//! a mixture of Student t distributions is fitted to weighted draws, and new draws from it get weights in turn.

use super::adaptive_importance::{
    Part, Proposal, TMixture, effective, moments_of, relevance, tempered, weighted_moments,
};
use super::pathfinder::Mode;
use super::resample::{BLOCK, MIDDLE, systematic};
use super::whitened::WhitenedModel;
use crate::diagnostics::psis::{VARIANCE_KHAT_MAX, psis};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector::{exp_shifted_columns, log_sum_exp_columns};
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
/// The least share of a mode or of a place where chains are in the first round, and the share of chains' correlations that is kept.
const PLACE: f64 = 0.02;
const CORRELATED: f64 = 0.9;
/// The draws of a round, the most rounds, and how many of these may have as many draws as are wanted.
const ROUND: usize = 4000;
const ROUNDS: u64 = 8;
const LONG_ROUNDS: u64 = 4;

/// Points, and how often each occurs.
struct Points {
    values: Batch,
    counts: Vec<f64>,
}

impl Points {
    /// As many as a mixture is fitted to, in proportion to these weights.
    fn of(values: &[Vec<f64>], log_weights: &[f64]) -> Self {
        let mut counts = vec![0.0; values.len()];
        systematic(log_weights, log_sum_exp(log_weights), FITTED, MIDDLE).for_each(|s| counts[s] += 1.0);
        let (values, counts): (Vec<_>, Vec<_>) =
            values.iter().cloned().zip(counts).filter(|(_, count)| *count > 0.0).unzip();
        Self { values: Batch::from_draws(&values), counts }
    }

    /// The values at which equal shares of the points end.
    fn spaced(&self, len: usize) -> Vec<Vec<f64>> {
        let (total, mut reached, mut at): (f64, f64, usize) = (self.counts.iter().sum(), 0.0, 0);
        let of = |c: usize| {
            while reached + self.counts[at] <= c as f64 * total / len as f64 {
                reached += self.counts[at];
                at += 1;
            }
            (0..self.values.columns_len()).map(|i| self.values.get(i, at)).collect()
        };
        (0..len).map(of).collect()
    }

    /// Room for as many points, twice.
    fn room(&self) -> [Batch; 2] {
        let (k, len) = (self.values.columns_len(), self.values.draws_len());
        [Batch::zeros(k, len), Batch::zeros(k, len)]
    }
}

/// A mixture fitted by expectation-maximisation to these points, beside further parts. `None` if they do not span the space.
fn fitted(points: &Points, components: usize, further: Vec<Part>) -> Option<TMixture> {
    let (mean, covariance) = moments_of(&points.values, &points.counts, &mut points.room());
    let narrower = (components as f64).powf(-2.0 / mean.len() as f64);
    let wide = Proposal::new(mean, &covariance)?.much_wider();
    let narrow: Vec<f64> = covariance.into_iter().map(|x| narrower * x).collect();
    let at = |value: Vec<f64>| Some(Part::new(1.0, Proposal::new(value, &narrow)?));
    let mut parts = points.spaced(components).into_iter().map(at).collect::<Option<Vec<_>>>()?;
    for _ in 0..ITERATIONS {
        parts = next(&parts, points, &narrow)?;
    }
    parts.extend(further);
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
            let of = |s: usize| mixture.value(&mut stream(seed, Purpose::MixtureImportance.step(), number, s as u64));
            let values: Vec<Vec<f64>> = own.map(of).collect();
            let (draws, mut log_weights) = (Batch::from_draws(&values), vec![0.0; values.len()]);
            model.log_joint(&draws, &mut log_weights)?;
            let log_densities = mixture.log_densities(&draws);
            log_weights.iter_mut().zip(log_densities).for_each(|(w, log_density)| *w = known(*w - log_density));
            Ok((values, log_weights))
        })
        .collect::<Result<_>>()?;
    let (values, log_weights): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Ok((values.concat(), log_weights.concat()))
}

/// The next components of an expectation-maximisation. Each has a few further points, so that its covariance is known, which are spread
/// as all are but closer together.
fn next(parts: &[Part], points: &Points, narrow: &[f64]) -> Option<Vec<Part>> {
    let Points { values, counts } = points;
    let (k, len, all) = (values.columns_len(), values.draws_len(), counts.iter().sum::<f64>());
    let further = k as f64 + 2.0;
    // The share of each component in each point, and the squared distances.
    let (mut shares, mut squared) = (Batch::zeros(parts.len(), len), Batch::zeros(parts.len(), len));
    let each = shares.as_mut_slice().par_chunks_exact_mut(len).zip(squared.as_mut_slice().par_chunks_exact_mut(len));
    each.zip(parts).for_each_init(
        || values.clone(),
        |away, ((log_densities, squared), part)| part.log_densities(values, away, log_densities, squared),
    );
    let mut totals = vec![0.0; len];
    log_sum_exp_columns(shares.as_slice(), &mut totals);
    exp_shifted_columns(shares.as_mut_slice(), &totals);
    let next = |room: &mut [Batch; 2], c: usize| {
        let own: Vec<f64> = shares.column(c).iter().zip(counts).map(|(share, count)| share * count).collect();
        let count: f64 = own.iter().sum();
        let share = count / all;
        if share < SHARE_MIN {
            return None;
        }
        // How much a point tells of the component.
        let told: Vec<f64> =
            own.iter().zip(squared.column(c)).map(|(own, squared)| own * relevance(*squared, k)).collect();
        let scale = told.iter().sum::<f64>() / count;
        let (mean, covariance) = moments_of(values, &told, room);
        // A point that occurs often tells no more of the covariance than one.
        let distinct = count * count / own.iter().map(|x| x * x).sum::<f64>();
        let entry = |(own, narrow): (&f64, &f64)| (distinct * scale * own + further * narrow) / (distinct + further);
        let covariance: Vec<f64> = covariance.iter().zip(narrow).map(entry).collect();
        Some(Part::new(share, Proposal::new(mean, &covariance)?))
    };
    let found: Vec<Option<Part>> = (0..parts.len()).into_par_iter().map_init(|| points.room(), next).collect();
    let found: Vec<Part> = found.into_iter().flatten().collect();
    (!found.is_empty()).then_some(found)
}

/// A log weight; −∞ if it is not a number.
fn known(w: f64) -> f64 {
    if w.is_nan() { f64::NEG_INFINITY } else { w }
}

/// Whether there are few latents, and none is discrete.
pub(super) fn suits(whitened: &WhitenedModel<dyn Model + '_>) -> bool {
    let k = whitened.latents().len();
    k <= LATENTS_MAX && whitened.continuous().len() == k
}

/// Distributions at modes, of which the draws so far may know nothing.
pub(super) fn at_modes(whitened: &WhitenedModel<dyn Model + '_>, modes: &[Mode]) -> Vec<Part> {
    let k = whitened.latents().len();
    let (_, whitening) = whitened.place();
    let total = log_sum_exp(&modes.iter().map(|mode| mode.elbo).collect::<Vec<_>>());
    let part = |mode: &Mode| {
        let columns: Vec<Vec<f64>> = (0..k)
            .map(|j| {
                let mut column: Vec<f64> = (0..k).map(|i| mode.whitening.get(i, j)).collect();
                whitening.solve(&mut column);
                column
            })
            .collect();
        let entry = |i: usize, j: usize| columns.iter().map(|column| column[i] * column[j]).sum::<f64>();
        let squared: Vec<f64> = (0..k * k).map(|at| entry(at / k, at % k)).collect();
        let at = whitened.whiten(&Batch::from_columns(mode.z.clone(), 1)).into_vec();
        Some(Part::new((mode.elbo - total).exp().max(PLACE), Proposal::new(at, &squared)?))
    };
    modes.iter().take(COMPONENTS_MAX).filter_map(part).collect()
}

/// A distribution for each place where chains are, with their moments; the correlations of few chains are taken for smaller ones.
pub(super) fn at_places(places: &[Batch]) -> Vec<Part> {
    let part = |place: &Batch| {
        let k = place.columns_len();
        let values: Vec<Vec<f64>> = (0..place.draws_len()).map(|s| (0..k).map(|i| place.get(i, s)).collect()).collect();
        let (mean, mut covariance) = weighted_moments(&values, &vec![0.0; values.len()])?;
        let off_diagonal = covariance.iter_mut().enumerate().filter(|(at, _)| at % (k + 1) > 0);
        off_diagonal.for_each(|(_, entry)| *entry *= CORRELATED);
        Some(Part::new(PLACE, Proposal::new(mean, &covariance)?))
    };
    places.iter().filter_map(part).collect()
}

/// Draws of a mixture.
pub(super) struct Adapted {
    pub(super) u: Batch,
    pub(super) log_weights: Vec<f64>,
    /// The number of components.
    pub(super) components: usize,
}

/// `len` draws with their log importance weights from a mixture that is learnt from these draws and theirs, at first beside these parts.
/// `None` if the weights do not allow it.
pub(super) fn mixture_importance(
    whitened: &WhitenedModel<dyn Model + '_>,
    (drawn, log_weights): (&Batch, &[f64]),
    mut further: Vec<Part>,
    len: usize,
    seed: u64,
) -> Result<Option<Adapted>> {
    let k = whitened.latents().len();
    let mut values: Vec<Vec<f64>> = (0..drawn.draws_len()).map(|s| (0..k).map(|i| drawn.get(i, s)).collect()).collect();
    let mut log_weights: Vec<f64> = log_weights.iter().copied().map(known).collect();
    let mut is_last = false;
    for round in 0..ROUNDS {
        let (weights, _) = tempered(&log_weights, (POINTS * (k + 1)) as f64);
        if !effective(&weights).is_finite() {
            break;
        }
        let points = Points::of(&values, &weights);
        let components = ((effective(&weights) as usize) / (POINTS * k)).clamp(1, COMPONENTS_MAX);
        let Some(mixture) = fitted(&points, components, std::mem::take(&mut further)) else { break };
        let own = if is_last { len } else { ROUND };
        (values, log_weights) = weighted(&mixture, whitened, own, seed, round)?;
        let khat = psis(&mut log_weights.clone()).khat;
        if is_last && khat <= VARIANCE_KHAT_MAX || round + 1 == ROUNDS {
            return Ok(Some(Adapted { u: Batch::from_draws(&values), log_weights, components: mixture.len() }));
        }
        is_last = is_last || khat <= VARIANCE_KHAT_MAX || round + LONG_ROUNDS >= ROUNDS;
    }
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::diagnostics::Verdict;
    use crate::diagnostics::convergence::moments;
    use crate::infer::stages::test_models::{Coupled, SPOTS, spot};
    use crate::infer::stages::whitening::Whitening;
    use crate::infer::{InferSettings, Starts, infer};
    use crate::objective::Estimate;
    use crate::targets::{Banana, GaussianMixture};
    use rand::RngExt;
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
        mixture_importance(&whitened, (&drawn, &log_weights), Vec::new(), 16_000, seed).unwrap().unwrap()
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
    /// Catches modes that are not searched for, modes that one approximation leaves out and the draws then lack, and doubts because chains
    /// do not move between modes: seven spots far apart have their shares, and the evidence is 1.
    #[test]
    fn modes_far_apart_have_their_shares() {
        for seed in 1..4 {
            let settings = InferSettings { seed, ..InferSettings::default() };
            let mut rng = stream(seed, 0, 0, 0);
            let points = Some(Batch::from_columns((0..512).map(|_| rng.random_range(-5.0..5.0)).collect(), 128));
            let starts = Starts { points, ..Starts::default() };
            let found = infer(&Coupled::spots(), &starts, &settings, &mut crate::Quiet).unwrap();
            assert_eq!(found.verdict(), Verdict::Trust, "{:?}", found.diagnostics());
            let Estimate { value, standard_error } = found.log_evidence();
            assert!(standard_error < 0.03 && value.abs() < 4.0 * standard_error, "{value} ± {standard_error}");
            let ess = found.effective_sample_size();
            for k in 0..SPOTS {
                let (share, at) = spot(k);
                let is_there = |s: &usize| (0..4).all(|i| (found.z.get(i, *s) - at[i]).abs() < 1.2);
                let drawn = (0..found.z.draws_len()).filter(is_there).count() as f64 / found.z.draws_len() as f64;
                let error = (share * (1.0 - share) / ess).sqrt();
                assert!((drawn - share).abs() < 5.0 * error, "{k}: {drawn}, not {share} ± {error}");
            }
        }
    }
}

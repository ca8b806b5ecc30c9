//! Nested Laplace approximation (Rue, Martino and Chopin, 2009) for very many latents x that a few others θ describe.
//!
//! One Gaussian over all of them cannot follow how the location and the scale of x change with θ. So θ is drawn from its marginal, with x
//! integrated out by Laplace's method, and x from the Gaussian at its mode given θ. If x is Gaussian given θ and the data, this is exact.
//! If the elements of x are independent given θ, each is integrated out and drawn on a grid of its own, and it is exact as well. So are
//! chains, where Laplace's method is not enough; other x are annealed there.

use super::adaptive_importance::{Proposal, TMixture, effective, tempered, wider};
use super::annealed::Annealing;
use super::conditional_chain::{ConditionalChains, Path, paths_of};
use super::conditional_laplace::{Conditional, Parts, TOGETHER, weights_of};
use super::hmc::work_of_move;
use super::resample::{MIDDLE, OVERSAMPLED, systematic};
use super::sparse_curvature::SparseCurvature;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::diagnostics::psis::{VARIANCE_KHAT_MAX, psis};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use hyperprior_math::special::log_sum_exp;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// The values of θ from which its marginal is learnt, and those that are kept, fewer if they take more than this work, in additions.
const LEARNT: usize = 256;
const KEPT: [usize; 2] = [768, 1024];
const WORK_KEPT: f64 = 1.5e7;
/// How much wider than its guess the distribution is that θ is drawn from, at first and then.
pub(super) const WIDER: [f64; 2] = [1.5, 1.1];
/// The most of θ that are searched for, the values in a round of the search, the most rounds, and the number of their random streams.
pub(super) const SEARCHED_MAX: usize = 8;
const SEARCHED: usize = 96;
const SEARCH_ROUNDS: u64 = 20;
const SEARCH_STREAM: u64 = 3;
/// The most rounds in which the marginal is learnt, how often draws are repeated with a better proposal, the share of θ that is effective at
/// the end (another attempt takes less time than moves of many latents), and their random streams.
const LEARNING_ROUNDS: u64 = 12;
const ATTEMPTS: u64 = 3;
const EVEN_MIN: f64 = 0.45;
const LEARNING_STREAM: u64 = 30;
const KEPT_STREAM: u64 = 50;
/// The values of θ, and draws of x for each, with which Laplace's method is tried, and the share of draws that must be effective, or else
/// chains are integrated out on grids, and other x annealed.
const TRIED: usize = 32;
const TRIED_EACH: usize = 16;
const EVEN: f64 = 0.5;
/// With at least this share, fewer draws of x for each θ are enough.
const NEARLY_ALL: f64 = 0.9;
/// The variance that the log weights of annealed draws should have, the numbers of powers, the most work, in additions, and the lengths
/// of steps that are tried, of which so many moves must be accepted.
const ANNEALED_VARIANCE: f64 = 0.4;
const POWERS: RangeInclusive<usize> = 4..=64;
const ANNEALING_WORK: f64 = 3e11;
const STEPS: [f64; 4] = [1.2, 0.6, 0.3, 0.15];
const ACCEPTED: f64 = 0.6;
/// The stream of the moves.
const ANNEALING_STREAM: u64 = 60;

/// Draws for some values of θ, their log weights, and the log weight of each θ.
pub(super) type Part = (Batch, Vec<f64>, Vec<f64>);

/// How x is drawn given θ.
#[derive(Clone, Debug)]
enum Given {
    /// From grids of independent elements, or by Laplace's method.
    Modes,
    Chains(Vec<Path>),
    Annealed(Annealing),
}

/// Draws of θ and x.
pub(in crate::infer) struct Nested {
    pub(in crate::infer) z: Batch,
    /// Their log importance weights.
    pub(in crate::infer) log_weights: Vec<f64>,
    /// The log weight of each θ, with x integrated out.
    of_theta: Vec<f64>,
    /// How many consecutive draws have the same θ.
    pub(in crate::infer) each: usize,
    /// How many draws there would be if every θ that was proposed had a finite density.
    pub(in crate::infer) proposed: usize,
}

/// The middle of the marginal of θ, with x at its mode there: where the mass is, though a density over θ and x together may be larger, or
/// unbounded, where the scale of x is small. θ is looked for by importance sampling whose proposal moves to the weighted mean, at first
/// with weights to a small power (population Monte Carlo; Cappé, Guillin, Marin and Robert, 2004). `None` if the model is not of this
/// kind. The points are where θ may be.
pub(super) fn marginal_centre(
    model: &dyn Model,
    sparse: &SparseCurvature,
    points: &Batch,
    seed: u64,
) -> Result<Option<Vec<f64>>> {
    let (n, theta) = (points.columns_len(), sparse.hubs());
    let others: Vec<usize> = (0..n).filter(|i| theta.binary_search(i).is_err()).collect();
    if theta.is_empty() || theta.len() > SEARCHED_MAX {
        return Ok(None);
    }
    let Some(curvature) = SparseCurvature::new(model, &others) else { return Ok(None) };
    centre(Parts::at(model, (theta, others), curvature, (0..n).map(|i| points.get(i, 0)).collect()), points, seed)
}

/// The middle of the marginal of θ, which may be where it is at one of these points.
pub(super) fn centre(mut parts: Parts, points: &Batch, seed: u64) -> Result<Option<Vec<f64>>> {
    let k = parts.theta.len();
    let candidates: Vec<Vec<f64>> =
        (0..points.draws_len()).map(|s| parts.theta.iter().map(|i| points.get(*i, s)).collect()).collect();
    let found: Vec<Vec<Option<Conditional>>> =
        candidates.par_chunks(TOGETHER).map(|theta| parts.conditionals(theta)).collect::<Result<_>>()?;
    let log_marginal = |one: &Conditional| one.log_p - one.factor.log_diagonal();
    let best = |a: Conditional, b: Conditional| if log_marginal(&b) > log_marginal(&a) { b } else { a };
    let Some(mut at) = found.into_iter().flatten().flatten().reduce(best) else { return Ok(None) };
    let mut proposal =
        Proposal { mean: parts.theta.iter().map(|i| at.point[*i]).collect(), scale: parts.scale.clone() };
    for round in 0..SEARCH_ROUNDS {
        parts.mean.clone_from(&at.point);
        let Some(Round { found, weights, even }) = parts.round(&mut proposal, SEARCHED, seed, SEARCH_STREAM + round)?
        else {
            continue;
        };
        parts.remember(&found);
        let is_found = even > 1.0 / 3.0;
        match parts.proposal(&found, &weights, wider(WIDER[0], k)) {
            Some(next) => proposal = next,
            None => proposal.scale.iter_mut().for_each(|x| *x *= 0.5),
        }
        let middle = parts.conditionals(&[proposal.mean.clone()])?.into_iter().flatten().next();
        at = match (middle, is_found) {
            (Some(middle), true) => return Ok(Some(middle.point)),
            (Some(middle), false) => middle,
            (None, _) => at,
        };
    }
    Ok(None)
}

/// Values of θ with their log weights, which are to a power if few would count, and the share that is effective; 0 if to a power.
struct Round {
    found: Vec<(Conditional, f64, f64)>,
    weights: Vec<f64>,
    even: f64,
}

impl Parts<'_> {
    /// A round of importance sampling. `None` if the density is finite at hardly any value; the next proposal is narrower then.
    fn round(&self, proposal: &mut Proposal, len: usize, seed: u64, number: u64) -> Result<Option<Round>> {
        let found = self.explore(&|rng| proposal.draw(rng), len, seed, number)?;
        if found.len() < len / 4 {
            proposal.scale.iter_mut().for_each(|x| *x *= 0.5);
            return Ok(None);
        }
        let (weights, power) = tempered(&weights_of(&found), 3.0 * self.theta.len() as f64 + 8.0);
        let even = if power == 1.0 { effective(&weights) / len as f64 } else { 0.0 };
        Ok(Some(Round { found, weights, even }))
    }

    /// A proposal for θ that is near its marginal, starting at a guess: by rounds of importance sampling, until the weights are even.
    fn learnt(&mut self, first: Proposal, seed: u64) -> Result<Proposal> {
        let (mut proposal, k) = (first, self.theta.len());
        for number in 0..LEARNING_ROUNDS {
            let Some(Round { found, weights, even }) =
                self.round(&mut proposal, LEARNT, seed, LEARNING_STREAM + number)?
            else {
                continue;
            };
            self.remember(&found);
            let is_found = even > 0.25;
            // With few weights that count, the covariance of many is not known.
            if k > SEARCHED_MAX && !is_found {
                break;
            }
            match self.proposal(&found, &weights, wider(WIDER[usize::from(is_found)], k)) {
                Some(next) => proposal = next,
                None => break,
            }
            if is_found {
                break;
            }
        }
        Ok(proposal)
    }
}

impl Parts<'_> {
    /// A better distribution for θ, by these log weights: with kernels where they are large, if there are few θ.
    fn next(&self, found: &[(Conditional, f64, f64)], log_weights: &[f64]) -> Option<TMixture> {
        let k = self.theta.len();
        let wide = self.proposal(found, log_weights, wider(WIDER[0], k))?;
        if k > SEARCHED_MAX {
            return Some(TMixture::defensive(wide));
        }
        TMixture::kernels(&self.thetas(found), log_weights, wide)
    }
}

/// `len` draws; `None` if the model is not of this kind.
pub(in crate::infer) fn nested_laplace(
    model: &dyn Model,
    (location, whitening): (&[f64], &Whitening),
    len: usize,
    seed: u64,
) -> Result<Option<Nested>> {
    let Some(mut parts) = Parts::new(model, location, whitening) else { return Ok(None) };
    let first = Proposal {
        mean: parts.theta.iter().map(|i| parts.mean[*i]).collect(),
        scale: parts.scale.iter().map(|x| wider(WIDER[0], parts.theta.len()) * x).collect(),
    };
    let mut from = TMixture::defensive(parts.learnt(first, seed)?);
    let kept = ((WORK_KEPT / model.joint_work() as f64) as usize).clamp(KEPT[0], KEPT[1]);
    let mut given: Option<(f64, Given)> = None;
    for attempt in 0..ATTEMPTS {
        let found = parts.explore(&|rng| from.draw(rng), kept, seed, KEPT_STREAM + attempt)?;
        if found.len() < kept / 2 {
            return Ok(None);
        }
        // By Laplace's method a better proposal takes little time.
        let by_laplace = weights_of(&found);
        if attempt == 0
            && effective(&by_laplace) < EVEN_MIN * kept as f64
            && let Some(next) = parts.next(&found, &by_laplace)
        {
            from = next;
            continue;
        }
        let (share, given) = match &mut given {
            Some(given) => given,
            none => none.insert(evenest(&parts, &found, seed)?),
        };
        // Draws that take longer have more even weights.
        let is_enough = *share >= NEARLY_ALL || !matches!(given, Given::Modes);
        let len = if is_enough { len / OVERSAMPLED } else { len };
        let mut nested = draws(&parts, &found, given, len.div_ceil(found.len()), seed)?;
        nested.proposed = kept * nested.each;
        // With x integrated out, θ may turn out to be elsewhere than by Laplace's method.
        let is_even = effective(&nested.of_theta) > EVEN_MIN * kept as f64
            && psis(&mut nested.of_theta.clone()).khat <= VARIANCE_KHAT_MAX;
        if attempt + 1 == ATTEMPTS || is_even {
            return Ok(Some(nested));
        }
        match parts.next(&found, &nested.of_theta) {
            Some(next) => from = next,
            None => return Ok(Some(nested)),
        }
    }
    Ok(None)
}

/// How x is drawn with the most even weights given θ, and the share of draws that is effective: by Laplace's method if that is enough, or
/// else as chains or annealed.
fn evenest(parts: &Parts, found: &[(Conditional, f64, f64)], seed: u64) -> Result<(f64, Given)> {
    let some = &found[..found.len().min(TRIED)];
    // With the variance of the log weights.
    let even = |given: &Given| -> Result<(f64, f64)> {
        let nested = draws(parts, some, given, TRIED_EACH, seed)?;
        // Weights that are all zero are not even.
        let share = |weights: &[f64]| (effective(weights) / weights.len() as f64).max(0.0);
        let of_groups = |f: &dyn Fn(&[f64]) -> f64| nested.log_weights.chunks(nested.each).map(f).sum::<f64>();
        Ok((of_groups(&share) / some.len() as f64, of_groups(&|weights| moments(weights).1) / some.len() as f64))
    };
    let (share, variance) = even(&Given::Modes)?;
    if share >= EVEN {
        return Ok((share, Given::Modes));
    }
    let mut best = (share, Given::Modes);
    if let Some(paths) = paths_of(parts) {
        let chains = Given::Chains(paths);
        let (share, _) = even(&chains)?;
        if share > best.0 {
            best = (share, chains);
        }
    }
    if best.0 < EVEN
        && let Some(annealing) = annealing(parts, some, variance, seed)?
    {
        let annealed = Given::Annealed(annealing);
        let (share, _) = even(&annealed)?;
        if share > best.0 {
            best = (share, annealed);
        }
    }
    Ok(best)
}

/// As many powers as log weights of this variance need, with the longest steps that are accepted; `None` if it takes too much work.
fn annealing(parts: &Parts, found: &[(Conditional, f64, f64)], variance: f64, seed: u64) -> Result<Option<Annealing>> {
    let powers = (variance / ANNEALED_VARIANCE).ceil();
    if !parts.model.gradient().is_some_and(|_| powers <= *POWERS.end() as f64) {
        return Ok(None);
    }
    let powers = (powers as usize).max(*POWERS.start());
    for step in STEPS {
        let accepted: Vec<f64> = found
            .par_iter()
            .enumerate()
            .map(|(number, (one, ..))| {
                let how = Annealing { powers: *POWERS.start(), step };
                Ok(parts.annealed(one, how, TRIED_EACH / OVERSAMPLED, (seed, number))?.2)
            })
            .collect::<Result<_>>()?;
        if accepted.iter().sum::<f64>() > ACCEPTED * found.len() as f64 {
            // A trajectory takes the more gradients the shorter its steps are.
            let moves = (KEPT[1] * OVERSAMPLED * powers) as f64 * (STEPS[0] / step).max(1.0);
            return Ok((moves * work_of_move(parts.model) <= ANNEALING_WORK).then_some(Annealing { powers, step }));
        }
    }
    Ok(None)
}

impl Parts<'_> {
    /// So many draws of x given θ with their log weights, and the share of the moves that were accepted.
    fn annealed(
        &self,
        one: &Conditional,
        how: Annealing,
        each: usize,
        (seed, number): (u64, usize),
    ) -> Result<(Batch, Vec<f64>, f64)> {
        let stream_of =
            |stream_number, number| stream(seed, Purpose::NestedLaplace.step(), stream_number, number as u64);
        let (mut z, mut log_weights) = (Batch::zeros(one.point.len(), each), vec![0.0; each]);
        (0..one.point.len()).for_each(|i| z.column_mut(i).fill(one.point[i]));
        self.draw(one, &mut stream_of(2, number), &mut z, &mut log_weights);
        let mut streams: Vec<Stream> = (0..each).map(|s| stream_of(ANNEALING_STREAM, number * each + s)).collect();
        let accepted = self.anneal(one, how, &mut streams, (&mut z, &mut log_weights))?;
        Ok((z, log_weights, accepted))
    }
}

/// Draws of x and θ, so many for each of these values of θ, in pairs.
fn draws(parts: &Parts, found: &[(Conditional, f64, f64)], given: &Given, each: usize, seed: u64) -> Result<Nested> {
    let (n, model) = (parts.mean.len(), parts.model);
    let each = each.next_multiple_of(2);
    let draws: Vec<Part> = found
        .par_iter()
        .enumerate()
        .map(|(number, (one, _, log_q))| {
            if let Given::Annealed(how) = given {
                let (z, mut log_weights, _) = parts.annealed(one, *how, each, (seed, number))?;
                log_weights.iter_mut().for_each(|w| *w -= log_q);
                let log_marginal = log_sum_exp(&log_weights) - (each as f64).ln();
                return Ok((z, log_weights, vec![log_marginal]));
            }
            let mut rng = stream(seed, Purpose::NestedLaplace.step(), 2, number as u64);
            let (mut z, mut energy) = (Batch::zeros(n, each), vec![0.0; each]);
            (0..n).for_each(|i| z.column_mut(i).fill(one.point[i]));
            let chains = match given {
                Given::Chains(paths) => ConditionalChains::new(parts, one, paths)?,
                _ => None,
            };
            let log_integral = match (chains, parts.grid(one)?) {
                (Some(chains), _) => {
                    chains.draw(&mut rng, &mut z, &mut energy);
                    chains.log_integral
                }
                (None, Some(grid)) => {
                    let all = parts.others.iter().enumerate();
                    all.for_each(|(j, i)| grid.draw(j, &mut rng, z.column_mut(*i), &mut energy));
                    grid.log_integral
                }
                (None, None) => parts.draw(one, &mut rng, &mut z, &mut energy),
            };
            let mut log_weights = vec![0.0; each];
            model.log_joint(&z, &mut log_weights)?;
            log_weights.iter_mut().zip(&energy).for_each(|(w, energy)| *w += energy - log_q);
            let log_marginal = one.log_p + log_integral - log_q;
            Ok((z, log_weights, vec![log_marginal]))
        })
        .collect::<Result<_>>()?;
    Ok(Nested::joined(draws, each))
}

impl Nested {
    /// All parts together; so many consecutive draws are a group.
    pub(super) fn joined(found: Vec<Part>, each: usize) -> Self {
        let n = found.first().map_or(0, |(z, ..)| z.columns_len());
        let len = found.iter().map(|(z, ..)| z.draws_len()).sum();
        let mut z = Batch::zeros(n, len);
        let (mut log_weights, mut of_theta, mut first) = (Vec::new(), Vec::new(), 0);
        for (own, weights, log_marginals) in found {
            let last = first + own.draws_len();
            (0..n).for_each(|i| z.column_mut(i)[first..last].copy_from_slice(own.column(i)));
            log_weights.extend(weights);
            of_theta.extend(log_marginals);
            first = last;
        }
        Self { z, log_weights, of_theta, each, proposed: len }
    }

    /// `len` draws in proportion to the weights of θ alone.
    pub(in crate::infer) fn by_marginal(&self, len: usize) -> Vec<usize> {
        let of_draws: Vec<f64> = self
            .of_theta
            .iter()
            .flat_map(|w| std::iter::repeat_n(*w, self.z.draws_len() / self.of_theta.len()))
            .collect();
        systematic(&of_draws, log_sum_exp(&of_draws), len, MIDDLE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::conditional_laplace::FLAT;
    use crate::infer::stages::test_models::Coupled;

    /// The mean and the standard deviation of the precision's marginal by Laplace's method, on a grid.
    fn on_grid(parts: &Parts, from: f64) -> (f64, f64) {
        let theta: Vec<Vec<f64>> = (0..160).map(|k| vec![from + 0.05 * f64::from(k)]).collect();
        let found: Vec<Option<Conditional>> =
            theta.chunks(16).flat_map(|theta| parts.conditionals(theta).expect("no fault")).collect();
        let log_m: Vec<f64> = found
            .iter()
            .map(|one| one.as_ref().map_or(f64::NEG_INFINITY, |c| c.log_p - c.factor.log_diagonal()))
            .collect();
        let log_sum = log_sum_exp(&log_m);
        let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
            log_m.iter().zip(&theta).map(|(m, theta)| (m - log_sum).exp() * f(theta[0])).sum()
        };
        let mean = moment(&|x| x);
        (mean, moment(&|x| (x - mean).powi(2)).sqrt())
    }

    /// Catches a proposal whose density is wrong, a wrong constant of Laplace's method, and a search that ends elsewhere: the draws by the
    /// weights of θ have the marginal of θ on a grid, and the centre is its middle.
    #[test]
    fn the_marginal_of_the_precision_is_that_on_a_grid() {
        let (walk, n) = (Coupled::walk(400), 401);
        let sparse = SparseCurvature::new(&walk, &(0..n).collect::<Vec<_>>()).expect("a sparse curvature");
        assert_eq!(sparse.hubs(), [0]);
        // From far away: a precision of e⁹, where the walk hardly moves.
        let mut start = vec![0.0; n];
        start[0] = 9.0;
        let centre = marginal_centre(&walk, &sparse, &Batch::from_columns(start, 1), 1).expect("no fault");
        let centre = centre.expect("a centre");
        let entries = sparse.mean(&walk, &(0..n).collect::<Vec<_>>(), &Batch::from_columns(centre.clone(), 1));
        let (_, factor) = sparse.definite(entries.expect("no fault").expect("finite"), FLAT).expect("a factor");
        let whitening = Whitening::Sparse(factor);
        let parts = Parts::new(&walk, &centre, &whitening).expect("a model of this kind");
        let (mean, sd) = on_grid(&parts, 3.0);
        assert!((centre[0] - mean).abs() < 0.3 * sd, "{} and {mean} ± {sd}", centre[0]);
        let nested = nested_laplace(&walk, (&centre, &whitening), 4000, 1).expect("no fault").expect("draws");
        let drawn: Vec<f64> = nested.by_marginal(4000).into_iter().map(|s| nested.z.get(0, s)).collect();
        let own = drawn.iter().sum::<f64>() / 4000.0;
        let own_sd = (drawn.iter().map(|x| (x - own).powi(2)).sum::<f64>() / 4000.0).sqrt();
        assert!((own - mean).abs() < 0.1 * sd && (own_sd / sd - 1.0).abs() < 0.08, "{own} ± {own_sd}, {mean} ± {sd}");
    }
}

//! Where the marginal of a few latents θ has its mass, with all others integrated out: population Monte Carlo (Cappé, Guillin, Marin and
//! Robert, 2004) from several points, and importance sampling from kernels around what it found.

use super::adaptive_importance::{Proposal, TMixture, effective, tempered, wider};
use super::gaussian_marginal::{Marginal, Points, Weighted};
use super::importance::log_mean;
use super::integration_summary::Integrated;
use super::nested_laplace::WIDER;
use crate::diagnostics::psis::{VARIANCE_KHAT_MAX, psis};
use crate::error::{Error, Result};
use crate::infer::settings::InferSettings;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::special::log_sum_exp;

/// With more θ, kernels around values cover less than one distribution for each place; how much wider than its values that is.
const KERNELS_THETA_MAX: usize = 4;
const AROUND: f64 = 1.1;
/// The values of θ from which draws are resampled: the most, unless that takes more than this work, in additions.
const KEPT: [usize; 2] = [1024, 8192];
const WORK_KEPT: f64 = 3e8;
/// Where θ is looked for: from so many of the best points that are apart, in rounds of so many values, until this share is effective; a
/// smaller one in the second half of the rounds, since one distribution may not fit better.
const SEARCHES: usize = 4;
const SEARCHED: usize = 96;
const SEARCH_ROUNDS: usize = 20;
const FOUND: [f64; 2] = [1.0 / 3.0, 0.15];
/// Points are apart if they are this many scales from each other; a search that comes this near to where another ended ends too.
const APART: f64 = 3.0;
const SAME: f64 = 0.5;
/// Searches whose marginal is this many nats lower are left out.
const LOWER: f64 = 20.0;
/// The values in a round of learning, the most rounds, and the effective share at which they end.
const LEARNT: usize = 512;
const LEARNING_ROUNDS: usize = 8;
const EVEN: f64 = 0.4;
/// How often values are drawn again with kernels where weights were large, and the share that must be effective, at first and in the end.
const ATTEMPTS: usize = 4;
const EVEN_ENOUGH: f64 = 0.45;
const EVEN_MIN: f64 = 0.2;
/// The nats by which the marginal at a known point may be above what the draws say, and those below the highest point at which there is no
/// mass.
const HIGHER: f64 = 4.0;
const NEGLIGIBLE: f64 = 40.0;
/// The most points with a kernel of their own because the marginal is high there, compared with the proposal, and their share.
const OUTPOSTS_MAX: usize = 32;
const OUTPOSTS: f64 = 0.05;
/// The largest share of the values of θ whose conditional could not be found.
const FAILED_MAX: f64 = 0.005;
/// The numbers of the random streams.
const LEARNING_STREAM: u64 = 1000;
const KEPT_STREAM: u64 = 2000;

impl Marginal<'_> {
    /// Values of θ with their log weights, those without a density left out; their densities; and the share of those that are not known.
    fn explore(&self, from: &TMixture, len: usize, seed: u64, number: u64) -> Result<(Weighted, Vec<f64>, f64)> {
        let value = |s: u64| from.value(&mut stream(seed, Purpose::GaussianMarginal.step(), 1 + number, s));
        let thetas: Vec<Vec<f64>> = (0..len as u64).map(value).collect();
        let log_q = from.log_densities(&Batch::from_draws(&thetas));
        let log_p = self.log_marginals(&thetas)?;
        let failed = log_p.iter().filter(|x| x.is_nan()).count() as f64 / len as f64;
        let (mut found, mut densities) = (Weighted { thetas: Vec::new(), log_weights: Vec::new() }, Vec::new());
        for ((theta, log_q), log_p) in thetas.into_iter().zip(log_q).zip(log_p) {
            if log_p.is_finite() {
                found.thetas.push(theta);
                found.log_weights.push(log_p - log_q);
                densities.push(log_p);
            }
        }
        Ok((found, densities, failed))
    }

    /// The places of the marginal's mass, the best first: population Monte Carlo from the best of these points. `None` if there are none.
    pub(super) fn search(&self, points: &Points, seed: u64, session: &mut Session) -> Result<Option<Vec<Proposal>>> {
        let k = self.division.theta.len();
        let log_p = &points.log_p;
        let mut order: Vec<usize> = (0..log_p.len()).filter(|s| log_p[*s].is_finite()).collect();
        order.sort_by(|a, b| log_p[*b].total_cmp(&log_p[*a]));
        let unit: Vec<f64> = (0..k).flat_map(|i| (0..=i).map(move |j| f64::from(i == j))).collect();
        let mut places: Vec<(Proposal, f64)> = Vec::new();
        let mut begun: Vec<&[f64]> = Vec::new();
        for s in order {
            let point = &points.thetas[s];
            let is_near = |other: &&[f64]| squared(point, other) < APART * APART;
            if begun.len() == SEARCHES {
                break;
            }
            if begun.iter().any(is_near) || places.iter().any(|(place, _)| place.is_near(point, APART)) {
                continue;
            }
            if session.advance("search", begun.len(), SEARCHES).is_break() {
                return Err(Error::Stopped { step: begun.len() as u64 });
            }
            begun.push(point);
            let start = Proposal { mean: point.clone(), scale: unit.clone() };
            if let Some(found) = self.centre(start, &places, seed, (begun.len() * SEARCH_ROUNDS) as u64)? {
                places.push(found);
            }
        }
        places.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some(top) = places.first().map(|(_, log)| *log) else { return Ok(None) };
        let mut kept: Vec<Proposal> = Vec::new();
        for (place, log_evidence) in places {
            if log_evidence > top - LOWER && !kept.iter().any(|other| other.is_near(&place.mean, APART / 2.0)) {
                kept.push(place);
            }
        }
        Ok(Some(kept))
    }

    /// Where the mass near a point is, and the log evidence by the last round; `None` if it is not found or known already.
    fn centre(
        &self,
        mut proposal: Proposal,
        known: &[(Proposal, f64)],
        seed: u64,
        number: u64,
    ) -> Result<Option<(Proposal, f64)>> {
        let k = self.division.theta.len();
        for round in 0..SEARCH_ROUNDS as u64 {
            let is_found = if 2 * round < SEARCH_ROUNDS as u64 { FOUND[0] } else { FOUND[1] };
            let (found, ..) = self.explore(&TMixture::of_one(proposal.clone()), SEARCHED, seed, number + round)?;
            if found.thetas.len() < SEARCHED / 4 {
                proposal.scale.iter_mut().for_each(|x| *x *= 0.5);
                continue;
            }
            let even = effective(&found.log_weights) / SEARCHED as f64;
            let (weights, power) = tempered(&found.log_weights, 3.0 * k as f64 + 8.0);
            match Proposal::of(&found.thetas, &weights, wider(WIDER[0], k)) {
                Some(next) => proposal = next,
                None => proposal.scale.iter_mut().for_each(|x| *x *= 0.5),
            }
            if known.iter().any(|(place, _)| place.is_near(&proposal.mean, SAME)) {
                return Ok(None);
            }
            if power == 1.0 && even > is_found {
                let log_evidence = log_sum_exp(&found.log_weights) - (SEARCHED as f64).ln();
                return Ok(Some((proposal, log_evidence)));
            }
        }
        Ok(None)
    }

    /// Draws of everything, from a proposal that is learnt from where the marginal's mass is.
    pub(super) fn learn_and_draw(
        &self,
        mut places: Vec<Proposal>,
        mut known: Points,
        settings: &InferSettings,
        session: &mut Session,
    ) -> Result<Option<Integrated>> {
        let (k, seed) = (self.division.theta.len(), settings.seed);
        let begun = known.thetas.len();
        let mut from = TMixture::around(&places);
        for round in 1..=LEARNING_ROUNDS as u64 {
            let number = LEARNING_STREAM + round;
            let (found, densities, _) = self.explore(&from, LEARNT, seed, number)?;
            let even = effective(&found.log_weights) / LEARNT as f64;
            let (weights, _) = tempered(&found.log_weights, 3.0 * k as f64 + 8.0);
            let log_evidence = log_sum_exp(&found.log_weights) - (LEARNT as f64).ln();
            let Some(learnt) = around(&mut places, &found.thetas, &weights, &[]) else { return Ok(None) };
            from = learnt;
            known.thetas.extend(found.thetas);
            known.log_p.extend(densities);
            if !(even > EVEN) {
                continue;
            }
            // A point of which the weights would make too much is in a part that the proposal leaves out.
            let Some(mean) = known.missed(&from, log_evidence).into_iter().next() else { break };
            let start = Proposal { mean, scale: places[0].scale.clone() };
            let Some((place, _)) = self.centre(start, &[], seed, number * SEARCH_ROUNDS as u64)? else { break };
            places.push(place);
            from = TMixture::around(&places);
        }
        known.thetas.truncate(begun);
        known.log_p.truncate(begun);
        let kept = ((WORK_KEPT / self.work()) as usize).clamp(KEPT[0], KEPT[1]);
        let mut outposts: Vec<Vec<f64>> = Vec::new();
        for attempt in 0..ATTEMPTS {
            if session.advance("integration", attempt, ATTEMPTS).is_break() {
                return Err(Error::Stopped { step: attempt as u64 });
            }
            let (found, _, failed) = self.explore(&from, kept, seed, KEPT_STREAM + attempt as u64)?;
            if failed > FAILED_MAX || found.thetas.is_empty() {
                return Ok(None);
            }
            let log_evidence = log_mean(&found.log_weights, 1, kept);
            let even = effective(&found.log_weights) / kept as f64;
            let mut smoothed = found.log_weights.clone();
            let tail = psis(&mut smoothed);
            let is_enough = if attempt + 1 < ATTEMPTS { EVEN_ENOUGH } else { EVEN_MIN };
            // A tail that is longer than the proposal's, or a place of its own: draws from there will tell.
            let missed = known.missed(&from, log_evidence.value);
            if tail.khat <= VARIANCE_KHAT_MAX && even > is_enough && missed.is_empty() {
                let weighted = Weighted { log_weights: smoothed, ..found };
                return self.draws(&weighted, (log_evidence, kept), Some((tail.khat, tail.ess)), settings);
            }
            outposts.splice(0..0, missed);
            outposts.truncate(OUTPOSTS_MAX);
            match around(&mut places, &found.thetas, &found.log_weights, &outposts) {
                Some(learnt) => from = learnt,
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}

impl Points {
    /// The points at which the marginal is far above what a proposal and its evidence say, the highest first.
    fn missed(&self, from: &TMixture, log_evidence: f64) -> Vec<Vec<f64>> {
        let log_q = from.log_densities(&Batch::from_draws(&self.thetas));
        let top = self.log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let above = self.log_p.iter().zip(log_q).map(|(log_p, log_q)| {
            if *log_p < top - NEGLIGIBLE { f64::NEG_INFINITY } else { log_p - log_q - log_evidence }
        });
        let mut found: Vec<(usize, f64)> = above.enumerate().filter(|(_, above)| *above > HIGHER).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.into_iter().map(|(s, _)| self.thetas[s].clone()).collect()
    }
}

/// Kernels at weighted values: each place has those that are nearest to it, with a bandwidth of their own. The places move to where their
/// values are. Outposts have kernels as wide as the first place.
fn around(
    places: &mut [Proposal],
    thetas: &[Vec<f64>],
    log_weights: &[f64],
    outposts: &[Vec<f64>],
) -> Option<TMixture> {
    let wide = Proposal::of(thetas, log_weights, wider(WIDER[0], places[0].mean.len()))?;
    let nearest = |theta: &Vec<f64>| {
        let distance = |place: &&Proposal| place.squared_distance(theta);
        let by_distance = |a: &usize, b: &usize| distance(&&places[*a]).total_cmp(&distance(&&places[*b]));
        (0..places.len()).min_by(by_distance).unwrap_or(0)
    };
    let of_place: Vec<usize> = thetas.iter().map(nearest).collect();
    let groups: Vec<(Vec<Vec<f64>>, Vec<f64>)> = (0..places.len())
        .map(|p| {
            let own = thetas.iter().zip(log_weights).zip(&of_place).filter(|(_, place)| **place == p);
            own.map(|((theta, w), _)| (theta.clone(), *w)).unzip()
        })
        .collect();
    for (place, (thetas, log_weights)) in places.iter_mut().zip(&groups) {
        if let Some(moved) = Proposal::of(thetas, log_weights, 1.0) {
            *place = moved;
        }
    }
    let outposts: Vec<Proposal> =
        outposts.iter().map(|mean| Proposal { mean: mean.clone(), scale: places[0].scale.clone() }).collect();
    if places[0].mean.len() > KERNELS_THETA_MAX {
        let beside = outposts.iter().map(|one| (OUTPOSTS / outposts.len() as f64, one.clone()));
        let shares: Vec<f64> = groups.iter().map(|(_, log_weights)| log_sum_exp(log_weights)).collect();
        let log_sum = log_sum_exp(&shares);
        let own = groups.iter().zip(shares).filter_map(|((thetas, log_weights), log)| {
            Some(((log - log_sum).exp(), Proposal::of(thetas, log_weights, AROUND)?))
        });
        return Some(TMixture::of_proposals(own.chain(beside), wide));
    }
    TMixture::kernels_of_groups(&groups, &outposts, OUTPOSTS, wide)
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

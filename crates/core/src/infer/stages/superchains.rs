//! Superchains (Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman, 2024): chains from overdispersed starts, several from
//! each, to see whether they end where the draws are.
//!
//! An approximation does not know what it misses. So some chains start far from it: at wide versions of its draws, where the ascents
//! of the mode search ended, distinct ones first, and at draws whose importance weights say that the approximation has too little mass
//! there. Chains that stay elsewhere show a part of the posterior without draws, if that part has mass. A lower bound on its mass comes
//! from a simple distribution at the place where they stay.

use super::curvature::{LocalGaussian, LogDensity, climb};
use super::missing_mass::{FEW, Place, larger, matters, share};
use super::overdispersed::{Delivered, overdispersed};
use super::resample::taken;
use super::resample_move::{MoveSchedule, mcmc_moves};
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::{self, moments};
use crate::error::Result;
use crate::infer::result::{MissedMode, SUPERCHAINS, Superchains};
use crate::model::Model;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::special::normal_quantile;
use rayon::prelude::*;
use std::ops::Range;

/// The number of chains in a superchain.
const CHAINS: usize = 16;
/// The minimum number of moves of a round, and how many rounds there are at most; each has twice as many moves as the one before.
const MOVES_MIN: usize = 40;
/// The same for split steps, which forget sooner.
const SPLIT_MOVES_MIN: usize = 12;
const ROUNDS: usize = 3;
/// A superchain whose mean is farther than this from that of the draws is elsewhere: five standard errors.
const ELSEWHERE: f64 = 1.25;
/// How many standard errors a difference must exceed.
const BEYOND: f64 = 4.0;
/// With more latents than this, some of these differences are large by chance.
const MANY: usize = 300;
/// Values farther than this from a latent's mean, in standard deviations, are put into a draw, for at most this many latents,
/// and fewer if there are many.
const APART: f64 = 4.0;
const SPLICES: usize = 32;
const SPLICES_WORK: usize = 1000;

/// The chains of a superchain.
fn of(superchain: usize) -> Range<usize> {
    superchain * CHAINS..(superchain + 1) * CHAINS
}

/// Superchains at their end.
pub(in crate::infer) struct SuperchainRun {
    pub(in crate::infer) found: Superchains,
    /// The chains, in whitened coordinates, and which superchains are far from the draws.
    chains: Batch,
    is_away: Vec<bool>,
}

impl SuperchainRun {
    /// A chain of each superchain, or a draw instead of one that stays where there is no mass.
    pub(in crate::infer) fn one_of_each(&self, u: &Batch) -> Batch {
        let mut out = Batch::zeros(u.columns_len(), SUPERCHAINS);
        let is_useless = |k: usize| self.is_away[k] && self.found.missed.is_none() && !self.found.strays();
        for i in 0..u.columns_len() {
            for k in 0..SUPERCHAINS {
                let draw = k * u.draws_len() / SUPERCHAINS;
                out.set(i, k, if is_useless(k) { u.get(i, draw) } else { self.chains.get(i, k * CHAINS) });
            }
        }
        out
    }

    /// The chains of each superchain.
    pub(in crate::infer) fn places(&self) -> Vec<Batch> {
        (0..SUPERCHAINS).map(|k| taken(&self.chains, &of(k).collect::<Vec<_>>())).collect()
    }

    /// Compares the superchains with other draws.
    pub(in crate::infer) fn compare(
        &self,
        whitened: &WhitenedModel<dyn Model + '_>,
        delivered: &Delivered,
        seed: u64,
    ) -> Result<Superchains> {
        let (found, _) = Scores::new(whitened, delivered.u)?.compare(whitened, &self.chains, delivered, seed)?;
        Ok(Superchains { moves: self.found.moves, stopped: self.found.stopped, ..found })
    }
}

/// Runs superchains, in rounds until they agree with the draws.
pub(in crate::infer) fn superchains(
    whitened: &WhitenedModel<dyn Model + '_>,
    delivered: &Delivered,
    seed: u64,
    session: &mut Session,
) -> Result<SuperchainRun> {
    let scores = Scores::new(whitened, delivered.u)?;
    let least = if matches!(whitened.place().1, Whitening::Sparse(_)) { SPLIT_MOVES_MIN } else { MOVES_MIN };
    let mut chains = starts(whitened, delivered, seed)?;
    let (mut found, mut is_away, mut made) = (Superchains::default(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let moves = least.max(delivered.moves) << round;
        made += moves;
        let moved = mcmc_moves(
            whitened,
            &mut chains,
            &MoveSchedule::fixed(moves),
            (seed, 2 + round as u64),
            session.reborrow(),
        )?;
        (found, is_away) = scores.compare(whitened, &chains, delivered, seed)?;
        found = Superchains { moves: made, stopped: moved.stopped, ..found };
        if found.stopped || found.agrees() {
            break;
        }
    }
    Ok(SuperchainRun { found, chains, is_away })
}

/// The starting points, each repeated for its chains.
fn starts(whitened: &WhitenedModel<dyn Model + '_>, delivered: &Delivered, seed: u64) -> Result<Batch> {
    let points = overdispersed(whitened, delivered, seed)?;
    let mut chains = Batch::zeros(points.columns_len(), SUPERCHAINS * CHAINS);
    for i in 0..points.columns_len() {
        for (s, x) in chains.column_mut(i).iter_mut().enumerate() {
            *x = points.get(i, s / CHAINS);
        }
    }
    Ok(chains)
}

/// Scores of a quantity that have mean 0 and variance 1 over the draws: normal scores of ranks, or standardised values.
enum Score {
    Ranks(Vec<f64>),
    Standardised { mean: f64, sd: f64 },
}

impl Score {
    fn new(column: &[f64], is_discrete: bool) -> Self {
        if is_discrete {
            let (mean, variance) = moments(column);
            return Self::Standardised { mean, sd: variance.sqrt() };
        }
        let mut sorted = column.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self::Ranks(sorted)
    }

    fn of(&self, x: f64) -> f64 {
        match self {
            Self::Ranks(sorted) => {
                let n = sorted.len() as f64;
                let (below, upto) = (sorted.partition_point(|y| *y < x), sorted.partition_point(|y| *y <= x));
                normal_quantile(((0.5 * (below + upto) as f64) / n).clamp(0.5 / n, 1.0 - 0.5 / n))
            }
            // A value that no draw has is as far away as can be told.
            Self::Standardised { mean, sd } => ((x - mean) / sd.max(1e-9)).clamp(-10.0, 10.0),
        }
    }
}

/// The scores of every latent and of the log density, which is the last.
struct Scores {
    each: Vec<Score>,
    /// The most probable draw.
    best: usize,
}

impl Scores {
    fn new(whitened: &WhitenedModel<dyn Model + '_>, u: &Batch) -> Result<Self> {
        let latents = whitened.latents();
        let mut log_p = vec![0.0; u.draws_len()];
        whitened.log_joint(u, &mut log_p)?;
        let mut each: Vec<Score> = (0..latents.len())
            .into_par_iter()
            .map(|i| Score::new(u.column(i), latents.support(i).is_discrete()))
            .collect();
        each.push(Score::new(&log_p, false));
        let best = (0..log_p.len()).max_by(|a, b| log_p[*a].total_cmp(&log_p[*b])).unwrap_or(0);
        Ok(Self { each, best })
    }

    /// Compares chains with the draws; returns also which superchains are far from them.
    fn compare(
        &self,
        whitened: &WhitenedModel<dyn Model + '_>,
        chains: &Batch,
        delivered: &Delivered,
        seed: u64,
    ) -> Result<(Superchains, Vec<bool>)> {
        let latents = whitened.latents();
        let mut log_p = vec![0.0; chains.draws_len()];
        whitened.log_joint(chains, &mut log_p)?;
        let value = |i: usize, s: usize| if i < latents.len() { chains.get(i, s) } else { log_p[s] };
        let scored: Vec<Vec<f64>> = (self.each.par_iter().enumerate())
            .map(|(i, score)| (0..chains.draws_len()).map(|s| score.of(value(i, s))).collect())
            .collect();
        let own = |i: usize, k: usize| &scored[i][of(k)];
        let is_away: Vec<bool> =
            (0..SUPERCHAINS).map(|k| (0..scored.len()).any(|i| !(moments(own(i, k)).0.abs() <= ELSEWHERE))).collect();
        let mut found = Superchains { away: is_away.iter().filter(|x| **x).count(), ..Superchains::default() };
        let joined: Vec<usize> = (0..SUPERCHAINS).filter(|k| !is_away[*k]).collect();
        let mut with_mass = joined.clone();
        // The largest of so many differences is that large by chance.
        let beyond = BEYOND.max(1.1 * (2.0 * (2.0 * latents.len() as f64).ln()).sqrt());
        // And the means of some of very many are closer together, by chance, than independent chains are expected to be.
        let least = if latents.len() > MANY { 1.0 / CHAINS as f64 } else { 0.0 };
        for k in (0..SUPERCHAINS).filter(|k| is_away[*k]) {
            let place = Place::new(whitened, chains, &log_p, of(k), seed)?;
            found.missed = larger(found.missed, place.missed(whitened, delivered.u, delivered.log_evidence));
            with_mass.extend(place.has_mass(delivered.log_evidence).then_some(k));
        }
        for i in 0..latents.len() {
            let rhat = convergence::rhat((0..SUPERCHAINS).map(|k| moments(&chains.column(i)[of(k)])));
            if !(rhat <= found.nested_rhat) {
                (found.nested_rhat, found.latent) = (rhat, latents.name(i));
            }
            if joined.len() < 2 {
                continue;
            }
            let joined_rhat = convergence::rhat(with_mass.iter().map(|k| moments(own(i, *k))));
            if !(joined_rhat <= found.joined_rhat) {
                (found.joined_rhat, found.slowest) = (joined_rhat, latents.name(i));
            }
            // The squares of standard normal scores have variance 2.
            let excess = |f: &dyn Fn(f64) -> f64, (expected, of_scores): (f64, f64)| {
                let means: Vec<f64> =
                    joined.iter().map(|k| own(i, *k).iter().map(|x| f(*x)).sum::<f64>() / CHAINS as f64).collect();
                let (mean, variance) = moments(&means);
                let far = (mean - expected).abs();
                let variance = variance.max(least * of_scores);
                if far > beyond * (variance / means.len() as f64).sqrt() { far } else { 0.0 }
            };
            let (shift, spread) = (excess(&|x| x, (0.0, 1.0)), excess(&|x| x * x, (1.0, 2.0)));
            if shift > found.shift {
                (found.shift, found.shifted) = (shift, latents.name(i));
            }
            if spread > found.spread && !latents.support(i).is_discrete() {
                (found.spread, found.spreading) = (spread, latents.name(i));
            }
        }
        // Superchains that stay where they are may be where there are no draws, though each latent has draws near its value.
        let staying = if found.have_joined() { Vec::new() } else { joined };
        for k in staying {
            let place = Place::new(whitened, chains, &log_p, of(k), seed)?;
            found.missed = larger(found.missed, place.missed(whitened, delivered.u, delivered.log_evidence));
        }
        found.missed = larger(found.missed, self.spliced(whitened, chains, &is_away, delivered, seed)?);
        Ok((found, is_away))
    }

    /// A superchain far away in many latents has little mass, though each of its values may be a mode of that latent's own. So single
    /// values of superchains elsewhere are put into the most probable draw.
    fn spliced(
        &self,
        whitened: &WhitenedModel<dyn Model + '_>,
        chains: &Batch,
        is_away: &[bool],
        delivered: &Delivered,
        seed: u64,
    ) -> Result<Option<MissedMode>> {
        let continuous = whitened.continuous();
        let Some(gradient) = whitened.gradient().filter(|_| !continuous.is_empty()) else { return Ok(None) };
        let density = LogDensity::new(whitened, gradient, continuous);
        let (draws, others) = (whitened.restored(delivered.u), whitened.restored(chains));
        let (mut missed, mut tried): (Option<MissedMode>, usize) = (None, 0);
        for &i in continuous {
            let (mean, variance) = moments(draws.column(i));
            let own = |k: usize| moments(&others.column(i)[of(k)]).0;
            let is_far = |k: &usize| is_away[*k] && (own(*k) - mean).abs() > APART * variance.sqrt();
            let Some(k) = (0..SUPERCHAINS).find(is_far) else { continue };
            tried += 1;
            if tried > (SPLICES_WORK / continuous.len()).clamp(4, SPLICES) {
                break;
            }
            let value = own(k);
            let mut z: Vec<f64> = (0..draws.columns_len()).map(|j| draws.get(j, self.best)).collect();
            z[i] = value;
            let mut u = whitened.whiten(&Batch::from_columns(z, 1));
            climb(density, u.as_mut_slice())?;
            let local = LocalGaussian::new(density, u.as_slice(), seed)?;
            let Some(log_mass) = local.and_then(|local| local.log_mass()) else { continue };
            let z = whitened.restored(&u).as_slice().to_vec();
            let share = share(log_mass, delivered.log_evidence);
            let is_there = |x: f64| (x - value).abs() < 0.5 * (value - mean).abs();
            let drawn = draws.column(i).iter().filter(|x| is_there(**x)).count() as f64 / draws.draws_len() as f64;
            if is_there(z[i]) && matters(share, (z[i] - mean).abs() / variance.sqrt()) && drawn < FEW * share {
                missed = larger(missed, Some(MissedMode { share, drawn, z }));
            }
        }
        Ok(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_standard_over_the_draws() {
        let column: Vec<f64> = (0..999).map(|s| (s as f64 - 499.0).powi(3)).collect();
        let score = Score::new(&column, false);
        let scores: Vec<f64> = column.iter().map(|x| score.of(*x)).collect();
        let (mean, variance) = moments(&scores);
        assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        assert!(score.of(1e12) > 3.0 && score.of(f64::NEG_INFINITY) < -3.0);
        assert_eq!(Score::new(&[1.0; 20], true).of(0.0), -10.0);
    }
}

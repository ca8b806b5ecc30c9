//! Chains over discrete latents d and a few continuous latents θ, with the latents that are Gaussian given these integrated out.
//!
//! For models whose discrete latents have too many states to sum over, as the indicators of a regression with many predictors. A move is
//! judged by the exact marginal density of (θ, d) (a collapsed sampler; Liu, 1994): an indicator that is switched on has its coefficient
//! integrated out, so that no chain waits until a coefficient happens to fit. A sweep proposes another value of each discrete latent, then
//! exchanges of the values of two, as one of two correlated predictors replaces the other, then steps of θ.

use super::adaptive_importance::weighted_moments;
use super::ascent::{ASCENTS, Starts, scatter};
use super::gaussian_division::Division;
use super::gaussian_marginal::{Marginal, best_of};
use super::integration_summary::{CollapsedSummary, Integrated, IntegrationSummary};
use crate::diagnostics::chains::ChainStatistics;
use crate::error::{Error, Result};
use crate::infer::result::{CHAINS_RHAT_MAX, ESS_MIN, ess_min, resampled_ess};
use crate::infer::settings::InferSettings;
use crate::model::Support;
use crate::session::Session;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::{Purpose, Stream, stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::cmp::Ordering::Equal;

/// The number of chains.
const CHAINS: usize = ASCENTS;
/// The sweeps of the warm-up, and those after which θ gets new steps, from as many sweeps before.
const WARM_UP: usize = 60;
const LEARNT_FROM: usize = 15;
/// The sweeps before the chains are compared for the first time, and how often that is doubled.
const ROUND: usize = 100;
const ROUNDS: usize = 4;
/// The chains are given up if R̂ is above this in the second round.
const HOPELESS: f64 = 1.3;
/// The most work that chains of two rounds may take, in additions.
const WORK_MAX: f64 = 1e11;
/// The steps of θ in a sweep, and the share of them that should be accepted.
const THETA_MOVES: usize = 4;
const ACCEPTED: f64 = 0.3;
/// How often a pair with different values is looked for.
const TRIES: usize = 32;
/// The effective draws that end the chains, and the least share of the draws in which a discrete latent has another value than usually, if
/// it is to be compared.
const ENOUGH: f64 = 4.0 * ESS_MIN;
const RARE: f64 = 0.01;
/// The largest share of the values of θ and d whose integral could not be found.
pub(super) const FAILED_MAX: f64 = 0.005;
/// The number of the random streams.
const CHAINS_STREAM: u64 = 5000;

/// Values of the latents that are not integrated out, and the log of the integral over the others.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) theta: Vec<f64>,
    pub(super) discrete: Vec<f64>,
    pub(super) log_p: f64,
}

/// The steps of θ: a factor, and the lower triangle that it multiplies.
struct Steps {
    factor: f64,
    scale: Vec<f64>,
}

struct Chains {
    places: Vec<Place>,
    streams: Vec<Stream>,
    /// The smallest value of each discrete latent, and how many it has.
    ranges: Vec<(f64, usize)>,
    /// For every kind of move, the values tried, and those whose integral could not be found.
    tried: Vec<[usize; 2]>,
}

impl Chains {
    fn new(places: Vec<Place>, streams: Vec<Stream>, ranges: Vec<(f64, usize)>) -> Self {
        // One kind for each discrete latent, then exchanges, then steps.
        let tried = vec![[0, 0]; ranges.len() + 2];
        Self { places, streams, ranges, tried }
    }

    /// Whether some kind of move meets too many values whose integral cannot be found: they would have no mass.
    fn fail(&self) -> bool {
        self.tried.iter().any(|[tried, failed]| *failed as f64 > FAILED_MAX * *tried as f64)
    }

    /// Proposes something for every chain, symmetrically, and accepts by the densities; returns the share that was accepted.
    fn propose(
        &mut self,
        marginal: &Marginal,
        kind: usize,
        change: impl Fn(&mut Place, &[(f64, usize)], &mut Stream) -> bool,
    ) -> Result<f64> {
        let (mut moving, mut proposed) = (Vec::new(), Vec::new());
        for (c, (place, rng)) in self.places.iter().zip(&mut self.streams).enumerate() {
            let mut other = place.clone();
            if change(&mut other, &self.ranges, rng) {
                moving.push(c);
                proposed.push(other);
            }
        }
        let log_p = marginal.log_masses_at(&proposed)?;
        let mut accepted = 0;
        for ((c, mut other), log_p) in moving.iter().zip(proposed).zip(log_p) {
            self.tried[kind][1] += usize::from(log_p.is_nan());
            other.log_p = log_p;
            if self.streams[*c].random::<f64>().ln() < log_p - self.places[*c].log_p {
                self.places[*c] = other;
                accepted += 1;
            }
        }
        self.tried[kind][0] += moving.len();
        Ok(f64::from(accepted) / moving.len().max(1) as f64)
    }

    /// One sweep of every chain; returns the share of the steps of θ that were accepted.
    fn sweep(&mut self, marginal: &Marginal, steps: &Steps) -> Result<f64> {
        for d in (0..self.ranges.len()).filter(|d| self.ranges[*d].1 > 1).collect::<Vec<_>>() {
            self.propose(marginal, d, |place, ranges, rng| {
                let (low, len) = ranges[d];
                let other = low + rng.random_range(0..len - 1) as f64;
                place.discrete[d] = if other < place.discrete[d] { other } else { other + 1.0 };
                true
            })?;
        }
        for _ in 0..self.ranges.len() / 2 {
            self.propose(marginal, self.ranges.len(), exchange)?;
        }
        let mut accepted = 0.0;
        for _ in 0..THETA_MOVES * usize::from(!marginal.division.theta.is_empty()) {
            accepted +=
                self.propose(marginal, self.ranges.len() + 1, |place, _, rng| steps.add(&mut place.theta, rng))?;
        }
        Ok(accepted / THETA_MOVES as f64)
    }
}

impl Steps {
    fn add(&self, theta: &mut [f64], rng: &mut Stream) -> bool {
        let e: Vec<f64> = theta.iter().map(|_| StandardNormal.sample(rng)).collect();
        for (i, x) in theta.iter_mut().enumerate() {
            *x += self.factor * (0..=i).map(|j| self.scale[packed(i, j)] * e[j]).sum::<f64>();
        }
        true
    }
}

/// Exchanges the values of two discrete latents with the same range. An exchange does not change how many pairs differ, so that looking
/// for one with different values is symmetric.
fn exchange(place: &mut Place, ranges: &[(f64, usize)], rng: &mut Stream) -> bool {
    for _ in 0..TRIES {
        let [i, j] = [0, 0].map(|_| rng.random_range(0..ranges.len()));
        if ranges[i] == ranges[j] && place.discrete[i] != place.discrete[j] {
            place.discrete.swap(i, j);
            return true;
        }
    }
    false
}

/// The places of the chains after some sweeps, sweep by sweep.
struct Kept<'a> {
    sweeps: &'a [Vec<Place>],
}

impl Kept<'_> {
    /// A quantity, chain by chain.
    fn chains(&self, of: impl Fn(&Place) -> f64) -> Vec<f64> {
        (0..CHAINS).flat_map(|c| self.sweeps.iter().map(move |places| &places[c])).map(of).collect()
    }

    fn summary(&self) -> CollapsedSummary {
        let place = &self.sweeps[0][0];
        let mut quantities = vec![self.chains(|place| place.log_p)];
        quantities.extend((0..place.theta.len()).map(|i| self.chains(|place| place.theta[i])));
        let discrete = (0..place.discrete.len()).map(|d| self.chains(|place| place.discrete[d]));
        quantities.extend(discrete.filter(|values| {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let most = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0);
            most as f64 <= (1.0 - RARE) * values.len() as f64
        }));
        let each: Vec<ChainStatistics> =
            quantities.par_iter().map(|values| ChainStatistics::new(values, CHAINS)).collect();
        CollapsedSummary {
            chains: CHAINS,
            sweeps: self.sweeps.len(),
            rhat: each.iter().map(|one| one.rhat).fold(1.0, f64::max),
            ess_bulk: each.iter().map(|one| one.ess_bulk).fold(f64::INFINITY, f64::min),
            ess_tail: each.iter().map(|one| one.ess_tail).fold(f64::INFINITY, f64::min),
        }
    }
}

impl CollapsedSummary {
    fn agrees(&self, ess: f64) -> bool {
        self.rhat <= CHAINS_RHAT_MAX && self.ess_bulk >= ess && self.ess_tail >= ESS_MIN.min(ess)
    }
}

impl Division {
    /// Whether chains would not take too much work, if a value of (θ, d) takes this.
    pub(super) fn suits_chains(&self, work: f64) -> bool {
        let of_sweep = 3 * self.discrete.len() / 2 + THETA_MOVES;
        let values = CHAINS * (WARM_UP + 2 * ROUND) * of_sweep;
        !self.discrete.is_empty() && values as f64 * work <= WORK_MAX
    }
}

impl Marginal<'_> {
    fn put(&self, place: &Place, point: &mut [f64]) {
        self.division.theta.iter().zip(&place.theta).for_each(|(i, x)| point[*i] = *x);
        self.division.discrete.iter().zip(&place.discrete).for_each(|(i, x)| point[*i] = *x);
    }

    pub(super) fn log_masses_at(&self, places: &[Place]) -> Result<Vec<f64>> {
        self.conditional.log_masses(places.len(), &|s, point| self.put(&places[s], point))
    }

    /// Chains at the starts of a fit. `None` if none of these is possible, or if too many have the same discrete latents: then nothing would
    /// tell whether the chains have seen all that matters. For the same reason given values are ignored.
    fn begin(&mut self, starts: &Starts, seed: u64) -> Result<Option<Chains>> {
        let streams = |number: u64| -> Vec<Stream> {
            (0..CHAINS as u64)
                .map(|c| stream(seed, Purpose::GaussianMarginal.step(), CHAINS_STREAM + 10 * number, c))
                .collect()
        };
        let starts = Starts { given: None, ..starts.clone() };
        let begun = match scatter(self.model, &starts, 0, &mut streams(1)) {
            Err(Error::NotFinite { .. }) => return Ok(None),
            begun => begun?,
        };
        let of = |columns: &[usize], c: usize| columns.iter().map(|i| begun.get(*i, c)).collect::<Vec<f64>>();
        let place = |c: usize| Place {
            theta: of(&self.division.theta, c),
            discrete: of(&self.division.discrete, c),
            log_p: f64::NEG_INFINITY,
        };
        let mut places: Vec<Place> = (0..CHAINS).map(place).collect();
        self.conditional.move_to((0..begun.columns_len()).map(|i| begun.get(i, 0)).collect());
        for _ in 0..2 {
            let log_p = self.log_masses_at(&places)?;
            let Some(best) = best_of(&log_p) else { return Ok(None) };
            self.centre_at_place(&places[best])?;
        }
        let log_p = self.log_masses_at(&places)?;
        places.iter_mut().zip(log_p).for_each(|(place, log_p)| place.log_p = log_p);
        let possible: Vec<Place> = places.into_iter().filter(|place| place.log_p.is_finite()).collect();
        let mut distinct: Vec<&[f64]> = possible.iter().map(|place| place.discrete.as_slice()).collect();
        distinct.sort_by(|a, b| a.iter().zip(*b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(Equal));
        distinct.dedup();
        if 2 * distinct.len() < CHAINS {
            return Ok(None);
        }
        let places = (0..CHAINS).map(|c| possible[c % possible.len()].clone()).collect();
        Ok(Some(Chains::new(places, streams(0), self.ranges())))
    }

    pub(super) fn ranges(&self) -> Vec<(f64, usize)> {
        let range = |i: &usize| match self.model.latents().support(*i) {
            Support::Integers { lower, upper } => (lower, (upper - lower) as usize + 1),
            _ => (0.0, 1),
        };
        self.division.discrete.iter().map(range).collect()
    }

    fn centre_at_place(&mut self, place: &Place) -> Result<()> {
        let (theta, discrete) = (&self.division.theta, &self.division.discrete);
        self.conditional.centre_at(&|point| {
            theta.iter().zip(&place.theta).for_each(|(i, x)| point[*i] = *x);
            discrete.iter().zip(&place.discrete).for_each(|(i, x)| point[*i] = *x);
        })
    }

    /// The warm-up: steps of θ as long as the chains vary.
    fn warm_up(&mut self, chains: &mut Chains, session: &mut Session) -> Result<Steps> {
        let k = self.division.theta.len();
        let identity = (0..k).flat_map(|i| (0..=i).map(move |j| f64::from(i == j))).collect();
        let mut steps = Steps { factor: 0.5 / (k.max(1) as f64).sqrt(), scale: identity };
        let mut last: Vec<Vec<f64>> = Vec::new();
        for sweep in 1..=WARM_UP {
            let accepted = chains.sweep(self, &steps)?;
            steps.factor *= ((accepted - ACCEPTED) / (sweep as f64 / LEARNT_FROM as f64).max(1.0)).exp();
            last.extend(chains.places.iter().map(|place| place.theta.clone()));
            if sweep % LEARNT_FROM == 0 {
                if let Some(scale) = weighted_moments(&last, &vec![0.0; last.len()])
                    .filter(|_| k > 0)
                    .and_then(|(_, covariance)| cholesky(&covariance, k))
                {
                    steps = Steps { factor: 2.38 / (k as f64).sqrt(), scale };
                }
                last.clear();
                let log_p: Vec<f64> = chains.places.iter().map(|place| place.log_p).collect();
                if let Some(best) = best_of(&log_p) {
                    self.centre_at_place(&chains.places[best])?;
                }
            }
            advance(session, sweep, WARM_UP + ROUND)?;
        }
        Ok(steps)
    }

    /// Draws by chains over θ and the discrete latents; nothing if they do not agree.
    pub(super) fn chains(
        &mut self,
        starts: &Starts,
        settings: &InferSettings,
        session: &mut Session,
    ) -> Result<Option<Integrated>> {
        let Some(mut chains) = self.begin(starts, settings.seed)? else { return Ok(None) };
        let steps = self.warm_up(&mut chains, session)?;
        let mut kept: Vec<Vec<Place>> = Vec::new();
        for round in 0..ROUNDS {
            // The first half may still depend on the starts.
            kept.drain(..kept.len() / 2);
            let len = ROUND << round;
            while kept.len() < len {
                chains.sweep(self, &steps)?;
                kept.push(chains.places.clone());
                advance(session, WARM_UP + kept.len(), WARM_UP + len)?;
            }
            if chains.fail() {
                return Ok(None);
            }
            let found = Kept { sweeps: &kept }.summary();
            let is_last = round + 1 == ROUNDS;
            if found.agrees(if is_last { ess_min(settings.draws) } else { ENOUGH.min(settings.draws as f64) }) {
                let tried = chains.tried.iter().map(|[tried, _]| tried).sum();
                return self.of_chains(&kept, (found, tried), settings);
            }
            if round > 0 && found.rhat > HOPELESS {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn of_chains(
        &self,
        kept: &[Vec<Place>],
        (found, tried): (CollapsedSummary, usize),
        settings: &InferSettings,
    ) -> Result<Option<Integrated>> {
        let all = kept.len() * CHAINS;
        let number = |s: usize| s * all / settings.draws;
        let place =
            |s: usize, point: &mut [f64]| self.put(&kept[number(s) % kept.len()][number(s) / kept.len()], point);
        let Some(z) = self.completed(&place, settings)? else { return Ok(None) };
        let Some(log_evidence) = self.evidence(kept, found.ess_bulk, settings.seed)? else { return Ok(None) };
        let ess = resampled_ess(settings.draws, found.ess_bulk, 1.0);
        let summary = IntegrationSummary { values: tried, chains: Some(found), ..self.summary(ess) };
        Ok(Some(Integrated { z, log_evidence, summary }))
    }
}

fn advance(session: &mut Session, done: usize, of: usize) -> Result<()> {
    if session.advance("chains", done, of).is_break() { Err(Error::Stopped { step: done as u64 }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gradient, Latents, Model};
    use hyperprior_math::batch::Batch;
    use hyperprior_math::special::log_sum_exp;
    use hyperprior_testkit::goodness::{chi_square, kolmogorov_smirnov};

    const PREDICTORS: usize = 4;
    const Y: [f64; 6] = [1.2, -0.4, 0.9, 2.1, -1.0, 0.3];
    const SMALL: f64 = 1e-4;

    /// y_i is normal with mean Σ x_ij d_j b_j and log precision θ, b and θ are standard normal, and d_j is 1 with probability 0.3; the first
    /// is one of 0, 1 and 2.
    struct Selection(Latents);

    impl Selection {
        fn new() -> Self {
            let three = Support::Integers { lower: 0.0, upper: 2.0 };
            let d = (0..PREDICTORS).map(|j| (format!("d[{j}]"), if j == 0 { three } else { Support::BINARY }));
            let b = (0..PREDICTORS).map(|j| (format!("b[{j}]"), Support::Real));
            Self(Latents::scalars(std::iter::once(("theta".to_owned(), Support::Real)).chain(d).chain(b)).unwrap())
        }

        fn x(i: usize, j: usize) -> f64 {
            ((i * 3 + j * j) as f64).sin() + 0.5
        }
    }

    impl Model for Selection {
        fn latents(&self) -> &Latents {
            &self.0
        }

        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            let mut d_z = Batch::zeros(z.columns_len(), z.draws_len());
            self.log_joint_gradient(z, out, &mut d_z)
        }

        fn gradient(&self) -> Option<&dyn Gradient> {
            Some(self)
        }

        fn gaussian_given_others(&self, _: usize) -> Option<Vec<usize>> {
            Some((1 + PREDICTORS..1 + 2 * PREDICTORS).collect())
        }

        fn flat_priors(&self) -> Vec<usize> {
            Vec::new()
        }
    }

    impl Gradient for Selection {
        fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
            let (d, b) = (|j: usize, s: usize| z.get(1 + j, s), |j: usize, s: usize| z.get(1 + PREDICTORS + j, s));
            for (s, out) in out.iter_mut().enumerate() {
                let theta = z.get(0, s);
                let (mut log_p, mut d_theta) = (-0.5 * theta * theta, -theta);
                let mut d_b = [0.0; PREDICTORS];
                for j in 0..PREDICTORS {
                    log_p += d(j, s) * (0.3_f64 / 0.7).ln() - 0.5 * b(j, s).powi(2);
                    d_b[j] = -b(j, s);
                }
                for (i, y) in Y.iter().enumerate() {
                    let mean: f64 = (0..PREDICTORS).map(|j| Self::x(i, j) * d(j, s) * b(j, s)).sum();
                    log_p += 0.5 * theta - 0.5 * theta.exp() * (y - mean).powi(2);
                    d_theta += 0.5 - 0.5 * theta.exp() * (y - mean).powi(2);
                    (0..PREDICTORS).for_each(|j| d_b[j] += theta.exp() * (y - mean) * Self::x(i, j) * d(j, s));
                }
                *out = log_p;
                d_z.set(0, s, d_theta);
                d_b.iter().enumerate().for_each(|(j, d)| d_z.set(1 + PREDICTORS + j, s, *d));
            }
            Ok(())
        }
    }

    /// All states, and for each the cumulative marginal of θ on a line.
    fn exact(marginal: &Marginal, line: &[f64]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let ranges = marginal.ranges();
        let values: Vec<Vec<f64>> =
            ranges.iter().map(|(low, len)| (0..*len).map(|k| low + k as f64).collect()).collect();
        let states = hyperprior_testkit::enumerate::product(&values);
        let places: Vec<Place> = states
            .iter()
            .flat_map(|d| line.iter().map(move |t| Place { theta: vec![*t], discrete: d.clone(), log_p: f64::NAN }))
            .collect();
        let log_p = marginal.log_masses_at(&places).unwrap();
        let total = log_sum_exp(&log_p);
        let cumulative = |log_p: &[f64]| {
            let mut sum = 0.0;
            log_p
                .iter()
                .map(|log| (log - total).exp())
                .map(|p| {
                    sum += p;
                    sum
                })
                .collect()
        };
        (states, log_p.chunks(line.len()).map(cumulative).collect())
    }

    /// Catches a proposal that is not symmetric, an exchange of values that one of the two cannot take, and a density that is not that of
    /// the place.
    #[test]
    fn sweeps_leave_the_marginal_as_it_is() {
        const REPEATS: usize = 300;
        let model = Selection::new();
        let marginal = Marginal::new(&model).unwrap();
        let h = 0.02;
        let line: Vec<f64> = (0..500).map(|k| -5.0 + h * k as f64).collect();
        let (states, cumulative) = exact(&marginal, &line);
        let shares: Vec<f64> = cumulative.iter().map(|of| of[line.len() - 1]).collect();
        let cdf = |t: f64| -> f64 {
            let at = ((t + 0.5 * h - line[0]) / h).clamp(0.0, (line.len() - 1) as f64);
            let (k, part) = (at as usize, at.fract());
            let below = |k: usize| if k == 0 { 0.0 } else { cumulative.iter().map(|of| of[k - 1]).sum::<f64>() };
            below(k) + part * (below((k + 1).min(line.len())) - below(k))
        };
        let steps = Steps { factor: 1.2, scale: vec![0.7] };
        let mut rng = stream(3, 0, 0, 0);
        let (mut seen, mut thetas) = (vec![0_u64; states.len()], Vec::new());
        for repeat in 0..REPEATS {
            let drawn = (0..CHAINS).map(|_| {
                let mut left: f64 = rng.random();
                let d = shares
                    .iter()
                    .position(|share| {
                        left -= share;
                        left < 0.0
                    })
                    .unwrap_or(0);
                let left = shares[d] * rng.random::<f64>();
                let k = cumulative[d].iter().position(|sum| *sum >= left).unwrap_or(0);
                let theta = vec![line[k] + h * (rng.random::<f64>() - 0.5)];
                Place { theta, discrete: states[d].clone(), log_p: f64::NAN }
            });
            let mut places: Vec<Place> = drawn.collect();
            let log_p = marginal.log_masses_at(&places).unwrap();
            places.iter_mut().zip(log_p).for_each(|(place, log_p)| place.log_p = log_p);
            let streams = (0..CHAINS as u64).map(|c| stream(5, repeat as u64, 1, c)).collect();
            let mut chains = Chains::new(places, streams, marginal.ranges());
            chains.sweep(&marginal, &steps).unwrap();
            let again = marginal.log_masses_at(&chains.places).unwrap();
            for (place, again) in chains.places.iter().zip(again) {
                assert!((place.log_p - again).abs() < 1e-9);
                seen[states.iter().position(|d| *d == place.discrete).unwrap()] += 1;
                thetas.push(place.theta[0]);
            }
        }
        assert!(chi_square(&seen, &shares, (REPEATS * CHAINS) as u64) > SMALL);
        assert!(kolmogorov_smirnov(&thetas, cdf) > SMALL);
    }
}

//! Tempered sequential Monte Carlo (Del Moral, Doucet and Jasra, 2006): particles from a wide, simple distribution to the posterior.
//!
//! Chains that start in one mode stay there; particles that start everywhere are weighted by how the modes share the mass, as soon as
//! they separate. The inverse temperature rises as far as the weights allow: half of the particles stay effective. Then particles are
//! resampled and moved, in coordinates whitened by their own covariance, and one step size adapted over all of them. They are divided
//! into islands, each resampled on its own. Islands share temperatures, coordinates and step sizes but no particles, so that their
//! means differ as those of independent runs do: that is the Monte Carlo error, of means and of the evidence.

use super::adaptive_importance::tempered;
use super::base::Base;
use super::deciles::have_same_deciles;
use super::hmc::work_of_move;
use super::islands::Islands;
use super::label_swaps::Components;
use super::resample::{MIDDLE, systematic, taken};
use super::resample_move::{MoveSchedule, mcmc_moves};
use super::tempered::Tempered;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::checkpoint::{Columns, Stage};
use crate::error::{Error, Result};
use crate::infer::result::{DIVERGENT_MAX, ESS_MIN, MoveSummary, SmcSummary};
use crate::model::Model;
use crate::objective::Estimate;
use crate::observer::Quiet;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::packed;
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::special::log_sum_exp;
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The number of islands, and the fewest and the most particles of each.
const ISLANDS: usize = 16;
const PARTICLES_MIN: usize = 64;
const PARTICLES_MAX: usize = 1000;
/// How many moves each particle will probably make.
const EXPECTED_MOVES: f64 = 60.0;
/// The most populations.
const ROUNDS: usize = 3;
/// The share of particles that stays effective from one temperature to the next.
const EFFECTIVE: f64 = 0.5;
/// The least share of the last moves that is accepted, and how far they may move the mean of a tail, in standard deviations.
const ACCEPTED_MIN: f64 = 0.4;
const DRIFT_MAX: f64 = 0.1;
/// The most temperatures.
const TEMPERATURES_MAX: usize = 100;
/// The moves at each temperature, and how far particles may still depend on where they were; then at the last, where they are made twice.
const MOVES: MoveSchedule = MoveSchedule { moves: [2, 6], memory: 0.5 };
const LAST_MOVES: MoveSchedule = MoveSchedule { moves: [5, 20], memory: 0.2 };
/// How often components exchange their labels at each temperature.
const EXCHANGES: usize = 8;
/// More continuous latents than this are whitened one by one.
pub(in crate::infer) const FULL_MAX: usize = 100;

/// The particles, and how far they have come.
struct Population {
    u: Batch,
    power: f64,
    temperatures: usize,
    moves: usize,
    /// The log of each island's normalising constant, so far.
    log_z: Vec<f64>,
}

/// What is stored of them.
#[derive(Serialize, Deserialize)]
struct State {
    u: Columns,
    power: f64,
    temperatures: usize,
    moves: usize,
    log_z: Vec<f64>,
}

/// Particles of the posterior in whitened coordinates, equally weighted, with the log evidence.
pub(in crate::infer) struct Bridged {
    pub(in crate::infer) u: Batch,
    pub(in crate::infer) log_evidence: Estimate,
    pub(in crate::infer) summary: SmcSummary,
}

/// How it ended.
pub(in crate::infer) enum TemperedRun {
    Bridged(Bridged),
    /// It would take too much work, or no particle is possible.
    GivenUp,
    /// It was stopped on request.
    Stopped,
}

/// Where the particles start, how many there are, and the work they may take.
#[derive(Clone, Copy)]
pub(in crate::infer) struct SmcPlan<'a> {
    /// Draws, and chains at other places that may have mass.
    pub(in crate::infer) u: &'a Batch,
    pub(in crate::infer) places: &'a [Batch],
    pub(in crate::infer) draws: usize,
    pub(in crate::infer) work_max: f64,
    pub(in crate::infer) seed: u64,
}

/// Tempered sequential Monte Carlo, with more islands if their means differ too much.
pub(in crate::infer) fn tempered_smc(
    whitened: &WhitenedModel<dyn Model + '_>,
    plan: SmcPlan,
    session: &mut Session,
) -> Result<TemperedRun> {
    let Some(base) = Base::new(whitened.latents(), plan.u, plan.places) else { return Ok(TemperedRun::GivenUp) };
    // As many particles as draws, or as many as can probably be taken to the posterior.
    let most = plan.work_max / (work_of_move(whitened) * EXPECTED_MOVES * ISLANDS as f64);
    let each = (plan.draws / ISLANDS).clamp(PARTICLES_MIN, PARTICLES_MAX).min(most as usize);
    if each < PARTICLES_MIN {
        return Ok(TemperedRun::GivenUp);
    }
    let mut found: Option<(Population, SmcSummary)> = None;
    for round in 0..ROUNDS {
        let population = Population::new(whitened.latents().len(), each);
        let components = Components::of(whitened.latents());
        let mut run = Run { whitened, base: &base, components, each, plan, round, population };
        match run.until_posterior(session)? {
            Progress::Posterior => {}
            Progress::GivenUp => break,
            Progress::Stopped => return Ok(TemperedRun::Stopped),
        }
        let is_stationary = run.settle()?;
        let (population, is_stationary) = match found.take() {
            Some((before, summary)) => (before.joined(run.population), summary.is_stationary && is_stationary),
            None => (run.population, is_stationary),
        };
        let summary = summarise(whitened, &population, each, is_stationary)?;
        let least = summary.ess_bulk.min(summary.ess_tail);
        let is_hopeless = ((round + 1) as f64) * ESS_MIN > ROUNDS as f64 * least;
        found = Some((population, summary));
        if least >= ESS_MIN || is_hopeless || !is_stationary {
            break;
        }
    }
    let Some((population, summary)) = found else { return Ok(TemperedRun::GivenUp) };
    let islands = Islands::new(&population.log_z, each);
    let drawn: Vec<usize> = systematic(&islands.log_weights(), 0.0, plan.draws, MIDDLE).collect();
    let log_evidence = islands.log_evidence(&population.log_z);
    Ok(TemperedRun::Bridged(Bridged { u: taken(&population.u, &drawn), log_evidence, summary }))
}

/// How much the means of islands differ.
fn summarise(
    whitened: &WhitenedModel<dyn Model + '_>,
    population: &Population,
    each: usize,
    is_stationary: bool,
) -> Result<SmcSummary> {
    let Population { u, temperatures, moves, log_z, .. } = population;
    let (latents, z) = (whitened.latents(), whitened.restored(u));
    let mut log_p = vec![0.0; u.draws_len()];
    whitened.log_joint(u, &mut log_p)?;
    // The last is the log density, which knows of modes that no single latent tells apart.
    let column = |i: usize| if i < latents.len() { z.column(i) } else { &log_p };
    let name = |i: usize| if i < latents.len() { latents.name(i) } else { "the log density".to_owned() };
    let islands = Islands::new(log_z, each);
    let of_latents: Vec<[f64; 2]> = (0..=latents.len()).into_par_iter().map(|i| islands.ess(column(i))).collect();
    let least = |k: usize| (0..=latents.len()).min_by(|a, b| of_latents[*a][k].total_cmp(&of_latents[*b][k]));
    let [bulk, tail] = [least(0), least(1)];
    Ok(SmcSummary {
        islands: log_z.len(),
        particles: u.draws_len(),
        temperatures: *temperatures,
        moves: *moves,
        ess_bulk: bulk.map_or(f64::NAN, |i| of_latents[i][0]),
        ess_tail: tail.map_or(f64::NAN, |i| of_latents[i][1]),
        latent: bulk.map(name).unwrap_or_default(),
        is_stationary,
        islands_effective: 1.0 / (islands.squares() * log_z.len() as f64),
        is_used: false,
    })
}

/// How far particles came.
enum Progress {
    Posterior,
    GivenUp,
    Stopped,
}

struct Run<'a> {
    whitened: &'a WhitenedModel<'a, dyn Model + 'a>,
    base: &'a Base,
    components: Components,
    /// The particles of an island.
    each: usize,
    plan: SmcPlan<'a>,
    /// Which of several populations this is: each has random numbers of its own.
    round: usize,
    population: Population,
}

impl Population {
    fn new(latents_len: usize, each: usize) -> Self {
        Self {
            u: Batch::zeros(latents_len, ISLANDS * each),
            power: 0.0,
            temperatures: 0,
            moves: 0,
            log_z: vec![0.0; ISLANDS],
        }
    }

    /// Both.
    fn joined(self, other: Self) -> Self {
        let len = self.u.draws_len();
        let mut u = Batch::zeros(self.u.columns_len(), len + other.u.draws_len());
        for i in 0..u.columns_len() {
            u.column_mut(i)[..len].copy_from_slice(self.u.column(i));
            u.column_mut(i)[len..].copy_from_slice(other.u.column(i));
        }
        let temperatures = self.temperatures.max(other.temperatures);
        let log_z = self.log_z.into_iter().chain(other.log_z).collect();
        Self { u, power: 1.0, temperatures, moves: self.moves.max(other.moves), log_z }
    }

    fn state(&self) -> State {
        let Self { power, temperatures, moves, .. } = *self;
        State { u: Columns::of(&self.u), power, temperatures, moves, log_z: self.log_z.clone() }
    }
}

impl Run<'_> {
    /// Takes the particles to the posterior. A stage that ends before is one that was given up.
    fn until_posterior(&mut self, session: &mut Session) -> Result<Progress> {
        let mut is_finished = self.resume(session)?;
        while !is_finished {
            if !self.advance()? {
                session.finish(|| self.population.state())?;
                return Ok(Progress::GivenUp);
            }
            is_finished = self.population.power >= 1.0;
            let is_stopped = session.advance("tempering", (1000.0 * self.population.power) as usize, 1000).is_break();
            match (is_finished, is_stopped) {
                (true, _) => session.finish(|| self.population.state())?,
                (false, true) => session.interrupt(|| self.population.state())?,
                (false, false) => session.save(|| self.population.state())?,
            }
            if is_stopped && !is_finished {
                return Ok(Progress::Stopped);
            }
        }
        Ok(if self.population.power >= 1.0 { Progress::Posterior } else { Progress::GivenUp })
    }

    /// Moves the particles once more; returns whether these moves were accepted, did not diverge, and left the marginals as they were.
    fn settle(&mut self) -> Result<bool> {
        let before = self.whitened.restored(&self.population.u);
        let MoveSummary { accepted, divergent, drift, .. } = self.move_particles(LAST_MOVES)?;
        let have_moved = accepted.is_none_or(|accepted| accepted > ACCEPTED_MIN);
        let is_steady = have_same_deciles(&before, &self.whitened.restored(&self.population.u));
        Ok(is_steady && have_moved && divergent <= DIVERGENT_MAX && drift <= DRIFT_MAX)
    }

    /// A number for random streams that no other population has.
    fn number(&self, own: usize) -> u64 {
        ((self.round as u64) << 32) + own as u64
    }

    fn resume(&mut self, session: &mut Session) -> Result<bool> {
        let (state, is_finished) = match session.begin::<State>()? {
            Stage::New => return Ok(false),
            Stage::InProgress(state) => (state, false),
            Stage::Finished(state) => (state, true),
        };
        let u = state.u.batch()?;
        let (now, State { power, temperatures, moves, log_z, .. }) = (&self.population.u, state);
        if (u.columns_len(), u.draws_len(), log_z.len()) != (now.columns_len(), now.draws_len(), ISLANDS) {
            return Err(Error::Checkpoint { reason: "it belongs to another model".to_owned() });
        }
        self.population = Population { u, power, temperatures, moves, log_z };
        Ok(is_finished)
    }

    /// The next temperature; `false` if there are too many, or no particle is possible.
    fn advance(&mut self) -> Result<bool> {
        let each_move = work_of_move(self.whitened) * self.population.u.draws_len() as f64;
        let is_too_much = (self.population.moves + MOVES.moves[1]) as f64 * each_move > self.plan.work_max;
        if self.population.temperatures == 0 {
            self.start();
        }
        if is_too_much || self.population.temperatures >= TEMPERATURES_MAX {
            return Ok(false);
        }
        let log_ratio = self.log_ratio()?;
        let first = self.number(self.population.temperatures * ISLANDS);
        let population = &mut self.population;
        let power = next_power(&log_ratio, population.power);
        let rise = power - population.power;
        let mut from = Vec::with_capacity(log_ratio.len());
        for (island, own) in log_ratio.chunks(self.each).enumerate() {
            let weights: Vec<f64> = own.iter().map(|ratio| rise * ratio).collect();
            let total = log_sum_exp(&weights);
            if !total.is_finite() {
                return Ok(false);
            }
            population.log_z[island] += total - (self.each as f64).ln();
            let offset: f64 = stream(self.plan.seed, Purpose::Tempering.step(), 1, first + island as u64).random();
            from.extend(systematic(&weights, total, self.each, offset).map(|s| island * self.each + s));
        }
        population.u = taken(&population.u, &from);
        population.power = power;
        population.temperatures += 1;
        self.move_particles(if power < 1.0 { MOVES } else { LAST_MOVES })?;
        Ok(true)
    }

    fn start(&mut self) {
        let first = self.number(0);
        let u = &mut self.population.u;
        for s in 0..u.draws_len() {
            let mut rng = stream(self.plan.seed, Purpose::Tempering.step(), 0, first + s as u64);
            self.base.draw(&mut rng, |i, x| u.set(i, s, x));
        }
    }

    /// log p − log p₀ of each particle; −∞ for those that are impossible.
    fn log_ratio(&self) -> Result<Vec<f64>> {
        let u = &self.population.u;
        let (mut log_p, mut base) = (vec![0.0; u.draws_len()], vec![0.0; u.draws_len()]);
        self.whitened.log_joint(u, &mut log_p)?;
        self.base.log_density(u, &mut base);
        let ratio = |(p, base): (&f64, &f64)| if p.is_finite() { p - base } else { f64::NEG_INFINITY };
        Ok(log_p.iter().zip(&base).map(ratio).collect())
    }

    fn move_particles(&mut self, schedule: MoveSchedule) -> Result<MoveSummary> {
        // Numbers that no other moves have.
        let number = (1 << 40) + self.number(self.population.moves);
        let population = &mut self.population;
        let tempered = Tempered { model: self.whitened, base: self.base, power: population.power };
        let n = self.whitened.continuous().len();
        let unit = match n {
            0..=FULL_MAX => {
                let mut unit = vec![0.0; n * (n + 1) / 2];
                (0..n).for_each(|i| unit[packed(i, i)] = 1.0);
                Whitening::Full(unit)
            }
            _ => Whitening::Diagonal(vec![1.0; n]),
        };
        let own = WhitenedModel::new(&tempered, vec![0.0; n], unit).rewhitened(&population.u, 1.0);
        let mut v = own.whiten(&population.u);
        let moved = mcmc_moves(&own, &mut v, &schedule, (self.plan.seed, number), &mut Quiet)?;
        population.u = own.restored(&v);
        if !self.components.is_empty() {
            let mut z = self.whitened.restored(&population.u);
            let mut log_p = vec![0.0; z.draws_len()];
            let log_density = |z: &Batch, out: &mut [f64]| tempered.log_joint(&self.whitened.whiten(z), out);
            log_density(&z, &mut log_p)?;
            let mut rng = stream(self.plan.seed, Purpose::Tempering.step(), 2, number);
            for _ in 0..EXCHANGES {
                self.components.exchange(&mut z, &mut log_p, &mut rng, &log_density)?;
            }
            population.u = self.whitened.whiten(&z);
        }
        population.moves += moved.moves;
        Ok(moved)
    }
}

/// The inverse temperature at which the given share of the possible particles stays effective, or 1.
fn next_power(log_ratio: &[f64], power: f64) -> f64 {
    let possible = log_ratio.iter().filter(|ratio| ratio.is_finite()).count();
    let left: Vec<f64> = log_ratio.iter().map(|ratio| (1.0 - power) * ratio).collect();
    match tempered(&left, EFFECTIVE * possible as f64) {
        (_, 1.0) => 1.0,
        (_, share) => power + share * (1.0 - power),
    }
}

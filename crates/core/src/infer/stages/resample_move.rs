//! Resample-move (Gilks and Berzuini, 2001): MCMC moves, which leave the posterior invariant, of draws that nearly follow it.
//!
//! Draws from an approximation, resampled by their importance weights, are close to draws from the posterior, apart from details of
//! its shape that the approximation misses. Each draw then makes a few moves: Hamiltonian Monte Carlo over the continuous latents,
//! in whitened coordinates, and Gibbs sweeps over the discrete ones. A move can only bring the distribution of the draws closer to
//! the posterior (the data-processing inequality), never further away. It does not transport mass between modes that are far apart;
//! their shares depend on the weights.

use super::hmc::{BlockMove, Integrator, Phase, hamiltonian};
use super::label_swaps::Symmetry;
use super::tails::Tails;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::checkpoint::{Columns, Stage};
use crate::error::{Error, Result};
use crate::gibbs::sweep;
use crate::infer::result::MoveSummary;
use crate::model::Model;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Draws that move together.
const BLOCK: usize = 16;
/// The share of Hamiltonian moves that should be accepted.
const ACCEPTED: f64 = 0.8;
/// How far a difference of one in the share accepted changes the logarithm of the step size, with at least so many draws. With fewer,
/// it changes less. So no draw changes it by more than 1/256 in a move: a step size that depends on the state it moves would not leave
/// the posterior invariant.
const ADAPTED: f64 = 0.5;
const ADAPTING_DRAWS: f64 = 128.0;
/// The first step sizes that are tried if steps are split, by how many draws, and the share to accept.
const FIRST_STEPS: [f64; 5] = [1.2, 0.6, 0.3, 0.15, 0.08];
const TRIED: usize = 128;
const FIRST_ACCEPTED: f64 = 0.6;
/// How far the mean of a tail may still move, in standard deviations and beyond what chance explains.
pub(crate) const TAIL_DRIFT_MAX: f64 = 0.05;

/// When MCMC moves end. See [`mcmc_moves`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveSchedule {
    /// The minimum and the maximum number of moves.
    pub moves: [usize; 2],
    /// Between the two, moves end once no latent's correlation with its initial value exceeds this, and no tail grows any more.
    pub memory: f64,
}

impl MoveSchedule {
    /// Exactly this many moves.
    pub fn fixed(moves: usize) -> Self {
        Self { moves: [moves; 2], memory: 0.0 }
    }
}

/// The values of a latent.
fn values(blocks: &[Block], i: usize) -> Vec<f64> {
    blocks.iter().flat_map(|b| b.u.column(i)).copied().collect()
}

/// The number of different initial values of the latent that has the fewest: draws that share one are not independent, as those of very
/// many latents are not that a few others describe, if these are the same.
fn distinct_starts(blocks: &[Block], latents: &[usize]) -> usize {
    let of_latent = |i: &usize| {
        let starts: HashSet<u64> = blocks.iter().flat_map(|b| b.start.column(*i)).map(|x| x.to_bits()).collect();
        starts.len()
    };
    latents.par_iter().map(of_latent).min().unwrap_or(1)
}

/// A block of draws and the state of their chains.
struct Block {
    u: Batch,
    streams: Vec<Stream>,
    log_p: Vec<f64>,
    d_u: Batch,
    made: BlockMove,
    /// The initial draws, and their log density.
    start: Batch,
    log_p_start: Vec<f64>,
    /// Whether `log_p` and `d_u` belong to `u`.
    is_known: bool,
}

/// Applies MCMC moves to every draw until the schedule ends them. `u` holds draws in whitened coordinates; calls with different
/// numbers use different random numbers.
///
/// ```
/// use hyperprior::infer::{MoveSchedule, WhitenedModel, Whitening, mcmc_moves};
/// use hyperprior::{Batch, Quiet, targets::Banana};
/// let banana = Banana::new();
/// let whitened = WhitenedModel::new(&banana, vec![0.0, 0.0], Whitening::Diagonal(vec![1.0, 1.5]));
/// let mut u = Batch::zeros(2, 64);
/// let moved = mcmc_moves(&whitened, &mut u, &MoveSchedule::fixed(20), (1, 0), &mut Quiet)?;
/// assert_eq!(moved.moves, 20);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model.
pub fn mcmc_moves<'s, M: Model + ?Sized>(
    whitened: &WhitenedModel<M>,
    u: &mut Batch,
    schedule: &MoveSchedule,
    (seed, number): (u64, u64),
    session: impl Into<Session<'s>>,
) -> Result<MoveSummary> {
    let session = &mut session.into();
    let mut chains = Chains::new(whitened, u, (seed, number))?;
    if integrator(whitened) == Integrator::Split && u.draws_len() >= TRIED {
        chains.summary.step = first_step(whitened, u, (seed, number))?;
    }
    let is_finished = chains.resume(session)?;
    while !is_finished && !chains.summary.stopped && chains.is_in_progress(schedule) {
        chains.advance(whitened, schedule)?;
        let [_, most] = schedule.moves;
        chains.summary.stopped = session.advance("moves", chains.summary.moves, most).is_break();
        if chains.summary.stopped {
            session.interrupt(|| chains.state())?;
        } else {
            session.save(|| chains.state())?;
        }
    }
    if !is_finished && !chains.summary.stopped {
        session.finish(|| chains.state())?;
    }
    for (b, block) in chains.blocks.iter().enumerate() {
        for i in 0..block.u.columns_len() {
            let first = b * BLOCK;
            u.column_mut(i)[first..first + block.u.draws_len()].copy_from_slice(block.u.column(i));
        }
    }
    Ok(chains.summary)
}

/// All draws, each a Markov chain.
struct Chains {
    blocks: Vec<Block>,
    continuous: Vec<usize>,
    discrete: Vec<usize>,
    symmetry: Symmetry,
    summary: MoveSummary,
    tails: Tails,
}

impl Chains {
    fn new<M: Model + ?Sized>(whitened: &WhitenedModel<M>, u: &Batch, (seed, number): (u64, u64)) -> Result<Self> {
        let latents = whitened.latents();
        let (discrete, continuous): (Vec<usize>, Vec<usize>) =
            (0..latents.len()).partition(|i| latents.support(*i).is_discrete());
        let blocks: Vec<Block> =
            (0..u.draws_len()).step_by(BLOCK).map(|first| Block::new(u, first, (seed, number))).collect();
        let symmetry = Symmetry::of(whitened, u, stream(seed, Purpose::Symmetry.step(), 0, number))?;
        let step = 0.8 / (continuous.len().max(1) as f64).powf(0.25);
        let summary = MoveSummary { step, ..MoveSummary::default() };
        let tails = Tails::of(0, &continuous, |i| values(&blocks, i));
        Ok(Self { blocks, continuous, discrete, symmetry, summary, tails })
    }

    /// Restores the state of an earlier run; returns whether it was finished.
    fn resume(&mut self, session: &mut Session) -> Result<bool> {
        let (state, is_finished) = match session.begin::<(MoveSummary, Tails, Vec<State>)>()? {
            Stage::Finished(state) => (state, true),
            Stage::InProgress(state) => (state, false),
            Stage::New => return Ok(false),
        };
        let (summary, tails, states) = state;
        self.summary = MoveSummary { stopped: false, ..summary };
        self.tails = tails;
        if states.len() != self.blocks.len() || self.tails.len() != self.continuous.len() {
            return Err(Error::Checkpoint { reason: "it has a different number of draws".to_owned() });
        }
        self.blocks.iter_mut().zip(&states).try_for_each(|(block, state)| block.restore(state))?;
        Ok(is_finished)
    }

    fn state(&self) -> (MoveSummary, Tails, Vec<State>) {
        (self.summary, self.tails.clone(), self.blocks.iter().map(Block::state).collect())
    }

    fn is_in_progress(&self, schedule: &MoveSchedule) -> bool {
        let ([least, most], summary) = (schedule.moves, &self.summary);
        summary.moves < least
            || (summary.moves < most && (summary.memory > schedule.memory || summary.drift > TAIL_DRIFT_MAX))
    }

    /// One move of every draw, and an update of the summary.
    fn advance<M: Model + ?Sized>(&mut self, whitened: &WhitenedModel<M>, schedule: &MoveSchedule) -> Result<()> {
        let (continuous, discrete, symmetry) = (&self.continuous, &self.discrete, &self.symmetry);
        let summary = &mut self.summary;
        let integrator = integrator(whitened);
        self.blocks
            .par_iter_mut()
            .map(|block| block.advance(whitened, (continuous, discrete), symmetry, (integrator, summary.step)))
            .collect::<Result<Vec<()>>>()?;
        // One step size for all draws, adapted from all of them, so that it does not depend on their order.
        if !continuous.is_empty() {
            let draws_len = self.blocks.iter().map(|b| b.u.draws_len()).sum::<usize>() as f64;
            let share = |of: fn(&BlockMove) -> f64| self.blocks.iter().map(|b| of(&b.made)).sum::<f64>() / draws_len;
            let accepted = share(|made| made.accepted);
            summary.divergent = share(|made| made.divergent);
            let adapted = ADAPTED * (draws_len / ADAPTING_DRAWS).min(1.0);
            summary.step = (summary.step * (adapted * (accepted - ACCEPTED)).exp()).clamp(1e-3, 1.5);
            summary.accepted = Some(accepted);
        }
        summary.moves += 1;
        summary.memory = memory(&self.blocks, whitened.latents().len());
        let [least, most] = schedule.moves;
        // The tails are compared when the moves might end, and again after as many more.
        let is_mixed = summary.memory <= schedule.memory;
        let might_end = summary.moves >= least && is_mixed && summary.moves >= 2 * self.tails.moves();
        // A difference from the initial draws is what the moves should correct, so it counts only if the draws have not mixed.
        let is_last = summary.moves == most && (self.tails.moves() > 0 || !is_mixed);
        if is_last || (might_end && summary.moves < most) {
            let now = Tails::of(summary.moves, continuous, |i| values(&self.blocks, i));
            let distinct = distinct_starts(&self.blocks, continuous);
            (summary.drift, summary.drifting) = now.drift_from(&self.tails, continuous, distinct);
            self.tails = now;
        }
        Ok(())
    }
}

/// The largest correlation with the initial value, over each latent, its distance from its mean, and the log density; less what
/// chance explains for the largest of that many. Quantities that are the same in all draws have none.
fn memory(blocks: &[Block], latents_len: usize) -> f64 {
    let of_latent = |i: usize| {
        let pairs = || blocks.iter().flat_map(|b| b.start.column(i).iter().copied().zip(b.u.column(i).iter().copied()));
        let n = pairs().count() as f64;
        let (x, y) = pairs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
        correlation(&pairs).max(correlation(&|| pairs().map(|(a, b)| ((a - x).abs(), (b - y).abs()))))
    };
    let density = || blocks.iter().flat_map(|b| b.log_p_start.iter().copied().zip(b.log_p.iter().copied()));
    let largest = (0..latents_len).into_par_iter().map(of_latent).reduce(|| 0.0, f64::max).max(correlation(&density));
    let draws_len = blocks.iter().map(|b| b.u.draws_len()).sum::<usize>() as f64;
    let by_chance = 2.0 * (2.0 * latents_len as f64 + 1.0).ln() / draws_len;
    (largest * largest - by_chance).max(0.0).sqrt()
}

/// The absolute correlation of pairs.
fn correlation<I: Iterator<Item = (f64, f64)>>(pairs: &impl Fn() -> I) -> f64 {
    let n = pairs().count() as f64;
    let (x, y) = pairs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (xx, xy, yy) = pairs().fold((0.0, 0.0, 0.0), |(xx, xy, yy), (a, b)| {
        (xx + (a - x) * (a - x), xy + (a - x) * (b - y), yy + (b - y) * (b - y))
    });
    if xx * yy > 0.0 { (xy / (xx * yy).sqrt()).abs() } else { 0.0 }
}

/// A block as it is stored.
#[derive(Serialize, Deserialize)]
struct State {
    u: Columns,
    d_u: Columns,
    start: Columns,
    log_p: Vec<f64>,
    log_p_start: Vec<f64>,
    is_known: bool,
    /// The position in each random stream.
    used: Vec<u128>,
}

impl Block {
    fn new(u: &Batch, first: usize, (seed, number): (u64, u64)) -> Self {
        let len = BLOCK.min(u.draws_len() - first);
        let mut own = Batch::zeros(u.columns_len(), len);
        for i in 0..u.columns_len() {
            own.column_mut(i).copy_from_slice(&u.column(i)[first..first + len]);
        }
        Self {
            log_p: vec![0.0; len],
            log_p_start: vec![0.0; len],
            d_u: Batch::zeros(u.columns_len(), len),
            start: own.clone(),
            u: own,
            streams: (0..len).map(|s| stream(seed, Purpose::Moves.step(), number, (first + s) as u64)).collect(),
            made: BlockMove::default(),
            is_known: false,
        }
    }

    fn state(&self) -> State {
        State {
            u: Columns::of(&self.u),
            d_u: Columns::of(&self.d_u),
            start: Columns::of(&self.start),
            log_p: self.log_p.clone(),
            log_p_start: self.log_p_start.clone(),
            is_known: self.is_known,
            used: self.streams.iter().map(Stream::get_word_pos).collect(),
        }
    }

    fn restore(&mut self, state: &State) -> Result<()> {
        let batches = [(&mut self.u, &state.u), (&mut self.d_u, &state.d_u), (&mut self.start, &state.start)];
        for (batch, columns) in batches {
            let kept = columns.batch()?;
            if (kept.columns_len(), kept.draws_len()) != (batch.columns_len(), batch.draws_len()) {
                return Err(Error::Checkpoint { reason: "it belongs to another model".to_owned() });
            }
            *batch = kept;
        }
        let len = self.streams.len();
        if [state.log_p.len(), state.log_p_start.len(), state.used.len()] != [len; 3] {
            return Err(Error::Checkpoint { reason: "it is damaged".to_owned() });
        }
        self.log_p.clone_from(&state.log_p);
        self.log_p_start.clone_from(&state.log_p_start);
        self.is_known = state.is_known;
        self.streams.iter_mut().zip(&state.used).for_each(|(stream, used)| stream.set_word_pos(*used));
        Ok(())
    }

    fn advance<M: Model + ?Sized>(
        &mut self,
        whitened: &WhitenedModel<M>,
        (continuous, discrete): (&[usize], &[usize]),
        symmetry: &Symmetry,
        how: (Integrator, f64),
    ) -> Result<()> {
        sweep(whitened, discrete, &mut self.u, &mut self.streams)?;
        if continuous.is_empty() {
            return Ok(());
        }
        let Some(gradient) = whitened.gradient() else { return Ok(()) };
        if !self.is_known || !discrete.is_empty() {
            gradient.log_joint_gradient(&self.u, &mut self.log_p, &mut self.d_u)?;
            if !self.is_known {
                self.log_p_start.copy_from_slice(&self.log_p);
            }
            self.is_known = true;
        }
        let state = Phase { u: &mut self.u, log_p: &mut self.log_p, d_u: &mut self.d_u, streams: &mut self.streams };
        self.made = hamiltonian(gradient, continuous, how, state)?;
        if !symmetry.is_empty() {
            let state =
                Phase { u: &mut self.u, log_p: &mut self.log_p, d_u: &mut self.d_u, streams: &mut self.streams };
            symmetry.exchange(whitened, gradient, state)?;
        }
        Ok(())
    }
}

/// Split steps for many latents, whose coordinates are those of a sparse Gaussian; otherwise leapfrog steps.
fn integrator<M: Model + ?Sized>(whitened: &WhitenedModel<M>) -> Integrator {
    if matches!(whitened.place().1, Whitening::Sparse(_)) { Integrator::Split } else { Integrator::Leapfrog }
}

/// The longest of a few steps that a sample of the draws accepts, for split steps; their length does not follow from the number of
/// latents.
fn first_step<M: Model + ?Sized>(whitened: &WhitenedModel<M>, u: &Batch, stream: (u64, u64)) -> Result<f64> {
    let mut step = FIRST_STEPS[0];
    let from: Vec<usize> = (0..TRIED).map(|s| s * u.draws_len() / TRIED).collect();
    for next in FIRST_STEPS {
        step = next;
        let accepted: Vec<f64> = from
            .par_chunks(BLOCK)
            .map(|own| {
                let mut tried = Batch::zeros(u.columns_len(), own.len());
                for i in 0..u.columns_len() {
                    tried.column_mut(i).iter_mut().zip(own).for_each(|(to, s)| *to = u.get(i, *s));
                }
                let mut block = Block::new(&tried, 0, stream);
                block.advance(
                    whitened,
                    (whitened.continuous(), &[]),
                    &Symmetry::default(),
                    (Integrator::Split, step),
                )?;
                Ok(block.made.accepted)
            })
            .collect::<Result<_>>()?;
        if accepted.iter().sum::<f64>() > FIRST_ACCEPTED * TRIED as f64 {
            break;
        }
    }
    Ok(step)
}

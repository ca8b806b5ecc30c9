//! Moves that leave the posterior as it is, made on draws that nearly have it (Gilks and Berzuini, 2001, call it resample–move).
//!
//! Draws from an approximation, resampled by their importance weights, are close to draws from the posterior; what is left is
//! what the approximation gets wrong about its shape. Each draw then makes a few moves of its own: Hamiltonian ones over the
//! continuous latents, in units in which the posterior is round, and Gibbs sweeps over the discrete ones. A move can only bring the
//! draws' law closer to the posterior (the data-processing inequality), never further away; what it does not do is carry mass
//! between modes that are far apart: their shares are the weights' to get right.

use super::whitened::Whitened;
use crate::error::{Error, Result};
use crate::fit::Observer;
use crate::journal::{self, Begun, Columns};
use crate::model::{Conditionals, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Draws that move together.
const BLOCK: usize = 16;
/// Streams of moves are apart from all others.
const MOVE_STEP: u64 = u64::MAX - 6;
/// The share of Hamiltonian moves that should be accepted.
const ACCEPTED: f64 = 0.8;
/// How far a Hamiltonian move goes, in standard deviations: about a quarter of the way round.
const LENGTH: f64 = 1.6;
/// Values of a count that a Gibbs sweep considers at first; twice as many, while the last has a log weight within this of the
/// largest.
const COUNTS: usize = 32;
const NEGLIGIBLE: f64 = 40.0;
/// The share of draws that is a tail; and how much a tail may still grow, in standard deviations and beyond what chance does.
const TAIL: f64 = 0.05;
pub(super) const DRIFT: f64 = 0.05;
/// Longer ranges than this are not listed.
const TABLE_MAX: f64 = 4096.0;

/// When draws have moved enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// How often they move at least, and at most.
    pub rounds: [usize; 2],
    /// Between the two, they have moved enough once no latent is correlated with where it was by more than this, and no tail grows
    /// any more.
    pub memory: f64,
}

impl Until {
    /// So many moves, no fewer.
    pub fn rounds(rounds: usize) -> Self {
        Self { rounds: [rounds; 2], memory: 0.0 }
    }
}

/// What the moves did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// How many times every draw moved.
    pub rounds: usize,
    /// The mean share of Hamiltonian moves that were accepted in the last round; none where no latent is continuous.
    pub accepted: Option<f64>,
    /// The step size at the end.
    pub step: f64,
    /// The largest correlation, over the draws, of a latent, its distance from its mean or the log density with itself before the
    /// first move: what is left of an error that the draws had then.
    pub memory: f64,
    /// How far the mean of a tail (5 % of the draws) moved since the draws had last moved half as often, in standard deviations and
    /// beyond what chance does: the largest. Draws may forget where they were long before the tails that they lacked are there.
    pub drift: f64,
    /// The latent with that tail.
    pub drifting: usize,
    /// Whether somebody stopped them.
    pub stopped: bool,
}

/// What the tails were when they were last looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Looked {
    rounds: usize,
    tails: Vec<[f64; 2]>,
}

impl Looked {
    fn at(rounds: usize, blocks: &[Block], continuous: &[usize]) -> Self {
        let of_latent = |i: &usize| {
            let mut x: Vec<f64> = blocks.iter().flat_map(|b| b.u.column(*i)).copied().collect();
            let len = ((TAIL * x.len() as f64) as usize).max(1);
            let mean = |x: &[f64]| x.iter().sum::<f64>() / len as f64;
            let last = x.len() - len;
            x.select_nth_unstable_by(last, f64::total_cmp);
            let upper = mean(&x[last..]);
            x.select_nth_unstable_by(len - 1, f64::total_cmp);
            [mean(&x[..len]), upper]
        };
        Self { rounds, tails: continuous.par_iter().map(of_latent).collect() }
    }

    /// How far a tail went from here to there, and whose.
    fn drift(&self, to: &Self, blocks: &[Block], continuous: &[usize]) -> (f64, usize) {
        let draws_len = blocks.iter().map(|b| b.u.draws_len()).sum::<usize>() as f64;
        let far = |k: usize| {
            let x = || blocks.iter().flat_map(|b| b.u.column(continuous[k]));
            let mean = x().sum::<f64>() / draws_len;
            let deviation = (x().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws_len).sqrt();
            let far = (0..2).map(|end| (to.tails[k][end] - self.tails[k][end]).abs()).fold(0.0, f64::max);
            if deviation > 0.0 { far / deviation } else { 0.0 }
        };
        // The variance of a tail's mean is about half that of the draws over their number in the tail; this is a difference of two.
        let by_chance = (2.0 * (2.0 * continuous.len() as f64 + 1.0).ln() / (TAIL * draws_len)).sqrt();
        let farthest = (0..continuous.len()).map(|k| (far(k), continuous[k])).max_by(|a, b| a.0.total_cmp(&b.0));
        farthest.map_or((0.0, 0), |(far, latent)| ((far - by_chance).max(0.0), latent))
    }
}

/// A block of draws and what moving them needs.
struct Block {
    u: Batch,
    streams: Vec<Stream>,
    log_p: Vec<f64>,
    d_u: Batch,
    accepted: f64,
    /// Where the draws were, and how probable that was.
    start: Batch,
    log_p_start: Vec<f64>,
    /// Whether `log_p` and `d_u` are those of `u`.
    is_known: bool,
}

/// Moves every draw again and again. `u` holds draws of the model that `near` sees in round units; moves with another number
/// have other random numbers.
///
/// # Errors
/// What the model returns.
pub fn moves<M: Model + ?Sized>(
    near: &Whitened<M>,
    u: &mut Batch,
    until: &Until,
    (seed, number): (u64, u64),
    observer: &mut dyn Observer,
) -> Result<Moved> {
    let latents = near.latents();
    let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
    let discrete: Vec<usize> = (0..latents.len()).filter(|i| latents.support(*i).is_discrete()).collect();
    let mut blocks: Vec<Block> = (0..u.draws_len())
        .step_by(BLOCK)
        .map(|first| {
            let len = BLOCK.min(u.draws_len() - first);
            let mut own = Batch::zeros(u.columns_len(), len);
            for i in 0..u.columns_len() {
                own.column_mut(i).copy_from_slice(&u.column(i)[first..first + len]);
            }
            let streams = (0..len).map(|s| stream(seed, MOVE_STEP, number, (first + s) as u64)).collect();
            Block {
                log_p: vec![0.0; len],
                log_p_start: vec![0.0; len],
                d_u: Batch::zeros(u.columns_len(), len),
                start: own.clone(),
                u: own,
                streams,
                accepted: 0.0,
                is_known: false,
            }
        })
        .collect();
    let step = 0.8 / (continuous.len().max(1) as f64).powf(0.25);
    let mut moved = Moved { rounds: 0, accepted: None, step, memory: 1.0, drift: 0.0, drifting: 0, stopped: false };
    let [least, most] = until.rounds;
    let mut looked = Looked::at(0, &blocks, &continuous);
    let (kept, is_finished) = match journal::begin::<(Moved, Looked, Vec<State>)>(observer)? {
        Begun::Finished(kept) => (Some(kept), true),
        Begun::UnderWay(kept) => (Some(kept), false),
        Begun::New => (None, false),
    };
    if let Some((before, at, states)) = kept {
        moved = Moved { stopped: false, ..before };
        looked = at;
        if states.len() != blocks.len() || looked.tails.len() != continuous.len() {
            return Err(Error::Checkpoint { reason: "it is of another number of draws".to_owned() });
        }
        blocks.iter_mut().zip(&states).try_for_each(|(block, state)| block.restore(state))?;
    }
    let is_on_its_way = |moved: &Moved| {
        moved.rounds < least || (moved.rounds < most && (moved.memory > until.memory || moved.drift > DRIFT))
    };
    while !is_finished && !moved.stopped && is_on_its_way(&moved) {
        blocks
            .par_iter_mut()
            .map(|block| block.round(near, &continuous, &discrete, moved.step))
            .collect::<Result<Vec<()>>>()?;
        // The same for all draws and from all draws, so that it does not depend on which moved first.
        if !continuous.is_empty() {
            let accepted = blocks.iter().map(|b| b.accepted).sum::<f64>() / u.draws_len() as f64;
            moved.step = (moved.step * (0.5 * (accepted - ACCEPTED)).exp()).clamp(1e-3, 1.5);
            moved.accepted = Some(accepted);
        }
        moved.rounds += 1;
        moved.memory = memory(&blocks, latents.len());
        // Looked at where it might end, and once there were as many moves again.
        let might_end = moved.rounds >= least && moved.memory <= until.memory && moved.rounds >= 2 * looked.rounds;
        // What differs from the start alone is what the moves are there to mend, unless the draws still remember it.
        let is_last_look = moved.rounds == most && (looked.rounds > 0 || moved.memory > until.memory);
        if is_last_look || (might_end && moved.rounds < most) {
            let now = Looked::at(moved.rounds, &blocks, &continuous);
            (moved.drift, moved.drifting) = looked.drift(&now, &blocks, &continuous);
            looked = now;
        }
        moved.stopped = observer.advance("moves", moved.rounds, most).is_break();
        let state = || (moved, looked.clone(), blocks.iter().map(Block::state).collect::<Vec<_>>());
        if moved.stopped {
            journal::stop(observer, state)?;
        } else {
            journal::keep(observer, state)?;
        }
    }
    if !is_finished && !moved.stopped {
        journal::finish(observer, || (moved, looked, blocks.iter().map(Block::state).collect::<Vec<_>>()))?;
    }
    for (b, block) in blocks.into_iter().enumerate() {
        for i in 0..block.u.columns_len() {
            let first = b * BLOCK;
            u.column_mut(i)[first..first + block.u.draws_len()].copy_from_slice(block.u.column(i));
        }
    }
    Ok(moved)
}

/// The largest correlation of anything with what it was at the start: each latent, how far it is from its mean, and the log
/// density; less what chance alone makes of the largest of so many. What does not differ between draws has nothing to forget.
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

/// The size of the correlation of pairs.
fn correlation<I: Iterator<Item = (f64, f64)>>(pairs: &impl Fn() -> I) -> f64 {
    let n = pairs().count() as f64;
    let (x, y) = pairs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (xx, xy, yy) = pairs().fold((0.0, 0.0, 0.0), |(xx, xy, yy), (a, b)| {
        (xx + (a - x) * (a - x), xy + (a - x) * (b - y), yy + (b - y) * (b - y))
    });
    if xx * yy > 0.0 { (xy / (xx * yy).sqrt()).abs() } else { 0.0 }
}

/// A block as it is written down.
#[derive(Serialize, Deserialize)]
struct State {
    u: Columns,
    d_u: Columns,
    start: Columns,
    log_p: Vec<f64>,
    log_p_start: Vec<f64>,
    is_known: bool,
    /// How much of each stream is used.
    used: Vec<u128>,
}

impl Block {
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
                return Err(Error::Checkpoint { reason: "it is of another model".to_owned() });
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

    fn round<M: Model + ?Sized>(
        &mut self,
        near: &Whitened<M>,
        continuous: &[usize],
        discrete: &[usize],
        step: f64,
    ) -> Result<()> {
        sweep(near, discrete, &mut self.u, &mut self.streams)?;
        if continuous.is_empty() {
            return Ok(());
        }
        let Some(gradient) = near.gradient() else { return Ok(()) };
        let len = self.u.draws_len();
        if !self.is_known || !discrete.is_empty() {
            gradient.log_joint_gradient(&self.u, &mut self.log_p, &mut self.d_u)?;
            if !self.is_known {
                self.log_p_start.copy_from_slice(&self.log_p);
            }
            self.is_known = true;
        }
        let (before, d_before, log_p) = (self.u.clone(), self.d_u.clone(), self.log_p.clone());
        let mut momentum = Batch::zeros(self.u.columns_len(), len);
        let mut energy = vec![0.0; len];
        for i in continuous {
            for s in 0..len {
                let p: f64 = StandardNormal.sample(&mut self.streams[s]);
                momentum.set(*i, s, p);
                energy[s] += 0.5 * p * p;
            }
        }
        // One length for the block, from its first draw's stream: a fixed one could go round in a circle.
        let step = step * (0.6 + 0.8 * self.streams[0].random::<f64>());
        let leaps = ((LENGTH / step).round() as usize).clamp(1, 24);
        for _ in 0..leaps {
            for i in continuous {
                for s in 0..len {
                    let p = momentum.get(*i, s) + 0.5 * step * self.d_u.get(*i, s);
                    momentum.set(*i, s, p);
                    self.u.column_mut(*i)[s] += step * p;
                }
            }
            gradient.log_joint_gradient(&self.u, &mut self.log_p, &mut self.d_u)?;
            for i in continuous {
                for s in 0..len {
                    momentum.column_mut(*i)[s] += 0.5 * step * self.d_u.get(*i, s);
                }
            }
        }
        self.accepted = 0.0;
        for s in 0..len {
            let after: f64 = continuous.iter().map(|i| 0.5 * momentum.get(*i, s).powi(2)).sum();
            let rise = (self.log_p[s] - after) - (log_p[s] - energy[s]);
            // An infinite density is as undefined as NaN.
            let is_defined = self.log_p[s] < f64::INFINITY && !rise.is_nan();
            let chance = if is_defined { rise.min(0.0).exp() } else { 0.0 };
            let u: f64 = self.streams[s].random();
            self.accepted += chance;
            if !(u < chance) {
                for i in continuous {
                    self.u.set(*i, s, before.get(*i, s));
                    self.d_u.set(*i, s, d_before.get(*i, s));
                }
                self.log_p[s] = log_p[s];
            }
        }
        Ok(())
    }
}

/// The conditional of a count over as many values as have any weight to speak of. How many does not depend on the count's own
/// value, or the move would not be reversible.
fn counts(conditionals: &dyn Conditionals, i: usize, z: &Batch) -> Result<(Vec<f64>, Batch)> {
    let mut len = COUNTS;
    loop {
        let values: Vec<f64> = (0..len).map(|v| v as f64).collect();
        let mut out = Batch::zeros(len, z.draws_len());
        conditionals.log_conditional(i, z, &values, &mut out)?;
        let is_over = |s: usize| {
            let top = (0..len).map(|v| out.get(v, s)).fold(f64::NEG_INFINITY, f64::max);
            let (last, before) = (out.get(len - 1, s), out.get(len - 2, s));
            // Where nothing so far is possible, what is possible lies further out: the count itself is there.
            let is_known = top > f64::NEG_INFINITY || z.get(i, s) < len as f64;
            is_known && (!(last > top - NEGLIGIBLE) || (last == f64::NEG_INFINITY && before == last))
        };
        if len >= TABLE_MAX as usize || (0..z.draws_len()).all(is_over) {
            return Ok((values, out));
        }
        len *= 2;
    }
}

/// Draws every discrete latent given everything else. Ranges that are too long to list stay as they are.
pub(super) fn sweep(model: &dyn Model, discrete: &[usize], z: &mut Batch, streams: &mut [Stream]) -> Result<()> {
    let Some(conditionals) = model.conditionals() else { return Ok(()) };
    for &i in discrete {
        let (values, out) = match model.latents().support(i) {
            Support::Integers { lower, upper } if upper - lower < TABLE_MAX => {
                let values: Vec<f64> = (0..=(upper - lower) as usize).map(|v| lower + v as f64).collect();
                let mut out = Batch::zeros(values.len(), z.draws_len());
                conditionals.log_conditional(i, z, &values, &mut out)?;
                (values, out)
            }
            Support::Counts => counts(conditionals, i, z)?,
            _ => continue,
        };
        for (s, rng) in streams.iter_mut().enumerate() {
            // The largest of the log weights with Gumbel noise is a draw from them.
            let mut best = (f64::NEG_INFINITY, z.get(i, s));
            for (v, value) in values.iter().enumerate() {
                let u: f64 = rng.random();
                let noisy = out.get(v, s) - (-(u.max(f64::MIN_POSITIVE)).ln()).ln();
                if noisy > best.0 {
                    best = (noisy, *value);
                }
            }
            z.set(i, s, best.1);
        }
    }
    Ok(())
}

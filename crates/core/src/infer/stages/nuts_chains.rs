//! Chains of the No-U-Turn sampler from overdispersed starts: a warm-up that adapts step sizes and coordinates, then draws until the
//! chains agree or the work is done.

use super::label_swaps::Symmetry;
use super::nuts::Transitions;
use super::nuts_block::{BLOCK, Block, TOGETHER};
use super::step_size::StepSize;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::checkpoint::{Columns, Stage};
use crate::diagnostics::chains::ChainStatistics;
use crate::error::{Error, Result};
use crate::infer::result::{DIVERGENT_MAX, ESS_MIN, NutsSummary, RHAT_MAX, SUPERCHAINS};
use crate::model::Model;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The number of chains, one from each superchain.
const CHAINS: usize = SUPERCHAINS;
/// The transitions of the warm-up. After each part but the last, the draws of all chains determine new coordinates.
const WARM_UP: [usize; 4] = [40, 80, 160, 40];
/// The acceptance to aim at; the next one if too many transitions diverge.
const ACCEPTED: [f64; 3] = [0.8, 0.95, 0.99];
/// The draws of each chain after which the chains are compared for the first time; then after twice as many, and so on.
const ROUND: usize = 250;
/// The chains are given up if R̂ is above this and has not fallen to this share of its distance from 1 over two rounds.
const HOPELESS: f64 = 1.2;
const FALL: f64 = 0.8;
const HOPELESS_ROUNDS: usize = 4;
/// How often chains are examined after the usual number of gradients.
const LATE: usize = 100;
/// They are also given up if this share of the transitions diverge with the shortest steps.
const HOPELESS_DIVERGENT: f64 = 0.2;
/// With fewer draws of each chain, nothing can be said.
const DRAWS_MIN: usize = 50;
/// Chains whose log density differs from that of most others by more than this and so many times √(n / 2) are where there is no mass: in a
/// tail, or in the neck of a funnel, where the density is high.
const FAR: [f64; 2] = [20.0, 10.0];
/// How many draws the identity counts for in an estimated covariance, in addition to the number of latents.
const PRIOR_DRAWS: f64 = 10.0;

/// A block as it is stored.
#[derive(Serialize, Deserialize)]
struct BlockState {
    u: Columns,
    step: StepSize,
    /// The position in each random stream.
    used: Vec<u128>,
}

/// How far the chains are.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Position {
    /// The part of the warm-up; its number of parts once they are over.
    part: usize,
    /// The times that the chains were compared.
    rounds: usize,
    gradients: usize,
    /// Divergent transitions since the warm-up.
    divergent: usize,
    /// Transitions since the warm-up.
    transitions: usize,
    /// How often the aim of acceptance was raised.
    care: usize,
    /// Chains that could not leave their starts.
    stuck: usize,
    /// R̂ at the last two comparisons, the latest first.
    rhat: [f64; 2],
}

struct Sampler<'a> {
    whitened: WhitenedModel<'a, dyn Model + 'a>,
    discrete: Vec<usize>,
    symmetry: Symmetry,
    blocks: Vec<Block>,
    /// The chains after each transition of this part, in the model's coordinates.
    kept: Vec<Batch>,
    at: Position,
}

/// What is stored of the sampler.
type State = (Position, Vec<f64>, Whitening, Vec<BlockState>, Vec<Columns>);

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::infer) struct NutsLimits {
    /// Gradients of all chains, and the most if they have nearly mixed by then.
    pub(in crate::infer) gradients: usize,
    pub(in crate::infer) most: usize,
    /// The share of divergent transitions above which the chains begin again with shorter steps.
    pub(in crate::infer) divergent: f64,
    /// The draws to return.
    pub(in crate::infer) draws: usize,
}

/// Runs chains from these starts, in whitened coordinates; there must be [`CHAINS`]. Returns draws in the model's coordinates and how
/// the chains went, or nothing if the limit was too low to say anything.
pub(in crate::infer) fn nuts_chains(
    whitened: &WhitenedModel<dyn Model + '_>,
    starts: &Batch,
    limits: NutsLimits,
    seed: u64,
    session: &mut Session,
) -> Result<Option<(Batch, NutsSummary)>> {
    let mut sampler = Sampler::new(whitened, starts, seed)?;
    let mut is_finished = sampler.resume(session)?;
    let mut stopped = false;
    while !is_finished && !stopped {
        sampler.advance()?;
        is_finished = sampler.is_over(limits);
        let limit = if sampler.at.gradients < limits.gradients { limits.gradients } else { limits.most };
        stopped = session.advance("NUTS", sampler.at.gradients.min(limit), limit).is_break();
        if stopped && !is_finished {
            session.interrupt(|| sampler.state())?;
        } else if is_finished {
            session.finish(|| sampler.state())?;
        } else {
            session.save(|| sampler.state())?;
        }
    }
    if sampler.at.part < WARM_UP.len() || sampler.kept.len() < DRAWS_MIN {
        return Ok(None);
    }
    let summary = NutsSummary { stopped: stopped && !is_finished, ..sampler.summary() };
    Ok(Some((sampler.draws(limits.draws), summary)))
}

/// Where the search for the step size starts.
fn first_step(whitened: &WhitenedModel<dyn Model + '_>) -> f64 {
    0.5 / (whitened.continuous().len() as f64).powf(0.25)
}

impl<'a> Sampler<'a> {
    fn new(whitened: &WhitenedModel<'a, dyn Model + 'a>, starts: &Batch, seed: u64) -> Result<Self> {
        let latents = whitened.latents();
        let discrete = (0..latents.len()).filter(|i| latents.support(*i).is_discrete()).collect();
        let block = |first: usize| {
            let mut u = Batch::zeros(latents.len(), BLOCK);
            (0..latents.len()).for_each(|i| u.column_mut(i).copy_from_slice(&starts.column(i)[first..first + BLOCK]));
            Block {
                u,
                log_p: vec![0.0; BLOCK],
                d_u: Batch::zeros(latents.len(), BLOCK),
                streams: (first..first + BLOCK).map(|c| stream(seed, Purpose::Nuts.step(), 0, c as u64)).collect(),
                step: StepSize::new(first_step(whitened)),
                is_known: false,
            }
        };
        let blocks = (0..CHAINS).step_by(BLOCK).map(block).collect();
        let symmetry = Symmetry::of(whitened, starts, stream(seed, Purpose::Symmetry.step(), 1, 0))?;
        let (location, whitening) = whitened.place();
        let whitened = whitened.placed(location.to_vec(), whitening.clone());
        Ok(Self { whitened, discrete, symmetry, blocks, kept: Vec::new(), at: Position::default() })
    }

    fn state(&self) -> State {
        let (location, whitening) = self.whitened.place();
        let of_block = |block: &Block| BlockState {
            u: Columns::of(&block.u),
            step: block.step.clone(),
            used: block.streams.iter().map(Stream::get_word_pos).collect(),
        };
        let blocks = self.blocks.iter().map(of_block).collect();
        (self.at, location.to_vec(), whitening.clone(), blocks, self.kept.iter().map(Columns::of).collect())
    }

    /// Restores the state of an earlier run; returns whether it was finished.
    fn resume(&mut self, session: &mut Session) -> Result<bool> {
        let ((at, location, whitening, blocks, kept), is_finished): (State, bool) = match session.begin()? {
            Stage::Finished(state) => (state, true),
            Stage::InProgress(state) => (state, false),
            Stage::New => return Ok(false),
        };
        let n = self.whitened.continuous().len();
        if blocks.len() != self.blocks.len() || location.len() != n || !whitening.is_for(n) {
            return Err(Error::Checkpoint { reason: "it belongs to another model".to_owned() });
        }
        self.at = at;
        self.whitened = self.whitened.placed(location, whitening);
        self.kept = kept.iter().map(Columns::batch).collect::<Result<_>>()?;
        for (block, state) in self.blocks.iter_mut().zip(&blocks) {
            block.u = state.u.batch()?;
            block.step = state.step.clone();
            block.streams.iter_mut().zip(&state.used).for_each(|(stream, used)| stream.set_word_pos(*used));
        }
        Ok(is_finished)
    }

    /// Some transitions of every chain, and what follows at the end of a part of the warm-up.
    fn advance(&mut self) -> Result<()> {
        let (whitened, is_adapting) = (&self.whitened, self.at.part < WARM_UP.len());
        let moves: (&[usize], &Symmetry) = (&self.discrete, &self.symmetry);
        let aim = is_adapting.then_some(ACCEPTED[self.at.care]);
        let made: Vec<(Vec<Batch>, Transitions)> =
            self.blocks.par_iter_mut().map(|block| block.advance(whitened, moves, aim)).collect::<Result<_>>()?;
        for t in 0..TOGETHER {
            let mut all = Batch::zeros(whitened.latents().len(), CHAINS);
            for (b, (draws, _)) in made.iter().enumerate() {
                for i in 0..all.columns_len() {
                    all.column_mut(i)[b * BLOCK..(b + 1) * BLOCK].copy_from_slice(draws[t].column(i));
                }
            }
            self.kept.push(all);
        }
        for (_, made) in &made {
            self.at.gradients += made.gradients;
            if !is_adapting {
                self.at.divergent += made.divergent;
            }
        }
        if !is_adapting {
            self.at.transitions += TOGETHER * CHAINS;
        } else if self.kept.len() == WARM_UP[self.at.part] {
            if self.at.part == 0 {
                self.unstick();
            }
            self.at.part += 1;
            if self.at.part < WARM_UP.len() {
                self.whiten();
            } else {
                self.blocks.iter_mut().for_each(|block| block.step.settle());
            }
            self.kept.clear();
        }
        Ok(())
    }

    /// Moves chains that have not left their starts, or are where there is no mass, to others: there the sampler cannot move at all or only
    /// with short steps, so that nothing is learnt from it, and the other chains would have to take its steps.
    fn unstick(&mut self) {
        let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) else { return };
        let n = first.columns_len();
        // Along a posterior of n latents the log density varies by about √(n / 2).
        let log_p: Vec<f64> = self.blocks.iter().flat_map(|block| block.log_p.iter().copied()).collect();
        let mut sorted = log_p.clone();
        sorted.sort_by(f64::total_cmp);
        let most = FAR[0] + FAR[1] * (0.5 * n as f64).sqrt();
        let is_stuck: Vec<bool> = (0..CHAINS)
            .map(|c| {
                !((log_p[c] - sorted[CHAINS / 2]).abs() <= most) || (0..n).all(|i| first.get(i, c) == last.get(i, c))
            })
            .collect();
        let free: Vec<usize> = (0..CHAINS).filter(|c| !is_stuck[*c]).collect();
        if 2 * free.len() < CHAINS {
            return;
        }
        for (number, c) in (0..CHAINS).filter(|c| is_stuck[*c]).enumerate() {
            let from = free[number % free.len()];
            for i in 0..n {
                let x = self.blocks[from / BLOCK].u.get(i, from % BLOCK);
                self.blocks[c / BLOCK].u.set(i, c % BLOCK, x);
                for kept in &mut self.kept {
                    let x = kept.get(i, from);
                    kept.set(i, c, x);
                }
            }
            self.at.stuck += 1;
            self.blocks[c / BLOCK].is_known = false;
            self.blocks[c / BLOCK].step = StepSize::new(first_step(&self.whitened));
        }
    }

    /// New coordinates, in which the draws have mean zero and unit covariance: those of the second half of the part, before which chains may
    /// have been on their way.
    fn whiten(&mut self) {
        let half = self.kept.len() / 2;
        let mut draws = Batch::zeros(self.whitened.latents().len(), (self.kept.len() - half) * CHAINS);
        for (t, kept) in self.kept[half..].iter().enumerate() {
            for i in 0..draws.columns_len() {
                draws.column_mut(i)[t * CHAINS..(t + 1) * CHAINS].copy_from_slice(kept.column(i));
            }
        }
        let again = self.whitened.rewhitened(&self.whitened.whiten(&draws), PRIOR_DRAWS);
        for block in &mut self.blocks {
            block.u = again.whiten(&self.whitened.restored(&block.u));
            block.is_known = false;
            block.step.settle();
            block.step = StepSize::new(block.step.step);
        }
        self.whitened = again;
    }

    /// Whether the chains agree, or the work is done.
    fn is_over(&mut self, limits: NutsLimits) -> bool {
        if self.at.gradients >= limits.gradients {
            return self.at.gradients >= limits.most || self.is_done_late();
        }
        if self.at.part < WARM_UP.len() || self.kept.len() < ROUND << self.at.rounds {
            return false;
        }
        self.at.rounds += 1;
        let summary = self.summary();
        if summary.divergent > limits.divergent && self.at.care + 1 < ACCEPTED.len() {
            self.restart_with_care();
            return false;
        }
        if summary.has_converged() && summary.ess_bulk.min(summary.ess_tail) >= 4.0 * ESS_MIN {
            return true;
        }
        if summary.divergent > HOPELESS_DIVERGENT {
            return true;
        }
        // Twice as many draws halve R̂ − 1 if the chains mix at all.
        let [last, before] = self.at.rhat;
        if self.at.rounds >= HOPELESS_ROUNDS && summary.rhat > HOPELESS && summary.rhat - 1.0 > FALL * (before - 1.0) {
            return true;
        }
        self.at.rhat = [summary.rhat, last];
        // The first half may still depend on the starts.
        self.kept.drain(..self.kept.len() / 2);
        false
    }

    /// Whether chains that have used the usual number of gradients have mixed, or are far from it.
    fn is_done_late(&self) -> bool {
        let (is_warm, len) = (self.at.part == WARM_UP.len(), self.kept.len());
        // All draws are examined, ever more seldom.
        if !is_warm || len == 0 || len % LATE.max(len.next_power_of_two() / 8) >= TOGETHER {
            return !is_warm;
        }
        let found = self.summary();
        found.has_converged() && found.ess_tail >= ESS_MIN || found.rhat > RHAT_MAX || found.divergent > DIVERGENT_MAX
    }

    /// Returns to the last part of the warm-up, for shorter steps.
    fn restart_with_care(&mut self) {
        let Position { gradients, care, stuck, .. } = self.at;
        self.at = Position { part: WARM_UP.len() - 1, gradients, care: care + 1, stuck, ..Position::default() };
        self.kept.clear();
        self.blocks.iter_mut().for_each(|block| block.step = StepSize::new(0.25 * block.step.step));
    }

    /// One latent's draws, chain by chain.
    fn chains(&self, i: usize) -> Vec<f64> {
        (0..CHAINS).flat_map(|c| self.kept.iter().map(move |kept| kept.get(i, c))).collect()
    }

    fn summary(&self) -> NutsSummary {
        let latents = self.whitened.latents();
        let each: Vec<ChainStatistics> =
            (0..latents.len()).into_par_iter().map(|i| ChainStatistics::new(&self.chains(i), CHAINS)).collect();
        let worst = (0..each.len()).max_by(|a, b| each[*a].rhat.total_cmp(&each[*b].rhat)).unwrap_or(0);
        let least = |of: fn(&ChainStatistics) -> f64| each.iter().map(of).fold(f64::INFINITY, f64::min);
        NutsSummary {
            chains: CHAINS,
            warm_up: WARM_UP.iter().sum(),
            draws: self.kept.len(),
            rhat: each[worst].rhat,
            latent: latents.name(worst),
            ess_bulk: least(|one| one.ess_bulk),
            ess_tail: least(|one| one.ess_tail),
            divergent: self.at.divergent as f64 / self.at.transitions.max(1) as f64,
            gradients: self.at.gradients,
            stuck: self.at.stuck,
            agrees: false,
            is_used: false,
            stopped: false,
        }
    }

    /// `len` draws at equal intervals, chain by chain.
    fn draws(&self, len: usize) -> Batch {
        let all = self.kept.len() * CHAINS;
        let mut z = Batch::zeros(self.whitened.latents().len(), len);
        for i in 0..z.columns_len() {
            let chains = self.chains(i);
            z.column_mut(i).iter_mut().enumerate().for_each(|(to, x)| *x = chains[to * all / len]);
        }
        z
    }
}

//! The graph as a [`Model`]: its log joint, gradient, local terms and conditionals, all from tapes.

use super::eliminate::{Eliminate, Eliminated, LEVELS, Stage, Tail, blankets, eliminate, order};
use super::expression::Expr;
use super::line::{Line, Raw};
use super::node::Graph;
use super::tape::{Below, Sum, TILE, Tape, Workspace};
use crate::error::{Error, Result};
use crate::model::{Conditionals, Fault, Gradient, Latents, Locals, Model, Support};
use hyperprior_math::batch::Batch;
use rayon::prelude::*;
use std::sync::{Mutex, OnceLock};

/// A truncated sum is good enough where what is left out is below this share of it.
const TAIL: f64 = 1e-10;

/// A tape with the workspaces that wait to be used.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) tape: Tape,
    waiting: Mutex<Vec<Workspace>>,
}

impl Pooled {
    pub(super) fn new(tape: Tape) -> Self {
        Self { tape, waiting: Mutex::new(Vec::new()) }
    }

    pub(super) fn take(&self) -> Workspace {
        let waiting = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        waiting.unwrap_or_else(|| Workspace::new(&self.tape))
    }

    pub(super) fn give(&self, workspace: Workspace) {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(workspace);
    }
}

/// Levels that are no great expense.
const ORDINARY: usize = 3;

/// The terms of the log joint that contain a kept discrete latent.
#[derive(Debug)]
struct Blanket {
    /// Their places among the joint's roots.
    places: Vec<u32>,
    /// Adds up these terms alone; its outputs are the ends of the truncated sums that contain the latent, three each.
    pooled: Pooled,
    tails_len: usize,
}

/// The log joint with counts summed over the values of one level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) eliminated: Eliminated,
    /// Adds up the log joint; its outputs are the ends of truncated sums, three each.
    joint: Pooled,
    /// One for each kept discrete latent.
    blankets: Vec<Blanket>,
    /// Its outputs are the stages' tables, one after the other.
    tables: OnceLock<Pooled>,
}

/// A factor graph as a model: latents on the real line or whole numbers, some discrete ones summed out.
#[derive(Debug)]
pub struct GraphModel {
    pub(super) graph: Graph,
    pub(super) line: Line,
    /// The latents that are summed out, in order, by number.
    pub(super) order: Vec<u32>,
    latents: Latents,
    /// The column of each latent of the line; none for those summed out.
    pub(super) columns: Vec<Option<u32>>,
    /// The kept discrete latents, by number.
    pub(super) kept: Vec<u32>,
    /// For each column, its place among the kept discrete latents.
    discrete: Vec<Option<usize>>,
    levels: Vec<OnceLock<Level>>,
}

impl Graph {
    /// The model, with discrete latents summed out where that is cheap.
    ///
    /// # Errors
    /// As [`model_with`](Self::model_with).
    pub fn model(self) -> Result<GraphModel> {
        self.model_with(&Eliminate::Auto)
    }

    /// The model, with these discrete latents summed out as far as they can be.
    ///
    /// # Errors
    /// [`Error::Graph`] for latents whose kind is not supported, [`Error::Model`] where the data are impossible whatever the
    /// latents are, and for names that are no discrete latent's.
    pub fn model_with(self, which: &Eliminate) -> Result<GraphModel> {
        GraphModel::new(self, which)
    }
}

impl GraphModel {
    fn new(graph: Graph, which: &Eliminate) -> Result<Self> {
        let line = Line::new(&graph)?;
        if let Eliminate::Named(names) = which {
            for name in names {
                let is = |raw: &Raw| raw.name == *name || raw.name.split('[').next() == Some(name);
                if !line.raw.iter().any(|raw| raw.support.is_discrete() && is(raw)) {
                    return Err(Error::Model(format!(
                        "there is no discrete latent `{name}` to eliminate; the names of discrete latents are listed by \
                         `check`"
                    )));
                }
            }
        }
        for term in &line.terms {
            let Some(x) = line.arena.value(term.expr) else { continue };
            let node = &graph.random[term.random as usize];
            let name = &node.name;
            let place = graph.origin(node).map_or_else(String::new, |origin| format!(" ({origin})"));
            if x == f64::NEG_INFINITY {
                return Err(Error::Model(format!(
                    "`{name}`{place} is impossible whatever the latents are: its density is 0"
                )));
            }
            if !x.is_finite() {
                return Err(Error::Model(format!(
                    "the density of `{name}`{place} is not a number whatever the latents are"
                )));
            }
        }
        let (order, kept) = order(&line, which);
        let mut is_eliminated = vec![false; line.raw.len()];
        order.iter().for_each(|l| is_eliminated[*l as usize] = true);
        let mut columns = vec![None; line.raw.len()];
        let (mut names, mut discrete) = (Vec::new(), Vec::new());
        for (l, raw) in line.raw.iter().enumerate().filter(|(l, _)| !is_eliminated[*l]) {
            columns[l] = Some(names.len() as u32);
            discrete.push(kept.binary_search(&(l as u32)).ok());
            names.push((raw.name.clone(), raw.support));
        }
        let latents = Latents::scalars(names)?;
        let has_counts = order.iter().any(|l| line.raw[*l as usize].support == Support::Counts);
        let levels = (0..if has_counts { LEVELS } else { 1 }).map(|_| OnceLock::new()).collect();
        let model = Self { graph, line, order, latents, columns, kept, discrete, levels };
        let lowest = model.level(0);
        let is_impossible = |e: &Expr| lowest.eliminated.arena.value(*e) == Some(f64::NEG_INFINITY);
        // With counts cut off at the lowest level, a higher one may still be possible.
        if model.levels.len() == 1 && lowest.eliminated.terms.iter().any(is_impossible) {
            let names: Vec<&str> =
                model.order.iter().take(3).map(|l| model.line.raw[*l as usize].name.as_str()).collect();
            return Err(Error::Model(format!(
                "the data are impossible whatever the values of the discrete latents ({}…) are; check the observations \
                 that depend on them",
                names.join(", ")
            )));
        }
        Ok(model)
    }

    /// The graph that this is the model of.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The names of the latents that are summed out, in the order in which they are.
    pub fn eliminated(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|l| self.line.raw[*l as usize].name.as_str())
    }

    /// The names of the latents that no observation depends on: they are drawn from their laws.
    pub fn unconnected(&self) -> impl Iterator<Item = &str> {
        let leaves = self.graph.leaves.iter().zip(&self.line.leaves);
        leaves.filter(|(_, laid)| laid.is_none()).map(|(leaf, _)| leaf.name.as_str())
    }

    /// How many terms of the log joint contain each latent: its blanket. For continuous latents, 0: they are not counted.
    pub fn blanket_len(&self, i: usize) -> usize {
        self.discrete[i].map_or(0, |k| self.level(0).blankets[k].places.len())
    }

    /// How many rows and runs the tape of the log joint has.
    pub fn tape_len(&self) -> (usize, usize) {
        let tape = &self.level(0).joint.tape;
        (tape.rows_len(), tape.runs_len())
    }

    pub(super) fn level(&self, level: usize) -> &Level {
        self.levels[level].get_or_init(|| self.build_level(level as u32))
    }

    fn column(&self, latent: u32) -> u32 {
        // Summed-out latents are in no expression that is left.
        self.columns[latent as usize].unwrap_or(u32::MAX)
    }

    fn build_level(&self, level: u32) -> Level {
        let eliminated = eliminate(&self.line, &self.order, level);
        let arena = &eliminated.arena;
        let roots: Vec<(Expr, f64)> = eliminated.terms.iter().map(|e| (*e, 1.0)).collect();
        let all_ends = ends(&eliminated.tails);
        let sum = Sum::of(arena, &roots);
        let joint = Tape::new(arena, &roots, &all_ends, |l| self.column(l), !self.kept.is_empty());
        let parts: Vec<Expr> = sum.terms.iter().map(|t| t.0).collect();
        let mut seen = vec![u32::MAX; arena.len()];
        let tail_sums: Vec<Expr> = eliminated.tails.iter().map(|t| t.sum).collect();
        let tails_of = blankets(arena, &tail_sums, &self.kept);
        let found = blankets(arena, &parts, &self.kept).into_iter().zip(tails_of).enumerate();
        let blankets = found
            .map(|(k, (places, tails))| {
                let own: Vec<(Expr, f64)> = places.iter().map(|t| sum.terms[*t as usize]).collect();
                let tails: Vec<Tail> = tails.into_iter().map(|t| eliminated.tails[t as usize]).collect();
                let ends = ends(&tails);
                let below = Below::few(arena, &own, &ends, &mut seen, k as u32);
                let tape = Tape::of(arena, &below, &own, &ends, |l| self.column(l), Some(self.kept[k]), true);
                Blanket { places, pooled: Pooled::new(tape), tails_len: tails.len() }
            })
            .collect();
        Level { joint: Pooled::new(joint), blankets, eliminated, tables: OnceLock::new() }
    }

    /// The tape of the stages' tables.
    pub(super) fn tables<'a>(&self, level: &'a Level) -> &'a Pooled {
        level.tables.get_or_init(|| {
            let Eliminated { arena, stages, .. } = &level.eliminated;
            let outputs: Vec<Expr> = stages.iter().flat_map(|s: &Stage| s.table.iter().copied()).collect();
            Pooled::new(Tape::new(arena, &[], &outputs, |l| self.column(l), false))
        })
    }

    /// Evaluates the tile of draws from `first` on, at the lowest level whose truncated sums are good enough for all of them,
    /// and hands that level and the workspace to `then`. Where no level is, the draws that want more are named.
    fn evaluate<'a, T>(
        &'a self,
        z: &Batch,
        first: usize,
        then: impl Fn(&'a Level, &mut Workspace, [bool; TILE]) -> T,
    ) -> T {
        self.evaluate_within(self.levels.len(), z, first, then)
    }

    /// The same with no more than so many levels.
    fn evaluate_within<'a, T>(
        &'a self,
        levels_len: usize,
        z: &Batch,
        first: usize,
        then: impl Fn(&'a Level, &mut Workspace, [bool; TILE]) -> T,
    ) -> T {
        let mut number = 0;
        loop {
            let level = self.level(number);
            let mut workspace = level.joint.take();
            let tape = &level.joint.tape;
            tape.load(z, first, &mut workspace);
            tape.forward(&mut workspace);
            let short = short(tape, &workspace, level.eliminated.tails.len());
            let is_last = number + 1 == levels_len || !short.contains(&true);
            let result = is_last.then(|| then(level, &mut workspace, short));
            level.joint.give(workspace);
            if let Some(result) = result {
                return result;
            }
            number += 1;
        }
    }

    /// The lowest level that is good enough for this tile.
    pub(super) fn level_for(&self, z: &Batch, first: usize) -> &Level {
        if self.levels.len() == 1 {
            return self.level(0);
        }
        self.evaluate(z, first, |level, _, _| level)
    }

    /// Runs `f` on every tile, on all cores where there are several, and hands its results to `put` in order.
    pub(super) fn tiles<T: Send>(z: &Batch, f: impl Fn(usize) -> T + Sync, mut put: impl FnMut(usize, T)) {
        let tiles_len = z.draws_len().div_ceil(TILE);
        if tiles_len <= 1 || rayon::current_num_threads() == 1 {
            for tile in 0..tiles_len {
                put(tile * TILE, f(tile * TILE));
            }
            return;
        }
        let results: Vec<T> = (0..tiles_len).into_par_iter().map(|tile| f(tile * TILE)).collect();
        for (tile, result) in results.into_iter().enumerate() {
            put(tile * TILE, result);
        }
    }
}

/// The outputs that say how good truncated sums are.
pub(super) fn ends(tails: &[Tail]) -> Vec<Expr> {
    tails.iter().flat_map(|t| [t.last, t.previous, t.sum]).collect()
}

/// Which draws' truncated sums leave out too much. Beyond the last value each term is at most the ratio of the last two times
/// the one before (the ratio falls), so that the rest is at most a geometric series.
pub(super) fn short(tape: &Tape, workspace: &Workspace, tails_len: usize) -> [bool; TILE] {
    let mut short = [false; TILE];
    for t in 0..tails_len {
        let [last, previous, sum] = [0, 1, 2].map(|k| tape.output(3 * t + k, workspace));
        for i in 0..TILE {
            if last[i] == f64::NEG_INFINITY {
                continue;
            }
            let ratio = (last[i] - previous[i]).exp();
            let rest = (last[i] - sum[i]).exp() * ratio / (1.0 - ratio);
            short[i] |= !(ratio < 1.0 && rest < TAIL);
        }
    }
    short
}

/// The density of draws whose sums cannot be cut off is not known.
fn known(mut total: [f64; TILE], short: [bool; TILE]) -> [f64; TILE] {
    for (t, short) in total.iter_mut().zip(short) {
        if short {
            *t = f64::NAN;
        }
    }
    total
}

impl Model for GraphModel {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        let total = |first| self.evaluate(z, first, |level, w, short| known(level.joint.tape.total(w), short));
        Self::tiles(z, total, |first, total| {
            let len = TILE.min(out.len() - first);
            out[first..first + len].copy_from_slice(&total[..len]);
        });
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        Some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn is_ordinary(&self, z: &Batch, out: &mut [bool]) {
        let levels_len = ORDINARY.min(self.levels.len());
        let short = |first| self.evaluate_within(levels_len, z, first, |_, _, short| short);
        Self::tiles(z, short, |first, short| {
            out[first..].iter_mut().zip(short).for_each(|(out, short)| *out = !short);
        });
    }

    fn fault(&self, z: &Batch, s: usize) -> Option<Fault> {
        self.fault_at(z, s)
    }

    fn work(&self) -> usize {
        let level = self.level(0);
        let values = |latent: u32| match self.line.raw[latent as usize].support {
            Support::Integers { lower, upper } => (upper - lower) as usize + 1,
            _ => 32,
        };
        let tables = self.kept.iter().zip(&level.blankets);
        level.joint.tape.work(false)
            + tables.map(|(latent, blanket)| blanket.pooled.tape.work(true) * values(*latent)).sum::<usize>()
    }
}

impl Gradient for GraphModel {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        // A latent that is in no term has no derivative.
        d_z.as_mut_slice().fill(0.0);
        if z.draws_len() <= TILE {
            // The usual size of a block of draws: nothing is allocated.
            let d_z = std::cell::RefCell::new(d_z);
            let total = self.evaluate(z, 0, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = tape.backward(workspace);
                tape.store(workspace, 0, &mut d_z.borrow_mut());
                known(total, short)
            });
            out.copy_from_slice(&total[..out.len()]);
            return Ok(());
        }
        let columns_len = z.columns_len();
        let run = |first| {
            self.evaluate(z, first, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = tape.backward(workspace);
                let mut own = Batch::zeros(columns_len, TILE.min(z.draws_len() - first));
                tape.store(workspace, 0, &mut own);
                (known(total, short), own)
            })
        };
        Self::tiles(z, run, |first, (total, own)| {
            let len = own.draws_len();
            out[first..first + len].copy_from_slice(&total[..len]);
            for i in 0..columns_len {
                d_z.column_mut(i)[first..first + len].copy_from_slice(own.column(i));
            }
        });
        Ok(())
    }
}

impl Locals for GraphModel {
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()> {
        let run = |first| {
            self.evaluate(z, first, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = known(tape.total(workspace), short);
                let roots = tape.roots();
                let locals: Vec<[f64; TILE]> = level
                    .blankets
                    .iter()
                    .map(|blanket| {
                        let mut sum = [0.0; TILE];
                        for place in &blanket.places {
                            let (row, weight) = roots[*place as usize];
                            let row = tape.row(row, workspace);
                            for i in 0..TILE {
                                sum[i] += weight * row[i];
                            }
                        }
                        sum
                    })
                    .collect();
                (total, locals)
            })
        };
        let discrete = &self.discrete;
        Self::tiles(z, run, |first, (total, locals)| {
            let len = TILE.min(z.draws_len() - first);
            for i in 0..out.columns_len() {
                // All terms are a continuous latent's: its gradient needs no signal of its own.
                let from = discrete[i].map_or(&total, |k| &locals[k]);
                out.column_mut(i)[first..first + len].copy_from_slice(&from[..len]);
            }
        });
        Ok(())
    }
}

impl Conditionals for GraphModel {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let Some(k) = self.discrete[i] else {
            return Err(Error::Model(format!("`{}` is continuous; it has no table", self.latents.name(i))));
        };
        let mut open = Vec::with_capacity(values.len());
        for first in (0..z.draws_len()).step_by(TILE) {
            // Each value at the lowest level that is good enough for it: what the latent is now has no say.
            open.clear();
            open.extend(0..values.len());
            for number in 0..self.levels.len() {
                let Blanket { pooled, tails_len, .. } = &self.level(number).blankets[k];
                let mut workspace = pooled.take();
                pooled.tape.load(z, first, &mut workspace);
                pooled.tape.forward_fixed(&mut workspace);
                let len = TILE.min(z.draws_len() - first);
                open.retain(|&v| {
                    pooled.tape.set(i as u32, values[v], &mut workspace);
                    pooled.tape.forward_varying(&mut workspace);
                    let short = short(&pooled.tape, &workspace, *tails_len);
                    let total = known(pooled.tape.total(&workspace), short);
                    out.column_mut(v)[first..first + len].copy_from_slice(&total[..len]);
                    short.contains(&true)
                });
                pooled.give(workspace);
                if open.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

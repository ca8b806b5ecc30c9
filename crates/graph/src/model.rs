//! The graph as a model: its latents, and the tapes of its log joint.

use super::centring::Degrees;
use super::coupling::coupled;
use super::elimination::{self, Marginalise, Order, VALUES_MAX, blankets, levels_len};
use super::expression::Expr;
use super::gaussian_form::GaussianForm;
use super::marginalise::{Marginalised, Stage, Tail, marginalise};
use super::node::Graph;
use super::pooled::Pooled;
use super::quadratic::quadratic;
use super::running_sums::with_running_sums;
use super::tape::{Below, Sum, TILE, Tape, Workspace};
use super::truncated_sum::{ends, is_short, short};
use super::unconstrained::{Coordinate, Unconstrained};
use hyperprior::model::{Latents, Support};
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;
use rayon::prelude::*;
use std::sync::OnceLock;

/// The terms of the log joint that contain a kept discrete latent.
#[derive(Debug)]
pub(super) struct Blanket {
    /// Their places among the joint's roots.
    pub(super) places: Vec<u32>,
    /// Adds up these terms alone; its outputs are the ends of the truncated sums that contain the latent, two each.
    pub(super) pooled: Pooled,
    pub(super) tails_len: usize,
}

/// The log joint at one level, which says over how many values counts are summed.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) marginalised: Marginalised,
    /// Adds up the log joint; its outputs are the ends of truncated sums, two each.
    pub(super) joint: Pooled,
    /// One for each kept discrete latent.
    pub(super) blankets: Vec<Blanket>,
    /// Its outputs are the tables of all stages.
    tables: OnceLock<Pooled>,
}

/// A factor graph as a model, in unconstrained coordinates and with some discrete latents marginalised.
#[derive(Debug)]
pub struct GraphModel {
    pub(super) graph: Graph,
    pub(super) unconstrained: Unconstrained,
    /// The coordinates that are marginalised, in the order of elimination.
    pub(super) order: Vec<u32>,
    /// The terms with running sums as further coordinates, and the order with these, if that is how latents can be marginalised.
    summed: Option<(Unconstrained, Vec<u32>)>,
    pub(super) latents: Latents,
    /// The column of each coordinate; none if it is marginalised.
    pub(super) columns: Vec<Option<u32>>,
    /// The coordinates of the kept discrete latents.
    pub(super) kept: Vec<u32>,
    /// For each column, its place among the kept discrete latents.
    pub(super) discrete: Vec<Option<usize>>,
    pub(super) levels: Vec<OnceLock<Level>>,
    /// A point in the middle of the mass, if the degrees of centring were learnt.
    pub(super) centre: Option<Vec<f64>>,
    /// The pairs of coupled columns, if they are few.
    coupled: OnceLock<Option<Vec<[u32; 2]>>>,
}

impl Graph {
    /// The model, with discrete latents marginalised where that is cheap.
    ///
    /// # Errors
    /// As [`model_with`](Self::model_with).
    pub fn model(self) -> Result<GraphModel> {
        self.model_with(&Marginalise::Auto)
    }

    /// The model, with these discrete latents marginalised as far as possible.
    ///
    /// # Errors
    /// [`Error::BadModel`] for a latent whose kind is not supported; [`Error::Model`] if the data are impossible whatever the
    /// latents are, or if a name is not that of a discrete latent.
    pub fn model_with(self, which: &Marginalise) -> Result<GraphModel> {
        let graph = if matches!(which, Marginalise::Auto) { self.with_intervals().with_conjugates() } else { self };
        GraphModel::new(graph, which, &Degrees::default())
    }
}

impl GraphModel {
    pub(super) fn new(mut graph: Graph, which: &Marginalise, degrees: &Degrees) -> Result<Self> {
        let mut unconstrained = Unconstrained::new(&graph, degrees)?;
        if let Marginalise::Named(names) = which {
            for name in names {
                let is = |coordinate: &Coordinate| {
                    coordinate.name == *name || coordinate.name.split('[').next() == Some(name)
                };
                if !unconstrained
                    .coordinates
                    .iter()
                    .any(|coordinate| coordinate.support.is_discrete() && is(coordinate))
                {
                    return Err(Error::Model(format!("there is no discrete latent `{name}` to marginalise")));
                }
            }
        }
        for term in &unconstrained.terms {
            let Some(x) = unconstrained.arena.value(term.expr) else { continue };
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
        let mut except = Vec::new();
        loop {
            let model = Self::eliminating(graph, unconstrained, which, &except)?;
            let long = model.too_long();
            if long.is_empty() {
                let lowest = model.level(0);
                let is_impossible = |e: &Expr| lowest.marginalised.arena.value(*e) == Some(f64::NEG_INFINITY);
                // If sums over counts are truncated, a higher level may still be possible.
                if model.levels.len() == 1 && lowest.marginalised.terms.iter().any(is_impossible) {
                    return Err(model.impossible());
                }
                return Ok(model);
            }
            if matches!(which, Marginalise::Named(_)) {
                let name = &model.unconstrained.coordinates[long[0] as usize].name;
                return Err(Error::Model(model.too_long_reason(name)));
            }
            except.extend(long);
            (graph, unconstrained) = (model.graph, model.unconstrained);
        }
    }

    /// The model with these latents marginalised, except for some.
    fn eliminating(graph: Graph, unconstrained: Unconstrained, which: &Marginalise, except: &[u32]) -> Result<Self> {
        let Order { marginalised: mut order, mut kept, .. } = elimination::order(&unconstrained, which, except);
        let mut summed = None;
        let is_finite = |l: &u32| matches!(unconstrained.coordinates[*l as usize].support, Support::Integers { .. });
        if *which == Marginalise::Auto
            && kept.iter().any(is_finite)
            && let Some(with_sums) = with_running_sums(&graph, &unconstrained)
        {
            let Order { marginalised: whole_order, kept: still_kept, .. } =
                elimination::order(&with_sums, which, except);
            let is_latent = |l: &u32| (*l as usize) < unconstrained.coordinates.len();
            if still_kept.len() < kept.len() && still_kept.iter().all(is_latent) {
                order = whole_order.iter().copied().filter(is_latent).collect();
                (kept, summed) = (still_kept, Some((with_sums, whole_order)));
            }
        }
        let mut is_marginalised = vec![false; unconstrained.coordinates.len()];
        order.iter().for_each(|l| is_marginalised[*l as usize] = true);
        let mut columns = vec![None; unconstrained.coordinates.len()];
        let (mut names, mut discrete) = (Vec::new(), Vec::new());
        for (l, coordinate) in unconstrained.coordinates.iter().enumerate().filter(|(l, _)| !is_marginalised[*l]) {
            columns[l] = Some(names.len() as u32);
            discrete.push(kept.binary_search(&(l as u32)).ok());
            names.push((coordinate.name.clone(), coordinate.support));
        }
        let latents = Latents::scalars(names)?;
        let marginalised: Vec<&Coordinate> = order.iter().map(|l| &unconstrained.coordinates[*l as usize]).collect();
        let levels = (0..levels_len(&marginalised)).map(|_| OnceLock::new()).collect();
        let coupled = OnceLock::new();
        let centre = None;
        Ok(Self { graph, unconstrained, order, summed, latents, columns, kept, discrete, levels, centre, coupled })
    }

    /// The same model with no latent marginalised.
    pub(super) fn unmarginalised(&self) -> Result<Self> {
        Self::eliminating(self.graph.clone(), self.unconstrained.clone(), &Marginalise::Nothing, &[])
    }

    /// The counts whose sums are constant and leave out too much even at the highest level.
    fn too_long(&self) -> Vec<u32> {
        let mut long = Vec::new();
        for number in 0..self.levels.len() {
            let Marginalised { arena, tails, .. } = &self.level(number).marginalised;
            let is_long = |t: &&Tail| {
                let (rest, sum) = (arena.value(t.rest), arena.value(t.sum));
                sum.is_some_and(|sum| is_short(rest.unwrap_or(f64::NEG_INFINITY), sum))
            };
            long = tails.iter().filter(is_long).map(|t| t.latent).collect();
            long.dedup();
            if long.is_empty() {
                break;
            }
        }
        long
    }

    /// Why the sum over a count is not accurate.
    pub(super) fn too_long_reason(&self, name: &str) -> String {
        format!(
            "the count `{name}` cannot be marginalised: more than {VALUES_MAX} of its values matter; do not marginalise it, or \
             give it a distribution with a lighter tail or a smaller mean"
        )
    }

    /// No value of the marginalised latents has a finite density.
    pub(super) fn impossible(&self) -> Error {
        let names: Vec<&str> = self.marginalised().take(3).collect();
        Error::Model(format!(
            "the data are impossible whatever the values of the discrete latents ({}…) are; check the observations that depend \
             on them",
            names.join(", ")
        ))
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The names of the marginalised latents: discrete ones in the order of elimination, then censored and conjugate ones.
    pub fn marginalised(&self) -> impl Iterator<Item = &str> {
        let discrete = self.order.iter().map(|l| self.unconstrained.coordinates[*l as usize].name.as_str());
        discrete.chain(self.graph.integrated.iter().map(|leaf| self.graph.leaves[*leaf as usize].name.as_str()))
    }

    /// The names of the latents that no observation depends on; they are drawn from their priors.
    pub fn prior_only(&self) -> impl Iterator<Item = &str> {
        let leaves = self.graph.leaves.iter().zip(&self.unconstrained.leaves);
        let is_integrated = |leaf: usize| self.graph.integrated.contains(&(leaf as u32));
        let prior_only = leaves.enumerate().filter(move |(l, (_, expr))| expr.is_none() && !is_integrated(*l));
        prior_only.map(|(_, (leaf, _))| leaf.name.as_str())
    }

    /// How many terms of the log joint contain a latent (its Markov blanket); 0 for continuous latents, which are not counted.
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

    /// The pairs of columns whose second derivative may be other than zero, if they are few.
    pub(super) fn coupled_columns(&self) -> Option<&[[u32; 2]]> {
        let found = self.coupled.get_or_init(|| {
            let Marginalised { arena, terms, .. } = &self.level(0).marginalised;
            let terms: Vec<(Expr, f64)> = terms.iter().map(|e| (*e, 1.0)).collect();
            coupled(arena, &terms, |l| self.column(l))
        });
        found.as_deref()
    }

    /// The columns of latents that are Gaussian given the others, if no more than so many others are continuous and nothing is marginalised.
    pub(super) fn quadratic_columns(&self, others_max: usize) -> Option<Vec<usize>> {
        if !self.order.is_empty() {
            return None;
        }
        let Marginalised { arena, terms, .. } = &self.level(0).marginalised;
        let terms: Vec<(Expr, f64)> = terms.iter().map(|e| (*e, 1.0)).collect();
        let is_real = self.unconstrained.coordinates.iter().map(|coordinate| coordinate.support == Support::Real);
        let is_quadratic = quadratic(arena, &terms, is_real.collect(), others_max)?;
        let mut columns: Vec<usize> = (0..is_quadratic.len())
            .filter(|l| is_quadratic[*l])
            .filter_map(|l| Some(self.columns[l]? as usize))
            .collect();
        columns.sort_unstable();
        Some(columns)
    }

    /// The coefficients along latents that are Gaussian given the others.
    pub(super) fn gaussian_form(&self, columns: &[usize]) -> Option<GaussianForm> {
        if !self.order.is_empty() {
            return None;
        }
        let Marginalised { arena, terms, .. } = &self.level(0).marginalised;
        GaussianForm::new(arena, terms, columns, |l| self.columns[l as usize])
    }

    fn column(&self, latent: u32) -> u32 {
        // No remaining expression contains a marginalised latent.
        self.columns[latent as usize].unwrap_or(u32::MAX)
    }

    /// What latents are eliminated from, and in which order.
    pub(super) fn eliminated(&self) -> (&Unconstrained, &[u32]) {
        match &self.summed {
            Some((unconstrained, order)) => (unconstrained, order),
            None => (&self.unconstrained, &self.order),
        }
    }

    pub(super) fn has_running_sums(&self) -> bool {
        self.summed.is_some()
    }

    fn build_level(&self, level: u32) -> Level {
        let (unconstrained, order) = self.eliminated();
        let marginalised = marginalise(unconstrained, order, level);
        let arena = &marginalised.arena;
        let roots: Vec<(Expr, f64)> = marginalised.terms.iter().map(|e| (*e, 1.0)).collect();
        let all_ends = ends(&marginalised.tails);
        let sum = Sum::of(arena, &roots);
        let joint = Tape::new(arena, &roots, &all_ends, |l| self.column(l), !self.kept.is_empty());
        let parts: Vec<Expr> = sum.terms.iter().map(|t| t.0).collect();
        let mut seen = vec![u32::MAX; arena.len()];
        let tail_sums: Vec<Expr> = marginalised.tails.iter().map(|t| t.sum).collect();
        let tails_of = blankets(arena, &tail_sums, &self.kept);
        let found = blankets(arena, &parts, &self.kept).into_iter().zip(tails_of).enumerate();
        let blankets = found
            .map(|(k, (places, tails))| {
                let own: Vec<(Expr, f64)> = places.iter().map(|t| sum.terms[*t as usize]).collect();
                let tails: Vec<Tail> = tails.into_iter().map(|t| marginalised.tails[t as usize]).collect();
                let ends = ends(&tails);
                let below = Below::few(arena, &own, &ends, &mut seen, k as u32);
                let tape = Tape::of(arena, &below, &own, &ends, |l| self.column(l), Some(self.kept[k]), true);
                Blanket { places, pooled: Pooled::new(tape), tails_len: tails.len() }
            })
            .collect();
        Level { joint: Pooled::new(joint), blankets, marginalised, tables: OnceLock::new() }
    }

    /// The tape of the tables of all stages.
    pub(super) fn tables<'a>(&self, level: &'a Level) -> &'a Pooled {
        level.tables.get_or_init(|| {
            let Marginalised { arena, stages, .. } = &level.marginalised;
            let outputs: Vec<Expr> = stages.iter().flat_map(|s: &Stage| s.table.iter().copied()).collect();
            Pooled::new(Tape::new(arena, &[], &outputs, |l| self.column(l), false))
        })
    }

    /// Evaluates the tile of draws from `first` on, at the lowest level whose truncated sums are accurate enough for all of them,
    /// and passes that level, the workspace and the draws that would still need more values to `then`.
    pub(super) fn evaluate<'a, T>(
        &'a self,
        z: &Batch,
        first: usize,
        then: impl Fn(&'a Level, &mut Workspace, [bool; TILE]) -> T,
    ) -> T {
        self.evaluate_within(self.levels.len(), z, first, then)
    }

    /// The same with at most this many levels.
    pub(super) fn evaluate_within<'a, T>(
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
            let short = short(tape, &workspace, level.marginalised.tails.len());
            let is_last = number + 1 == levels_len || !short.contains(&true);
            let result = is_last.then(|| then(level, &mut workspace, short));
            level.joint.give(workspace);
            if let Some(result) = result {
                return result;
            }
            number += 1;
        }
    }

    /// The lowest level that is accurate enough for this tile.
    pub(super) fn level_for(&self, z: &Batch, first: usize) -> &Level {
        if self.levels.len() == 1 {
            return self.level(0);
        }
        self.evaluate(z, first, |level, _, _| level)
    }

    /// Runs `f` on every tile, in parallel if possible, and passes the results to `put` in order.
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

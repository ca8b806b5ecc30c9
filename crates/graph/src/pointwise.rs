//! The pointwise log likelihood of a draw: log p(yᵢ | z, y₋ᵢ), with y₋ᵢ all other observations.
//!
//! z are the latents that were not marginalised. The others are marginalised here twice, with the observation and without it:
//! log p(yᵢ | z, y₋ᵢ) = log p(y, z) − log p(y₋ᵢ, z). Only the piece of the graph that shares marginalised latents with yᵢ has to
//! be summed. Over draws of the posterior, 1/p(yᵢ | y₋ᵢ) is then the mean of 1/p(yᵢ | z, y₋ᵢ), whether or not the observations
//! are independent given z. With drawn values instead of sums this would fail: a label that yᵢ makes impossible is never drawn,
//! although it is possible once yᵢ is left out. For the same reason a count runs over all values of its distribution here, not
//! only over those that the observations allow.

use super::counts::{Rebuilt, Window, factors};
use super::distribution::Distribution;
use super::elimination::{self, Marginalise, blankets, domain, levels_len};
use super::expression::{Expr, Known, Node};
use super::marginalise::expand;
use super::model::GraphModel;
use super::node::{AnyDistribution, Random};
use super::pieces::{Piece, entries_len, log_marginal, pieces};
use super::pooled::Pooled;
use super::rewrite::Shape;
use super::running_sums::with_running_sums;
use super::tape::{TILE, Tape};
use super::truncated_sum::{ENDS, ends, short};
use super::unconstrained::{Coordinate, Term, Transform, Unconstrained, count_of};
use hyperprior::model::Support;
use hyperprior::posterior::Unit;
use hyperprior::report::LooReport;
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;
use std::sync::OnceLock;

/// The most table entries that leaving out the observations one by one may take in total.
const ENTRIES_MAX: f64 = 1_048_576.0;
/// The most table entries that one piece may take.
const PIECE_MAX: f64 = 4_194_304.0;
/// The level that is assumed for the cost: counts often need more values than those of level 0.
const USUAL_LEVEL: u32 = 2;

/// Pointwise log likelihoods of the observations of a model.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior_graph::{GraphBuilder, Distribution};
///
/// // One of two coins landed heads twice: predict each throw from the other.
/// let mut g = GraphBuilder::new();
/// let (low, high, one) = (g.constant(0.2), g.constant(0.8), g.constant(1.0));
/// let coin = g.stochastic("coin", Distribution::Categorical { weights: vec![one, one] }, None, None)?;
/// let p = g.select(coin, &[low, high]);
/// g.stochastic("y[1]", Distribution::Bernoulli { p }, None, Some(1.0))?;
/// g.stochastic("y[2]", Distribution::Bernoulli { p }, None, Some(1.0))?;
/// let model = g.build()?.model()?;
/// let found = model.pointwise()?.log_likelihood(&Batch::zeros(0, 1))?;
/// let exact: f64 = (0.2 * 0.2 + 0.8 * 0.8) / (0.2 + 0.8);
/// assert!((found.get(0, 0) - exact.ln()).abs() < 1e-12);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct Pointwise {
    units: Vec<Unit>,
    parts: Vec<Part>,
    pieces: Vec<Piece>,
    conditioned_on: Vec<String>,
    excluded: Vec<String>,
    unconstrained: Unconstrained,
    /// The marginalised coordinates of `unconstrained`.
    order: Vec<u32>,
    columns: Vec<Option<u32>>,
    levels: Vec<OnceLock<Level>>,
}

/// How a unit's log likelihood is computed.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// A term without marginalised latents.
    Term(usize),
    /// A piece with and without one of its terms.
    Without(usize, usize),
    /// A piece with and without all of its observations.
    Whole(usize),
}

/// The units at one level, which says over how many values counts are summed.
#[derive(Debug)]
struct Level {
    /// Its outputs are the ends of truncated sums, two each, and then the units.
    pooled: Pooled,
    tails_len: usize,
}

/// Whether a node can be predicted: its distribution is proper and not deterministic.
pub(super) fn is_predicted(node: &Random) -> bool {
    !matches!(
        node.distribution,
        AnyDistribution::Scalar(Distribution::Interval { .. } | Distribution::Flat | Distribution::HalfFlat)
    )
}

impl GraphModel {
    /// Prepares the pointwise log likelihoods.
    ///
    /// # Errors
    /// [`Error::Model`] if the bounds of a fitted latent depend on a marginalised one, or if latents have too many values once
    /// the observations no longer limit them.
    pub fn pointwise(&self) -> Result<Pointwise> {
        let (unconstrained, order) = self.without_observation_limits()?;
        let (unconstrained, order) = self.with_running_sums(unconstrained, order);
        let mut columns = self.columns.clone();
        columns.resize(unconstrained.coordinates.len(), None);
        let roots: Vec<Expr> = unconstrained.terms.iter().map(|t| t.expr).collect();
        let of_latent = blankets(&unconstrained.arena, &roots, &order);
        let sizes: Vec<f64> =
            order.iter().map(|l| domain(&unconstrained.coordinates[*l as usize], USUAL_LEVEL).1).collect();
        let (pieces, piece_of) = pieces(&of_latent, unconstrained.terms.len());
        let node = |t: usize| &self.graph.random[unconstrained.terms[t].random as usize];
        let is_observation = |t: usize| node(t).is_observed && is_predicted(node(t));
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|p| Piece { observed: p.terms.iter().copied().filter(|t| is_observation(*t)).collect(), ..p })
            .collect();
        let lens: Vec<f64> = pieces.iter().map(|piece| entries_len(piece, &of_latent, &sizes)).collect();
        if let Some(p) = lens.iter().position(|len| *len > PIECE_MAX) {
            let name = &unconstrained.coordinates[order[pieces[p].latents[0]] as usize].name;
            return Err(Error::Model(format!(
                "observations cannot be left out: without them `{name}` and its neighbours have too many values to be \
                 marginalised; marginalise fewer latents"
            )));
        }
        let mut entries = 0.0;
        let is_whole: Vec<bool> = pieces
            .iter()
            .zip(&lens)
            .map(|(piece, len)| {
                let own = len * piece.observed.len() as f64;
                let is_whole = piece.observed.len() > 1 && entries + own > ENTRIES_MAX;
                entries += if is_whole { 0.0 } else { own };
                is_whole
            })
            .collect();
        let (mut units, mut parts) = (Vec::new(), Vec::new());
        for t in (0..unconstrained.terms.len()).filter(|t| is_observation(*t)) {
            let (part, observations_len, is_independent) = match piece_of[t] {
                None => (Part::Term(t), 1, true),
                Some(p) if is_whole[p] && pieces[p].observed[0] != t => continue,
                Some(p) if is_whole[p] => (Part::Whole(p), pieces[p].observed.len(), true),
                Some(p) => (Part::Without(p, t), 1, pieces[p].observed.len() == 1),
            };
            units.push(Unit { name: node(t).name.clone(), observations_len, is_independent });
            parts.push(part);
        }
        let conditioned_on =
            self.kept.iter().map(|l| self.unconstrained.coordinates[*l as usize].name.clone()).collect();
        let aside = self.graph.random.iter().filter(|r| r.is_observed && !is_predicted(r));
        let excluded = aside.map(|r| r.name.clone()).collect();
        let marginalised: Vec<&Coordinate> = order.iter().map(|l| &unconstrained.coordinates[*l as usize]).collect();
        let levels = (0..levels_len(&marginalised)).map(|_| OnceLock::new()).collect();
        Ok(Pointwise { units, parts, pieces, conditioned_on, excluded, unconstrained, order, columns, levels })
    }

    /// With running sums as further latents, if that is how the latents are marginalised.
    fn with_running_sums(&self, unconstrained: Unconstrained, order: Vec<u32>) -> (Unconstrained, Vec<u32>) {
        let own_len = self.unconstrained.coordinates.len();
        if let Some(summed) = self.has_running_sums().then(|| with_running_sums(&self.graph, &unconstrained)).flatten()
        {
            // The model's own coordinates are in no term any more, or kept.
            let own: Vec<u32> = (0..own_len as u32).collect();
            let order = elimination::order(&summed, &Marginalise::Auto, &own).marginalised;
            if order.len() == summed.coordinates.len() - own_len {
                return (summed, order);
            }
        }
        (unconstrained, order)
    }

    /// The terms without their Jacobians (which cancel in the differences), with every marginalised latent running over all values
    /// of its distribution; and the coordinates of those latents.
    fn without_observation_limits(&self) -> Result<(Unconstrained, Vec<u32>)> {
        let graph = &self.graph;
        let mut unconstrained = Unconstrained { terms: Vec::new(), ..self.unconstrained.clone() };
        let mut leaves = unconstrained.leaves.clone();
        let mut order = Vec::new();
        let mut is_marginalised = vec![false; leaves.len()];
        let mut is_marginalised_coordinate = vec![false; self.unconstrained.coordinates.len()];
        self.order.iter().for_each(|l| is_marginalised_coordinate[*l as usize] = true);
        let marginalised = self.order.iter().map(|l| {
            let coordinate = &self.unconstrained.coordinates[*l as usize];
            (coordinate.leaf, if let Transform::Integer(least) = coordinate.transform { least } else { 0.0 })
        });
        // A latent that the observations fix has no coordinate, but needs one without them.
        let fixed = (0..leaves.len()).filter_map(|l| {
            let value = leaves[l].and_then(|e| self.unconstrained.arena.value(e))?;
            Some((l, value))
        });
        let fixed: Vec<(usize, f64)> = fixed.collect();
        for (leaf, least) in marginalised.chain(fixed) {
            let r = graph.leaves[leaf].random as usize;
            let AnyDistribution::Scalar(distribution) = &graph.random[r].distribution else { continue };
            let (low, high) = graph.discrete_range(r, distribution);
            if !distribution.is_discrete() || !(low < high) {
                continue;
            }
            let is_bounded = high < f64::INFINITY;
            let support =
                if is_bounded { Support::Integers { lower: 0.0, upper: high - low } } else { Support::Counts };
            let number = unconstrained.coordinates.len() as u32;
            // The number of values at level 0 depends on the least count that was observed.
            let transform = Transform::Integer(least - low);
            unconstrained.coordinates.push(Coordinate {
                name: graph.leaves[leaf].name.clone(),
                support,
                leaf,
                transform,
                window: Window::new(graph, &graph.random[r], distribution, low),
            });
            let known = Known { nonnegative: true, positive: false, whole: true, at_most_one: high - low <= 1.0 };
            let above = unconstrained.arena.leaf(number, known);
            leaves[leaf] = Some(unconstrained.arena.linear(&[(above, 1.0)], low));
            is_marginalised[leaf] = true;
            order.push(number);
        }
        let touched = self.unconstrained.arena.containing(|l| is_marginalised_coordinate[l as usize]);
        for (l, e) in self.unconstrained.leaves.iter().enumerate() {
            if e.is_some_and(|e| touched[e.0 as usize]) && !is_marginalised[l] {
                return Err(Error::Model(format!(
                    "observations cannot be left out one by one: the bounds of `{}` depend on a marginalised latent; do not \
                     marginalise",
                    graph.leaves[l].name
                )));
            }
        }
        let densities: Vec<Expr> =
            self.unconstrained.terms.iter().map(|t| graph.random[t.random as usize].density).collect();
        let unmade = unconstrained.arena.constant(f64::NAN);
        let mut made = vec![unmade; graph.arena.len()];
        let mut shape = Shape::default();
        for (i, _) in graph.arena.reach(&densities).iter().enumerate().filter(|(_, reached)| **reached) {
            let e = Expr(i as u32);
            made[i] = if let Node::Leaf(l) = graph.arena.node(e) {
                leaves[l as usize].unwrap_or(unmade)
            } else {
                shape.take(&graph.arena, e);
                shape.make(&mut unconstrained.arena, |e| made[e.0 as usize], |_| unmade)
            };
        }
        let term = |(t, density): (&Term, &Expr)| Term { expr: made[density.0 as usize], random: t.random };
        unconstrained.terms = self.unconstrained.terms.iter().zip(&densities).map(term).collect();
        let terms = unconstrained.terms.iter().map(|t| (t.random, None));
        let mut rebuilt = Rebuilt { graph, made, is_made: graph.arena.reach(&densities) };
        let count_of = count_of(&unconstrained.coordinates, graph);
        unconstrained.factors = factors(&mut rebuilt, &mut unconstrained.arena, &count_of, terms);
        Ok((unconstrained, order))
    }
}

impl Pointwise {
    /// Leave-one-out cross-validation over draws `z` of the model's latents.
    ///
    /// # Errors
    /// As [`log_likelihood`](Self::log_likelihood).
    pub fn loo(&self, z: &Batch) -> Result<LooReport> {
        let log_likelihood = self.log_likelihood(z)?;
        LooReport::new(&self.units, log_likelihood, self.conditioned_on(), self.excluded())
            .map_err(|error| Error::Model(error.to_string()))
    }

    /// The observations that are left out together, in the order of the columns of [`log_likelihood`](Self::log_likelihood).
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The discrete latents that were not marginalised. The likelihoods of observations that depend on them are conditional on
    /// their drawn values, and wrong if an observation makes a value impossible.
    pub fn conditioned_on(&self) -> &[String] {
        &self.conditioned_on
    }

    /// Observations that are certain given the latents, such as a censoring interval, or that have an improper distribution.
    pub fn excluded(&self) -> &[String] {
        &self.excluded
    }

    /// A column for each unit: its log likelihood in each draw of the model's latents, given all other observations. NaN if a sum
    /// over counts cannot be truncated.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of columns is not that of the latents.
    pub fn log_likelihood(&self, z: &Batch) -> Result<Batch> {
        let columns_len = self.columns.iter().flatten().count();
        if z.columns_len() != columns_len {
            return Err(Error::Mismatch {
                first: "the draws".to_owned(),
                second: "the model".to_owned(),
                reason: format!("there are {} columns for {columns_len} latents", z.columns_len()),
            });
        }
        let mut out = Batch::zeros(self.units.len(), z.draws_len());
        GraphModel::tiles(
            z,
            |first| self.tile(z, first),
            |first, rows| {
                let len = TILE.min(z.draws_len() - first);
                for (u, row) in rows.iter().enumerate() {
                    out.column_mut(u)[first..first + len].copy_from_slice(&row[..len]);
                }
            },
        );
        Ok(out)
    }

    /// The units for a tile of draws, at the lowest level whose truncated sums are accurate enough for all of them.
    fn tile(&self, z: &Batch, first: usize) -> Vec<[f64; TILE]> {
        let mut number = 0;
        loop {
            let Level { pooled, tails_len } = self.levels[number].get_or_init(|| self.build_level(number as u32));
            let mut workspace = pooled.take();
            pooled.tape.load(z, first, &mut workspace);
            pooled.tape.forward(&mut workspace);
            let short = short(&pooled.tape, &workspace, *tails_len);
            let mut rows = None;
            if number + 1 == self.levels.len() || !short.contains(&true) {
                let row = |u: usize| {
                    let mut row = *pooled.tape.output(ENDS * tails_len + u, &workspace);
                    row.iter_mut().zip(short).filter(|(_, short)| *short).for_each(|(x, _)| *x = f64::NAN);
                    row
                };
                rows = Some((0..self.units.len()).map(row).collect());
            }
            pooled.give(workspace);
            if let Some(rows) = rows {
                return rows;
            }
            number += 1;
        }
    }

    fn build_level(&self, level: u32) -> Level {
        let mut arena = self.unconstrained.arena.clone();
        let coordinate = |l: &u32| &self.unconstrained.coordinates[*l as usize];
        let domains: Vec<(f64, usize)> =
            self.order.iter().map(|l| domain(coordinate(l), level)).map(|(low, len)| (low, len as usize)).collect();
        let count = |l: &u32| (coordinate(l).support == Support::Counts).then_some(*l);
        let counts: Vec<Option<u32>> = self.order.iter().map(count).collect();
        let tables = expand(&mut arena, &self.unconstrained, &self.order, &domains);
        let mut tails = Vec::new();
        let mut wholes: Vec<Option<Expr>> = vec![None; self.pieces.len()];
        let mut units = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let (p, without) = match part {
                Part::Term(t) => {
                    units.push(self.unconstrained.terms[*t].expr);
                    continue;
                }
                Part::Without(p, t) => (*p, std::slice::from_ref(t)),
                Part::Whole(p) => (*p, &self.pieces[*p].observed[..]),
            };
            let mut sum = |without: &[usize]| {
                log_marginal(&mut arena, &tables, &self.pieces[p], without, &domains, &counts, &mut tails)
            };
            let whole = *wholes[p].get_or_insert_with(|| sum(&[]));
            let rest = sum(without);
            units.push(arena.linear(&[(whole, 1.0), (rest, -1.0)], 0.0));
        }
        let outputs: Vec<Expr> = ends(&tails).into_iter().chain(units).collect();
        let column = |l: u32| self.columns[l as usize].unwrap_or(u32::MAX);
        Level { pooled: Pooled::new(Tape::new(&arena, &[], &outputs, column, false)), tails_len: tails.len() }
    }
}

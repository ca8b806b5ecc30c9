//! How well each observation was foretold by a draw: log p(yᵢ | z, y₋ᵢ), with y₋ᵢ all other observations.
//!
//! z are the latents that were not summed out. Those that were are summed out here too, twice: with the observation and without
//! it, log p(yᵢ | z, y₋ᵢ) = log p(y, z) − log p(y₋ᵢ, z), where only the piece of the graph that yᵢ shares summed-out latents with
//! has to be summed. Over draws of the posterior 1/p(yᵢ | y₋ᵢ) is then the mean of 1/p(yᵢ | z, y₋ᵢ), whether observations are
//! independent given z or not. With drawn values instead of sums that would fail: a label that yᵢ makes impossible is never drawn,
//! although it is possible where yᵢ is left out. For the same reason a count runs over all values of its law here, not only over
//! those that the observations leave.

use super::eliminate::{LEVELS, Table, Tail, blankets, domain, expand, reach, sum_out};
use super::expression::{Expr, Expressions, Known, Node};
use super::law::Law;
use super::line::{Line, Place, Raw, Term};
use super::model::{GraphModel, Pooled, ends, short};
use super::node::{AnyLaw, Random};
use super::rewrite::Shape;
use super::tape::{TILE, Tape};
use crate::error::{Error, Result};
use crate::model::Support;
use hyperprior_math::batch::Batch;
use std::sync::OnceLock;

/// The most table entries that leaving observations out one by one may take in all.
const ENTRIES_MAX: f64 = 1_048_576.0;
/// The most that leaving a piece out may take.
const PIECE_MAX: f64 = 4_194_304.0;
/// Counts often have to be summed further than at first.
const USUAL_LEVEL: u32 = 2;

/// What is left out at once: one observation, or a few that cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name of its first observation.
    pub name: String,
    /// How many observations there are in it; a vector is one.
    pub observations_len: usize,
    /// Whether it is independent of all other observations, given a draw.
    pub is_independent: bool,
}

/// The observations of a model, ready to be held against draws.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::model::graph::{GraphBuilder, Law};
///
/// // A coin that is one of two, seen to land heads twice: each throw is foretold by the other.
/// let mut g = GraphBuilder::new();
/// let (low, high, one) = (g.constant(0.2), g.constant(0.8), g.constant(1.0));
/// let coin = g.stochastic("coin", Law::Categorical { weights: vec![one, one] }, None, None)?;
/// let p = g.select(coin, &[low, high]);
/// g.stochastic("y[1]", Law::Bernoulli { p }, None, Some(1.0))?;
/// g.stochastic("y[2]", Law::Bernoulli { p }, None, Some(1.0))?;
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
    given: Vec<String>,
    set_aside: Vec<String>,
    line: Line,
    /// The latents that are summed out, by their numbers on `line`.
    order: Vec<u32>,
    columns: Vec<Option<u32>>,
    levels: Vec<OnceLock<Level>>,
}

/// Where a unit's log likelihood comes from.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// A term without latents that are summed out.
    Term(usize),
    /// A piece with and without one of its terms.
    Without(usize, usize),
    /// A piece with and without all of its observations.
    Whole(usize),
}

/// Terms that share latents which are summed out.
#[derive(Clone, Debug, Default)]
struct Piece {
    /// The latents, by their places in the order.
    latents: Vec<usize>,
    terms: Vec<usize>,
    /// Those of the terms that are observations.
    observed: Vec<usize>,
}

/// The units with counts summed over the values of one level.
#[derive(Debug)]
struct Level {
    /// Its outputs are the ends of truncated sums, three each, and then the units.
    pooled: Pooled,
    tails_len: usize,
}

/// Whether a node is random in a way that can be foretold: a law, and not a certainty or the lack of one.
pub(super) fn is_foretold(node: &Random) -> bool {
    !matches!(node.law, AnyLaw::Scalar(Law::Interval { .. } | Law::Flat | Law::HalfFlat))
}

impl GraphModel {
    /// The observations, ready to be held against draws.
    ///
    /// # Errors
    /// [`Error::Model`] where a latent that is fitted lies between ends that depend on one that is summed out, and where latents
    /// have too many values once the observations do not bound them.
    pub fn pointwise(&self) -> Result<Pointwise> {
        let (line, order) = self.relaid()?;
        let mut columns = self.columns.clone();
        columns.resize(line.raw.len(), None);
        let roots: Vec<Expr> = line.terms.iter().map(|t| t.expr).collect();
        let of_latent = blankets(&line.arena, &roots, &order);
        let sizes: Vec<f64> = order.iter().map(|l| domain(&line.raw[*l as usize], USUAL_LEVEL).1).collect();
        let (pieces, piece_of) = pieces(&of_latent, line.terms.len());
        let node = |t: usize| &self.graph.random[line.terms[t].random as usize];
        let is_observation = |t: usize| node(t).is_observed && is_foretold(node(t));
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|p| Piece { observed: p.terms.iter().copied().filter(|t| is_observation(*t)).collect(), ..p })
            .collect();
        let lens: Vec<f64> = pieces.iter().map(|piece| entries_len(piece, &of_latent, &sizes)).collect();
        if let Some(p) = lens.iter().position(|len| *len > PIECE_MAX) {
            let name = &line.raw[order[pieces[p].latents[0]] as usize].name;
            return Err(Error::Model(format!(
                "observations cannot be left out: without them `{name}` and the latents around it have too many values to \
                 be summed out; do not sum them out (--eliminate)"
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
        for t in (0..line.terms.len()).filter(|t| is_observation(*t)) {
            let (part, observations_len, is_independent) = match piece_of[t] {
                None => (Part::Term(t), 1, true),
                Some(p) if is_whole[p] && pieces[p].observed[0] != t => continue,
                Some(p) if is_whole[p] => (Part::Whole(p), pieces[p].observed.len(), true),
                Some(p) => (Part::Without(p, t), 1, pieces[p].observed.len() == 1),
            };
            units.push(Unit { name: node(t).name.clone(), observations_len, is_independent });
            parts.push(part);
        }
        let given = self.kept.iter().map(|l| self.line.raw[*l as usize].name.clone()).collect();
        let aside = self.graph.random.iter().filter(|r| r.is_observed && !is_foretold(r));
        let set_aside = aside.map(|r| r.name.clone()).collect();
        let has_counts = order.iter().any(|l| line.raw[*l as usize].support == Support::Counts);
        let levels = (0..if has_counts { LEVELS } else { 1 }).map(|_| OnceLock::new()).collect();
        Ok(Pointwise { units, parts, pieces, given, set_aside, line, order, columns, levels })
    }

    /// The line's terms, without the derivatives of its maps (what is wanted are differences), with every latent that is summed
    /// out running over all values of its law; and those latents.
    fn relaid(&self) -> Result<(Line, Vec<u32>)> {
        let graph = &self.graph;
        let mut line = Line { terms: Vec::new(), ..self.line.clone() };
        let mut leaves = line.leaves.clone();
        let mut order = Vec::new();
        let mut is_summed = vec![false; leaves.len()];
        let mut is_summed_raw = vec![false; self.line.raw.len()];
        self.order.iter().for_each(|l| is_summed_raw[*l as usize] = true);
        let eliminated = self.order.iter().map(|l| {
            let raw = &self.line.raw[*l as usize];
            (raw.leaf, if let Place::Whole(least) = raw.place { least } else { 0.0 })
        });
        // What the observations leave one value of was never a latent of the line, but is one without them.
        let fixed = (0..leaves.len()).filter_map(|l| {
            let value = leaves[l].and_then(|e| self.line.arena.value(e))?;
            Some((l, value))
        });
        let fixed: Vec<(usize, f64)> = fixed.collect();
        for (leaf, least) in eliminated.chain(fixed) {
            let r = graph.leaves[leaf].random as usize;
            let AnyLaw::Scalar(law) = &graph.random[r].law else { continue };
            let (low, high) = graph.discrete_range(r, law);
            if !law.is_discrete() || !(low < high) {
                continue;
            }
            let is_bounded = high < f64::INFINITY;
            let support =
                if is_bounded { Support::Integers { lower: 0.0, upper: high - low } } else { Support::Counts };
            let number = line.raw.len() as u32;
            // How far a count is summed at first follows what was observed of it.
            let place = Place::Whole(least - low);
            line.raw.push(Raw { name: graph.leaves[leaf].name.clone(), support, leaf, place });
            let known = Known { nonnegative: true, positive: false, whole: true, at_most_one: high - low <= 1.0 };
            let above = line.arena.leaf(number, known);
            leaves[leaf] = Some(line.arena.linear(&[(above, 1.0)], low));
            is_summed[leaf] = true;
            order.push(number);
        }
        let touched = touched(&self.line.arena, &is_summed_raw);
        for (l, e) in self.line.leaves.iter().enumerate() {
            if e.is_some_and(|e| touched[e.0 as usize]) && !is_summed[l] {
                return Err(Error::Model(format!(
                    "observations cannot be left out one by one: `{}` lies between ends that depend on a latent that is \
                     summed out; sum out nothing (--eliminate none)",
                    graph.leaves[l].name
                )));
            }
        }
        let densities: Vec<Expr> = self.line.terms.iter().map(|t| graph.random[t.random as usize].density).collect();
        let unmade = line.arena.constant(f64::NAN);
        let mut made = vec![unmade; graph.arena.len()];
        let mut shape = Shape::default();
        for (i, _) in reach(&graph.arena, &densities).iter().enumerate().filter(|(_, reached)| **reached) {
            let e = Expr(i as u32);
            made[i] = if let Node::Leaf(l) = graph.arena.node(e) {
                leaves[l as usize].unwrap_or(unmade)
            } else {
                shape.take(&graph.arena, e);
                shape.make(&mut line.arena, |e| made[e.0 as usize], |_| unmade)
            };
        }
        let term = |(t, density): (&Term, &Expr)| Term { expr: made[density.0 as usize], random: t.random };
        line.terms = self.line.terms.iter().zip(&densities).map(term).collect();
        Ok((line, order))
    }
}

/// Which expressions contain one of these latents.
fn touched(arena: &Expressions, latents: &[bool]) -> Vec<bool> {
    let mut touched = vec![false; arena.len()];
    for i in 0..arena.len() {
        let e = Expr(i as u32);
        touched[i] = match arena.node(e) {
            Node::Leaf(l) => latents.get(l as usize).copied().unwrap_or(false),
            _ => {
                let mut any = false;
                arena.operands(e, |o| any |= touched[o.0 as usize]);
                any
            }
        };
    }
    touched
}

/// The pieces, and for each term the piece that it belongs to. `of_latent` has the terms that contain each latent.
fn pieces(of_latent: &[Vec<u32>], terms_len: usize) -> (Vec<Piece>, Vec<Option<usize>>) {
    let mut of_term: Vec<Vec<usize>> = vec![Vec::new(); terms_len];
    for (k, terms) in of_latent.iter().enumerate() {
        terms.iter().for_each(|t| of_term[*t as usize].push(k));
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut piece_of = vec![None; terms_len];
    let mut is_taken = vec![false; of_latent.len()];
    for first in 0..of_latent.len() {
        if std::mem::replace(&mut is_taken[first], true) {
            continue;
        }
        let (mut piece, mut stack) = (Piece::default(), vec![first]);
        while let Some(k) = stack.pop() {
            piece.latents.push(k);
            for &t in &of_latent[k] {
                if piece_of[t as usize].replace(pieces.len()).is_none() {
                    piece.terms.push(t as usize);
                }
                stack.extend(of_term[t as usize].iter().filter(|k| !std::mem::replace(&mut is_taken[**k], true)));
            }
        }
        piece.latents.sort_unstable();
        piece.terms.sort_unstable();
        pieces.push(piece);
    }
    (pieces, piece_of)
}

/// How many table entries it takes to sum a piece out.
fn entries_len(piece: &Piece, of_latent: &[Vec<u32>], sizes: &[f64]) -> f64 {
    let mut scopes: Vec<Vec<usize>> = vec![Vec::new(); piece.terms.len()];
    for &k in &piece.latents {
        for t in &of_latent[k] {
            if let Ok(at) = piece.terms.binary_search(&(*t as usize)) {
                scopes[at].push(k);
            }
        }
    }
    let mut entries = 0.0;
    for &k in &piece.latents {
        let (own, rest): (Vec<_>, Vec<_>) = scopes.into_iter().partition(|scope| scope.contains(&k));
        let mut scope: Vec<usize> = own.into_iter().flatten().collect();
        scope.sort_unstable();
        scope.dedup();
        entries += scope.iter().map(|k| sizes[*k]).product::<f64>();
        scope.retain(|s| *s != k);
        scopes = rest;
        scopes.push(scope);
    }
    entries
}

impl Pointwise {
    /// What is left out at once, in the order of the columns of [`log_likelihood`](Self::log_likelihood).
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The discrete latents that were not summed out: what is said of observations that depend on them is given their drawn
    /// values, and is wrong where an observation makes a value impossible.
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// Observations that are certain given the latents, such as the interval that a number lies in, or that have no law.
    pub fn set_aside(&self) -> &[String] {
        &self.set_aside
    }

    /// A column for each unit: its log likelihood in each draw of the model's latents, given all other observations. NaN where a
    /// sum over counts cannot be cut off.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for draws of other latents.
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

    /// The units for a tile of draws, at the lowest level whose truncated sums are good enough for all of them.
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
                    let mut row = *pooled.tape.output(3 * tails_len + u, &workspace);
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
        let mut arena = self.line.arena.clone();
        let raw = |l: &u32| &self.line.raw[*l as usize];
        let domains: Vec<(f64, usize)> =
            self.order.iter().map(|l| domain(raw(l), level)).map(|(low, len)| (low, len as usize)).collect();
        let counts: Vec<bool> = self.order.iter().map(|l| raw(l).support == Support::Counts).collect();
        let tables = expand(&mut arena, &self.line, &self.order, &domains);
        let mut tails = Vec::new();
        let mut wholes: Vec<Option<Expr>> = vec![None; self.pieces.len()];
        let mut units = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let (p, without) = match part {
                Part::Term(t) => {
                    units.push(self.line.terms[*t].expr);
                    continue;
                }
                Part::Without(p, t) => (*p, std::slice::from_ref(t)),
                Part::Whole(p) => (*p, &self.pieces[*p].observed[..]),
            };
            let mut sum = |without: &[usize]| {
                log_sum(&mut arena, &tables, &self.pieces[p], without, &domains, &counts, &mut tails)
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

/// A piece with its latents summed out, and without some of its terms.
fn log_sum(
    arena: &mut Expressions,
    tables: &[Option<Table>],
    piece: &Piece,
    without: &[usize],
    domains: &[(f64, usize)],
    counts: &[bool],
    tails: &mut Vec<Tail>,
) -> Expr {
    let taken = piece.terms.iter().filter(|t| without.binary_search(t).is_err());
    let mut open: Vec<Table> = taken.filter_map(|t| tables[*t].clone()).collect();
    let mut total = Vec::new();
    for &k in &piece.latents {
        let (own, rest): (Vec<Table>, Vec<Table>) = open.into_iter().partition(|table| table.scope.contains(&k));
        open = rest;
        let (_, summed) = sum_out(arena, own, k, domains, counts[k], tails);
        if summed.scope.is_empty() {
            total.extend(summed.entries.into_iter().map(|e| (e, 1.0)));
        } else {
            open.push(summed);
        }
    }
    arena.linear(&total, 0.0)
}

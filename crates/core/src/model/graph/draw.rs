//! From draws of the line's latents to draws of everything that a person named: latents that were summed out are drawn given
//! the others, those that no observation depends on from their laws, and the rest is calculated.

use super::error::GraphError;
use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::line::Place;
use super::model::GraphModel;
use super::node::Graph;
use super::tape::TILE;
use crate::error::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::family::Support;
use hyperprior_math::linalg::{cholesky, packed_len};
use hyperprior_math::random::{Stream, stream};
use rand::RngExt;
use rayon::prelude::*;
use std::collections::HashSet;

/// Streams of these draws are apart from all others.
pub(super) const DRAW_STEP: u64 = u64::MAX - 3;

/// Something with a name whose posterior can be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The name, with indices from one.
    pub name: String,
    /// Whether its values are whole numbers.
    pub is_discrete: bool,
    /// Whether it is a latent, not calculated from others.
    pub is_latent: bool,
    pub(super) expr: Expr,
}

impl Graph {
    /// Everything that has a name and is not a number already: latents first, then what is calculated from them.
    pub fn quantities(&self) -> Vec<Quantity> {
        let arena = &self.arena;
        let mut seen = HashSet::new();
        let latents = self.leaves.iter().map(|leaf| (&leaf.name, leaf.expr, true));
        let named = self.named.iter().map(|(name, e)| (name, *e, false));
        latents
            .chain(named)
            .filter(|(_, e, _)| arena.value(*e).is_none())
            .filter(|(name, ..)| seen.insert((*name).clone()))
            .map(|(name, expr, is_latent)| Quantity {
                name: name.clone(),
                is_discrete: arena.known(expr).whole,
                is_latent,
                expr,
            })
            .collect()
    }
}

impl GraphModel {
    /// As [`Graph::quantities`].
    pub fn quantities(&self) -> Vec<Quantity> {
        self.graph.quantities()
    }

    /// Whether a quantity is calculated from latents that are fitted, and from no others: it then follows from draws of the
    /// model's latents without any chance.
    pub fn is_fitted(&self, quantity: &Quantity) -> bool {
        let arena = &self.graph.arena;
        let reached = super::eliminate::reach(arena, &[quantity.expr]);
        (0..arena.len()).filter(|e| reached[*e]).all(|e| match arena.node(Expr(e as u32)) {
            Node::Leaf(l) => self.line.leaves[l as usize].is_some_and(|laid| self.is_laid_fitted(laid)),
            _ => true,
        })
    }

    fn is_laid_fitted(&self, laid: Expr) -> bool {
        let arena = &self.line.arena;
        let reached = super::eliminate::reach(arena, &[laid]);
        (0..arena.len()).filter(|e| reached[*e]).all(|e| match arena.node(Expr(e as u32)) {
            Node::Leaf(l) => self.columns[l as usize].is_some(),
            _ => true,
        })
    }

    /// Draws of these quantities (a column each) that go with draws `z` of the model's latents.
    ///
    /// # Errors
    /// [`Error::Model`] where a value between bounds cannot be drawn.
    pub fn complete(&self, z: &Batch, quantities: &[Quantity], seed: u64) -> Result<Batch> {
        let mut wanted: Vec<Expr> = quantities.iter().map(|q| q.expr).collect();
        // What a latent's law needs must be known before the latent is drawn.
        for (leaf, laid) in self.graph.leaves.iter().zip(&self.line.leaves) {
            if laid.is_none() {
                let node = &self.graph.random[leaf.random as usize];
                wanted.extend(node.parents());
            }
        }
        let drawn =
            self.each_draw(z, seed, &wanted, |_, interpreter, line, rng| self.run(interpreter, line, quantities, rng))?;
        let mut out = Batch::zeros(quantities.len(), z.draws_len());
        for (s, draw) in drawn.into_iter().enumerate() {
            for (k, x) in draw.into_iter().enumerate() {
                out.set(k, s, x);
            }
        }
        Ok(out)
    }

    /// What `f` makes of each draw, in order: of its number, an interpreter for the `wanted` expressions of the graph, the values
    /// of the latents on the line, those that were summed out drawn given the others, and the draw's random stream.
    pub(super) fn each_draw<T: Send>(
        &self,
        z: &Batch,
        seed: u64,
        wanted: &[Expr],
        f: impl Fn(usize, &mut Interpreter, &Interpreter, &mut Stream) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let interpreter = Interpreter::new(&self.graph.arena, wanted);
        let lines: Vec<Expr> = self.line.leaves.iter().flatten().copied().collect();
        let line = Interpreter::new(&self.line.arena, &lines);
        let tile = |first: usize| -> Result<Vec<T>> {
            let (mut interpreter, mut line) = (interpreter.clone(), line.clone());
            let len = TILE.min(z.draws_len() - first);
            let mut streams: Vec<Stream> = (0..len).map(|s| stream(seed, DRAW_STEP, 0, (first + s) as u64)).collect();
            let summed = self.draw_eliminated(z, first, &mut streams);
            let mut made = Vec::with_capacity(len);
            for s in 0..len {
                line.run(&self.line.arena, |l, _| match self.columns[l as usize] {
                    Some(column) => z.get(column as usize, first + s),
                    None => summed[l as usize][s],
                });
                made.push(f(first + s, &mut interpreter, &line, &mut streams[s])?);
            }
            Ok(made)
        };
        let firsts: Vec<usize> = (0..z.draws_len()).step_by(TILE).collect();
        let tiles: Vec<Vec<T>> = firsts.into_par_iter().map(tile).collect::<Result<_>>()?;
        Ok(tiles.into_iter().flatten().collect())
    }

    fn run(
        &self,
        interpreter: &mut Interpreter,
        line: &Interpreter,
        quantities: &[Quantity],
        rng: &mut Stream,
    ) -> Result<Vec<f64>> {
        let mut failure = None;
        let mut vectors: Vec<Option<f64>> = vec![None; self.graph.leaves.len()];
        interpreter.run(&self.graph.arena, |l, values| {
            let l = l as usize;
            if let Some(e) = self.line.leaves[l] {
                return line.value(e);
            }
            if let Some(x) = vectors[l] {
                return x;
            }
            let node = &self.graph.random[self.graph.leaves[l].random as usize];
            match self.graph.draw(node, values, rng) {
                Ok(drawn) => {
                    for (leaf, x) in drawn {
                        vectors[leaf] = Some(x);
                    }
                }
                Err(error) => failure = Some(error),
            }
            vectors[l].unwrap_or(f64::NAN)
        });
        match failure {
            Some(error) => Err(Error::Graph(error)),
            None => Ok(quantities.iter().map(|q| interpreter.value(q.expr)).collect()),
        }
    }

    /// The latents that were summed out, for a tile of draws: by number, an empty list for the others.
    pub(super) fn draw_eliminated(&self, z: &Batch, first: usize, streams: &mut [Stream]) -> Vec<Vec<f64>> {
        let mut drawn = vec![Vec::new(); self.line.raw.len()];
        let level = self.level_for(z, first);
        let stages = &level.eliminated.stages;
        if stages.is_empty() {
            return drawn;
        }
        let pooled = self.tables(level);
        let mut workspace = pooled.take();
        pooled.tape.load(z, first, &mut workspace);
        pooled.tape.forward(&mut workspace);
        let mut end: usize = stages.iter().map(|s| s.table.len()).sum();
        let mut weights = Vec::new();
        for (number, stage) in stages.iter().enumerate().rev() {
            end -= stage.table.len();
            let mut values = Vec::with_capacity(streams.len());
            for (s, rng) in streams.iter_mut().enumerate() {
                let row = stage
                    .scope
                    .iter()
                    .fold(0, |at, (latent, low, len)| at * len + (drawn[*latent as usize][s] - low) as usize);
                let start = end + row * stage.values_len;
                weights.clear();
                weights.extend((0..stage.values_len).map(|v| pooled.tape.output(start + v, &workspace)[s]));
                // Each draw has its own stratum of the latent's uniform, so that values come up as often as their probabilities say.
                let stratum = shuffled((first + s) as u64, z.draws_len() as u64, number as u64);
                let uniform = (stratum as f64 + rng.random::<f64>()) / z.draws_len() as f64;
                values.push(stage.low + draw_log_weights(&mut weights, uniform) as f64);
            }
            drawn[stage.latent as usize] = values;
        }
        pooled.give(workspace);
        drawn
    }

    /// log p of everything random, observed or not, on the user's own scale: what another program calculates from the same
    /// values. `values` are the latents' in the order of [`Graph::latent_names`](super::Graph::latent_names).
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a wrong number of values.
    pub fn log_density(&self, values: &[f64]) -> Result<f64> {
        self.log_prior_and_likelihood(values).map(|(prior, likelihood)| prior + likelihood)
    }

    /// The two parts of [`log_density`](Self::log_density): that of the latents, and that of the observations given them.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn log_prior_and_likelihood(&self, values: &[f64]) -> Result<(f64, f64)> {
        if values.len() != self.graph.leaves.len() {
            return Err(Error::Mismatch {
                first: "the values".to_owned(),
                second: "the graph".to_owned(),
                reason: format!("there are {} values for {} latents", values.len(), self.graph.leaves.len()),
            });
        }
        let densities: Vec<Expr> = self.graph.random.iter().map(|r| r.density).collect();
        let mut interpreter = Interpreter::new(&self.graph.arena, &densities);
        interpreter.run(&self.graph.arena, |l, _| values[l as usize]);
        let sum = |is_observed: bool| {
            let nodes = self.graph.random.iter().filter(|r| r.is_observed == is_observed);
            nodes.map(|r| interpreter.value(r.density)).sum()
        };
        Ok((sum(false), sum(true)))
    }

    /// The log joint of one draw, calculated the plain way; for checking.
    #[doc(hidden)]
    pub fn log_joint_plain(&self, z: &Batch, s: usize) -> f64 {
        let terms: Vec<Expr> = self.line.terms.iter().map(|t| t.expr).collect();
        let mut interpreter = Interpreter::new(&self.line.arena, &terms);
        interpreter.run(&self.line.arena, |l, _| {
            self.columns[l as usize].map_or(f64::NAN, |column| z.get(column as usize, s))
        });
        terms.iter().map(|e| interpreter.value(*e)).sum()
    }

    /// The point of the model's latents that goes with the starting values given, with 0 (or a draw's smallest value) where
    /// none was; nothing where no starting value was given at all.
    ///
    /// # Errors
    /// [`GraphError::BadStart`] for a value outside its latent's support.
    pub fn start(&self) -> Result<Option<Vec<Option<f64>>>> {
        if self.graph.leaves.iter().all(|leaf| leaf.start.is_none()) {
            return Ok(None);
        }
        let (point, failure) = self.raw_point(&mut self.places(), &|leaf| self.graph.leaves[leaf].start);
        match failure {
            Some(error) => Err(Error::Graph(error)),
            None => Ok(Some(point)),
        }
    }

    /// Draws from the latents' laws, whatever was observed, as points of the model's latents (a column each); what cannot be drawn
    /// or does not fit the observations is 0.
    pub fn prior_points(&self, len: usize, seed: u64) -> Batch {
        let parents: Vec<Expr> = self.graph.random.iter().flat_map(|node| node.parents()).collect();
        let all: Vec<Expr> = parents.into_iter().chain(self.graph.leaves.iter().map(|leaf| leaf.expr)).collect();
        let mut interpreter = Interpreter::new(&self.graph.arena, &all);
        let mut places = self.places();
        let mut out = Batch::zeros(self.columns.iter().flatten().count(), len);
        for s in 0..len {
            let mut rng = stream(seed, DRAW_STEP, 1, s as u64);
            let mut drawn: Vec<Option<f64>> = vec![None; self.graph.leaves.len()];
            interpreter.run(&self.graph.arena, |l, values| {
                let l = l as usize;
                if drawn[l].is_none() {
                    let node = &self.graph.random[self.graph.leaves[l].random as usize];
                    for (leaf, x) in self.graph.draw(node, values, &mut rng).unwrap_or_default() {
                        drawn[leaf] = Some(x);
                    }
                }
                drawn[l].unwrap_or(f64::NAN)
            });
            let (point, _) = self.raw_point(&mut places, &|leaf| drawn[leaf].filter(|x| x.is_finite()));
            for (i, x) in point.into_iter().enumerate() {
                out.set(i, s, x.filter(|x| x.is_finite()).unwrap_or(0.0));
            }
        }
        out
    }

    /// An interpreter for the latents on the line and the ends that they lie between.
    fn places(&self) -> Interpreter {
        let ends = self.line.raw.iter().flat_map(|raw| match raw.place {
            Place::Above(end) | Place::Below(end) => vec![end],
            Place::Between(lower, upper) => vec![lower, upper],
            _ => Vec::new(),
        });
        let wanted: Vec<Expr> = ends.chain(self.line.leaves.iter().flatten().copied()).collect();
        Interpreter::new(&self.line.arena, &wanted)
    }

    /// The point of the model's latents that goes with values of the user's, and what is wrong with the first of those that cannot
    /// be.
    fn raw_point(
        &self,
        interpreter: &mut Interpreter,
        start: &dyn Fn(usize) -> Option<f64>,
    ) -> (Vec<Option<f64>>, Option<GraphError>) {
        let mut failure = None;
        let mut found = vec![None; self.line.raw.len()];
        interpreter.run(&self.line.arena, |l, values| match self.raw_start(l as usize, values, start) {
            Ok(x) => {
                found[l as usize] = x;
                x.unwrap_or(0.0)
            }
            Err(error) => {
                failure.get_or_insert(error);
                0.0
            }
        });
        ((0..found.len()).filter(|l| self.columns[*l].is_some()).map(|l| found[l]).collect(), failure)
    }

    fn raw_start(
        &self,
        l: usize,
        values: &[f64],
        start: &dyn Fn(usize) -> Option<f64>,
    ) -> std::result::Result<Option<f64>, GraphError> {
        let raw = &self.line.raw[l];
        let Some(x) = start(raw.leaf) else { return Ok(None) };
        let end = |e: &Expr| values[e.0 as usize];
        let bad = |reason: String| Err(GraphError::BadStart { name: raw.name.clone(), value: x, reason });
        let result = match &raw.place {
            Place::Line => x,
            Place::Above(lower) if x > end(lower) => (x - end(lower)).ln(),
            Place::Above(lower) => return bad(format!("it must be above {}", end(lower))),
            Place::Below(upper) if x < end(upper) => (end(upper) - x).ln(),
            Place::Below(upper) => return bad(format!("it must be below {}", end(upper))),
            Place::Between(lower, upper) => {
                let (lower, upper) = (end(lower), end(upper));
                if !(lower < x && x < upper) {
                    return bad(format!("it must lie between {lower} and {upper}"));
                }
                ((x - lower) / (upper - x)).ln()
            }
            Place::Whole(least) => {
                if !raw.support.contains(x - least) {
                    return bad(match raw.support {
                        Support::Integers { lower, upper } => {
                            format!("it must be a whole number from {} to {}", least + lower, least + upper)
                        }
                        _ => format!("it must be a whole number, {least} or more"),
                    });
                }
                x - least
            }
            Place::Simplex(leaves, k) => {
                let Some(all) = leaves.iter().map(|leaf| start(*leaf)).collect::<Option<Vec<f64>>>() else {
                    return bad("all elements of the vector need a starting value".to_owned());
                };
                let rest: f64 = all[k + 1..].iter().sum();
                if !(all[*k] > 0.0 && rest > 0.0) {
                    return bad("all elements must be above 0".to_owned());
                }
                (all[*k] / rest).ln() + ((leaves.len() - 1 - k) as f64).ln()
            }
            Place::Matrix(leaves, i, j) => {
                let Some(all) = leaves.iter().map(|leaf| start(*leaf)).collect::<Option<Vec<f64>>>() else {
                    return bad("all elements of the matrix need a starting value".to_owned());
                };
                let Some(factor) = triangle(&all) else { return bad("the matrix is not positive definite".to_owned()) };
                let entry = factor[packed_len(*i) + j];
                if i == j { entry.ln() } else { entry }
            }
        };
        Ok(Some(result))
    }
}

/// The packed Cholesky factor of a matrix given by its packed lower triangle.
fn triangle(lower: &[f64]) -> Option<Vec<f64>> {
    let n = (2 * lower.len()).isqrt();
    let at = |i: usize, j: usize| lower[packed_len(i.max(j)) + i.min(j)];
    cholesky(&(0..n * n).map(|e| at(e / n, e % n)).collect::<Vec<_>>(), n)
}

/// The place of `i` in a random order of 0, …, n − 1, of which there is one for each key: a small cipher on as few bits as hold n,
/// applied until it stays below n.
fn shuffled(i: u64, n: u64, key: u64) -> u64 {
    let half = (64 - (n - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut x = i;
    loop {
        let (mut left, mut right) = (x >> half, x & mask);
        for round in 0..4 {
            let mut mixed = (right ^ (key << 3) ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ ((mixed >> 32) & mask));
        }
        x = (left << half) | right;
        if x < n {
            return x;
        }
    }
}

/// The place at which the sum of e^weights passes that share of their total; the weights are used up.
fn draw_log_weights(weights: &mut [f64], uniform: f64) -> usize {
    let top = weights.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let mut total = 0.0;
    for w in weights.iter_mut() {
        *w = (*w - top).exp();
        // A term that is not defined has no chance.
        if w.is_nan() {
            *w = 0.0;
        }
        total += *w;
    }
    let mut left = uniform * total;
    for (v, w) in weights.iter().enumerate() {
        left -= w;
        if left < 0.0 {
            return v;
        }
    }
    weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::shuffled;

    #[test]
    fn every_place_comes_up_once_and_in_another_order_for_every_key() {
        for n in [1, 2, 7, 64, 1000] {
            let orders: Vec<Vec<u64>> = (0..3).map(|key| (0..n).map(|i| shuffled(i, n, key)).collect()).collect();
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            }
            if n > 100 {
                let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
                assert!(same(&orders[0], &orders[1]) < 10 && same(&orders[1], &orders[2]) < 10);
            }
        }
    }
}

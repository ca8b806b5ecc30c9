//! From draws of the model's coordinates to draws of all named quantities: marginalised latents are drawn given the others,
//! latents that no observation depends on from their priors, and the rest is calculated.

use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::node::Graph;
use super::tape::TILE;
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, shuffled, stream};
use rand::RngExt;
use rayon::prelude::*;
use std::collections::HashSet;

pub(super) const DRAW_STEP: u64 = Purpose::Complete.step();

/// A named quantity whose posterior can be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The name, with indices from one.
    pub name: String,
    /// Whether its values are integers.
    pub is_discrete: bool,
    /// Whether it is a latent rather than calculated from others.
    pub is_latent: bool,
    pub(super) expr: Expr,
}

impl Graph {
    /// Everything that has a name and is not constant: latents first, then what is calculated from them.
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

    /// Whether a quantity depends only on fitted latents, so that it is a function of the model's coordinates.
    pub fn is_fitted(&self, quantity: &Quantity) -> bool {
        let arena = &self.graph.arena;
        let reached = arena.reach(&[quantity.expr]);
        (0..arena.len()).filter(|e| reached[*e]).all(|e| match arena.node(Expr(e as u32)) {
            Node::Leaf(l) => self.unconstrained.leaves[l as usize].is_some_and(|e| self.is_expression_fitted(e)),
            _ => true,
        })
    }

    fn is_expression_fitted(&self, expr: Expr) -> bool {
        let arena = &self.unconstrained.arena;
        let reached = arena.reach(&[expr]);
        (0..arena.len()).filter(|e| reached[*e]).all(|e| match arena.node(Expr(e as u32)) {
            Node::Leaf(l) => self.columns[l as usize].is_some(),
            _ => true,
        })
    }

    /// Draws of these quantities (a column each) for draws `z` of the model's coordinates.
    ///
    /// # Errors
    /// [`Error::BadModel`] if a value between bounds cannot be drawn.
    pub fn complete(&self, z: &Batch, quantities: &[Quantity], seed: u64) -> Result<Batch> {
        let mut wanted: Vec<Expr> = quantities.iter().map(|q| q.expr).collect();
        // The parents of a latent must be evaluated before it is drawn.
        for (leaf, expr) in self.graph.leaves.iter().zip(&self.unconstrained.leaves) {
            if expr.is_none() {
                let node = &self.graph.random[leaf.random as usize];
                wanted.extend(node.parents());
            }
        }
        let drawn = self.each_draw(z, seed, &wanted, |_, interpreter, latents, rng| {
            self.run(interpreter, latents, quantities, rng)
        })?;
        let mut out = Batch::zeros(quantities.len(), z.draws_len());
        for (s, draw) in drawn.into_iter().enumerate() {
            for (k, x) in draw.into_iter().enumerate() {
                out.set(k, s, x);
            }
        }
        Ok(out)
    }

    /// Calls `f` for each draw, in order: with its number, an interpreter for the `wanted` expressions of the graph, the values of
    /// the latents (the marginalised ones drawn given the others), and the draw's random stream.
    pub(super) fn each_draw<T: Send>(
        &self,
        z: &Batch,
        seed: u64,
        wanted: &[Expr],
        f: impl Fn(usize, &mut Interpreter, &Interpreter, &mut Stream) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let interpreter = Interpreter::new(&self.graph.arena, wanted);
        let expressions: Vec<Expr> = self.unconstrained.leaves.iter().flatten().copied().collect();
        let latents = Interpreter::new(&self.unconstrained.arena, &expressions);
        let tile = |first: usize| -> Result<Vec<T>> {
            let (mut interpreter, mut latents) = (interpreter.clone(), latents.clone());
            let len = TILE.min(z.draws_len() - first);
            let mut streams: Vec<Stream> = (0..len).map(|s| stream(seed, DRAW_STEP, 0, (first + s) as u64)).collect();
            let marginalised = self.draw_marginalised(z, first, &mut streams);
            let mut made = Vec::with_capacity(len);
            for s in 0..len {
                latents.run(&self.unconstrained.arena, |l, _| match self.columns[l as usize] {
                    Some(column) => z.get(column as usize, first + s),
                    None => marginalised[l as usize][s],
                });
                made.push(f(first + s, &mut interpreter, &latents, &mut streams[s])?);
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
        latents: &Interpreter,
        quantities: &[Quantity],
        rng: &mut Stream,
    ) -> Result<Vec<f64>> {
        let mut failure = None;
        let mut vectors: Vec<Option<f64>> = vec![None; self.graph.leaves.len()];
        interpreter.run(&self.graph.arena, |l, values| {
            let l = l as usize;
            if let Some(e) = self.unconstrained.leaves[l] {
                return latents.value(e);
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
            Some(error) => Err(error.into()),
            None => Ok(quantities.iter().map(|q| interpreter.value(q.expr)).collect()),
        }
    }

    /// Draws the marginalised latents for a tile of draws: a list for each coordinate, empty for the others.
    pub(super) fn draw_marginalised(&self, z: &Batch, first: usize, streams: &mut [Stream]) -> Vec<Vec<f64>> {
        let mut drawn = vec![Vec::new(); self.eliminated().0.coordinates.len()];
        let level = self.level_for(z, first);
        let stages = &level.marginalised.stages;
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
                // Stratified: each draw has its own stratum of the uniform, so frequencies match the probabilities closely.
                let stratum = shuffled((first + s) as u64, z.draws_len() as u64, number as u64);
                let uniform = (stratum as f64 + rng.random::<f64>()) / z.draws_len() as f64;
                values.push(stage.low + draw_log_weights(&mut weights, uniform) as f64);
            }
            drawn[stage.latent as usize] = values;
        }
        pooled.give(workspace);
        drawn
    }

    /// The log joint density of all random nodes on the original scale, comparable with that of other programs. `values` are the
    /// latents' in the order of [`Graph::latent_names`](super::node::Graph::latent_names).
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of values is wrong.
    pub fn log_density(&self, values: &[f64]) -> Result<f64> {
        self.log_prior_and_likelihood(values).map(|(prior, likelihood)| prior + likelihood)
    }

    /// The two parts of [`log_density`](Self::log_density): the log prior of the latents, and the log likelihood.
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

    /// The log joint of one draw, evaluated without a tape, for tests.
    #[doc(hidden)]
    pub fn log_joint_plain(&self, z: &Batch, s: usize) -> f64 {
        let terms: Vec<Expr> = self.unconstrained.terms.iter().map(|t| t.expr).collect();
        let mut interpreter = Interpreter::new(&self.unconstrained.arena, &terms);
        interpreter.run(&self.unconstrained.arena, |l, _| {
            self.columns[l as usize].map_or(f64::NAN, |column| z.get(column as usize, s))
        });
        terms.iter().map(|e| interpreter.value(*e)).sum()
    }
}
/// The place at which the cumulative sum of e^weights passes this share of the total. Overwrites the weights.
pub(super) fn draw_log_weights(weights: &mut [f64], uniform: f64) -> usize {
    let top = weights.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let mut total = 0.0;
    for w in weights.iter_mut() {
        *w = (*w - top).exp();
        // An undefined term has probability 0.
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

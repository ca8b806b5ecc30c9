//! Replicated data: every observed node is drawn again from its distribution, given the latents of a draw.
//!
//! If a node depends on another observation, such as the previous value of a series, that observation keeps its observed value.

use super::distribution::{Distribution, VectorDistribution};
use super::draw::DRAW_STEP;
use super::expression::Expr;
use super::model::GraphModel;
use super::node::{AnyDistribution, Graph, Random};
use super::pointwise::is_predicted;
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;

/// The kind of an observed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// 0 or 1.
    Binary,
    /// 0, 1, 2, …
    Count,
    /// Any other number.
    Number,
}

/// An observed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Its name, with indices from one.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its kind.
    pub measure: Measure,
}

impl Random {
    fn measure(&self) -> Measure {
        match &self.distribution {
            AnyDistribution::Scalar(Distribution::Bernoulli { .. }) => Measure::Binary,
            AnyDistribution::Scalar(Distribution::Categorical { .. } | Distribution::FirstSuccess { .. }) => {
                Measure::Number
            }
            AnyDistribution::Scalar(distribution) if distribution.is_discrete() => Measure::Count,
            AnyDistribution::Vector(VectorDistribution::Multinomial { .. }) => Measure::Count,
            _ => Measure::Number,
        }
    }
}

impl Graph {
    /// The observed nodes that can be predicted.
    pub(super) fn predicted(&self) -> impl Iterator<Item = &Random> {
        self.random.iter().filter(|node| node.is_observed && is_predicted(node))
    }

    /// All observed numbers, except those that are certain given the latents (censoring intervals) or have a flat distribution.
    pub fn observations(&self) -> Vec<Observation> {
        let of_node = |node: &Random| -> Vec<Observation> {
            let names = if node.elements.is_empty() { std::slice::from_ref(&node.name) } else { &node.elements[..] };
            let of = |(name, e): (&String, &Expr)| Observation {
                name: name.clone(),
                value: self.arena.value(*e).unwrap_or(f64::NAN),
                measure: node.measure(),
            };
            names.iter().zip(&node.value).map(of).collect()
        };
        self.predicted().flat_map(of_node).collect()
    }
}

impl GraphModel {
    /// Applies `f` to each replication: values for all of [`Graph::observations`], drawn given a draw of the model's latents.
    /// Marginalised latents have the values that [`complete`](Self::complete) draws with the same seed.
    ///
    /// # Errors
    /// [`Error::BadModel`] if a value between bounds cannot be drawn, [`Error::Model`] if the parameters of a distribution are
    /// invalid.
    pub fn replicate_each<T: Send>(&self, z: &Batch, seed: u64, f: impl Fn(&[f64]) -> T + Sync) -> Result<Vec<T>> {
        let nodes: Vec<&Random> = self.graph.predicted().collect();
        let parents: Vec<Expr> = nodes.iter().flat_map(|node| node.parents()).collect();
        self.each_draw(z, seed, &parents, |s, interpreter, latents, _| {
            interpreter.run(&self.graph.arena, |l, _| {
                self.unconstrained.leaves[l as usize].map_or(f64::NAN, |e| latents.value(e))
            });
            let mut rng = stream(seed, DRAW_STEP, 2, s as u64);
            let mut values = Vec::with_capacity(nodes.len());
            for node in &nodes {
                let drawn = node.draw(interpreter.values(), &mut rng)?;
                if drawn.iter().any(|x| x.is_nan()) {
                    return Err(impossible(&node.name, s));
                }
                values.extend(drawn);
            }
            Ok(f(&values))
        })
    }

    /// The replications, a column for each of [`Graph::observations`].
    ///
    /// ```
    /// use hyperprior::Batch;
    /// use hyperprior_graph::{GraphBuilder, Distribution};
    ///
    /// let mut g = GraphBuilder::new();
    /// let (one, ten) = (g.constant(1.0), g.constant(10.0));
    /// let bias = g.stochastic("bias", Distribution::Beta { a: one, b: one }, None, None)?;
    /// g.stochastic("heads", Distribution::Binomial { p: bias, n: ten }, None, Some(7.0))?;
    /// let model = g.build()?.model()?;
    /// // Two draws, as logits: a bias close to 0, and one close to 1.
    /// let again = model.replicate(&Batch::from_columns(vec![-30.0, 30.0], 2), 1)?;
    /// assert_eq!(again.column(0), [0.0, 10.0]);
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`replicate_each`](Self::replicate_each).
    pub fn replicate(&self, z: &Batch, seed: u64) -> Result<Batch> {
        let draws = self.replicate_each(z, seed, <[f64]>::to_vec)?;
        let mut out = Batch::zeros(self.graph.observations().len(), z.draws_len());
        for (s, draw) in draws.iter().enumerate() {
            draw.iter().enumerate().for_each(|(i, x)| out.set(i, s, *x));
        }
        Ok(out)
    }
}

/// The error for a node whose distribution is invalid in a draw.
pub(super) fn impossible(name: &str, draw: usize) -> Error {
    Error::Model(format!(
        "`{name}` cannot be drawn: the parameters of its distribution are invalid in draw {}; check what they depend on",
        draw + 1
    ))
}

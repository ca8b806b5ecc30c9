//! Data that the model would have given: every observed node drawn again from its law, with the latents as a draw has them.
//!
//! What an observed node depends on is as in that draw; where that is another observation, such as the value before it in a
//! series, it keeps the value that was observed.

use super::draw::DRAW_STEP;
use super::expression::Expr;
use super::law::{Law, VectorLaw};
use super::model::GraphModel;
use super::node::{AnyLaw, Graph, Random};
use super::pointwise::is_foretold;
use crate::error::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;

/// What an observed number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// 0 or 1.
    Binary,
    /// A count from zero.
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
    /// What it is.
    pub measure: Measure,
}

impl Random {
    fn measure(&self) -> Measure {
        match &self.law {
            AnyLaw::Scalar(Law::Bernoulli { .. }) => Measure::Binary,
            AnyLaw::Scalar(Law::Categorical { .. } | Law::FirstSuccess { .. }) => Measure::Number,
            AnyLaw::Scalar(law) if law.is_discrete() => Measure::Count,
            AnyLaw::Vector(VectorLaw::Multinomial { .. }) => Measure::Count,
            _ => Measure::Number,
        }
    }
}

impl Graph {
    /// The observed nodes whose values their laws could have given otherwise.
    pub(super) fn foretold(&self) -> impl Iterator<Item = &Random> {
        self.random.iter().filter(|node| node.is_observed && is_foretold(node))
    }

    /// Everything observed, number by number, but for what is certain given the latents or has no law (intervals that a number
    /// is known to lie in, flat laws).
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
        self.foretold().flat_map(of_node).collect()
    }
}

impl GraphModel {
    /// What `f` makes of each replication: of values for all of [`Graph::observations`], drawn given draw s of the model's
    /// latents. Latents that were summed out are those that [`complete`](Self::complete) draws with the same seed.
    ///
    /// # Errors
    /// [`Error::Graph`] where a value between bounds cannot be drawn, [`Error::Model`] where the parameters of a law are
    /// impossible.
    pub fn replicate_each<T: Send>(&self, z: &Batch, seed: u64, f: impl Fn(&[f64]) -> T + Sync) -> Result<Vec<T>> {
        let nodes: Vec<&Random> = self.graph.foretold().collect();
        let parents: Vec<Expr> = nodes.iter().flat_map(|node| node.parents()).collect();
        self.each_draw(z, seed, &parents, |s, interpreter, line, _| {
            interpreter.run(&self.graph.arena, |l, _| self.line.leaves[l as usize].map_or(f64::NAN, |e| line.value(e)));
            let mut rng = stream(seed, DRAW_STEP, 2, s as u64);
            let mut values = Vec::with_capacity(nodes.len());
            for node in &nodes {
                let drawn = node.draw(interpreter.values(), &mut rng).map_err(Error::Graph)?;
                if drawn.iter().any(|x| x.is_nan()) {
                    return Err(impossible(&node.name, s));
                }
                values.extend(drawn);
            }
            Ok(f(&values))
        })
    }

    /// The replications themselves, a column for each of [`Graph::observations`].
    ///
    /// ```
    /// use hyperprior::Batch;
    /// use hyperprior::model::graph::{GraphBuilder, Law};
    ///
    /// let mut g = GraphBuilder::new();
    /// let (one, ten) = (g.constant(1.0), g.constant(10.0));
    /// let bias = g.stochastic("bias", Law::Beta { a: one, b: one }, None, None)?;
    /// g.stochastic("heads", Law::Binomial { p: bias, n: ten }, None, Some(7.0))?;
    /// let model = g.build()?.model()?;
    /// // Two draws, on the line: a bias of nearly 0, and of nearly 1.
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

/// A node whose law has no meaning in a draw.
pub(super) fn impossible(name: &str, draw: usize) -> Error {
    Error::Model(format!(
        "`{name}` cannot be drawn: the parameters of its law are not possible in draw {}; check what they are calculated from",
        draw + 1
    ))
}

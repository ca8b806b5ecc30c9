//! Prediction for new data: some latents are set to draws of an earlier posterior, and everything else that is not observed is
//! drawn from its distribution given them.

use super::draw::{DRAW_STEP, Quantity};
use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::node::{Graph, Random};
use super::replicate::impossible;
use super::tape::TILE;
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rayon::prelude::*;
use std::collections::HashMap;

/// Posterior predictive draws.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// A column for each requested quantity.
    pub values: Batch,
    /// The names of the observed nodes.
    pub observed: Vec<String>,
    /// A column for each of them: its log density given the latents of each draw.
    pub log_likelihood: Batch,
}

impl Graph {
    /// The names of the latents that no observation depends on.
    pub fn prior_only(&self) -> Vec<&str> {
        let leaves = self.leaves.iter().zip(self.prior_only_leaves());
        leaves.filter(|(_, is_prior_only)| *is_prior_only).map(|(leaf, _)| leaf.name.as_str()).collect()
    }

    /// Draws everything that is neither observed nor among `names` from its distribution, given `draws` of the latents `names` (a
    /// column each). The data of this graph do not update the draws.
    ///
    /// ```
    /// use hyperprior::Batch;
    /// use hyperprior_graph::{GraphBuilder, Distribution};
    ///
    /// let mut g = GraphBuilder::new();
    /// let (zero, one) = (g.constant(0.0), g.constant(1.0));
    /// let mu = g.stochastic("mu", Distribution::Normal { mean: zero, precision: one }, None, None)?;
    /// g.stochastic("y", Distribution::Normal { mean: mu, precision: one }, None, Some(2.0))?;
    /// g.name("twice", mu);
    /// let graph = g.build()?;
    /// let found = graph.predict(&["mu"], &Batch::from_columns(vec![2.0, 5.0], 2), &graph.quantities(), 1)?;
    /// assert_eq!(found.values.column(0), [2.0, 5.0]);
    /// assert!((found.log_likelihood.get(0, 1) - found.log_likelihood.get(0, 0) + 4.5).abs() < 1e-12);
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Mismatch`] if names and columns do not agree, or if a vector is transferred in part; [`Error::Model`] if a name is
    /// not that of a latent, or if a distribution cannot be drawn from.
    pub fn predict(&self, names: &[&str], draws: &Batch, quantities: &[Quantity], seed: u64) -> Result<Prediction> {
        let column = self.transferred(names, draws)?;
        let nodes: Vec<&Random> = self.predicted().collect();
        let mut wanted: Vec<Expr> = quantities.iter().map(|q| q.expr).chain(nodes.iter().map(|n| n.density)).collect();
        // The parents of a latent must be evaluated before it is drawn.
        let drawn = self.leaves.iter().zip(&column).filter(|(_, column)| column.is_none());
        for (leaf, _) in drawn {
            wanted.push(leaf.expr);
            wanted.extend(self.random[leaf.random as usize].parents());
        }
        let interpreter = Interpreter::new(&self.arena, &wanted);
        let tile = |first: usize| -> Result<Vec<Vec<f64>>> {
            let mut interpreter = interpreter.clone();
            let len = TILE.min(draws.draws_len() - first);
            let of_draw = |s: usize| {
                let mut rng = stream(seed, DRAW_STEP, 3, s as u64);
                self.run_given(&mut interpreter, &|l| column[l].map(|c| draws.get(c, s)), s, &mut rng)?;
                let quantities = quantities.iter().map(|q| interpreter.value(q.expr));
                Ok(quantities.chain(nodes.iter().map(|n| interpreter.value(n.density))).collect())
            };
            (first..first + len).map(of_draw).collect()
        };
        let firsts: Vec<usize> = (0..draws.draws_len()).step_by(TILE).collect();
        let tiles: Vec<Vec<Vec<f64>>> = firsts.into_par_iter().map(tile).collect::<Result<_>>()?;
        let mut values = Batch::zeros(quantities.len(), draws.draws_len());
        let mut log_likelihood = Batch::zeros(nodes.len(), draws.draws_len());
        for (s, draw) in tiles.iter().flatten().enumerate() {
            let (own, logs) = draw.split_at(quantities.len());
            own.iter().enumerate().for_each(|(i, x)| values.set(i, s, *x));
            logs.iter().enumerate().for_each(|(i, x)| log_likelihood.set(i, s, *x));
        }
        Ok(Prediction { values, observed: nodes.iter().map(|n| n.name.clone()).collect(), log_likelihood })
    }

    /// The column of each latent that is transferred.
    fn transferred(&self, names: &[&str], draws: &Batch) -> Result<Vec<Option<usize>>> {
        if names.len() != draws.columns_len() {
            return Err(Error::Mismatch {
                first: "the names".to_owned(),
                second: "the draws".to_owned(),
                reason: format!("there are {} names for {} columns", names.len(), draws.columns_len()),
            });
        }
        let numbers: HashMap<&str, usize> =
            self.leaves.iter().enumerate().map(|(l, leaf)| (leaf.name.as_str(), l)).collect();
        let mut column = vec![None; self.leaves.len()];
        for (c, name) in names.iter().enumerate() {
            let Some(l) = numbers.get(name) else {
                return Err(Error::Model(format!("there is no latent `{name}` to transfer")));
            };
            column[*l] = Some(c);
        }
        for node in &self.random {
            let own = node.value.iter().filter_map(|e| match self.arena.node(*e) {
                Node::Leaf(l) => Some(l as usize),
                _ => None,
            });
            let (with, without): (Vec<usize>, Vec<usize>) = own.partition(|l| column[*l].is_some());
            if let (Some(with), Some(without)) = (with.first(), without.first()) {
                return Err(Error::Mismatch {
                    first: format!("`{}`", self.leaves[*with].name),
                    second: format!("`{}`", self.leaves[*without].name),
                    reason: "they are elements of one random vector; transfer both or neither".to_owned(),
                });
            }
        }
        Ok(column)
    }

    /// Evaluates a draw; latents without a value in `given` are drawn from their distributions.
    fn run_given(
        &self,
        interpreter: &mut Interpreter,
        given: &dyn Fn(usize) -> Option<f64>,
        draw: usize,
        rng: &mut Stream,
    ) -> Result<()> {
        let mut failure = None;
        let mut drawn: Vec<Option<f64>> = vec![None; self.leaves.len()];
        interpreter.run(&self.arena, |l, values| {
            let l = l as usize;
            if let Some(x) = given(l).or(drawn[l]) {
                return x;
            }
            let node = &self.random[self.leaves[l].random as usize];
            match self.draw(node, values, rng) {
                Ok(all) => all.into_iter().for_each(|(leaf, x)| drawn[leaf] = Some(x)),
                Err(error) => {
                    failure.get_or_insert(error.into());
                }
            }
            let x = drawn[l].unwrap_or(f64::NAN);
            if x.is_nan() {
                failure.get_or_insert_with(|| impossible(&self.leaves[l].name, draw));
            }
            x
        });
        failure.map_or(Ok(()), Err)
    }
}

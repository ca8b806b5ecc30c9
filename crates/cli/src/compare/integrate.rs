//! q(z) over a large grid: [`exact::marginal`]'s sum, with every node's probabilities as the product of two halves.
//!
//! q(z | λ) factorises, so that the table of all states at one node is the outer product of a table of the first latents and
//! one of the last: two tables of √n numbers and n multiplications that run eight at a time, where building it up latent by
//! latent takes many times as long. It can also be stopped.

use crate::progress::StopFlag;
use hyperprior::exact::{Grid, Marginal, Posterior};
use hyperprior::math::batch::Batch;
use hyperprior::math::random::quasi_normals;
use hyperprior::math::scratch::Scratch;
use hyperprior::math::vector::add_scaled;
use hyperprior::prior::Density;
use hyperprior::{Model, Variational};
use rayon::prelude::*;
use std::ops::Range;

/// Nodes per component to begin with, and at most.
const NODES_MIN: usize = 2048;
const NODES_MAX: usize = 1 << 18;

/// Nodes that are summed at a time: few enough that their tables stay in the cache while the rows go by.
const CHUNK: usize = 64;

/// Less than this is nothing: products of two such numbers would be too small for normal arithmetic.
const NEGLIGIBLE: f64 = 1e-150;

/// q(z; θ) for a prior without switches, by the rule of [`exact::marginal`](hyperprior::exact::marginal): quasi-random nodes,
/// doubled until the divergence moves by less than 5 %. Nothing, where it was stopped.
pub fn marginal(
    model: &dyn Model,
    q: &Variational,
    theta: &[f64],
    posterior: &Posterior,
    seed: u32,
    stop: &StopFlag,
) -> Option<Marginal> {
    let halves = Halves::new(model, &posterior.grid);
    let mut sum = vec![0.0; posterior.grid.len()];
    halves.add(q, theta, seed, 0..NODES_MIN, &mut sum, stop)?;
    let mut nodes = NODES_MIN;
    let mut current = summary(&sum, nodes, posterior);
    while nodes < NODES_MAX {
        halves.add(q, theta, seed, nodes..2 * nodes, &mut sum, stop)?;
        nodes *= 2;
        let next = summary(&sum, nodes, posterior);
        let moved = (next.kl - current.kl).abs();
        current = next;
        if moved < 0.05 * current.kl.abs() {
            break;
        }
    }
    Some(current)
}

fn summary(sum: &[f64], nodes: usize, posterior: &Posterior) -> Marginal {
    let probability: Vec<f64> = sum.iter().map(|s| s / nodes as f64).collect();
    let terms = probability.iter().zip(&posterior.log_joint).filter(|(q, _)| **q > 0.0);
    let elbo: f64 = terms.map(|(q, log_p)| q * (log_p - q.ln())).sum();
    Marginal { kl: posterior.log_evidence - elbo, elbo, mass: probability.iter().sum(), nodes, probability }
}

/// The grid as rows (the states of the first latents) and columns (those of the last).
struct Halves<'a> {
    grid: &'a Grid,
    rows: Range<usize>,
    columns: Range<usize>,
    columns_len: usize,
}

impl<'a> Halves<'a> {
    fn new(model: &dyn Model, grid: &'a Grid) -> Self {
        let n = model.latents().len();
        let states = |latents: Range<usize>| latents.map(|i| grid.values(i).len()).product::<usize>();
        let split = (0..n).find(|&split| states(0..split) >= states(split..n)).unwrap_or(n);
        Self { grid, rows: 0..split, columns: split..n, columns_len: states(split..n) }
    }

    /// sum += Σ over components and nodes of π_k q(z | λ); the order of the sum does not depend on the threads.
    fn add(
        &self,
        q: &Variational,
        theta: &[f64],
        seed: u32,
        nodes: Range<usize>,
        sum: &mut [f64],
        stop: &StopFlag,
    ) -> Option<()> {
        let prior = q.prior();
        let mut log_pi = vec![0.0; prior.components_len()];
        prior.log_weights(theta, &mut log_pi);
        let mut scratch = Scratch::default();
        for (k, log_pi) in log_pi.iter().enumerate() {
            for first in nodes.clone().step_by(CHUNK) {
                if stop.is_raised() {
                    return None;
                }
                let len = CHUNK.min(nodes.end - first);
                let mut eps = Batch::zeros(prior.columns_len(), len);
                quasi_normals(seed.wrapping_add(k as u32), first as u32, &mut eps);
                let mut lambda = Batch::zeros(prior.lambda_len(), len);
                prior.transform(theta, k, &eps, Density::Unneeded, &mut lambda, &mut vec![0.0; len], &mut scratch);
                let rows = self.tables(q, &lambda, self.rows.clone(), log_pi.exp());
                let columns = self.tables(q, &lambda, self.columns.clone(), 1.0);
                sum.par_chunks_exact_mut(self.columns_len).enumerate().for_each(|(row, sum)| {
                    for (rows, columns) in rows.iter().zip(&columns).filter(|(rows, _)| rows[row] > 0.0) {
                        add_scaled(rows[row], columns, sum);
                    }
                });
            }
        }
        Some(())
    }

    /// For each node, weight · Π q(z_i | λ_i) over these latents, at all their states with the last latent fastest.
    fn tables(&self, q: &Variational, lambda: &Batch, latents: Range<usize>, weight: f64) -> Vec<Vec<f64>> {
        let len = lambda.draws_len();
        let mut products = vec![vec![weight]; len];
        for i in latents {
            let values = self.grid.values(i);
            let mut table = Batch::zeros(values.len(), len);
            q.likelihood().log_densities_of(i, lambda, values, &mut vec![0.0; len], &mut table);
            table.as_mut_slice().iter_mut().for_each(|p| *p = p.exp());
            for (s, product) in products.iter_mut().enumerate() {
                let own = |p: &f64| (0..values.len()).map(|v| p * table.get(v, s)).collect::<Vec<f64>>();
                *product = product.iter().flat_map(own).map(|p| if p > NEGLIGIBLE { p } else { 0.0 }).collect();
            }
        }
        products
    }
}

#[cfg(test)]
mod tests {
    use super::marginal;
    use crate::parts::{Parts, PriorChoice, RecursiveChoice};
    use crate::progress::StopFlag;
    use hyperprior::Model;
    use hyperprior::exact;
    use hyperprior::targets::{CorrelatedCounts, CountTarget, Ising};

    /// Catches halves in the wrong order, a weight left out, and another rule for the nodes: the numbers are the engine's.
    #[test]
    fn it_is_the_engines_sum() {
        let models: [Box<dyn Model>; 2] =
            [Box::new(Ising::ring(7, 0.5).unwrap()), Box::new(CorrelatedCounts::new(CountTarget::B))];
        for model in models {
            let parts = Parts::new(PriorChoice::Mixture(2), RecursiveChoice::Factorised);
            let q = parts.build(&*model).unwrap();
            let theta: Vec<f64> = (0..q.theta_len()).map(|i| 0.9 * (1.7 * i as f64).sin()).collect();
            let posterior = exact::posterior(&*model, 31).unwrap();
            let expected = exact::marginal(&q, &theta, &posterior, 3);
            let found = marginal(&*model, &q, &theta, &posterior, 3, &StopFlag::default()).unwrap();
            assert_eq!(found.nodes, expected.nodes);
            for (found, expected) in found.probability.iter().zip(&expected.probability) {
                assert!((found - expected).abs() < 1e-13, "{found} against {expected}");
            }
            assert!((found.kl - expected.kl).abs() < 1e-10 && (found.mass - expected.mass).abs() < 1e-12);
        }
    }
}

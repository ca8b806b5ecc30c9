//! Tests of factor graphs: tapes against plain evaluation, gradients against finite differences, marginalisation against
//! enumeration, and inference against known posteriors.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod budget;
mod checkpoint;
mod counts;
mod distributions;
mod draws;
mod faults;
mod formulas;
mod inference;
mod integration;
mod latent_bounds;
mod marginalisation;
mod prediction;
mod tape;
mod truncated_counts;
mod vectors;

use hyperprior::Batch;
use hyperprior::model::{Model, Support};
use hyperprior_graph::{Expr, Graph, GraphBuilder, GraphModel, Marginalise};
use hyperprior_math::random::stream;
use rand::RngExt;

fn numbers(g: &mut GraphBuilder, x: &[f64]) -> Vec<Expr> {
    x.iter().map(|x| g.constant(*x)).collect()
}

/// Points in the latents' supports.
fn scatter(model: &GraphModel, draws_len: usize, seed: u64) -> Batch {
    let mut z = Batch::zeros(model.latents().len(), draws_len);
    for s in 0..draws_len {
        let mut rng = stream(seed, 0, 0, s as u64);
        for i in 0..model.latents().len() {
            let u: f64 = rng.random();
            let x = match model.latents().support(i) {
                Support::Integers { lower, upper } => lower + (u * (upper - lower + 1.0)).floor(),
                Support::Counts => (8.0 * u).floor(),
                _ => 3.0 * u - 1.5,
            };
            z.set(i, s, x);
        }
    }
    z
}

/// Checks gradient, locals and conditionals against the log joint.
fn check(graph: Graph, which: &Marginalise, seed: u64) -> GraphModel {
    let model = graph.model_with(which).unwrap();
    hyperprior::check(&model, seed).unwrap();
    model
}

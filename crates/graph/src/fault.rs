//! Which factor of a graph makes a draw impossible.

use super::describe::{Names, density, describe};
use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::tape::TILE;
use super::truncated_sum::{ENDS, is_short};
use hyperprior::model::Fault;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};

/// The step of the random streams of these draws, used by no other.
const FAULT_STEP: u64 = Purpose::Faults.step();

impl GraphModel {
    /// The first factor, in topological order, whose density at draw `s` is not finite. Marginalised latents are drawn given the
    /// others, so that one of possibly many impossible configurations is reported.
    pub(super) fn fault_at(&self, z: &Batch, s: usize) -> Option<Fault> {
        let first = s - s % TILE;
        let len = TILE.min(z.draws_len() - first);
        let mut streams: Vec<Stream> = (0..len).map(|s| stream(0, FAULT_STEP, 0, (first + s) as u64)).collect();
        let marginalised = self.draw_marginalised(z, first, &mut streams);
        let leaves: Vec<Expr> = self.unconstrained.leaves.iter().flatten().copied().collect();
        let terms: Vec<Expr> = self.unconstrained.terms.iter().map(|t| t.expr).collect();
        let mut latents = Interpreter::new(&self.unconstrained.arena, &[leaves, terms].concat());
        latents.run(&self.unconstrained.arena, |l, _| match self.columns[l as usize] {
            Some(column) => z.get(column as usize, s),
            None => marginalised[l as usize][s - first],
        });
        let graph = &self.graph;
        let mut nodes: Vec<usize> = self.unconstrained.terms.iter().map(|t| t.random as usize).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let wanted: Vec<Expr> = nodes
            .iter()
            .map(|r| &graph.random[*r])
            .flat_map(|node| node.parents().into_iter().chain(node.value.iter().copied()).chain([node.density]))
            .collect();
        let mut own = Interpreter::new(&graph.arena, &wanted);
        own.run(&graph.arena, |l, _| self.unconstrained.leaves[l as usize].map_or(f64::NAN, |e| latents.value(e)));
        let by_node = nodes.iter().map(|r| (*r, own.value(graph.random[*r].density)));
        // If all densities are finite, a coordinate may be so far out that its Jacobian is not.
        let by_term = self.unconstrained.terms.iter().map(|t| (t.random as usize, latents.value(t.expr)));
        let Some((at, log_p)) = by_node.chain(by_term).find(|(_, log_p)| !log_p.is_finite()) else {
            return self.long_sum_at(z, s);
        };
        let node = &graph.random[at];
        let names = Names::new(
            graph
                .leaves
                .iter()
                .map(|leaf| (leaf.name.as_str(), leaf.expr))
                .chain(graph.named.iter().map(|(name, e)| (name.as_str(), *e))),
        );
        let is_constant = |e: Expr| matches!(graph.arena.node(e), Node::Constant(_));
        let text = describe(node, graph.origin(node), &names, &is_constant, &|e| Some(own.value(e)));
        Some(Fault { factor: node.name.clone(), reason: format!("log density {} at {text}", density(log_p)) })
    }

    /// The first count whose sum leaves out too much at draw `s`, even at the highest level.
    fn long_sum_at(&self, z: &Batch, s: usize) -> Option<Fault> {
        let first = s - s % TILE;
        let latent = self.evaluate(z, first, |level, workspace, _| {
            let tape = &level.joint.tape;
            let mut tails = level.marginalised.tails.iter().enumerate();
            let output = |k: usize| tape.output(k, workspace)[s - first];
            tails.find(|(t, _)| is_short(output(ENDS * t), output(ENDS * t + 1))).map(|(_, tail)| tail.latent)
        })?;
        let name = &self.unconstrained.coordinates[latent as usize].name;
        Some(Fault { factor: name.clone(), reason: self.too_long_reason(name) })
    }
}

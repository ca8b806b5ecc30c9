//! Which factor of a graph makes a draw impossible.

use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::tape::TILE;
use super::told::{Names, density, told};
use crate::model::Fault;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};

/// Streams of these draws are apart from all others.
const FAULT_STEP: u64 = u64::MAX - 6;

impl GraphModel {
    /// The first factor, in the order of dependence, whose density at draw `s` is not finite. Latents that are summed out are
    /// given values that go with the draw, so that one of many impossible configurations is told.
    pub(super) fn fault_at(&self, z: &Batch, s: usize) -> Option<Fault> {
        let first = s - s % TILE;
        let len = TILE.min(z.draws_len() - first);
        let mut streams: Vec<Stream> = (0..len).map(|s| stream(0, FAULT_STEP, 0, (first + s) as u64)).collect();
        let summed = self.draw_eliminated(z, first, &mut streams);
        let laid: Vec<Expr> = self.line.leaves.iter().flatten().copied().collect();
        let terms: Vec<Expr> = self.line.terms.iter().map(|t| t.expr).collect();
        let mut line = Interpreter::new(&self.line.arena, &[laid, terms].concat());
        line.run(&self.line.arena, |l, _| match self.columns[l as usize] {
            Some(column) => z.get(column as usize, s),
            None => summed[l as usize][s - first],
        });
        let graph = &self.graph;
        let mut nodes: Vec<usize> = self.line.terms.iter().map(|t| t.random as usize).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let wanted: Vec<Expr> = nodes
            .iter()
            .map(|r| &graph.random[*r])
            .flat_map(|node| node.parents().into_iter().chain(node.value.iter().copied()).chain([node.density]))
            .collect();
        let mut own = Interpreter::new(&graph.arena, &wanted);
        own.run(&graph.arena, |l, _| self.line.leaves[l as usize].map_or(f64::NAN, |e| line.value(e)));
        let by_node = nodes.iter().map(|r| (*r, own.value(graph.random[*r].density)));
        // Where the density itself is fine, a latent may be too far out on the line for its place there.
        let by_term = self.line.terms.iter().map(|t| (t.random as usize, line.value(t.expr)));
        let (at, log_p) = by_node.chain(by_term).find(|(_, log_p)| !log_p.is_finite())?;
        let node = &graph.random[at];
        let names = Names::new(
            graph
                .leaves
                .iter()
                .map(|leaf| (leaf.name.as_str(), leaf.expr))
                .chain(graph.named.iter().map(|(name, e)| (name.as_str(), *e))),
        );
        let is_constant = |e: Expr| matches!(graph.arena.node(e), Node::Constant(_));
        let text = told(node, graph.origin(node), &names, &is_constant, &|e| Some(own.value(e)));
        Some(Fault { factor: node.name.clone(), reason: format!("log density {} at {text}", density(log_p)) })
    }
}

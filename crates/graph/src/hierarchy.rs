//! The hierarchy of a graph: latents whose scale is random, and chains of them.

use super::distribution::Distribution;
use super::expression::{Expr, Node};
use super::node::Graph;

/// Effects of effects, to this depth, are relative to each other; longer chains to their beginning.
const NESTED: usize = 4;

/// The parameters whose uncertainty makes a funnel with the latent, if its distribution has a place.
fn scales(distribution: &Distribution) -> Vec<Expr> {
    match *distribution {
        Distribution::Normal { precision, .. }
        | Distribution::StudentT { precision, .. }
        | Distribution::LogNormal { precision, .. } => vec![precision],
        Distribution::Laplace { rate, .. }
        | Distribution::Logistic { rate, .. }
        | Distribution::Exponential { rate } => {
            vec![rate]
        }
        Distribution::Gamma { shape, rate } => vec![shape, rate],
        _ => Vec::new(),
    }
}

/// Marks the latents of the graph that can be centred to a degree: their scale is random, and none of their parameters is discrete.
pub(super) fn candidates(graph: &Graph) -> Vec<bool> {
    // What an expression depends on: a latent at all, and a discrete one.
    let mut depends = vec![(false, false); graph.arena.len()];
    for e in 0..graph.arena.len() {
        let mut found = match graph.arena.node(Expr(e as u32)) {
            Node::Leaf(l) => (true, graph.arena.known(graph.leaves[l as usize].expr).whole),
            _ => (false, false),
        };
        graph.arena.operands(Expr(e as u32), |operand| {
            let of = depends[operand.0 as usize];
            found = (found.0 | of.0, found.1 | of.1);
        });
        depends[e] = found;
    }
    let of = |e: &Expr| depends[e.0 as usize];
    graph
        .leaves
        .iter()
        .enumerate()
        .map(|(l, leaf)| {
            let Some(distribution) = graph.distribution_of(l) else { return false };
            graph.random[leaf.random as usize].bounds.is_none()
                && scales(&distribution).iter().any(|e| of(e).0)
                && !distribution.parameters().iter().any(|e| of(e).1)
        })
        .collect()
}

/// Marks the latents on which the scales of candidates depend.
pub(super) fn scale_latents(graph: &Graph, candidates: &[bool]) -> Vec<bool> {
    let mut is_wanted = vec![false; graph.arena.len()];
    for l in 0..graph.leaves.len() {
        if let Some(own) = graph.distribution_of(l).filter(|_| candidates[l]) {
            scales(&own).into_iter().for_each(|e| is_wanted[e.0 as usize] = true);
        }
    }
    let mut found = vec![false; graph.leaves.len()];
    for e in (0..graph.arena.len()).rev() {
        if is_wanted[e] {
            match graph.arena.node(Expr(e as u32)) {
                Node::Leaf(l) => found[l as usize] = true,
                _ => graph.arena.operands(Expr(e as u32), |operand| is_wanted[operand.0 as usize] = true),
            }
        }
    }
    found
}

/// Marks the candidates in long chains, such as the states of a random walk: each is the location of the next. Relative to the one before,
/// every state would depend on all before it.
pub(super) fn chained(graph: &Graph, candidates: &[bool]) -> Vec<bool> {
    let parameters = |l: usize| match graph.distribution_of(l) {
        Some(distribution) if candidates[l] => distribution.parameters(),
        _ => Vec::new(),
    };
    // How many candidates come before each expression, one after another; and how many after.
    let (mut before, mut after) = (vec![0_usize; graph.arena.len()], vec![0_usize; graph.arena.len()]);
    let below = |e: usize, f: &mut dyn FnMut(Expr)| match graph.arena.node(Expr(e as u32)) {
        Node::Leaf(l) => parameters(l as usize).into_iter().for_each(f),
        _ => graph.arena.operands(Expr(e as u32), f),
    };
    let is_candidate = |e: usize| match graph.arena.node(Expr(e as u32)) {
        Node::Leaf(l) => usize::from(candidates[l as usize]),
        _ => 0,
    };
    for e in 0..graph.arena.len() {
        let mut most = 0;
        below(e, &mut |operand| most = most.max(before[operand.0 as usize]));
        before[e] = most + is_candidate(e);
    }
    for e in (0..graph.arena.len()).rev() {
        let own = after[e] + is_candidate(e);
        below(e, &mut |operand| after[operand.0 as usize] = after[operand.0 as usize].max(own));
    }
    let is_long = |l: usize| {
        let e = graph.leaves[l].expr.0 as usize;
        candidates[l] && before[e] + after[e] > NESTED
    };
    (0..candidates.len()).map(is_long).collect()
}

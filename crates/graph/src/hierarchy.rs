//! The hierarchy of a graph: latents whose scale is random, and chains of them.

use super::distribution::Distribution;
use super::expression::{Expr, Node};
use super::node::Graph;
use std::collections::BTreeSet;

/// Effects of effects, to this depth, are relative to each other; longer chains to their beginning.
const NESTED: usize = 4;
/// A chain's beginning is vague if its log scale is larger than that of the next by this much: by a factor of thirty.
const VAGUE: f64 = 3.4;

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

/// Marks the beginnings of chains that are vague, such as a random walk's first value with a variance that is a million times that of its
/// steps: the data say where these are, and the rest of the chain is relative to them. `log_scale` is typical of each candidate.
pub(super) fn vague_beginnings(graph: &Graph, chained: &[bool], log_scale: impl Fn(usize) -> f64) -> Vec<bool> {
    // The candidates of chains that the parameters of each contain.
    let parents = |l: usize| {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut stack = graph.distribution_of(l).map(|own| own.parameters()).unwrap_or_default();
        while let Some(e) = stack.pop() {
            if !seen.insert(e) {
                continue;
            }
            match graph.arena.node(e) {
                Node::Leaf(parent) => found.extend(Some(parent as usize).filter(|parent| chained[*parent])),
                _ => graph.arena.operands(e, |operand| stack.push(operand)),
            }
        }
        found
    };
    let parents: Vec<Vec<usize>> =
        (0..chained.len()).map(|l| if chained[l] { parents(l) } else { Vec::new() }).collect();
    let mut is_vague = vec![false; chained.len()];
    for (l, own) in parents.iter().enumerate() {
        for parent in own.iter().filter(|parent| parents[**parent].is_empty()) {
            is_vague[*parent] |= log_scale(*parent) > log_scale(l) + VAGUE;
        }
    }
    is_vague
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::GraphBuilder;

    #[test]
    fn first_values_with_a_wide_prior_are_vague_and_others_are_not() {
        // A random walk of second order with this prior standard deviation of its first two values and steps of 0.1.
        for (first, expected) in [(1000.0, vec![0, 1]), (0.5, vec![])] {
            let mut g = GraphBuilder::new();
            let (zero, minus_one) = (g.constant(0.0), g.constant(-1.0));
            let sds = [first, 0.1];
            let [of_first, of_others] = sds.map(|sd: f64| g.constant(1.0 / (sd * sd)));
            let (mut before, mut last) = (zero, zero);
            for t in 0..8 {
                let (twice, minus) = (g.add(last, last), g.multiply(minus_one, before));
                let own = match t {
                    0 | 1 => Distribution::Normal { mean: zero, precision: of_first },
                    _ => Distribution::Normal { mean: g.add(twice, minus), precision: of_others },
                };
                let x = g.stochastic(&format!("x[{}]", t + 1), own, None, None).unwrap();
                (before, last) = (last, x);
            }
            let graph = g.build().unwrap();
            let log_scale = |l: usize| sds[usize::from(l > 1)].ln();
            let is_vague = vague_beginnings(&graph, &[true; 8], log_scale);
            assert_eq!((0..8).filter(|l| is_vague[*l]).collect::<Vec<_>>(), expected, "first {first}");
        }
    }
}

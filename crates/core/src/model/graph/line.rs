//! The graph with its latents laid on the real line: what inference works on.
//!
//! A latent above zero becomes an exponential, one between two bounds a logistic, a point of a simplex a broken stick, a
//! precision matrix a product of triangles, each with the logarithm of its derivative added to its density. Latents that no
//! observation depends on are left out: their posterior is their law, and they are drawn from it afterwards.

use super::error::GraphError;
use super::expression::{Expr, Expressions, Known, Node};
use super::law::{Law, VectorLaw};
use super::node::{AnyLaw, Graph, Random};
use super::operation::{Binary, Unary};
use super::rewrite::Shape;
use super::support::{End, Span};
use crate::model::Support;
use std::f64::consts::LN_2;

/// How a latent of the line becomes one of the user's.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// As it is.
    Line,
    /// Its exponential above an end, or below one.
    Above(Expr),
    Below(Expr),
    /// Its logistic between two ends.
    Between(Expr, Expr),
    /// A whole number, counted from this one.
    Whole(f64),
    /// A break of the stick that these of the user's latents share, by its number.
    Simplex(Vec<usize>, usize),
    /// An entry of the triangle whose product with itself these of the user's latents are, row by row; by row and column.
    Matrix(Vec<usize>, usize, usize),
}

/// A latent of the laid-out graph.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    /// The latent of the user's graph that it stands for, or is a part of.
    pub(crate) name: String,
    pub(crate) support: Support,
    /// The user's latent that it stands for, or one of those that it is a part of.
    pub(crate) leaf: usize,
    pub(crate) place: Place,
}

/// A term of the log joint density.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) expr: Expr,
    /// The random node whose density it is.
    pub(crate) random: u32,
}

/// The graph as inference sees it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) arena: Expressions,
    pub(crate) raw: Vec<Raw>,
    /// For each of the user's latents, its expression here; none for those that no observation depends on.
    pub(crate) leaves: Vec<Option<Expr>>,
    pub(crate) terms: Vec<Term>,
}

/// What observations say about where a latent can be.
#[derive(Clone, Copy, Debug, Default)]
struct Constraint {
    span: Span,
    /// The smallest count.
    least: f64,
}

/// Which expressions and random nodes the observations depend on.
fn active(graph: &Graph) -> (Vec<bool>, Vec<bool>) {
    let mut expressions = vec![false; graph.arena.len()];
    let mut random = vec![false; graph.random.len()];
    let mut stack = Vec::new();
    let wake = |r: usize, random: &mut Vec<bool>, stack: &mut Vec<Expr>| {
        if !std::mem::replace(&mut random[r], true) {
            let node: &Random = &graph.random[r];
            stack.push(node.density);
            stack.extend(&node.value);
            stack.extend(node.bounds.iter().flat_map(|b| [b.lower, b.upper]).flatten());
            if let AnyLaw::Scalar(Law::Uniform { lower, upper }) = node.law {
                stack.extend([lower, upper]);
            }
        }
    };
    for (r, node) in graph.random.iter().enumerate() {
        // A value known to lie between bounds is an observation, though not of the value.
        let is_censored = node.bounds.is_some_and(|b| !b.renormalised);
        if node.is_observed || is_censored {
            wake(r, &mut random, &mut stack);
        }
    }
    while let Some(e) = stack.pop() {
        if std::mem::replace(&mut expressions[e.0 as usize], true) {
            continue;
        }
        if let Node::Leaf(l) = graph.arena.node(e) {
            wake(graph.leaves[l as usize].random as usize, &mut random, &mut stack);
        }
        graph.arena.operands(e, |e| stack.push(e));
    }
    (expressions, random)
}

/// What observed counts and intervals say about the latents inside them.
fn constraints(graph: &Graph) -> Vec<Constraint> {
    let mut constraints = vec![Constraint::default(); graph.leaves.len()];
    let arena = &graph.arena;
    let leaf = |e: Expr| match arena.node(e) {
        Node::Leaf(l) => Some(l as usize),
        _ => None,
    };
    for node in graph.random.iter().filter(|r| r.is_observed) {
        let Some(value) = arena.value(node.value[0]) else { continue };
        match &node.law {
            AnyLaw::Scalar(Law::Binomial { n, .. } | Law::BetaBinomial { n, .. }) => {
                if let Some(l) = leaf(*n) {
                    constraints[l].least = constraints[l].least.max(value);
                }
            }
            AnyLaw::Scalar(Law::Interval { time, cuts }) => {
                if let Some(l) = leaf(*time) {
                    let cut = |k: f64| {
                        let inside = k >= 0.0 && (k as usize) < cuts.len();
                        inside.then(|| arena.value(cuts[k as usize])).flatten().map(End::Number)
                    };
                    constraints[l].span.narrow(cut(value - 1.0), cut(value));
                }
            }
            _ => {}
        }
    }
    constraints
}

impl Line {
    pub(crate) fn new(graph: &Graph) -> Result<Self, GraphError> {
        let (expressions, random) = active(graph);
        let constraints = constraints(graph);
        let mut line = Self {
            arena: Expressions::default(),
            raw: Vec::new(),
            leaves: vec![None; graph.leaves.len()],
            terms: Vec::new(),
        };
        let unmade = line.arena.constant(f64::NAN);
        let mut made = vec![unmade; graph.arena.len()];
        let mut jacobians: Vec<Option<Expr>> = vec![None; graph.random.len()];
        let mut shape = Shape::default();
        for (i, _) in expressions.iter().enumerate().filter(|(_, active)| **active) {
            let e = Expr(i as u32);
            made[i] = if let Node::Leaf(l) = graph.arena.node(e) {
                let l = l as usize;
                if line.leaves[l].is_none() {
                    let r = graph.leaves[l].random as usize;
                    jacobians[r] = line.lay(graph, r, l, &constraints[l], &made)?;
                }
                line.leaves[l].unwrap_or(unmade)
            } else {
                shape.take(&graph.arena, e);
                shape.make(&mut line.arena, |e| made[e.0 as usize], |_| unmade)
            };
        }
        for (r, node) in graph.random.iter().enumerate().filter(|(r, _)| random[*r]) {
            let density = made[node.density.0 as usize];
            let expr = match jacobians[r] {
                Some(jacobian) => {
                    let sum = line.arena.add(density, jacobian);
                    // The derivative is as undefined as the density where an index lies outside.
                    match line.arena.node(density) {
                        Node::Binary(Binary::Within, inside, _) => line.arena.binary(Binary::Within, inside, sum),
                        _ => sum,
                    }
                }
                None => density,
            };
            line.terms.push(Term { expr, random: r as u32 });
        }
        Ok(line)
    }

    fn raw(&mut self, graph: &Graph, leaf: usize, support: Support, known: Known, place: Place) -> Expr {
        let number = self.raw.len() as u32;
        self.raw.push(Raw { name: graph.leaves[leaf].name.clone(), support, leaf, place });
        self.arena.leaf(number, known)
    }

    /// Lays out the latents of random node `r`, of which `l` is the first that was met; the log derivative comes back.
    fn lay(
        &mut self,
        graph: &Graph,
        r: usize,
        l: usize,
        constraint: &Constraint,
        made: &[Expr],
    ) -> Result<Option<Expr>, GraphError> {
        let node = &graph.random[r];
        match &node.law {
            AnyLaw::Scalar(law) if law.is_discrete() => {
                self.leaves[l] = Some(self.lay_discrete(graph, r, l, law, constraint)?);
                Ok(None)
            }
            AnyLaw::Scalar(law) => {
                let mut span = graph.arena.span(law, node.bounds);
                span.narrow(constraint.span.lower, constraint.span.upper);
                let end = |this: &mut Self, end: Option<End>| {
                    end.map(|end| match end {
                        End::Number(x) => this.arena.constant(x),
                        End::Of(e) => made[e.0 as usize],
                    })
                };
                let (lower, upper) = (end(self, span.lower), end(self, span.upper));
                let place = match (lower, upper) {
                    (None, None) => Place::Line,
                    (Some(end), None) => Place::Above(end),
                    (None, Some(end)) => Place::Below(end),
                    (Some(lower), Some(upper)) => Place::Between(lower, upper),
                };
                let raw = self.raw(graph, l, Support::Real, Known::default(), place);
                let (value, jacobian) = self.arena.between(raw, lower, upper);
                self.leaves[l] = Some(value);
                Ok(jacobian)
            }
            AnyLaw::Vector(VectorLaw::Dirichlet { .. }) => Ok(Some(self.lay_simplex(graph, r))),
            AnyLaw::Vector(VectorLaw::Wishart { .. }) => Ok(Some(self.lay_matrix(graph, r))),
            AnyLaw::Vector(VectorLaw::Multinomial { .. }) => Err(GraphError::Unsupported {
                name: node.name.clone(),
                reason: "a multinomial that is not observed but that data depend on is not supported; write it as one \
                         categorical node per trial, or as a chain of binomials"
                    .to_owned(),
            }),
            AnyLaw::Vector(_) => {
                for leaf in own_leaves(graph, r) {
                    self.leaves[leaf] = Some(self.raw(graph, leaf, Support::Real, Known::default(), Place::Line));
                }
                Ok(None)
            }
        }
    }

    fn lay_discrete(
        &mut self,
        graph: &Graph,
        r: usize,
        l: usize,
        law: &Law,
        constraint: &Constraint,
    ) -> Result<Expr, GraphError> {
        let name = &graph.leaves[l].name;
        let (low, high) = graph.discrete_range(r, law);
        let low = low.max(constraint.least);
        if !(low <= high) {
            let reason = format!("no value is possible: it must be at least {low} and at most {high}");
            return Err(GraphError::Unsupported { name: name.clone(), reason });
        }
        if low == high {
            return Ok(self.arena.constant(low));
        }
        let support =
            if high < f64::INFINITY { Support::Integers { lower: 0.0, upper: high - low } } else { Support::Counts };
        let known = Known { nonnegative: true, positive: false, whole: true, at_most_one: high - low <= 1.0 };
        let above = self.raw(graph, l, support, known, Place::Whole(low));
        Ok(self.arena.linear(&[(above, 1.0)], low))
    }

    /// x₁ = v₁, x₂ = (1 − v₁) v₂, …: each v a logistic, centred so that zero is the middle of the simplex.
    fn lay_simplex(&mut self, graph: &Graph, r: usize) -> Expr {
        let leaves: Vec<usize> = own_leaves(graph, r).collect();
        let mut rest = self.arena.constant(1.0);
        let mut jacobian = Vec::new();
        for (k, &leaf) in leaves.iter().enumerate() {
            let left = leaves.len() - 1 - k;
            if left == 0 {
                self.leaves[leaf] = Some(rest);
                break;
            }
            let place = Place::Simplex(leaves.clone(), k);
            let raw = self.raw(graph, leaf, Support::Real, Known::default(), place);
            let centred = self.arena.linear(&[(raw, 1.0)], -(left as f64).ln());
            let share = self.arena.sigmoid(centred);
            let other = self.arena.complement(share);
            let (log_rest, log_share, log_other) = (self.arena.log(rest), self.arena.log(share), self.arena.log(other));
            jacobian.extend([(log_rest, 1.0), (log_share, 1.0), (log_other, 1.0)]);
            self.leaves[leaf] = Some(self.arena.multiply(rest, share));
            rest = self.arena.multiply(rest, other);
        }
        self.arena.linear(&jacobian, 0.0)
    }

    /// Ω = L Lᵀ with the logarithms of L's diagonal on the line; |∂Ω/∂L| = 2ⁿ Π Lᵢᵢ^(n − i), i from 0.
    fn lay_matrix(&mut self, graph: &Graph, r: usize) -> Expr {
        let n = graph.random[r].value.len().isqrt();
        let leaves: Vec<usize> = own_leaves(graph, r).collect();
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(n);
        let mut jacobian = Vec::new();
        let mut at = leaves.iter();
        for i in 0..n {
            let mut row = Vec::with_capacity(i + 1);
            for j in 0..=i {
                let Some(&leaf) = at.next() else { break };
                let place = Place::Matrix(leaves.clone(), i, j);
                let raw = self.raw(graph, leaf, Support::Real, Known::default(), place);
                if i == j {
                    jacobian.push((raw, (n - i + 1) as f64));
                    row.push(self.arena.unary(Unary::Exp, raw));
                } else {
                    row.push(raw);
                }
            }
            rows.push(row);
        }
        let mut at = leaves.iter();
        for i in 0..n {
            for j in 0..=i {
                let Some(&leaf) = at.next() else { break };
                self.leaves[leaf] = Some(self.arena.inner_product(&rows[i][..=j], &rows[j][..=j]));
            }
        }
        self.arena.linear(&jacobian, n as f64 * LN_2)
    }
}

impl Graph {
    /// The smallest and largest value of a discrete node by its law and bounds, whatever was observed of it.
    pub(super) fn discrete_range(&self, r: usize, law: &Law) -> (f64, f64) {
        let (low, high) = self.arena.range(law);
        let Some(bounds) = self.random[r].bounds else { return (low, high) };
        let number = |e: Option<Expr>| e.and_then(|e| self.arena.value(e));
        (low.max(number(bounds.lower).unwrap_or(low).ceil()), high.min(number(bounds.upper).unwrap_or(high).floor()))
    }

    /// The latents that no observation depends on, by number.
    pub(super) fn idle_leaves(&self) -> Vec<bool> {
        let (_, random) = active(self);
        self.leaves.iter().map(|leaf| !random[leaf.random as usize]).collect()
    }
}

/// The latents of random node `r`, in order.
fn own_leaves(graph: &Graph, r: usize) -> impl Iterator<Item = usize> {
    let node = &graph.random[r];
    let mut seen = std::collections::BTreeSet::new();
    let leaves = node.value.iter().filter_map(|e| match graph.arena.node(*e) {
        Node::Leaf(l) => Some(l as usize),
        _ => None,
    });
    // A symmetric matrix names each latent off its diagonal twice.
    seen.extend(leaves);
    seen.into_iter()
}

impl Expressions {
    /// The line mapped between two ends, and the log derivative.
    fn between(&mut self, raw: Expr, lower: Option<Expr>, upper: Option<Expr>) -> (Expr, Option<Expr>) {
        match (lower, upper) {
            (None, None) => (raw, None),
            (Some(end), None) => {
                let distance = self.unary(Unary::Exp, raw);
                (self.add(end, distance), Some(raw))
            }
            (None, Some(end)) => {
                let distance = self.unary(Unary::Exp, raw);
                (self.subtract(end, distance), Some(raw))
            }
            (Some(lower), Some(upper)) => {
                let (width, share) = (self.subtract(upper, lower), self.sigmoid(raw));
                let other = self.complement(share);
                let (inside, log_width) = (self.multiply(width, share), self.log(width));
                let (log_share, log_other) = (self.log(share), self.log(other));
                let jacobian = self.linear(&[(log_width, 1.0), (log_share, 1.0), (log_other, 1.0)], 0.0);
                (self.add(lower, inside), Some(jacobian))
            }
        }
    }
}

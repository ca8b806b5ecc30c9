//! What is known about the factors of a count, so that the values left out of a sum over it can be bounded.
//!
//! The sum Σ p(n) L(n) over a count n is cut off at a last value. What is left out is at most P(n beyond the last value) · max L.
//! The probability follows from the count's own distribution; the largest L is a product over the factors that contain the count:
//! a probability is at most 1, a normal density at most that at its mean. If a factor has a single mode in n and falls at the last
//! value, its last value is the bound.

use super::distribution::Distribution;
use super::expression::{Expr, Expressions, Node};
use super::node::{AnyDistribution, Graph, Random};
use super::operation::{Binary, Unary};
use super::rewrite::Shape;
use std::f64::consts::{LN_2, PI};

/// A Poisson with a constant rate from here on is summed over a window around its rate, not from 0.
const RATE_LARGE: f64 = 256.0;
/// The standard deviations to each side of the rate that the narrowest window covers.
const WINDOW: f64 = 8.0;

/// How the probability beyond the last value of a count follows from its last two probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The ratio of successive probabilities falls.
    Falling,
    /// The ratio may rise, but by less than k / (k − 1) in total after value k: a negative binomial.
    NearlyFalling,
    /// Nothing is known until a value is impossible.
    Unknown,
}

/// What is known about a term of the log joint that contains a count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Factor {
    /// The coordinate of the count whose distribution this is.
    pub(crate) own: Option<(u32, Own)>,
    /// A bound of the term over all values of the count, unless the bound itself depends on the count.
    pub(crate) ceiling: Option<Expr>,
    /// Whether the term rises to one mode and then falls as the count grows.
    pub(crate) has_one_mode: bool,
}

/// How a count is summed over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The centre and half the width of the narrowest window, counted from the least value; none if sums start there.
    pub(crate) around: Option<(f64, f64)>,
    /// Whether nothing is known about the values beyond the last one.
    pub(crate) is_open: bool,
}

impl Window {
    /// Of a node with this distribution and this least value.
    pub(crate) fn new(graph: &Graph, node: &Random, distribution: &Distribution, least: f64) -> Self {
        let value = |e: Expr| graph.arena.value(e);
        let around = match distribution {
            Distribution::Poisson { rate } => value(*rate)
                .filter(|rate| *rate >= RATE_LARGE && rate.is_finite())
                .map(|rate| ((rate - least).round(), (WINDOW * rate.sqrt()).ceil() + 16.0)),
            _ => None,
        };
        // Below a random lower bound all values are impossible, although larger ones are not.
        let is_open = node.bounds.and_then(|b| b.lower).is_some_and(|lower| value(lower).is_none());
        Self { around, is_open }
    }
}

/// The graph's expressions rebuilt in another arena, with more of them rebuilt when they are asked for.
#[derive(Debug)]
pub(crate) struct Rebuilt<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) made: Vec<Expr>,
    pub(crate) is_made: Vec<bool>,
}

impl Rebuilt<'_> {
    /// The expression in the other arena; none if it contains a latent that the arena does not have.
    fn get(&mut self, arena: &mut Expressions, wanted: Expr) -> Option<Expr> {
        let mut stack = vec![wanted];
        let mut shape = Shape::default();
        while let Some(&e) = stack.last() {
            if self.is_made[e.0 as usize] {
                stack.pop();
                continue;
            }
            if let Node::Leaf(_) = self.graph.arena.node(e) {
                return None;
            }
            let before = stack.len();
            self.graph.arena.operands(e, |o| {
                if !self.is_made[o.0 as usize] {
                    stack.push(o);
                }
            });
            if stack.len() == before {
                shape.take(&self.graph.arena, e);
                let made = &self.made;
                let new = shape.make(arena, |e| made[e.0 as usize], |_| e);
                self.made[e.0 as usize] = new;
                self.is_made[e.0 as usize] = true;
            }
        }
        Some(self.made[wanted.0 as usize])
    }
}

/// What is known about the terms that contain counts. `count_of` has the coordinates of the latents that are counts; `terms` are
/// random nodes with their log Jacobians.
pub(crate) fn factors(
    rebuilt: &mut Rebuilt,
    arena: &mut Expressions,
    count_of: &[Option<u32>],
    terms: impl Iterator<Item = (u32, Option<Expr>)>,
) -> Vec<Factor> {
    let graph = rebuilt.graph;
    if count_of.iter().all(Option::is_none) {
        return vec![Factor::default(); terms.count()];
    }
    let has_count = graph.arena.containing(|l| count_of[l as usize].is_some());
    let factor = |(random, jacobian): (u32, Option<Expr>)| {
        let node = &graph.random[random as usize];
        if !has_count[node.density.0 as usize] {
            return Factor::default();
        }
        let own = match (graph.arena.node(node.value[0]), &node.distribution) {
            (Node::Leaf(l), AnyDistribution::Scalar(distribution)) => {
                count_of[l as usize].map(|number| (number, own(distribution)))
            }
            _ => None,
        };
        let ceiling = ceiling(rebuilt, arena, node);
        let ceiling = match (ceiling, jacobian) {
            (Some(ceiling), Some(jacobian)) => Some(arena.add(ceiling, jacobian)),
            (ceiling, _) => ceiling,
        };
        Factor { own, ceiling, has_one_mode: has_one_mode(&graph.arena, node, &has_count) }
    };
    terms.map(factor).collect()
}

fn own(distribution: &Distribution) -> Own {
    match distribution {
        Distribution::Poisson { .. }
        | Distribution::Geometric { .. }
        | Distribution::FirstSuccess { .. }
        | Distribution::Binomial { .. } => Own::Falling,
        Distribution::NegativeBinomial { .. } => Own::NearlyFalling,
        _ => Own::Unknown,
    }
}

/// The largest log density over all locations of a distribution, or over all its rates.
fn ceiling(rebuilt: &mut Rebuilt, arena: &mut Expressions, node: &Random) -> Option<Expr> {
    let AnyDistribution::Scalar(distribution) = &node.distribution else {
        let is_discrete = matches!(
            node.distribution,
            AnyDistribution::Vector(super::distribution::VectorDistribution::Multinomial { .. })
        );
        return is_discrete.then(|| arena.constant(0.0));
    };
    if distribution.is_discrete() {
        return Some(arena.constant(0.0));
    }
    // The density is divided by the probability between the bounds, which may be small.
    if node.bounds.is_some_and(|b| b.renormalised) {
        return None;
    }
    let mut log = |e: Expr| rebuilt.get(arena, e).map(|e| arena.log(e));
    match *distribution {
        Distribution::Normal { precision, .. } => {
            let log = log(precision)?;
            Some(arena.linear(&[(log, 0.5)], -0.5 * (2.0 * PI).ln()))
        }
        Distribution::LogNormal { precision, .. } => {
            let (log_precision, log_x) = (log(precision)?, log(node.value[0])?);
            Some(arena.linear(&[(log_precision, 0.5), (log_x, -1.0)], -0.5 * (2.0 * PI).ln()))
        }
        // Γ((ν + 1)/2) / Γ(ν/2) is below √(ν/2), so that the density is below that of a normal.
        Distribution::StudentT { precision, .. } => {
            let log = log(precision)?;
            Some(arena.linear(&[(log, 0.5)], -0.5 * (2.0 * PI).ln()))
        }
        Distribution::Laplace { rate, .. } => {
            let log = log(rate)?;
            Some(arena.linear(&[(log, 1.0)], -LN_2))
        }
        Distribution::Logistic { rate, .. } => {
            let log = log(rate)?;
            Some(arena.linear(&[(log, 1.0)], -2.0 * LN_2))
        }
        // At the rate 1/x.
        Distribution::Exponential { .. } => {
            let log = log(node.value[0])?;
            Some(arena.linear(&[(log, -1.0)], -1.0))
        }
        // At the rate shape/x.
        Distribution::Gamma { shape, .. } => {
            let (log_x, log_shape) = (log(node.value[0])?, log(shape)?);
            let shape = rebuilt.get(arena, shape)?;
            let (power, norm) = (arena.multiply(shape, log_shape), arena.log_gamma(shape));
            Some(arena.linear(&[(power, 1.0), (shape, -1.0), (norm, -1.0), (log_x, -1.0)], 0.0))
        }
        _ => None,
    }
}

/// Whether the density has a single mode as a count grows: one of its parameters rises or falls with it, and the density has a
/// single mode in that parameter.
fn has_one_mode(arena: &Expressions, node: &Random, has_count: &[bool]) -> bool {
    let AnyDistribution::Scalar(distribution) = &node.distribution else { return false };
    let has = |e: Expr| has_count[e.0 as usize];
    if node.bounds.is_some() || has(node.value[0]) {
        return false;
    }
    let one = |driver: Expr, others: &[Expr]| !others.iter().any(|e| has(*e)) && is_monotone(arena, driver, has_count);
    match *distribution {
        Distribution::Bernoulli { p } | Distribution::Geometric { p } | Distribution::FirstSuccess { p } => one(p, &[]),
        Distribution::Binomial { p, n } => one(n, &[p]) || one(p, &[n]),
        Distribution::BetaBinomial { a, b, n } => one(n, &[a, b]),
        Distribution::Poisson { rate } | Distribution::Exponential { rate } => one(rate, &[]),
        Distribution::NegativeBinomial { p, r } => one(p, &[r]),
        Distribution::Normal { mean, precision } | Distribution::LogNormal { mean, precision } => {
            one(mean, &[precision]) || one(precision, &[mean])
        }
        Distribution::StudentT { mean, precision, df } => one(mean, &[precision, df]),
        Distribution::Laplace { mean, rate } | Distribution::Logistic { mean, rate } => one(mean, &[rate]),
        Distribution::Gamma { shape, rate } => one(rate, &[shape]) || one(shape, &[rate]),
        _ => false,
    }
}

/// Whether an expression contains a single count, once, and rises or falls throughout as that count grows.
fn is_monotone(arena: &Expressions, e: Expr, has_count: &[bool]) -> bool {
    let has = |e: Expr| has_count[e.0 as usize];
    match arena.node(e) {
        Node::Leaf(_) => has(e),
        Node::Unary(Unary::Exp | Unary::Log | Unary::Sqrt | Unary::Sigmoid | Unary::Softplus | Unary::Phi, a) => {
            is_monotone(arena, a, has_count)
        }
        Node::Linear { list, .. } => {
            let mut with: Vec<Expr> = arena.list(list).iter().copied().filter(|e| has(*e)).collect();
            with.len() == 1 && with.pop().is_some_and(|e| is_monotone(arena, e, has_count))
        }
        Node::Binary(Binary::Multiply, a, b) => {
            (is_monotone(arena, a, has_count) && !has(b)) || (is_monotone(arena, b, has_count) && !has(a))
        }
        Node::Binary(Binary::Divide, a, b) => is_monotone(arena, a, has_count) && !has(b),
        _ => false,
    }
}

impl Expressions {
    /// Marks the expressions that contain one of these latents.
    pub(crate) fn containing(&self, is_one: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut found = vec![false; self.len()];
        for i in 0..self.len() {
            let e = Expr(i as u32);
            found[i] = match self.node(e) {
                Node::Leaf(l) => is_one(l),
                _ => {
                    let mut any = false;
                    self.operands(e, |o| any |= found[o.0 as usize]);
                    any
                }
            };
        }
        found
    }
}

//! The limits that observations and other latents set on a latent.
//!
//! An observation can make part of the latents' space impossible: a uniform with a random end must reach beyond its data, a
//! truncation bound must not pass them, a censored time lies on one side of its cut point, and `one ~ dbern(step(a - b))` orders a
//! and b. Each of these is a linear inequality. It is solved for the latent in it that comes last, whose coordinate then maps
//! between bounds that follow the others. If a latent has bounds on both sides, the lower must not pass the upper, which is
//! an inequality for the latents before it (Fourier–Motzkin elimination).

use super::distribution::{Bounds, Distribution};
use super::error::GraphError;
use super::expression::{Expr, Expressions, Node};
use super::node::{AnyDistribution, Graph, Random};
use super::operation::{Binary, Unary};
use super::support::End;
use std::collections::BTreeMap;

/// The most pairs of a lower and an upper bound of one latent that give inequalities for the others.
const PAIRS_MAX: usize = 64;

/// Σ weights · expressions + constant; the expressions are sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Form {
    pub(super) terms: Vec<(Expr, f64)>,
    pub(super) constant: f64,
}

/// The limits of a latent.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraint {
    /// It is at least each of these.
    pub(super) lower: Vec<Form>,
    /// It is at most each of these.
    pub(super) upper: Vec<Form>,
    /// The smallest count.
    pub(super) least: f64,
}

impl Form {
    fn of(arena: &Expressions, e: Expr) -> Self {
        match arena.node(e) {
            Node::Constant(x) => Self { terms: Vec::new(), constant: x },
            Node::Linear { list, weights, constant } => {
                let weights = arena.weights(list, weights);
                Self { terms: arena.list(list).iter().copied().zip(weights.iter().copied()).collect(), constant }
            }
            _ => Self { terms: vec![(e, 1.0)], constant: 0.0 },
        }
    }

    fn number(x: f64) -> Self {
        Self { terms: Vec::new(), constant: x }
    }

    /// a · self + b · other.
    fn combined(&self, a: f64, other: &Self, b: f64) -> Self {
        let mut all: BTreeMap<Expr, f64> = BTreeMap::new();
        for (e, w) in self.terms.iter().map(|(e, w)| (*e, a * w)).chain(other.terms.iter().map(|(e, w)| (*e, b * w))) {
            *all.entry(e).or_default() += w;
        }
        let terms = all.into_iter().filter(|(_, w)| *w != 0.0).collect();
        Self { terms, constant: a * self.constant + b * other.constant }
    }

    /// Whether it is ≥ 0 whatever the latents are.
    fn is_nonnegative(&self, arena: &Expressions) -> bool {
        self.constant >= 0.0 && self.terms.iter().all(|(e, w)| *w > 0.0 && arena.known(*e).nonnegative)
    }
}

/// The inequalities `form ≥ 0` without which the density of an observed node is 0.
fn inequalities(arena: &Expressions, node: &Random, out: &mut Vec<Form>) {
    let Some(value) = arena.value(node.value[0]) else { return };
    let AnyDistribution::Scalar(distribution) = &node.distribution else { return };
    let at = Form::number(value);
    let mut above = |low: Expr| out.push(at.combined(1.0, &Form::of(arena, low), -1.0));
    if let Some(low) = node.bounds.and_then(|b| b.lower) {
        above(low);
    }
    if let Distribution::Uniform { lower, .. } | Distribution::Pareto { lower, .. } = distribution {
        above(*lower);
    }
    let mut below = |high: Expr| out.push(Form::of(arena, high).combined(1.0, &at, -1.0));
    if let Some(high) = node.bounds.and_then(|b| b.upper) {
        below(high);
    }
    match distribution {
        Distribution::Uniform { upper, .. } => below(*upper),
        Distribution::Interval { time, cuts } => {
            let time = Form::of(arena, *time);
            let cut = |k: f64| (k >= 0.0).then(|| cuts.get(k as usize)).flatten().map(|e| Form::of(arena, *e));
            out.extend(cut(value - 1.0).map(|low| time.combined(1.0, &low, -1.0)));
            out.extend(cut(value).map(|high| high.combined(1.0, &time, -1.0)));
        }
        Distribution::Bernoulli { p } => conditions(arena, *p, value == 1.0, out),
        _ => {}
    }
}

/// The inequalities without which `e`, made of steps, is 0 (if it must not be 0) or 1 (if it must not be 1).
fn conditions(arena: &Expressions, e: Expr, is_true: bool, out: &mut Vec<Form>) {
    match arena.node(e) {
        Node::Unary(Unary::Step, x) => {
            let form = Form::of(arena, x);
            out.push(if is_true { form } else { form.combined(-1.0, &Form::default(), 0.0) });
        }
        Node::Unary(Unary::IsZero, x) => conditions(arena, x, !is_true, out),
        Node::Binary(Binary::Multiply, a, b) if is_true => {
            conditions(arena, a, true, out);
            conditions(arena, b, true, out);
        }
        Node::Linear { .. } => {
            let form = Form::of(arena, e);
            match form.terms[..] {
                [(x, -1.0)] if form.constant == 1.0 => conditions(arena, x, !is_true, out),
                [(x, w)] if form.constant == 0.0 && w > 0.0 && is_true => conditions(arena, x, true, out),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Which expressions depend on a discrete latent.
pub(super) fn discrete(graph: &Graph) -> Vec<bool> {
    let arena = &graph.arena;
    let mut discrete = vec![false; arena.len()];
    for i in 0..arena.len() {
        let e = Expr(i as u32);
        discrete[i] = match arena.node(e) {
            Node::Leaf(l) => match &graph.random[graph.leaves[l as usize].random as usize].distribution {
                AnyDistribution::Scalar(distribution) => distribution.is_discrete(),
                AnyDistribution::Vector(_) => false,
            },
            _ => {
                let mut any = false;
                arena.operands(e, |operand| any |= discrete[operand.0 as usize]);
                any
            }
        };
    }
    discrete
}

/// The limits of every latent of the graph.
pub(super) fn constraints(graph: &Graph) -> Result<Vec<Constraint>, GraphError> {
    let mut solver = Solver {
        graph,
        discrete: None,
        open: BTreeMap::new(),
        solved: vec![Constraint::default(); graph.leaves.len()],
    };
    let mut found = Vec::new();
    for node in graph.random.iter().filter(|r| r.is_observed) {
        inequalities(&graph.arena, node, &mut found);
        if let AnyDistribution::Scalar(Distribution::Binomial { n, .. } | Distribution::BetaBinomial { n, .. }) =
            node.distribution
            && let (Node::Leaf(l), Some(value)) = (graph.arena.node(n), graph.arena.value(node.value[0]))
        {
            let least = &mut solver.solved[l as usize].least;
            *least = least.max(value);
        }
    }
    for form in found {
        solver.open(form);
    }
    // Latents with random bounds limit the latents in the bounds.
    for leaf in &graph.leaves {
        let node = &graph.random[leaf.random as usize];
        if let Some((lower, upper)) = own_bounds(graph, node)
            && lower.iter().chain(&upper).any(|form| !form.terms.is_empty())
        {
            solver.open.entry(leaf.expr).or_default();
        }
    }
    while let Some((e, forms)) = solver.open.pop_last() {
        solver.solve(e, &forms)?;
    }
    Ok(solver.solved)
}

/// The bounds of a continuous scalar by its own distribution and truncation.
fn own_bounds(graph: &Graph, node: &Random) -> Option<(Vec<Form>, Vec<Form>)> {
    let AnyDistribution::Scalar(distribution) = &node.distribution else { return None };
    if distribution.is_discrete() {
        return None;
    }
    let arena = &graph.arena;
    let form = |end: End| match end {
        End::Number(x) => Form::number(x),
        End::Of(e) => Form::of(arena, e),
    };
    let span = arena.span(distribution, None);
    let (mut lower, mut upper) = (Vec::from_iter(span.lower.map(form)), Vec::from_iter(span.upper.map(form)));
    if let Some(Bounds { lower: low, upper: high, .. }) = node.bounds {
        lower.extend(low.map(|e| Form::of(arena, e)));
        upper.extend(high.map(|e| Form::of(arena, e)));
    }
    Some((lower, upper))
}

/// Eliminates the latents one by one, the last first.
struct Solver<'a> {
    graph: &'a Graph,
    discrete: Option<Vec<bool>>,
    /// The inequalities still to be solved, by the expression in them that comes last.
    open: BTreeMap<Expr, Vec<Form>>,
    solved: Vec<Constraint>,
}

impl Solver<'_> {
    /// Adds an inequality, if it can be solved for a continuous latent.
    fn open(&mut self, form: Form) {
        let graph = self.graph;
        if form.is_nonnegative(&graph.arena) || !form.terms.iter().all(|(_, w)| w.is_finite()) {
            return;
        }
        let Some((last, _)) = form.terms.last() else { return };
        let Node::Leaf(l) = graph.arena.node(*last) else { return };
        let node = &graph.random[graph.leaves[l as usize].random as usize];
        if !matches!(node.distribution, AnyDistribution::Scalar(_)) {
            return;
        }
        let discrete = self.discrete.get_or_insert_with(|| discrete(graph));
        if form.terms.iter().any(|(e, _)| discrete[e.0 as usize]) {
            return;
        }
        self.open.entry(*last).or_default().push(form);
    }

    /// Sets the limits of the latent `e`, and adds the inequalities between its bounds.
    fn solve(&mut self, e: Expr, forms: &[Form]) -> Result<(), GraphError> {
        let graph = self.graph;
        let Node::Leaf(l) = graph.arena.node(e) else { return Ok(()) };
        let node = &graph.random[graph.leaves[l as usize].random as usize];
        let Some((mut lower, mut upper)) = own_bounds(graph, node) else { return Ok(()) };
        for form in forms {
            let Some((_, w)) = form.terms.last().copied() else { continue };
            let own = Form { terms: vec![(e, w)], constant: 0.0 };
            // w · latent + rest ≥ 0.
            let bound = form.combined(-1.0 / w, &own, 1.0 / w);
            if w > 0.0 { lower.push(bound) } else { upper.push(bound) }
        }
        let (lower, upper) = (tightest(&graph.arena, lower, 1.0), tightest(&graph.arena, upper, -1.0));
        if lower.len() * upper.len() <= PAIRS_MAX {
            for (low, high) in lower.iter().flat_map(|low| upper.iter().map(move |high| (low, high))) {
                let width = high.combined(1.0, low, -1.0);
                if width.terms.is_empty() && !(width.constant > 0.0) {
                    let place = graph.origin(node).map_or(String::new(), |place| format!(" ({place})"));
                    let reason = format!(
                        "no value is possible{place}: by its distribution and by the data it must be above {} and below {}",
                        low.constant, high.constant
                    );
                    return Err(GraphError::Unsupported { name: node.name.clone(), reason });
                }
                self.open(width);
            }
        }
        let constraint = &mut self.solved[l as usize];
        (constraint.lower, constraint.upper) = (lower, upper);
        Ok(())
    }
}

/// Of bounds that differ by a constant the tightest, without those that another one implies. `sign` is 1 for lower bounds and −1
/// for upper ones.
fn tightest(arena: &Expressions, forms: Vec<Form>, sign: f64) -> Vec<Form> {
    let mut kept: Vec<Form> = Vec::new();
    for form in forms {
        match kept.iter_mut().find(|other| other.terms == form.terms) {
            Some(other) if sign * form.constant > sign * other.constant => *other = form,
            Some(_) => {}
            None => kept.push(form),
        }
    }
    let implied = |form: &Form, by: &Form| {
        let further = by.combined(sign, form, -sign);
        !further.terms.is_empty() && further.is_nonnegative(arena)
    };
    let redundant: Vec<bool> = kept.iter().map(|form| kept.iter().any(|by| implied(form, by))).collect();
    kept.into_iter().zip(redundant).filter(|(_, redundant)| !redundant).map(|(form, _)| form).collect()
}

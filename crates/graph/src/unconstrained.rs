//! The graph in unconstrained coordinates, the form that inference works on.
//!
//! A positive latent is the exponential of a coordinate, a latent between two bounds a scaled logistic, a point of a simplex is
//! built by stick-breaking and a precision matrix from its Cholesky factor; each adds its log Jacobian to the density. Latents
//! that no observation depends on are left out: their posterior is their prior, and they are drawn from it afterwards.

use super::centring::{Centring, Degree, Degrees, Place};
use super::constraint::{Constraint, Form, constraints};
use super::counts::{Factor, Rebuilt, Window, factors};
use super::distribution::{Distribution, VectorDistribution};
use super::error::GraphError;
use super::expression::{Expr, Expressions, Known, Node};
use super::node::{AnyDistribution, Graph, Random};
use super::operation::{Binary, Unary};
use super::rewrite::Shape;
use super::support::End;
use hyperprior::model::Support;

/// How a coordinate maps to a latent of the graph.
#[derive(Clone, Debug)]
pub(crate) enum Transform {
    /// Unchanged.
    Identity,
    /// Its exponential above a lower bound, or below an upper one.
    Above(Expr),
    Below(Expr),
    /// Its logistic between two bounds.
    Between(Expr, Expr),
    /// Relative to the location and scale of its distribution, in part: location + e^log_scale (coordinate − kept), and of that the
    /// exponential if the flag says so. `kept` and `log_scale` are the part of the location that the coordinate keeps, and the part of the
    /// log scale that is taken out.
    Located {
        location: Expr,
        kept: Expr,
        log_scale: Expr,
        degree: Expr,
        is_log: bool,
    },
    /// The logit of a latent's degree of centring while that is learnt.
    Degree,
    /// An integer, counted from this one.
    Integer(f64),
    /// Stick-breaking of a simplex: these latents of the graph, and the number of the break.
    Simplex(Vec<usize>, usize),
    /// An entry of the Cholesky factor of a matrix: its lower triangle as latents of the graph, row by row, and the row and column.
    Matrix(Vec<usize>, usize, usize),
}

/// An unconstrained coordinate (or an integer, for a discrete latent).
#[derive(Clone, Debug)]
pub(crate) struct Coordinate {
    /// The name of the latent that it stands for, or is part of.
    pub(crate) name: String,
    pub(crate) support: Support,
    /// That latent in the graph; for vectors, one of its elements.
    pub(crate) leaf: usize,
    pub(crate) transform: Transform,
    /// How it is summed over, if it is a count.
    pub(crate) window: Window,
}

/// A term of the log joint density.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) expr: Expr,
    /// The random node whose density it is.
    pub(crate) random: u32,
}

/// The graph in unconstrained coordinates.
#[derive(Clone, Debug)]
pub(crate) struct Unconstrained {
    pub(crate) arena: Expressions,
    pub(crate) coordinates: Vec<Coordinate>,
    /// The expression of each latent of the graph; none if no observation depends on it.
    pub(crate) leaves: Vec<Option<Expr>>,
    pub(crate) terms: Vec<Term>,
    /// What is known about each term.
    pub(crate) factors: Vec<Factor>,
}

/// Marks the expressions and random nodes that the observations depend on.
fn active(graph: &Graph, degrees: &Degrees) -> (Vec<bool>, Vec<bool>) {
    let mut expressions = vec![false; graph.arena.len()];
    let mut random = vec![false; graph.random.len()];
    let mut stack = Vec::new();
    let wake = |r: usize, random: &mut Vec<bool>, stack: &mut Vec<Expr>| {
        if !std::mem::replace(&mut random[r], true) {
            let node: &Random = &graph.random[r];
            stack.push(node.density);
            stack.extend(&node.value);
            stack.extend(node.bounds.iter().flat_map(|b| [b.lower, b.upper]).flatten());
            if let AnyDistribution::Scalar(Distribution::Uniform { lower, upper }) = node.distribution {
                stack.extend([lower, upper]);
            }
            for own in own_leaves(graph, r).filter(|l| degrees.of(*l).is_some()) {
                stack.extend(graph.distribution_of(own).iter().flat_map(Distribution::parameters));
            }
        }
    };
    for (r, node) in graph.random.iter().enumerate() {
        // A censored value counts as an observation.
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

/// The coordinate of each latent of the graph that is a count.
pub(super) fn count_of(coordinates: &[Coordinate], graph: &Graph) -> Vec<Option<u32>> {
    let mut count_of = vec![None; graph.leaves.len()];
    for (number, coordinate) in coordinates.iter().enumerate().filter(|(_, c)| c.support == Support::Counts) {
        count_of[coordinate.leaf] = Some(number as u32);
    }
    count_of
}

/// What the expressions of the graph have become: their own, and with the latents of chains as expected.
#[derive(Clone, Copy)]
struct Made<'a> {
    made: &'a [Expr],
    expected: &'a [Expr],
}

impl Unconstrained {
    pub(crate) fn new(graph: &Graph, degrees: &Degrees) -> Result<Self, GraphError> {
        let (expressions, random) = active(graph, degrees);
        let constraints = constraints(graph)?;
        let mut this = Self {
            arena: Expressions::default(),
            coordinates: Vec::new(),
            leaves: vec![None; graph.leaves.len()],
            terms: Vec::new(),
            factors: Vec::new(),
        };
        let unmade = this.arena.constant(f64::NAN);
        let mut made = vec![unmade; graph.arena.len()];
        // The same with every latent of a chain at its location: what a latent of the chain is expected to be, given its beginning.
        let has_chains = degrees.0.iter().flatten().any(|centring| centring.is_chained);
        let mut expected = if has_chains { made.clone() } else { Vec::new() };
        let mut jacobians: Vec<Option<Expr>> = vec![None; graph.random.len()];
        let mut shape = Shape::default();
        for (i, _) in expressions.iter().enumerate().filter(|(_, active)| **active) {
            let e = Expr(i as u32);
            made[i] = if let Node::Leaf(l) = graph.arena.node(e) {
                let l = l as usize;
                if this.leaves[l].is_none() {
                    let r = graph.leaves[l].random as usize;
                    let of = Made { made: &made, expected: &expected };
                    jacobians[r] = this.transform(graph, (r, l, degrees), &constraints[l], of)?;
                }
                this.leaves[l].unwrap_or(unmade)
            } else {
                shape.take(&graph.arena, e);
                shape.make(&mut this.arena, |e| made[e.0 as usize], |_| unmade)
            };
            if has_chains {
                expected[i] = match graph.arena.node(e) {
                    Node::Leaf(l) => this.expected(l as usize, degrees).unwrap_or(made[i]),
                    _ => {
                        shape.take(&graph.arena, e);
                        shape.make(&mut this.arena, |e| expected[e.0 as usize], |_| unmade)
                    }
                };
            }
        }
        for (r, node) in graph.random.iter().enumerate().filter(|(r, _)| random[*r]) {
            let density = made[node.density.0 as usize];
            let expr = match jacobians[r] {
                Some(jacobian) => {
                    let sum = this.arena.add(density, jacobian);
                    // Like the density, the Jacobian is undefined if an index is out of range.
                    match this.arena.node(density) {
                        Node::Binary(Binary::Within, inside, _) => this.arena.binary(Binary::Within, inside, sum),
                        _ => sum,
                    }
                }
                None => density,
            };
            this.terms.push(Term { expr, random: r as u32 });
        }
        let terms = this.terms.iter().map(|t| (t.random, jacobians[t.random as usize]));
        let mut rebuilt = Rebuilt { graph, made, is_made: expressions };
        let count_of = count_of(&this.coordinates, graph);
        this.factors = factors(&mut rebuilt, &mut this.arena, &count_of, terms);
        Ok(this)
    }

    pub(super) fn add_coordinate(
        &mut self,
        graph: &Graph,
        leaf: usize,
        support: Support,
        known: Known,
        transform: Transform,
    ) -> Expr {
        let number = self.coordinates.len() as u32;
        let (name, window) = (graph.leaves[leaf].name.clone(), Window::default());
        self.coordinates.push(Coordinate { name, support, leaf, transform, window });
        self.arena.leaf(number, known)
    }

    /// Adds coordinates for the latents of random node `r`, of which `l` came first, and returns the log Jacobian.
    fn transform(
        &mut self,
        graph: &Graph,
        (r, l, degrees): (usize, usize, &Degrees),
        constraint: &Constraint,
        of: Made,
    ) -> Result<Option<Expr>, GraphError> {
        let node = &graph.random[r];
        match &node.distribution {
            AnyDistribution::Scalar(distribution) if distribution.is_discrete() => {
                self.leaves[l] = Some(self.transform_discrete(graph, r, l, distribution, constraint)?);
                Ok(None)
            }
            AnyDistribution::Scalar(distribution) => {
                let (lower, upper) = self.ends(graph, distribution, node, constraint, of.made);
                let is_free = constraint.lower.is_empty() && constraint.upper.is_empty();
                if is_free && let Some(jacobian) = self.locate(graph, (l, degrees), of) {
                    return Ok(Some(jacobian));
                }
                let transform = match (lower, upper) {
                    (None, None) => Transform::Identity,
                    (Some(end), None) => Transform::Above(end),
                    (None, Some(end)) => Transform::Below(end),
                    (Some(lower), Some(upper)) => Transform::Between(lower, upper),
                };
                let coordinate = self.add_coordinate(graph, l, Support::Real, Known::default(), transform);
                let (value, jacobian) = self.arena.between(coordinate, lower, upper);
                self.leaves[l] = Some(value);
                Ok(jacobian)
            }
            AnyDistribution::Vector(VectorDistribution::Dirichlet { .. }) => Ok(Some(self.transform_simplex(graph, r))),
            AnyDistribution::Vector(VectorDistribution::Wishart { .. }) => Ok(Some(self.transform_matrix(graph, r))),
            AnyDistribution::Vector(VectorDistribution::Multinomial { .. }) => Err(GraphError::Unsupported {
                name: node.name.clone(),
                reason:
                    "an unobserved multinomial that data depend on is not supported; write it as one categorical node \
                         per trial, or as a chain of binomials"
                        .to_owned(),
            }),
            AnyDistribution::Vector(_) => {
                let mut jacobians = Vec::new();
                for leaf in own_leaves(graph, r) {
                    if let Some(jacobian) = self.locate(graph, (leaf, degrees), of) {
                        jacobians.push((jacobian, 1.0));
                    } else {
                        let own =
                            self.add_coordinate(graph, leaf, Support::Real, Known::default(), Transform::Identity);
                        self.leaves[leaf] = Some(own);
                    }
                }
                Ok((!jacobians.is_empty()).then(|| self.arena.linear(&jacobians, 0.0)))
            }
        }
    }

    /// What a latent of a chain is expected to be.
    fn expected(&mut self, l: usize, degrees: &Degrees) -> Option<Expr> {
        degrees.of(l).filter(|centring| centring.is_chained)?;
        match self.coordinates.iter().rev().find(|coordinate| coordinate.leaf == l)?.transform {
            Transform::Located { location, is_log: false, .. } => Some(location),
            Transform::Located { location, is_log: true, .. } => Some(self.arena.unary(Unary::Exp, location)),
            _ => None,
        }
    }

    /// A latent relative to the location and scale of its distribution, if it has a degree; returns the log Jacobian.
    fn locate(&mut self, graph: &Graph, (l, degrees): (usize, &Degrees), of: Made) -> Option<Expr> {
        let Centring { degree, reference, is_chained } = degrees.of(l)?;
        let distribution = graph.distribution_of(l)?;
        let Place { mut location, log_scale, is_log } =
            self.arena.place_of(&distribution, |e| of.made[e.0 as usize])?;
        if is_chained {
            location = self.arena.place_of(&distribution, |e| of.expected[e.0 as usize])?.location;
        }
        let [at, log_at] = reference;
        let degree = match degree {
            Degree::Fixed(x) => self.arena.constant(x),
            Degree::Learnt => {
                let logit = self.add_coordinate(graph, l, Support::Real, Known::default(), Transform::Degree);
                self.coordinates.iter_mut().last().into_iter().for_each(|c| c.name = format!("centring of {}", c.name));
                self.arena.sigmoid(logit)
            }
        };
        let rest = self.arena.complement(degree);
        let relative = self.arena.linear(&[(log_scale, 1.0)], -log_at);
        let log_scale = self.arena.multiply(rest, relative);
        let beyond = self.arena.linear(&[(location, 1.0)], -at);
        let kept = self.arena.multiply(degree, beyond);
        let kept = self.arena.linear(&[(kept, 1.0)], at);
        let transform = Transform::Located { location, kept, log_scale, degree, is_log };
        let coordinate = self.add_coordinate(graph, l, Support::Real, Known::default(), transform);
        let (away, factor) = (self.arena.subtract(coordinate, kept), self.arena.unary(Unary::Exp, log_scale));
        let scaled = self.arena.multiply(factor, away);
        // Whatever its location, a centred latent is its coordinate.
        let is_centred = self.arena.value(degree) == Some(1.0);
        let x = if is_centred { coordinate } else { self.arena.add(location, scaled) };
        let (value, jacobian) =
            if is_log { (self.arena.unary(Unary::Exp, x), self.arena.add(log_scale, x)) } else { (x, log_scale) };
        self.leaves[l] = Some(value);
        Some(jacobian)
    }

    /// The bounds of a continuous latent.
    fn ends(
        &mut self,
        graph: &Graph,
        distribution: &Distribution,
        node: &Random,
        constraint: &Constraint,
        made: &[Expr],
    ) -> (Option<Expr>, Option<Expr>) {
        if constraint.lower.is_empty() && constraint.upper.is_empty() {
            let span = graph.arena.span(distribution, node.bounds);
            return [span.lower, span.upper]
                .map(|end| {
                    end.map(|end| match end {
                        End::Number(x) => self.arena.constant(x),
                        End::Of(e) => made[e.0 as usize],
                    })
                })
                .into();
        }
        let mut outermost = |forms: &[Form], pick: Binary| {
            let mut bounds = Vec::with_capacity(forms.len());
            for form in forms {
                let terms: Vec<(Expr, f64)> = form.terms.iter().map(|(e, w)| (made[e.0 as usize], *w)).collect();
                bounds.push(self.arena.linear(&terms, form.constant));
            }
            bounds.into_iter().reduce(|a, b| self.arena.binary(pick, a, b))
        };
        (outermost(&constraint.lower, Binary::Max), outermost(&constraint.upper, Binary::Min))
    }

    fn transform_discrete(
        &mut self,
        graph: &Graph,
        r: usize,
        l: usize,
        distribution: &Distribution,
        constraint: &Constraint,
    ) -> Result<Expr, GraphError> {
        let name = &graph.leaves[l].name;
        let (low, high) = graph.discrete_range(r, distribution);
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
        let above = self.add_coordinate(graph, l, support, known, Transform::Integer(low));
        let window = Window::new(graph, &graph.random[r], distribution, low);
        self.coordinates.iter_mut().last().into_iter().for_each(|c| c.window = window);
        Ok(self.arena.linear(&[(above, 1.0)], low))
    }
}

impl Graph {
    /// Marks the latents that no observation depends on.
    pub(super) fn prior_only_leaves(&self) -> Vec<bool> {
        let (_, random) = active(self, &Degrees::default());
        self.leaves.iter().map(|leaf| !random[leaf.random as usize]).collect()
    }
}

/// The latents of random node `r`, in order.
pub(super) fn own_leaves(graph: &Graph, r: usize) -> impl Iterator<Item = usize> {
    let node = &graph.random[r];
    let mut seen = std::collections::BTreeSet::new();
    let leaves = node.value.iter().filter_map(|e| match graph.arena.node(*e) {
        Node::Leaf(l) => Some(l as usize),
        _ => None,
    });
    // A symmetric matrix has each off-diagonal latent twice.
    seen.extend(leaves);
    seen.into_iter()
}

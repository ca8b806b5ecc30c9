//! The builder: random nodes with their distributions, expressions between them, and data.

use super::describe::{self, Names, describe};
use super::distribution::{Bounds, Distribution, VectorDistribution};
use super::error::GraphError;
use super::expression::{Expr, Expressions, Known, Node};
use super::function::Function;
use super::node::{AnyDistribution, Graph, Leaf, Random};
use super::support;
use hyperprior_math::linalg::{packed, packed_len};
use std::collections::{HashMap, HashSet};

/// Builds a [`Graph`]: declare random nodes, combine them into expressions, observe data.
///
/// ```
/// use hyperprior_graph::{GraphBuilder, Distribution};
///
/// // A coin of unknown bias landed heads in 7 of 10 throws.
/// let mut g = GraphBuilder::new();
/// let (one, ten) = (g.constant(1.0), g.constant(10.0));
/// let bias = g.stochastic("bias", Distribution::Beta { a: one, b: one }, None, None)?;
/// g.stochastic("heads", Distribution::Binomial { p: bias, n: ten }, None, Some(7.0))?;
/// let model = g.build()?.model()?;
/// assert_eq!(hyperprior::model::Model::latents(&model).len(), 1);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    pub(super) arena: Expressions,
    pub(super) random: Vec<Random>,
    pub(super) leaves: Vec<Leaf>,
    names: HashMap<String, u32>,
    named: Vec<(String, Expr)>,
    /// Vectors that sum to 1 by construction.
    simplexes: HashSet<Vec<Expr>>,
    /// For each visited expression, a condition that is ≥ 0 if its random indices are in range.
    pub(super) guards: Vec<Option<Expr>>,
    origins: Vec<String>,
    origin: Option<u32>,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the place in the source of the nodes declared from now on, for messages.
    pub fn set_origin(&mut self, origin: &str) {
        if self.origins.last().is_none_or(|last| last != origin) {
            self.origins.push(origin.to_owned());
        }
        self.origin = Some(self.origins.len() as u32 - 1);
    }

    /// A constant.
    pub fn constant(&mut self, x: f64) -> Expr {
        self.arena.constant(x)
    }

    /// The value of an expression that is constant.
    pub fn value(&self, e: Expr) -> Option<f64> {
        self.arena.value(e)
    }

    /// Whether an expression depends on anything random.
    pub fn is_random(&self, e: Expr) -> bool {
        self.value(e).is_none()
    }

    /// Whether an expression is known to be above 0.
    pub fn is_positive(&self, e: Expr) -> bool {
        self.arena.known(e).positive
    }

    /// A function of expressions.
    ///
    /// # Panics
    /// If there are fewer arguments than [`Function::arity`] says.
    pub fn call(&mut self, f: Function, arguments: &[Expr]) -> Expr {
        self.arena.call(f, arguments)
    }

    /// a + b.
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.arena.add(a, b)
    }

    /// a · b.
    pub fn multiply(&mut self, a: Expr, b: Expr) -> Expr {
        self.arena.multiply(a, b)
    }

    /// The sum of many expressions, as one node.
    pub fn sum(&mut self, terms: &[Expr]) -> Expr {
        let terms: Vec<(Expr, f64)> = terms.iter().map(|e| (*e, 1.0)).collect();
        self.arena.linear(&terms, 0.0)
    }

    /// The product of many expressions.
    pub fn product(&mut self, terms: &[Expr]) -> Expr {
        let one = self.arena.constant(1.0);
        terms.iter().fold(one, |a, b| self.arena.multiply(a, *b))
    }

    /// Σ aₖ bₖ over the shorter of the two; one node if one of them is constant.
    pub fn inner_product(&mut self, a: &[Expr], b: &[Expr]) -> Expr {
        self.arena.inner_product(a, b)
    }

    /// from\[index − 1\]: the index counts from one and may be random. If it is out of range the value is undefined, and a density
    /// that depends on it is 0.
    pub fn select(&mut self, index: Expr, from: &[Expr]) -> Expr {
        self.arena.select(index, from)
    }

    /// The inverse of a symmetric positive definite n × n matrix, row-major.
    ///
    /// # Panics
    /// If the matrix has fewer than n² elements.
    pub fn inverse(&mut self, matrix: &[Expr], n: usize) -> Vec<Expr> {
        self.arena.inverse(matrix, n)
    }

    /// The upper triangular U of matrix = Uᵀ U for a symmetric positive definite n × n matrix, row-major, as R's `chol`.
    ///
    /// # Panics
    /// If the matrix has fewer than n² elements.
    pub fn cholesky(&mut self, matrix: &[Expr], n: usize) -> Vec<Expr> {
        let rows = self.arena.cholesky(matrix, n);
        let zero = self.arena.constant(0.0);
        (0..n * n).map(|k| rows[k % n].get(k / n).copied().unwrap_or(zero)).collect()
    }

    /// The logarithm of the determinant of a symmetric positive definite n × n matrix, row-major.
    ///
    /// # Panics
    /// If the matrix has fewer than n² elements.
    pub fn log_determinant(&mut self, matrix: &[Expr], n: usize) -> Expr {
        self.arena.log_determinant(matrix, n)
    }

    /// Names an expression, so that its posterior can be reported.
    pub fn name(&mut self, name: &str, e: Expr) {
        self.named.push((name.to_owned(), e));
    }

    /// Declares a random number, observed or not, and returns its value.
    ///
    /// # Errors
    /// [`GraphError`] for an invalid observation or parameter, a truncation that is not supported, or a name that is already
    /// taken.
    pub fn stochastic(
        &mut self,
        name: &str,
        distribution: Distribution,
        bounds: Option<Bounds>,
        observed: Option<f64>,
    ) -> Result<Expr, GraphError> {
        support::check_parameters(&self.arena, name, &distribution)?;
        if let (Distribution::Interval { time, cuts }, None) = (&distribution, observed) {
            // The interval is a function of the number.
            let value = self.arena.intervals_passed(*time, cuts);
            self.name(name, value);
            return Ok(value);
        }
        let normalised = match &distribution {
            Distribution::Categorical { weights } => self.sums_to_one(weights),
            _ => true,
        };
        let value = match observed {
            Some(x) => {
                support::check_value(&self.arena, name, &distribution, bounds, x)?;
                self.arena.constant(x)
            }
            None => self.leaf(name, support::known(&self.arena, &distribution, bounds))?,
        };
        let mut density = self.arena.log_density(&distribution, value, normalised);
        if let Some(Bounds { lower, upper, renormalised }) = bounds {
            if renormalised {
                let share = self
                    .arena
                    .log_probability_between(&distribution, lower, upper, normalised)
                    .map_err(|reason| GraphError::Unsupported { name: name.to_owned(), reason })?;
                density = self.arena.subtract(density, share);
            }
            for (bound, sign) in [(lower, 1.0), (upper, -1.0)] {
                if let Some(bound) = bound {
                    let inside = self.arena.linear(&[(value, sign), (bound, -sign)], 0.0);
                    density = self.arena.require(inside, density);
                }
            }
        }
        let random = Random {
            name: name.to_owned(),
            elements: Vec::new(),
            distribution: AnyDistribution::Scalar(distribution),
            bounds,
            value: vec![value],
            density,
            is_observed: observed.is_some(),
            added: None,
            origin: self.origin,
        };
        self.push(random)?;
        Ok(value)
    }

    fn push(&mut self, random: Random) -> Result<(), GraphError> {
        let (at, density) = (self.random.len(), random.density);
        if let Some(log_p) = self.value(density).filter(|log_p| !log_p.is_finite()) {
            let leaves = self.leaves.iter().map(|leaf| (leaf.name.as_str(), leaf.expr));
            let names = Names::new(leaves.chain(self.named.iter().map(|(name, e)| (name.as_str(), *e))));
            let value = |e: Expr| self.value(e);
            let node = describe(&random, None, &names, &|e| self.value(e).is_some(), &value);
            return Err(GraphError::Impossible { node, density: describe::density(log_p) });
        }
        // The guard looks up the latents of this node, so the node must be there first.
        self.random.push(random);
        self.random[at].density = self.guarded(density);
        Ok(())
    }

    /// Declares a random vector (or a matrix, row by row) with these element names, observed or not, and returns its elements.
    ///
    /// # Errors
    /// As [`stochastic`](Self::stochastic), and if lengths do not agree.
    pub fn stochastic_vector(
        &mut self,
        names: &[String],
        distribution: VectorDistribution,
        observed: Option<&[f64]>,
    ) -> Result<Vec<Expr>, GraphError> {
        let name = names.first().cloned().unwrap_or_default();
        support::check_vector(&self.arena, &name, &distribution, names.len(), observed)?;
        let value = match observed {
            Some(x) => x.iter().map(|x| self.arena.constant(*x)).collect(),
            None => self.vector_leaves(names, &distribution)?,
        };
        let normalised = match &distribution {
            VectorDistribution::Multinomial { p, .. } => self.sums_to_one(p),
            _ => true,
        };
        let density = self.arena.log_vector_density(&distribution, &value, normalised);
        if matches!(distribution, VectorDistribution::Dirichlet { .. }) {
            self.simplexes.insert(value.clone());
        }
        let is_observed = observed.is_some();
        let distribution = AnyDistribution::Vector(distribution);
        let (elements, origin) = (names.to_vec(), self.origin);
        self.push(Random {
            name,
            elements,
            distribution,
            bounds: None,
            value: value.clone(),
            density,
            is_observed,
            added: None,
            origin,
        })?;
        Ok(value)
    }

    fn vector_leaves(&mut self, names: &[String], distribution: &VectorDistribution) -> Result<Vec<Expr>, GraphError> {
        if matches!(distribution, VectorDistribution::Wishart { .. }) {
            return self.matrix_leaves(names, distribution.len().1);
        }
        let leaf = |(k, name): (usize, &String)| match distribution {
            VectorDistribution::Dirichlet { alpha } if self.value(alpha[k]) == Some(0.0) => {
                Ok(self.arena.constant(0.0))
            }
            VectorDistribution::Dirichlet { .. } => {
                self.leaf(name, Known { nonnegative: true, positive: true, whole: false, at_most_one: true })
            }
            VectorDistribution::Multinomial { .. } => {
                self.leaf(name, Known { nonnegative: true, whole: true, ..Known::default() })
            }
            _ => self.leaf(name, Known::default()),
        };
        names.iter().enumerate().map(leaf).collect()
    }

    /// The latents of a symmetric matrix: those of the lower triangle, with the names of the upper triangle as aliases.
    fn matrix_leaves(&mut self, names: &[String], order: usize) -> Result<Vec<Expr>, GraphError> {
        let mut lower = Vec::with_capacity(packed_len(order));
        for i in 0..order {
            for j in 0..=i {
                let is_diagonal = i == j;
                let known = Known { nonnegative: is_diagonal, positive: is_diagonal, ..Known::default() };
                lower.push(self.leaf(&names[i * order + j], known)?);
            }
        }
        let at = |k: usize| lower[packed((k / order).max(k % order), (k / order).min(k % order))];
        let value: Vec<Expr> = (0..names.len()).map(at).collect();
        let above = (0..names.len()).filter(|k| k % order > k / order);
        self.named.extend(above.map(|k| (names[k].clone(), value[k])));
        Ok(value)
    }

    fn leaf(&mut self, name: &str, known: Known) -> Result<Expr, GraphError> {
        let number = self.leaves.len() as u32;
        if self.names.insert(name.to_owned(), number).is_some() {
            return Err(GraphError::Duplicate { name: name.to_owned() });
        }
        let expr = self.arena.leaf(number, known);
        self.leaves.push(Leaf { name: name.to_owned(), expr, random: self.random.len() as u32, start: None });
        Ok(expr)
    }

    /// Sets the starting value of a latent.
    ///
    /// # Errors
    /// [`GraphError::UnknownStart`] if there is no such latent, [`GraphError::BadStart`] if the value is not finite.
    pub fn start(&mut self, name: &str, x: f64) -> Result<(), GraphError> {
        let Some(&number) = self.names.get(name) else {
            return Err(GraphError::UnknownStart { name: name.to_owned() });
        };
        if !x.is_finite() {
            let reason = "a starting value must be a finite number".to_owned();
            return Err(GraphError::BadStart { name: name.to_owned(), value: x, reason });
        }
        self.leaves[number as usize].start = Some(x);
        Ok(())
    }

    /// Whether these are known to sum to 1: constants, the elements of a Dirichlet, or a random choice among such vectors.
    fn sums_to_one(&self, e: &[Expr]) -> bool {
        if let Some(total) = e.iter().map(|e| self.value(*e)).sum::<Option<f64>>() {
            return (total - 1.0).abs() < 1e-12;
        }
        if self.simplexes.contains(e) {
            return true;
        }
        let choice = |e: &Expr| match self.arena.node(*e) {
            Node::Select { index, list } => Some((index, self.arena.list(list))),
            _ => None,
        };
        let Some((index, first)) = e.first().and_then(choice) else { return false };
        let columns: Vec<&[Expr]> = e
            .iter()
            .filter_map(choice)
            .filter(|(i, list)| *i == index && list.len() == first.len())
            .map(|(_, list)| list)
            .collect();
        columns.len() == e.len()
            && (0..first.len()).all(|k| self.sums_to_one(&columns.iter().map(|c| c[k]).collect::<Vec<_>>()))
    }

    /// The finished graph.
    ///
    /// # Errors
    /// None at present.
    pub fn build(self) -> Result<Graph, GraphError> {
        Ok(Graph {
            arena: self.arena,
            random: self.random,
            leaves: self.leaves,
            named: self.named,
            integrated: Vec::new(),
            origins: self.origins,
        })
    }
}

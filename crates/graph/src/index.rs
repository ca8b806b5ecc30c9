//! Random indices: their range, and the density if one is out of range.
//!
//! An element that does not exist is undefined, and so is whatever is calculated from it. A density that is undefined for that
//! reason is 0: the index was impossible. If a choice or a factor of zero ignores the element, the density is unaffected.

use super::builder::GraphBuilder;
use super::expression::{Expr, Node};
use super::node::AnyDistribution;
use super::operation::{Binary, Ternary, Unary, product};

/// How many expressions are visited to bound an index; after that, it is taken as unbounded.
const STEPS: usize = 256;

const ANYWHERE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl GraphBuilder {
    /// The place in a row-major table of several indices, each given with its extent and counted from one, for
    /// [`select`](Self::select). It is NaN if an index is out of range, so that no index reads from the next row.
    ///
    /// ```
    /// use hyperprior_graph::GraphBuilder;
    ///
    /// let mut g = GraphBuilder::new();
    /// let (two, four) = (g.constant(2.0), g.constant(4.0));
    /// let inside = g.table_index(&[(two, 2), (two, 3)]);
    /// let outside = g.table_index(&[(two, 2), (four, 3)]);
    /// assert_eq!(g.value(inside), Some(5.0));
    /// assert!(g.value(outside).is_some_and(f64::is_nan));
    /// ```
    pub fn table_index(&mut self, indices: &[(Expr, usize)]) -> Expr {
        let mut flat = self.arena.constant(0.0);
        let mut inside = Vec::new();
        for &(index, extent) in indices {
            flat = self.arena.linear(&[(flat, extent as f64), (index, 1.0)], -1.0);
            inside.extend(self.inside(index, extent));
        }
        let flat = self.arena.linear(&[(flat, 1.0)], 1.0);
        match self.all(inside) {
            None => flat,
            Some(inside) => {
                let (is_inside, nowhere) = (self.arena.unary(Unary::Step, inside), self.arena.constant(f64::NAN));
                self.arena.choose(is_inside, flat, nowhere)
            }
        }
    }

    /// The log density, but −∞ if it is undefined because an index is out of range.
    pub(super) fn guarded(&mut self, density: Expr) -> Expr {
        match self.guard(density) {
            None => density,
            Some(inside) => self.arena.binary(Binary::Within, inside, density),
        }
    }

    /// A condition that is ≥ 0 if every index in an expression is in range; none if that is always so.
    fn guard(&mut self, e: Expr) -> Option<Expr> {
        // Operands come first in the arena, and each expression is visited once.
        for i in self.guards.len()..=e.0 as usize {
            let e = Expr(i as u32);
            let mut guards = Vec::new();
            self.arena.operands(e, |operand| guards.extend(self.guards[operand.0 as usize]));
            if let Node::Select { index, list } = self.arena.node(e) {
                guards.extend(self.inside(index, self.arena.list(list).len()));
            }
            let guard = self.all(guards);
            self.guards.push(guard);
        }
        self.guards[e.0 as usize]
    }

    /// A condition that is ≥ 0 if all of these are.
    fn all(&mut self, mut conditions: Vec<Expr>) -> Option<Expr> {
        conditions.sort_unstable();
        conditions.dedup();
        conditions.into_iter().reduce(|a, b| self.arena.binary(Binary::Min, a, b))
    }

    /// A condition that is ≥ 0 if the index is an integer from 1 to `extent`; none if it always is.
    fn inside(&mut self, index: Expr, extent: usize) -> Option<Expr> {
        let is_whole = self.arena.known(index).whole;
        let (low, high) = self.bounds_of(index, &mut { STEPS });
        if is_whole && low >= 1.0 && high <= extent as f64 {
            return None;
        }
        let from_first = self.arena.linear(&[(index, 1.0)], -1.0);
        let to_last = self.arena.linear(&[(index, -1.0)], extent as f64);
        let inside = self.arena.binary(Binary::Min, from_first, to_last);
        if is_whole {
            return Some(inside);
        }
        let whole = self.arena.unary(Unary::Trunc, index);
        let part = self.arena.subtract(index, whole);
        let none = self.arena.unary(Unary::IsZero, part);
        let none = self.arena.linear(&[(none, 1.0)], -0.5);
        Some(self.arena.binary(Binary::Min, inside, none))
    }

    /// Bounds of an expression wherever it is defined.
    fn bounds_of(&self, e: Expr, steps: &mut usize) -> (f64, f64) {
        if *steps == 0 {
            return ANYWHERE;
        }
        *steps -= 1;
        let around = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        match self.arena.node(e) {
            Node::Constant(x) if x.is_nan() => ANYWHERE,
            Node::Constant(x) => (x, x),
            Node::Leaf(l) => self.leaf_bounds(l),
            Node::Linear { list, weights, constant } => {
                let terms = self.arena.list(list).iter().zip(self.arena.weights(list, weights));
                terms.fold((constant, constant), |(low, high), (e, w)| {
                    let (a, b) = self.bounds_of(*e, steps);
                    if *w > 0.0 { (low + w * a, high + w * b) } else { (low + w * b, high + w * a) }
                })
            }
            Node::Unary(Unary::Step | Unary::IsZero, _) => (0.0, 1.0),
            Node::Unary(f @ (Unary::Round | Unary::Trunc), a) => {
                let (low, high) = self.bounds_of(a, steps);
                (f.apply(low), f.apply(high))
            }
            Node::Binary(f @ (Binary::Min | Binary::Max), a, b) => {
                let (a, b) = (self.bounds_of(a, steps), self.bounds_of(b, steps));
                (f.apply(a.0, b.0), f.apply(a.1, b.1))
            }
            Node::Binary(Binary::Multiply, a, b) => {
                let (a, b) = (self.bounds_of(a, steps), self.bounds_of(b, steps));
                let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| product(x, y));
                corners.into_iter().map(|x| (x, x)).fold((f64::INFINITY, f64::NEG_INFINITY), around)
            }
            Node::Ternary(Ternary::Choose, _, a, b) => around(self.bounds_of(a, steps), self.bounds_of(b, steps)),
            Node::Select { list, .. } => {
                let all = self.arena.list(list).iter().map(|e| self.bounds_of(*e, steps));
                all.fold((f64::INFINITY, f64::NEG_INFINITY), around)
            }
            _ => ANYWHERE,
        }
    }

    fn leaf_bounds(&self, leaf: u32) -> (f64, f64) {
        let random = &self.random[self.leaves[leaf as usize].random as usize];
        let AnyDistribution::Scalar(distribution) = &random.distribution else { return ANYWHERE };
        if !distribution.is_discrete() {
            return ANYWHERE;
        }
        let (low, high) = self.arena.range(distribution);
        let number = |e: Option<Expr>| e.and_then(|e| self.arena.value(e));
        let (lower, upper) = random.bounds.map_or((None, None), |b| (number(b.lower), number(b.upper)));
        (lower.map_or(low, |x| low.max(x)), upper.map_or(high, |x| high.min(x)))
    }
}

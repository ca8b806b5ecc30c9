//! Rebuilding an expression with other operands: to transform latents, and to substitute values for marginalised ones.

use super::expression::{Expr, Expressions, Node};

/// A copy of a node outside its arena, with buffers that are reused.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    node: Node,
    list: Vec<Expr>,
    weights: Vec<f64>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { node: Node::Constant(0.0), list: Vec::new(), weights: Vec::new() }
    }
}

impl Shape {
    /// Copies the node `e` of `from`.
    pub(crate) fn take(&mut self, from: &Expressions, e: Expr) {
        self.node = from.node(e);
        self.list.clear();
        self.weights.clear();
        match self.node {
            Node::Linear { list, weights, .. } => {
                self.list.extend_from_slice(from.list(list));
                self.weights.extend_from_slice(from.weights(list, weights));
            }
            Node::Select { list, .. } | Node::LogSumExp { list } => self.list.extend_from_slice(from.list(list)),
            Node::LogProduct { a, b } => {
                let a = from.list(a);
                self.list.extend(a.iter().chain(&from.list(b)[..a.len()]));
            }
            _ => {}
        }
    }

    /// The same node in `into`, with `map` applied to its operands and `leaf` to a latent.
    pub(crate) fn make(
        &mut self,
        into: &mut Expressions,
        map: impl Fn(Expr) -> Expr,
        leaf: impl Fn(u32) -> Expr,
    ) -> Expr {
        for e in &mut self.list {
            *e = map(*e);
        }
        match self.node {
            Node::Constant(x) => into.constant(x),
            Node::Leaf(i) => leaf(i),
            Node::Linear { constant, .. } => {
                let terms: Vec<(Expr, f64)> = self.list.iter().copied().zip(self.weights.iter().copied()).collect();
                into.linear(&terms, constant)
            }
            Node::Unary(f, a) => into.unary(f, map(a)),
            Node::Binary(f, a, b) => into.binary(f, map(a), map(b)),
            Node::Ternary(f, a, b, c) => into.ternary(f, map(a), map(b), map(c)),
            Node::Select { index, .. } => into.select(map(index), &self.list),
            Node::LogSumExp { .. } => into.log_sum_exp(&self.list),
            Node::LogProduct { .. } => {
                let (a, b) = self.list.split_at(self.list.len() / 2);
                into.log_product(a, b)
            }
        }
    }
}

/// Substitutes values for some latents in expressions of an arena.
///
/// `affected` must contain every node between those latents and the wanted expression, in the order of the arena.
#[derive(Debug, Default)]
pub(crate) struct Substitution {
    /// For each expression, one plus its place among the affected ones; 0 for the others.
    place: Vec<u32>,
    made: Vec<Expr>,
    shape: Shape,
}

impl Substitution {
    /// Rebuilds the affected expressions with the latents' values, and returns the new form of `wanted`.
    pub(crate) fn apply(
        &mut self,
        arena: &mut Expressions,
        affected: &[Expr],
        value: impl Fn(u32) -> Option<f64>,
        wanted: Expr,
    ) -> Expr {
        if self.place.len() < arena.len() {
            self.place.resize(arena.len(), 0);
        }
        for (k, e) in affected.iter().enumerate() {
            self.place[e.0 as usize] = k as u32 + 1;
        }
        self.made.clear();
        for &e in affected {
            let made = match arena.node(e) {
                Node::Leaf(i) => match value(i) {
                    Some(x) => arena.constant(x),
                    None => e,
                },
                _ => {
                    self.shape.take(arena, e);
                    let (place, made) = (&self.place, &self.made);
                    let map = |e: Expr| match place[e.0 as usize] {
                        0 => e,
                        k => made[k as usize - 1],
                    };
                    // Leaves are handled above.
                    self.shape.make(arena, map, |_| e)
                }
            };
            self.made.push(made);
            if self.place.len() < arena.len() {
                self.place.resize(arena.len(), 0);
            }
        }
        let found = match self.place[wanted.0 as usize] {
            0 => wanted,
            k => self.made[k as usize - 1],
        };
        for e in affected {
            self.place[e.0 as usize] = 0;
        }
        found
    }
}

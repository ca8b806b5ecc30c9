//! Evaluates expressions one draw at a time, in the order of the arena, where speed does not matter.

use super::expression::{Expr, Expressions, Node};
use super::operation::log_sum;

/// The values of some expressions and of their operands.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    order: Vec<Expr>,
    values: Vec<f64>,
    gathered: Vec<f64>,
}

impl Interpreter {
    /// Prepares to evaluate these expressions.
    pub(crate) fn new(arena: &Expressions, wanted: &[Expr]) -> Self {
        let reached = arena.reach(wanted);
        let order: Vec<Expr> = (0..arena.len() as u32).filter(|i| reached[*i as usize]).map(Expr).collect();
        let mut values = vec![f64::NAN; arena.len()];
        // A latent may be drawn between constants that come after it.
        for e in &order {
            if let Node::Constant(x) = arena.node(*e) {
                values[e.0 as usize] = x;
            }
        }
        Self { order, values, gathered: Vec::new() }
    }

    /// The value of an expression after [`run`](Self::run).
    pub(crate) fn value(&self, e: Expr) -> f64 {
        self.values[e.0 as usize]
    }

    /// The values of all expressions after [`run`](Self::run); NaN for those that were not evaluated.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Evaluates everything; `leaf` returns a latent's value given all earlier values.
    pub(crate) fn run(&mut self, arena: &Expressions, mut leaf: impl FnMut(u32, &[f64]) -> f64) {
        for at in 0..self.order.len() {
            let e = self.order[at];
            let value = |e: Expr| self.values[e.0 as usize];
            let x = match arena.node(e) {
                Node::Constant(x) => x,
                Node::Leaf(l) => leaf(l, &self.values),
                Node::Linear { list, weights, constant } => {
                    let terms = arena.list(list).iter().zip(arena.weights(list, weights));
                    terms.fold(constant, |sum, (e, w)| sum + w * value(*e))
                }
                Node::Unary(f, a) => f.apply(value(a)),
                Node::Binary(f, a, b) => f.apply(value(a), value(b)),
                Node::Ternary(f, a, b, c) => f.apply([value(a), value(b), value(c)]),
                Node::Select { index, list } => {
                    let (k, list) = (value(index), arena.list(list));
                    let inside = k >= 1.0 && k <= list.len() as f64 && k.fract() == 0.0;
                    if inside { value(list[k as usize - 1]) } else { f64::NAN }
                }
                Node::LogSumExp { list } => {
                    self.gathered.clear();
                    self.gathered.extend(arena.list(list).iter().map(|e| self.values[e.0 as usize]));
                    log_sum(&self.gathered)
                }
                Node::LogProduct { a, b } => {
                    self.gathered.clear();
                    let pairs = arena.list(a).iter().zip(arena.list(b));
                    self.gathered.extend(pairs.map(|(a, b)| self.values[a.0 as usize] + self.values[b.0 as usize]));
                    log_sum(&self.gathered)
                }
            };
            self.values[e.0 as usize] = x;
        }
    }
}

//! Functions of one expression, and the rules that simplify them.

use super::expression::{Expr, Expressions, Known, Node};
use super::operation::{Binary, Unary};

/// Functions are moved inside a choice among at most this many.
const INSIDE: usize = 64;

impl Expressions {
    pub(crate) fn unary(&mut self, f: Unary, a: Expr) -> Expr {
        if let Some(x) = self.value(a) {
            return self.constant(f.apply(x));
        }
        if let Some(simpler) = self.simplify(f, a) {
            return simpler;
        }
        if let Node::Select { index, list } = self.node(a)
            && self.list(list).len() <= INSIDE
        {
            let inside: Vec<Expr> = self.list(list).to_vec();
            let inside: Vec<Expr> = inside.into_iter().map(|e| self.unary(f, e)).collect();
            return self.select(index, &inside);
        }
        let of = self.known(a);
        let known = match f {
            Unary::Sigmoid | Unary::Phi => Known { nonnegative: true, positive: true, whole: false, at_most_one: true },
            Unary::Exp | Unary::Softplus => {
                let at_most_one = f == Unary::Exp && self.is_nonpositive(a);
                Known { nonnegative: true, positive: true, whole: false, at_most_one }
            }
            Unary::Square | Unary::Abs => {
                let at_most_one = of.nonnegative && of.at_most_one;
                Known { nonnegative: true, positive: of.positive, whole: of.whole, at_most_one }
            }
            Unary::Sqrt => {
                Known { nonnegative: true, positive: of.positive, whole: false, at_most_one: of.at_most_one }
            }
            Unary::Reciprocal => Known { nonnegative: of.nonnegative, positive: of.positive, ..Known::default() },
            Unary::Step | Unary::IsZero => Known { nonnegative: true, positive: false, whole: true, at_most_one: true },
            Unary::Round | Unary::Trunc => {
                Known { nonnegative: of.nonnegative, positive: false, whole: true, at_most_one: of.at_most_one }
            }
            _ => Known::default(),
        };
        self.intern(Node::Unary(f, a), known)
    }

    fn simplify(&mut self, f: Unary, a: Expr) -> Option<Expr> {
        let node = self.node(a);
        match (f, node) {
            // Outside its domain a function is undefined, whatever comes after it.
            (Unary::Exp, Node::Unary(Unary::Log, x)) if self.known(x).nonnegative => Some(x),
            (Unary::Log, _) => self.simplify_log(node),
            (Unary::Reciprocal, Node::Unary(Unary::Exp, x)) => {
                let negative = self.scale(x, -1.0);
                Some(self.unary(Unary::Exp, negative))
            }
            (Unary::Reciprocal, Node::Unary(Unary::Reciprocal, x)) => Some(x),
            (Unary::Reciprocal | Unary::Square, _) if self.multiple(a).is_some() => {
                let (x, w) = self.multiple(a)?;
                let plain = self.unary(f, x);
                Some(self.scale(plain, f.apply(w)))
            }
            (Unary::Square, Node::Unary(Unary::Exp, x)) => {
                let twice = self.scale(x, 2.0);
                Some(self.unary(Unary::Exp, twice))
            }
            (Unary::Square, Node::Unary(Unary::Sqrt, x)) if self.known(x).nonnegative => Some(x),
            (Unary::Sqrt, Node::Unary(Unary::Exp, x)) => {
                let half = self.scale(x, 0.5);
                Some(self.unary(Unary::Exp, half))
            }
            (Unary::Sqrt, Node::Unary(Unary::Square, x)) => Some(self.unary(Unary::Abs, x)),
            (Unary::Abs, _) if self.known(a).nonnegative => Some(a),
            (Unary::Phi, Node::Unary(Unary::Probit, x)) if self.known(x).nonnegative && self.known(x).at_most_one => {
                Some(x)
            }
            (Unary::Probit, Node::Unary(Unary::Phi, x)) => Some(x),
            (Unary::Step, _) if self.known(a).nonnegative => Some(self.constant(1.0)),
            (Unary::IsZero, _) if self.known(a).positive => Some(self.constant(0.0)),
            (Unary::Round | Unary::Trunc, _) if self.known(a).whole => Some(a),
            _ => None,
        }
    }

    fn simplify_log(&mut self, node: Node) -> Option<Expr> {
        let negative = |this: &mut Self, e: Expr| this.scale(e, -1.0);
        match node {
            Node::Unary(Unary::Exp, x) => Some(x),
            Node::Unary(Unary::Sigmoid, x) => {
                let opposite = negative(self, x);
                let softplus = self.unary(Unary::Softplus, opposite);
                Some(negative(self, softplus))
            }
            Node::Unary(Unary::Phi, x) => Some(self.unary(Unary::LogPhi, x)),
            Node::Unary(Unary::Reciprocal, x) => {
                let log = self.unary(Unary::Log, x);
                Some(negative(self, log))
            }
            Node::Unary(Unary::Sqrt, x) => {
                let log = self.unary(Unary::Log, x);
                Some(self.scale(log, 0.5))
            }
            Node::Unary(Unary::Square, x) if self.known(x).nonnegative => {
                let log = self.unary(Unary::Log, x);
                Some(self.scale(log, 2.0))
            }
            Node::Binary(Binary::Multiply, x, y) if self.known(x).nonnegative && self.known(y).nonnegative => {
                let (x, y) = (self.unary(Unary::Log, x), self.unary(Unary::Log, y));
                Some(self.add(x, y))
            }
            Node::Binary(Binary::Power, x, y) if self.known(x).nonnegative => {
                let log = self.unary(Unary::Log, x);
                Some(self.multiply(y, log))
            }
            Node::Linear { list, weights, constant } if self.list(list).len() == 1 => {
                let (x, w) = (self.list(list)[0], self.weights(list, weights)[0]);
                if constant == 0.0 && w > 0.0 {
                    let log = self.unary(Unary::Log, x);
                    return Some(self.linear(&[(log, 1.0)], w.ln()));
                }
                if constant != 1.0 || w >= 0.0 {
                    return None;
                }
                match (self.node(x), w) {
                    (Node::Unary(Unary::Sigmoid, x), -1.0) => {
                        let softplus = self.unary(Unary::Softplus, x);
                        Some(negative(self, softplus))
                    }
                    (Node::Unary(Unary::Phi, x), -1.0) => {
                        let opposite = negative(self, x);
                        Some(self.unary(Unary::LogPhi, opposite))
                    }
                    // 1 − w eˣ = 1 − e^(x + log w).
                    (Node::Unary(Unary::Exp, x), w) => {
                        let shifted = self.linear(&[(x, 1.0)], (-w).ln());
                        Some(self.unary(Unary::LogOneMinusExp, shifted))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// log(x / (1 − x)).
    pub(crate) fn logit(&mut self, a: Expr) -> Expr {
        if let Node::Unary(Unary::Sigmoid, x) = self.node(a) {
            return x;
        }
        let other = self.complement(a);
        let (log, log_other) = (self.unary(Unary::Log, a), self.unary(Unary::Log, other));
        self.subtract(log, log_other)
    }

    /// 1 / (1 + e⁻ˣ).
    pub(crate) fn sigmoid(&mut self, a: Expr) -> Expr {
        self.unary(Unary::Sigmoid, a)
    }

    /// Whether the values are ≤ 0: the negative of a sum of nonnegative terms.
    fn is_nonpositive(&self, e: Expr) -> bool {
        match self.node(e) {
            Node::Linear { list, weights, constant } => {
                let mut terms = self.list(list).iter().zip(self.weights(list, weights));
                constant <= 0.0 && terms.all(|(e, w)| *w < 0.0 && self.known(*e).nonnegative)
            }
            _ => false,
        }
    }
}

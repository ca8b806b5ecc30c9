//! The algebra of expressions: sums, products, powers and choices, and the rules that simplify them.

use super::expression::{Expr, Expressions, Known, Node};
use super::operation::{Binary, Ternary, Unary, log_sum, product};

/// Sums of at most this many terms are expanded inside a larger sum; longer ones stay separate nodes, so that each step of a
/// running sum costs one term.
const INLINE: usize = 4;

impl Expressions {
    pub(crate) fn constant(&mut self, x: f64) -> Expr {
        // −0 and 0 are the same constant, and so are all NaNs.
        let x = if x == 0.0 {
            0.0
        } else if x.is_nan() {
            f64::NAN
        } else {
            x
        };
        let known = Known { nonnegative: x >= 0.0, positive: x > 0.0, whole: x.fract() == 0.0, at_most_one: x <= 1.0 };
        self.intern(Node::Constant(x), known)
    }

    pub(crate) fn leaf(&mut self, number: u32, known: Known) -> Expr {
        self.intern(Node::Leaf(number), known)
    }

    /// Σ wₖ eₖ + constant.
    pub(crate) fn linear(&mut self, terms: &[(Expr, f64)], constant: f64) -> Expr {
        let mut constant = constant;
        let mut collected = std::mem::take(&mut self.collected);
        collected.clear();
        for &(e, w) in terms {
            if w == 0.0 {
                continue;
            }
            match self.node(e) {
                Node::Constant(x) => constant += w * x,
                Node::Linear { list, weights, constant: inner } if self.list(list).len() <= INLINE => {
                    constant += w * inner;
                    let inner = self.list(list).iter().zip(self.weights(list, weights));
                    collected.extend(inner.map(|(e, v)| (*e, w * v)));
                }
                _ => collected.push((e, w)),
            }
        }
        collected.sort_by_key(|t| t.0);
        collected.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        collected.retain(|t| t.1 != 0.0);
        let made = self.collected_sum(&collected, constant);
        self.collected = collected;
        made
    }

    fn collected_sum(&mut self, terms: &[(Expr, f64)], constant: f64) -> Expr {
        // −∞ stays −∞ whatever is added to it.
        if terms.is_empty() || constant == f64::NEG_INFINITY || constant.is_nan() {
            return self.constant(constant);
        }
        if let [(e, w)] = *terms
            && w == 1.0
            && constant == 0.0
        {
            return e;
        }
        let each = |f: fn(Known) -> bool| terms.iter().all(|(e, w)| *w > 0.0 && f(self.known(*e)));
        let whole = constant.fract() == 0.0 && terms.iter().all(|(e, w)| w.fract() == 0.0 && self.known(*e).whole);
        let nonnegative = constant >= 0.0 && each(|k| k.nonnegative);
        let positive = nonnegative && (constant > 0.0 || each(|k| k.positive));
        // c − w Φ and the like, with w ≤ c, are positive.
        let share = matches!(terms, [(e, w)] if *w < 0.0 && -*w <= constant && self.is_share(*e));
        let least = terms.iter().map(|(e, w)| match self.known(*e) {
            known if *w > 0.0 && known.nonnegative => 0.0,
            known if *w < 0.0 && known.at_most_one => *w,
            _ => f64::NEG_INFINITY,
        });
        let most = terms.iter().map(|(e, w)| match self.known(*e) {
            known if *w < 0.0 && known.nonnegative => 0.0,
            known if *w > 0.0 && known.at_most_one => *w,
            _ => f64::INFINITY,
        });
        let known = Known {
            nonnegative: constant + least.sum::<f64>() >= 0.0,
            positive: positive || share,
            whole,
            at_most_one: constant + most.sum::<f64>() <= 1.0,
        };
        self.intern_linear(terms, constant, known)
    }

    /// Whether the values lie strictly between 0 and 1 by construction.
    pub(super) fn is_share(&self, e: Expr) -> bool {
        matches!(self.node(e), Node::Unary(Unary::Sigmoid | Unary::Phi, _))
    }

    pub(crate) fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.linear(&[(a, 1.0), (b, 1.0)], 0.0)
    }

    pub(crate) fn subtract(&mut self, a: Expr, b: Expr) -> Expr {
        self.linear(&[(a, 1.0), (b, -1.0)], 0.0)
    }

    pub(crate) fn scale(&mut self, a: Expr, by: f64) -> Expr {
        self.linear(&[(a, by)], 0.0)
    }

    /// 1 − a.
    pub(crate) fn complement(&mut self, a: Expr) -> Expr {
        self.linear(&[(a, -1.0)], 1.0)
    }

    /// The term and the factor of a linear node that is a multiple of one term.
    pub(super) fn multiple(&self, e: Expr) -> Option<(Expr, f64)> {
        match self.node(e) {
            Node::Linear { list, weights, constant: 0.0 } if self.list(list).len() == 1 => {
                Some((self.list(list)[0], self.weights(list, weights)[0]))
            }
            _ => None,
        }
    }

    pub(crate) fn multiply(&mut self, a: Expr, b: Expr) -> Expr {
        if let Some(x) = self.value(a) {
            return self.multiply_by(b, x);
        }
        if let Some(x) = self.value(b) {
            return self.multiply_by(a, x);
        }
        let ((a, v), (b, w)) = (self.multiple(a).unwrap_or((a, 1.0)), self.multiple(b).unwrap_or((b, 1.0)));
        let product = if a == b {
            self.unary(Unary::Square, a)
        } else {
            let (a, b) = (a.min(b), a.max(b));
            let (x, y) = (self.known(a), self.known(b));
            let nonnegative = x.nonnegative && y.nonnegative;
            let known = Known {
                nonnegative,
                positive: x.positive && y.positive,
                whole: x.whole && y.whole,
                at_most_one: nonnegative && x.at_most_one && y.at_most_one,
            };
            self.intern(Node::Binary(Binary::Multiply, a, b), known)
        };
        self.scale(product, v * w)
    }

    fn multiply_by(&mut self, e: Expr, x: f64) -> Expr {
        match self.value(e) {
            Some(y) => self.constant(product(x, y)),
            None if x.is_finite() => self.scale(e, x),
            // As a weight in a sum, an infinite factor would turn zero into NaN.
            None => {
                let x = self.constant(x);
                self.intern(Node::Binary(Binary::Multiply, x.min(e), x.max(e)), Known::default())
            }
        }
    }

    pub(crate) fn divide(&mut self, a: Expr, b: Expr) -> Expr {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x / y),
            // Integers are divided exactly, because the quotient may be used as an integer.
            (None, Some(y)) if self.known(a).whole && y.abs().log2().fract() != 0.0 => self.quotient(a, b),
            (_, None) if self.known(b).whole => self.quotient(a, b),
            (None, Some(y)) => self.scale(a, 1.0 / y),
            _ => {
                let inverse = self.unary(Unary::Reciprocal, b);
                self.multiply(a, inverse)
            }
        }
    }

    fn quotient(&mut self, a: Expr, b: Expr) -> Expr {
        let (x, y) = (self.known(a), self.known(b));
        let known = Known { nonnegative: x.nonnegative && y.nonnegative, ..Known::default() };
        self.intern(Node::Binary(Binary::Divide, a, b), known)
    }

    pub(crate) fn power(&mut self, a: Expr, b: Expr) -> Expr {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => return self.constant(x.powf(y)),
            (_, Some(0.0)) => return self.constant(1.0),
            (_, Some(1.0)) => return a,
            (_, Some(2.0)) => return self.unary(Unary::Square, a),
            (_, Some(3.0)) => {
                let square = self.unary(Unary::Square, a);
                return self.multiply(square, a);
            }
            (_, Some(-1.0)) => return self.unary(Unary::Reciprocal, a),
            (_, Some(0.5)) => return self.unary(Unary::Sqrt, a),
            (_, Some(y)) if y < 0.0 => {
                let positive = self.constant(-y);
                let power = self.power(a, positive);
                return self.unary(Unary::Reciprocal, power);
            }
            _ => {}
        }
        if self.known(a).positive {
            let log = self.unary(Unary::Log, a);
            let exponent = self.multiply(b, log);
            return self.unary(Unary::Exp, exponent);
        }
        let (x, y) = (self.known(a), self.known(b));
        let even = matches!(self.value(b), Some(y) if y % 2.0 == 0.0);
        let known = Known {
            nonnegative: x.nonnegative || even,
            whole: x.whole && y.whole && y.nonnegative,
            ..Known::default()
        };
        self.intern(Node::Binary(Binary::Power, a, b), known)
    }

    /// x log y, with 0 log 0 = 0.
    pub(crate) fn x_log_y(&mut self, x: Expr, y: Expr) -> Expr {
        match (self.value(x), self.value(y)) {
            (Some(0.0), _) | (_, Some(1.0)) => return self.constant(0.0),
            (Some(c), _) => {
                let log = self.unary(Unary::Log, y);
                return self.multiply_by(log, c);
            }
            _ => {}
        }
        if self.known(y).positive {
            let log = self.unary(Unary::Log, y);
            return self.multiply(x, log);
        }
        self.intern(Node::Binary(Binary::XLogY, x, y), Known::default())
    }

    pub(crate) fn binary(&mut self, f: Binary, a: Expr, b: Expr) -> Expr {
        match f {
            Binary::Multiply => return self.multiply(a, b),
            Binary::Divide => return self.divide(a, b),
            Binary::Power => return self.power(a, b),
            Binary::XLogY => return self.x_log_y(a, b),
            _ => {}
        }
        let (x, y) = (self.known(a), self.known(b));
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            return self.constant(f.apply(x, y));
        }
        let both = |f: fn(Known) -> bool| f(x) && f(y);
        let either = |f: fn(Known) -> bool| f(x) || f(y);
        let known = match f {
            Binary::Require if x.nonnegative => return b,
            Binary::Require => match self.value(a) {
                Some(x) if x < 0.0 => return self.constant(f64::NEG_INFINITY),
                _ => Known::default(),
            },
            Binary::Within if x.nonnegative => return b,
            Binary::Within if self.value(b).is_some_and(|y| !y.is_nan()) => return b,
            Binary::Within | Binary::LogGammaBelow | Binary::LogGammaAbove | Binary::LogRest => Known::default(),
            Binary::LogPoissonExcess => Known { nonnegative: true, ..Known::default() },
            Binary::Max => Known {
                nonnegative: either(|k| k.nonnegative),
                positive: either(|k| k.positive),
                whole: both(|k| k.whole),
                at_most_one: both(|k| k.at_most_one),
            },
            _ => Known {
                nonnegative: both(|k| k.nonnegative),
                positive: both(|k| k.positive),
                whole: both(|k| k.whole),
                at_most_one: either(|k| k.at_most_one),
            },
        };
        self.intern(Node::Binary(f, a, b), known)
    }

    pub(crate) fn choose(&mut self, condition: Expr, a: Expr, b: Expr) -> Expr {
        match self.value(condition) {
            Some(x) if x.is_nan() => self.constant(x),
            Some(x) => {
                if x == 0.0 {
                    b
                } else {
                    a
                }
            }
            None if a == b => a,
            None => {
                let (x, y) = (self.known(a), self.known(b));
                let known = Known {
                    nonnegative: x.nonnegative && y.nonnegative,
                    positive: x.positive && y.positive,
                    whole: x.whole && y.whole,
                    at_most_one: x.at_most_one && y.at_most_one,
                };
                self.intern(Node::Ternary(Ternary::Choose, condition, a, b), known)
            }
        }
    }

    pub(crate) fn ternary(&mut self, f: Ternary, a: Expr, b: Expr, c: Expr) -> Expr {
        if f == Ternary::Choose {
            return self.choose(a, b, c);
        }
        match [a, b, c].map(|e| self.value(e)) {
            [Some(x), Some(y), Some(z)] => self.constant(f.apply([x, y, z])),
            _ => self.intern(Node::Ternary(f, a, b, c), Known::default()),
        }
    }

    /// from\[index − 1\].
    pub(crate) fn select(&mut self, index: Expr, from: &[Expr]) -> Expr {
        if let Some(x) = self.value(index) {
            let inside = x.fract() == 0.0 && x >= 1.0 && x <= from.len() as f64;
            return if inside { from[x as usize - 1] } else { self.constant(f64::NAN) };
        }
        let all = |f: fn(Known) -> bool| from.iter().all(|e| f(self.known(*e)));
        let known = Known {
            nonnegative: all(|k| k.nonnegative),
            positive: all(|k| k.positive),
            whole: all(|k| k.whole),
            at_most_one: all(|k| k.at_most_one),
        };
        let list = self.intern_list(from);
        self.intern(Node::Select { index, list }, known)
    }

    pub(crate) fn log_sum_exp(&mut self, of: &[Expr]) -> Expr {
        let possible: Vec<Expr> = of.iter().copied().filter(|e| self.value(*e) != Some(f64::NEG_INFINITY)).collect();
        if let [one] = possible[..] {
            return one;
        }
        if possible.iter().all(|e| self.value(*e).is_some()) {
            let values: Vec<f64> = possible.iter().filter_map(|e| self.value(*e)).collect();
            return self.constant(log_sum(&values));
        }
        let list = self.intern_list(&possible);
        self.intern(Node::LogSumExp { list }, Known::default())
    }

    /// log Σ exp(a + b), for lists of a and b that other such sums contain too: with the exponentials of each list computed once, a product
    /// of a matrix and a vector needs as many as there are rows and columns, not entries.
    pub(crate) fn log_product(&mut self, a: &[Expr], b: &[Expr]) -> Expr {
        let exponentials: Vec<Expr> = b.iter().map(|b| self.unary(Unary::Exp, *b)).collect();
        let (a, b) = (self.intern_list(a), self.intern_list(&[b, &exponentials].concat()));
        self.intern(Node::LogProduct { a, b }, Known::default())
    }
}

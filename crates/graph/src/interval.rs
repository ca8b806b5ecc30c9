//! The real line mapped to an interval.

use super::expression::{Expr, Expressions};
use super::operation::Unary;

impl Expressions {
    /// The real line mapped between two bounds, and the log Jacobian.
    pub(super) fn between(&mut self, x: Expr, lower: Option<Expr>, upper: Option<Expr>) -> (Expr, Option<Expr>) {
        match (lower, upper) {
            (None, None) => (x, None),
            (Some(end), None) => {
                let distance = self.unary(Unary::Exp, x);
                (self.add(end, distance), Some(x))
            }
            (None, Some(end)) => {
                let distance = self.unary(Unary::Exp, x);
                (self.subtract(end, distance), Some(x))
            }
            (Some(lower), Some(upper)) => {
                let (width, share) = (self.subtract(upper, lower), self.sigmoid(x));
                let other = self.complement(share);
                let (inside, log_width) = (self.multiply(width, share), self.log(width));
                let (log_share, log_other) = (self.log(share), self.log(other));
                let jacobian = self.linear(&[(log_width, 1.0), (log_share, 1.0), (log_other, 1.0)], 0.0);
                (self.add(lower, inside), Some(jacobian))
            }
        }
    }
}

//! The probability between two bounds of those beta distributions that have it in closed form.

use super::expression::{Expr, Expressions};

impl Expressions {
    /// log P(lower ≤ x ≤ upper) of a beta with a = 1, for which P(x > t) = (1 − t)ᵇ, or with b = 1, for which P(x < t) = tᵃ. `None` if
    /// neither is 1, or if a bound may be outside 0 and 1.
    pub(super) fn log_power_between(
        &mut self,
        [a, b]: [Expr; 2],
        lower: Option<Expr>,
        upper: Option<Expr>,
    ) -> Option<Expr> {
        let is_inside = |e: &Expr| self.known(*e).nonnegative && self.known(*e).at_most_one;
        if ![lower, upper].iter().flatten().all(is_inside) {
            return None;
        }
        let (lower, upper) = (self.above_zero(lower), upper.filter(|e| self.value(*e) != Some(1.0)));
        let is_one = |e: Expr| self.value(e) == Some(1.0);
        let (power, ends, is_turned) = match (is_one(a), is_one(b)) {
            (true, _) => (b, [lower, upper], false),
            (false, true) => (a, [upper, lower], true),
            _ => return None,
        };
        let [low, high] = ends.map(|end| {
            end.map(|end| {
                let rest = if is_turned { end } else { self.complement(end) };
                let log = self.log(rest);
                let product = self.multiply(power, log);
                self.scale(product, -1.0)
            })
        });
        Some(self.log_survival_between(low, high))
    }
}

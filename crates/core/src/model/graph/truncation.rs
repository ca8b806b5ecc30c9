//! The probability between two bounds: what a truncated law is divided by.

use super::expression::{Expr, Expressions, Node};
use super::law::Law;
use super::operation::{Binary, Ternary, Unary};
use hyperprior_math::special::ln_factorial;
use std::f64::consts::LN_2;

/// The most values that a truncated count may be summed over.
const TERMS_MAX: f64 = 10_000.0;

/// A distribution function of a standardised number.
#[derive(Clone, Copy, Debug)]
enum Cumulative {
    /// One that is symmetric around 0 and has an operation of its own.
    Symmetric(Unary),
    Laplace,
    Student {
        df: Expr,
    },
    Gamma {
        shape: Expr,
    },
    Beta {
        a: Expr,
        b: Expr,
    },
}

impl Expressions {
    /// log P(lower ≤ x ≤ upper), or the reason why it is not known.
    pub(super) fn log_probability_between(
        &mut self,
        law: &Law,
        lower: Option<Expr>,
        upper: Option<Expr>,
        normalised: bool,
    ) -> Result<Expr, String> {
        let share = match *law {
            _ if law.is_discrete() => self.log_sum_between(law, lower, upper, normalised),
            Law::Normal { mean, precision } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.standardised(b, mean, precision)));
                Ok(self.log_between(Cumulative::Symmetric(Unary::Phi), low, high))
            }
            Law::LogNormal { mean, precision } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let log = self.log(b);
                        self.standardised(log, mean, precision)
                    })
                });
                Ok(self.log_between(Cumulative::Symmetric(Unary::Phi), low, high))
            }
            Law::Logistic { mean, rate } | Law::Laplace { mean, rate } => {
                let [low, high] = [lower, upper].map(|b| {
                    b.map(|b| {
                        let distance = self.subtract(b, mean);
                        self.multiply(rate, distance)
                    })
                });
                let is_logistic = matches!(law, Law::Logistic { .. });
                let law = if is_logistic { Cumulative::Symmetric(Unary::Sigmoid) } else { Cumulative::Laplace };
                Ok(self.log_between(law, low, high))
            }
            Law::StudentT { mean, precision, df } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.standardised(b, mean, precision)));
                Ok(self.log_between(Cumulative::Student { df }, low, high))
            }
            Law::Exponential { rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.multiply(rate, b)));
                Ok(self.log_survival_between(low, high))
            }
            Law::Weibull { shape, rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let power = self.power(b, shape);
                        self.multiply(rate, power)
                    })
                });
                Ok(self.log_survival_between(low, high))
            }
            Law::Pareto { shape, lower: least } => {
                let [low, high] = [lower, upper].map(|b| {
                    b.map(|b| {
                        let ratio = self.divide(b, least);
                        let log = self.log(ratio);
                        self.multiply(shape, log)
                    })
                });
                Ok(self.log_survival_between(low, high))
            }
            Law::Gamma { shape, rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.multiply(rate, b)));
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Law::ChiSquared { df } => {
                let shape = self.scale(df, 0.5);
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.scale(b, 0.5)));
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Law::GeneralisedGamma { shape, rate, power } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let scaled = self.multiply(rate, b);
                        self.power(scaled, power)
                    })
                });
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Law::Beta { a, b } => {
                let high = upper.filter(|e| !self.value(*e).is_some_and(|x| x >= 1.0));
                let low = self.above_zero(lower);
                Ok(self.log_between(Cumulative::Beta { a, b }, low, high))
            }
            Law::FDistribution { n, m } => {
                let (a, b) = (self.scale(n, 0.5), self.scale(m, 0.5));
                let [low, high] = [self.above_zero(lower), upper].map(|x| {
                    x.map(|x| {
                        let part = self.multiply(n, x);
                        let whole = self.add(part, m);
                        self.divide(part, whole)
                    })
                });
                Ok(self.log_between(Cumulative::Beta { a, b }, low, high))
            }
            Law::Uniform { lower: least, upper: most } => {
                let low = lower.map_or(least, |e| self.binary(Binary::Max, e, least));
                let high = upper.map_or(most, |e| self.binary(Binary::Min, e, most));
                let (inside, all) = (self.subtract(high, low), self.subtract(most, least));
                let (inside, all) = (self.log(inside), self.log(all));
                Ok(self.subtract(inside, all))
            }
            _ => Err(format!("a {} law cannot be truncated", law.name())),
        }?;
        match self.value(share) {
            Some(x) if !(x > f64::NEG_INFINITY) => Err("there is no probability between the bounds".to_owned()),
            _ => Ok(share),
        }
    }

    /// A lower bound that takes nothing from a law above zero is none.
    fn above_zero(&self, bound: Option<Expr>) -> Option<Expr> {
        bound.filter(|e| !self.value(*e).is_some_and(|x| x <= 0.0))
    }

    fn standardised(&mut self, x: Expr, mean: Expr, precision: Expr) -> Expr {
        let (distance, root) = (self.subtract(x, mean), self.unary(Unary::Sqrt, precision));
        self.multiply(root, distance)
    }

    /// log(F(high) − F(low)). Between two bounds it is the difference of the smaller two tails, so that it stays a number
    /// where F is close to 1.
    fn log_between(&mut self, law: Cumulative, low: Option<Expr>, high: Option<Expr>) -> Expr {
        match (low, high) {
            (None, None) => self.constant(0.0),
            (Some(low), None) => self.log_above(law, low),
            (None, Some(high)) => self.log_below(law, high),
            (Some(low), Some(high)) => {
                let past = self.is_past_centre(law, low);
                let (all, less) = (self.log_above(law, low), self.log_above(law, high));
                let above = self.log_difference(all, less);
                let (all, less) = (self.log_below(law, high), self.log_below(law, low));
                let below = self.log_difference(all, less);
                self.choose(past, above, below)
            }
        }
    }

    /// log(eᵃ − eᵇ).
    fn log_difference(&mut self, a: Expr, b: Expr) -> Expr {
        let less = self.subtract(b, a);
        let share = self.unary(Unary::LogOneMinusExp, less);
        self.add(a, share)
    }

    /// 1 where x is past the middle of the law, else 0.
    fn is_past_centre(&mut self, law: Cumulative, x: Expr) -> Expr {
        let past = match law {
            Cumulative::Gamma { shape } => self.subtract(x, shape),
            Cumulative::Beta { a, b } => {
                // x ≥ a / (a + b).
                let whole = self.add(a, b);
                let reached = self.multiply(x, whole);
                self.subtract(reached, a)
            }
            Cumulative::Symmetric(_) | Cumulative::Laplace | Cumulative::Student { .. } => x,
        };
        self.unary(Unary::Step, past)
    }

    fn log_below(&mut self, law: Cumulative, x: Expr) -> Expr {
        match law {
            Cumulative::Symmetric(f) => {
                let share = self.unary(f, x);
                self.log(share)
            }
            Cumulative::Gamma { shape } => self.binary(Binary::LogGammaBelow, shape, x),
            Cumulative::Beta { a, b } => self.ternary(Ternary::LogBetaBelow, a, b, x),
            Cumulative::Laplace | Cumulative::Student { .. } => {
                let opposite = self.scale(x, -1.0);
                self.log_above(law, opposite)
            }
        }
    }

    fn log_above(&mut self, law: Cumulative, x: Expr) -> Expr {
        match law {
            Cumulative::Symmetric(_) => {
                let opposite = self.scale(x, -1.0);
                self.log_below(law, opposite)
            }
            Cumulative::Gamma { shape } => self.binary(Binary::LogGammaAbove, shape, x),
            Cumulative::Beta { a, b } => {
                let other = self.complement(x);
                self.ternary(Ternary::LogBetaBelow, b, a, other)
            }
            Cumulative::Laplace | Cumulative::Student { .. } => {
                if self.value(x) == Some(0.0) {
                    return self.constant(-LN_2);
                }
                let is_above = self.unary(Unary::Step, x);
                let distance = self.unary(Unary::Abs, x);
                let tail = self.log_outer(law, distance);
                let other = self.unary(Unary::LogOneMinusExp, tail);
                self.choose(is_above, tail, other)
            }
        }
    }

    /// The log of what a symmetric law has above a distance from its middle.
    fn log_outer(&mut self, law: Cumulative, distance: Expr) -> Expr {
        let Cumulative::Student { df } = law else { return self.linear(&[(distance, -1.0)], -LN_2) };
        let square = self.unary(Unary::Square, distance);
        let (sum, a, b) = (self.add(square, df), self.scale(df, 0.5), self.constant(0.5));
        let x = self.divide(df, sum);
        let both = self.ternary(Ternary::LogBetaBelow, a, b, x);
        self.linear(&[(both, 1.0)], -LN_2)
    }

    /// log(e^−low − e^−high) of cumulative hazards.
    fn log_survival_between(&mut self, low: Option<Expr>, high: Option<Expr>) -> Expr {
        let zero = self.constant(0.0);
        let base = match low {
            // Below the law's support there is no hazard yet.
            Some(low) => {
                let low = if self.known(low).nonnegative { low } else { self.binary(Binary::Max, low, zero) };
                self.scale(low, -1.0)
            }
            None => zero,
        };
        match high {
            None => base,
            Some(high) => {
                let more = self.linear(&[(base, -1.0), (high, -1.0)], 0.0);
                let share = self.unary(Unary::LogOneMinusExp, more);
                self.add(base, share)
            }
        }
    }

    fn log_sum_between(
        &mut self,
        law: &Law,
        lower: Option<Expr>,
        upper: Option<Expr>,
        normalised: bool,
    ) -> Result<Expr, String> {
        let number = |this: &Self, e: Option<Expr>, absent: f64| match e {
            None => Ok(absent),
            Some(e) => this.value(e).ok_or_else(|| "the bounds of a truncated count must be numbers".to_owned()),
        };
        let (least, most) = self.range(law);
        let (low, high) = (number(self, lower, least)?.ceil().max(least), number(self, upper, most)?.floor().min(most));
        let sum = |this: &mut Self, low: f64, high: f64| -> Result<Expr, String> {
            if high - low > TERMS_MAX {
                return Err(format!("a truncated count may be summed over {TERMS_MAX} values at most"));
            }
            let mut terms = Vec::new();
            let mut k = low;
            while k <= high {
                let value = this.constant(k);
                terms.push(this.log_density(law, value, normalised));
                k += 1.0;
            }
            Ok(this.log_sum_exp(&terms))
        };
        if high < f64::INFINITY {
            return sum(self, low, high);
        }
        if low <= least {
            return Ok(self.constant(0.0));
        }
        if let Some(tail) = self.log_count_above(law, low) {
            return Ok(tail);
        }
        let below = sum(self, least, low - 1.0)?;
        let above = self.unary(Unary::LogOneMinusExp, below);
        let Law::NegativeBinomial { p, r } = *law else { return Ok(above) };
        if low <= 1.0 {
            return Ok(above);
        }
        // P(X ≥ k) = I₁₋ₚ(k, r) loses nothing where almost all is below k. Only where p is so small that 1 − p no longer
        // knows it, almost all is above.
        let (other, k) = (self.other_share(p), self.constant(low));
        let tail = self.ternary(Ternary::LogBetaBelow, k, r, other);
        let enough = self.linear(&[(p, 1.0)], -1e-3);
        let enough = self.unary(Unary::Step, enough);
        Ok(self.choose(enough, tail, above))
    }

    /// log P(X ≥ k), 1 − P(X < k) being nothing but rounding where X is rarely so large.
    fn log_count_above(&mut self, law: &Law, k: f64) -> Option<Expr> {
        Some(match *law {
            Law::Poisson { rate } => {
                let at = self.constant(k);
                // In the terms of the density at k, which then cancel against its own.
                let (power, excess) = (self.x_log_y(at, rate), self.binary(Binary::LogPoissonExcess, at, rate));
                self.linear(&[(power, 1.0), (rate, -1.0), (excess, 1.0)], -ln_factorial(k))
            }
            Law::Geometric { p } => {
                let other = self.complement(p);
                let log = self.log(other);
                self.scale(log, k)
            }
            Law::FirstSuccess { p } => return self.log_count_above(&Law::Geometric { p }, k - 1.0),
            // P(X ≥ k) = Iₚ(k, n − k + 1). Where n is below k the density is 0, and says so itself.
            Law::Binomial { p, n } if k > 1.0 || !self.is_share(p) => {
                let (at, one) = (self.constant(k), self.constant(1.0));
                let rest = self.linear(&[(n, 1.0)], 1.0 - k);
                let rest = self.binary(Binary::Max, rest, one);
                self.ternary(Ternary::LogBetaBelow, at, rest, p)
            }
            _ => return None,
        })
    }

    /// 1 − p, without loss where p is a logistic.
    fn other_share(&mut self, p: Expr) -> Expr {
        match self.node(p) {
            Node::Unary(Unary::Sigmoid, x) => {
                let opposite = self.scale(x, -1.0);
                self.sigmoid(opposite)
            }
            _ => self.complement(p),
        }
    }
}

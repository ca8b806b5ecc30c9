//! The probability between two bounds, which normalises a truncated distribution.

use super::distribution::Distribution;
use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Ternary, Unary};
use hyperprior_math::special::ln_factorial;
use std::f64::consts::LN_2;

/// The most values that the normalising constant of a truncated count may be summed over.
const TERMS_MAX: f64 = 10_000.0;

/// In place of 0 as a bound of a positive variable, so that its logarithm and its reciprocal have finite derivatives.
const LEAST: f64 = 1e-100;

/// The cumulative distribution function of a standardised variable.
#[derive(Clone, Copy, Debug)]
enum Cumulative {
    /// Symmetric around 0, with its own operation.
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
    /// log P(lower ≤ x ≤ upper), or the reason why it is not supported. The match is long because it has one arm per
    /// distribution.
    pub(super) fn log_probability_between(
        &mut self,
        distribution: &Distribution,
        lower: Option<Expr>,
        upper: Option<Expr>,
        normalised: bool,
    ) -> Result<Expr, String> {
        let share = match *distribution {
            _ if distribution.is_discrete() => self.log_sum_between(distribution, lower, upper, normalised),
            Distribution::Normal { mean, precision } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.standardised(b, mean, precision)));
                Ok(self.log_between(Cumulative::Symmetric(Unary::Phi), low, high))
            }
            Distribution::LogNormal { mean, precision } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let log = self.log(b);
                        self.standardised(log, mean, precision)
                    })
                });
                Ok(self.log_between(Cumulative::Symmetric(Unary::Phi), low, high))
            }
            Distribution::Logistic { mean, rate } | Distribution::Laplace { mean, rate } => {
                let [low, high] = [lower, upper].map(|b| {
                    b.map(|b| {
                        let distance = self.subtract(b, mean);
                        self.multiply(rate, distance)
                    })
                });
                let is_logistic = matches!(distribution, Distribution::Logistic { .. });
                let distribution =
                    if is_logistic { Cumulative::Symmetric(Unary::Sigmoid) } else { Cumulative::Laplace };
                Ok(self.log_between(distribution, low, high))
            }
            Distribution::StudentT { mean, precision, df } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.standardised(b, mean, precision)));
                Ok(self.log_between(Cumulative::Student { df }, low, high))
            }
            Distribution::Exponential { rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.multiply(rate, b)));
                Ok(self.log_survival_between(low, high))
            }
            Distribution::Weibull { shape, rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let power = self.power(b, shape);
                        self.multiply(rate, power)
                    })
                });
                Ok(self.log_survival_between(low, high))
            }
            Distribution::Pareto { shape, lower: least } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let ratio = self.divide(b, least);
                        let log = self.log(ratio);
                        self.multiply(shape, log)
                    })
                });
                Ok(self.log_survival_between(low, high))
            }
            Distribution::Gamma { shape, rate } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.multiply(rate, b)));
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            // The reciprocal is a gamma, between the reciprocals of the bounds.
            Distribution::InverseGamma { shape, scale } => {
                let [low, high] = [upper, self.above_zero(lower)].map(|b| b.map(|b| self.divide(scale, b)));
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Distribution::ChiSquared { df } => {
                let shape = self.scale(df, 0.5);
                let [low, high] = [self.above_zero(lower), upper].map(|b| b.map(|b| self.scale(b, 0.5)));
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Distribution::GeneralisedGamma { shape, rate, power } => {
                let [low, high] = [self.above_zero(lower), upper].map(|b| {
                    b.map(|b| {
                        let scaled = self.multiply(rate, b);
                        self.power(scaled, power)
                    })
                });
                Ok(self.log_between(Cumulative::Gamma { shape }, low, high))
            }
            Distribution::Beta { a, b } if let Some(share) = self.log_power_between([a, b], lower, upper) => Ok(share),
            Distribution::Beta { a, b } => {
                let high = upper.filter(|e| !self.value(*e).is_some_and(|x| x >= 1.0));
                let low = self.above_zero(lower);
                Ok(self.log_between(Cumulative::Beta { a, b }, low, high))
            }
            Distribution::FDistribution { n, m } => {
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
            Distribution::Uniform { lower: least, upper: most } => {
                let low = lower.map_or(least, |e| self.binary(Binary::Max, e, least));
                let high = upper.map_or(most, |e| self.binary(Binary::Min, e, most));
                let (inside, all) = (self.log_width(low, high), self.log_width(least, most));
                Ok(self.subtract(inside, all))
            }
            // Between two bounds a flat distribution is uniform; with one it stays improper, with density 1.
            Distribution::Flat => match (lower, upper) {
                (Some(low), Some(high)) => Ok(self.log_width(low, high)),
                _ => Ok(self.constant(0.0)),
            },
            Distribution::HalfFlat => match upper {
                Some(high) => {
                    let zero = self.constant(0.0);
                    let low = lower.map_or(zero, |low| self.binary(Binary::Max, low, zero));
                    Ok(self.log_width(low, high))
                }
                None => Ok(self.constant(0.0)),
            },
            _ => Err(format!("its {} distribution cannot be truncated", distribution.name())),
        }?;
        match self.value(share) {
            Some(x) if !(x > f64::NEG_INFINITY) => Err("the probability between the bounds is zero".to_owned()),
            _ => Ok(share),
        }
    }

    /// log(high − low).
    fn log_width(&mut self, low: Expr, high: Expr) -> Expr {
        let width = self.subtract(high, low);
        self.log(width)
    }

    /// The lower bound of a positive distribution: none if it does not restrict it, and positive if its sign is not known.
    pub(super) fn above_zero(&mut self, bound: Option<Expr>) -> Option<Expr> {
        let bound = bound.filter(|e| !self.value(*e).is_some_and(|x| x <= 0.0))?;
        if self.known(bound).nonnegative {
            return Some(bound);
        }
        let least = self.constant(LEAST);
        Some(self.binary(Binary::Max, bound, least))
    }

    fn standardised(&mut self, x: Expr, mean: Expr, precision: Expr) -> Expr {
        let (distance, root) = (self.subtract(x, mean), self.unary(Unary::Sqrt, precision));
        self.multiply(root, distance)
    }

    /// log(F(high) − F(low)). Between two bounds it is the difference of the two smaller tails, which is accurate even if F is
    /// close to 1.
    fn log_between(&mut self, distribution: Cumulative, low: Option<Expr>, high: Option<Expr>) -> Expr {
        match (low, high) {
            (None, None) => self.constant(0.0),
            (Some(low), None) => self.log_above(distribution, low),
            (None, Some(high)) => self.log_below(distribution, high),
            (Some(low), Some(high)) => {
                let past = self.is_past_centre(distribution, low);
                let (all, less) = (self.log_above(distribution, low), self.log_above(distribution, high));
                let above = self.log_difference(all, less);
                let (all, less) = (self.log_below(distribution, high), self.log_below(distribution, low));
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

    /// 1 if x is above the centre of the distribution, else 0.
    fn is_past_centre(&mut self, distribution: Cumulative, x: Expr) -> Expr {
        let past = match distribution {
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

    fn log_below(&mut self, distribution: Cumulative, x: Expr) -> Expr {
        match distribution {
            Cumulative::Symmetric(f) => {
                let share = self.unary(f, x);
                self.log(share)
            }
            Cumulative::Gamma { shape } => self.binary(Binary::LogGammaBelow, shape, x),
            Cumulative::Beta { a, b } => self.ternary(Ternary::LogBetaBelow, a, b, x),
            Cumulative::Laplace | Cumulative::Student { .. } => {
                let opposite = self.scale(x, -1.0);
                self.log_above(distribution, opposite)
            }
        }
    }

    fn log_above(&mut self, distribution: Cumulative, x: Expr) -> Expr {
        match distribution {
            Cumulative::Symmetric(_) => {
                let opposite = self.scale(x, -1.0);
                self.log_below(distribution, opposite)
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
                let tail = self.log_outer(distribution, distance);
                let other = self.unary(Unary::LogOneMinusExp, tail);
                self.choose(is_above, tail, other)
            }
        }
    }

    /// log P(X > distance) of a symmetric distribution, for a nonnegative distance from its centre.
    fn log_outer(&mut self, distribution: Cumulative, distance: Expr) -> Expr {
        let Cumulative::Student { df } = distribution else { return self.linear(&[(distance, -1.0)], -LN_2) };
        let square = self.unary(Unary::Square, distance);
        let (sum, a, b) = (self.add(square, df), self.scale(df, 0.5), self.constant(0.5));
        let x = self.divide(df, sum);
        let both = self.ternary(Ternary::LogBetaBelow, a, b, x);
        self.linear(&[(both, 1.0)], -LN_2)
    }

    /// log(e^−low − e^−high) of cumulative hazards.
    pub(super) fn log_survival_between(&mut self, low: Option<Expr>, high: Option<Expr>) -> Expr {
        let zero = self.constant(0.0);
        let base = match low {
            // Below the support the cumulative hazard is zero.
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
        distribution: &Distribution,
        lower: Option<Expr>,
        upper: Option<Expr>,
        normalised: bool,
    ) -> Result<Expr, String> {
        let number = |this: &Self, e: Option<Expr>, absent: f64| match e {
            None => Ok(absent),
            Some(e) => this.value(e).ok_or_else(|| "the bounds of a truncated count must be constant".to_owned()),
        };
        let (least, most) = self.range(distribution);
        let (low, high) = (number(self, lower, least)?.ceil().max(least), number(self, upper, most)?.floor().min(most));
        let sum = |this: &mut Self, low: f64, high: f64| -> Result<Expr, String> {
            if high - low > TERMS_MAX {
                return Err(format!("there may be at most {TERMS_MAX} values between the bounds of a truncated count"));
            }
            let mut terms = Vec::new();
            let mut k = low;
            while k <= high {
                let value = this.constant(k);
                terms.push(this.log_density(distribution, value, normalised));
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
        if let Some(tail) = self.log_count_above(distribution, low) {
            return Ok(tail);
        }
        let below = sum(self, least, low - 1.0)?;
        let above = self.unary(Unary::LogOneMinusExp, below);
        let Distribution::NegativeBinomial { p, r } = *distribution else { return Ok(above) };
        if low <= 1.0 {
            return Ok(above);
        }
        // P(X ≥ k) = I₁₋ₚ(k, r) is accurate even if almost all probability is below k. It fails only if p is so small that 1 − p
        // rounds to 1, and then almost all probability is above k.
        let (other, k) = (self.other_share(p), self.constant(low));
        let tail = self.ternary(Ternary::LogBetaBelow, k, r, other);
        let enough = self.linear(&[(p, 1.0)], -1e-3);
        let enough = self.unary(Unary::Step, enough);
        Ok(self.choose(enough, tail, above))
    }

    /// log P(X ≥ k) by a formula that stays accurate when it is small, unlike 1 − P(X < k).
    fn log_count_above(&mut self, distribution: &Distribution, k: f64) -> Option<Expr> {
        Some(match *distribution {
            Distribution::Poisson { rate } => {
                let at = self.constant(k);
                // In the same terms as the density at k, so that they cancel.
                let (power, excess) = (self.x_log_y(at, rate), self.binary(Binary::LogPoissonExcess, at, rate));
                self.linear(&[(power, 1.0), (rate, -1.0), (excess, 1.0)], -ln_factorial(k))
            }
            Distribution::Geometric { p } => {
                let other = self.complement(p);
                let log = self.log(other);
                self.scale(log, k)
            }
            Distribution::FirstSuccess { p } => return self.log_count_above(&Distribution::Geometric { p }, k - 1.0),
            // P(X ≥ k) = Iₚ(k, n − k + 1). If n < k, the density itself is 0.
            Distribution::Binomial { p, n } if k > 1.0 || !self.is_share(p) => {
                let (at, one) = (self.constant(k), self.constant(1.0));
                let rest = self.linear(&[(n, 1.0)], 1.0 - k);
                let rest = self.binary(Binary::Max, rest, one);
                self.ternary(Ternary::LogBetaBelow, at, rest, p)
            }
            _ => return None,
        })
    }

    /// 1 − p, without cancellation if p is a logistic.
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

//! The probability between two bounds: what a truncated law is divided by.

use super::expression::{Expr, Expressions};
use super::law::Law;
use super::operation::Unary;
use hyperprior_math::special::{incomplete_beta, incomplete_gamma};

/// The most values that a truncated count may be summed over.
const TERMS_MAX: f64 = 10_000.0;

impl Expressions {
    /// log P(lower ≤ x ≤ upper), or the reason why it is not known.
    pub(super) fn log_probability_between(
        &mut self,
        law: &Law,
        lower: Option<Expr>,
        upper: Option<Expr>,
        normalised: bool,
    ) -> Result<Expr, String> {
        if law.is_discrete() {
            return self.log_sum_between(law, lower, upper, normalised);
        }
        // A law of this many standard deviations, or of a cumulative hazard: the log of a difference of two tails.
        match *law {
            Law::Normal { mean, precision } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.standardised(b, mean, precision)));
                Ok(self.log_normal_between(low, high))
            }
            Law::LogNormal { mean, precision } => {
                let [low, high] = [lower, upper].map(|b| {
                    b.map(|b| {
                        let log = self.log(b);
                        self.standardised(log, mean, precision)
                    })
                });
                Ok(self.log_normal_between(low, high))
            }
            Law::Exponential { rate } => {
                let [low, high] = [lower, upper].map(|b| b.map(|b| self.multiply(rate, b)));
                Ok(self.log_survival_between(low, high))
            }
            Law::Weibull { shape, rate } => {
                let [low, high] = [lower, upper].map(|b| {
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
            Law::Logistic { mean, rate } => {
                let [low, high] = [lower, upper].map(|b| {
                    b.map(|b| {
                        let distance = self.subtract(b, mean);
                        self.multiply(rate, distance)
                    })
                });
                Ok(self.log_between(low, high, Unary::Sigmoid))
            }
            Law::Uniform { lower: least, upper: most } => {
                let (low, high) = (lower.unwrap_or(least), upper.unwrap_or(most));
                let (inside, all) = (self.subtract(high, low), self.subtract(most, least));
                let (inside, all) = (self.log(inside), self.log(all));
                Ok(self.subtract(inside, all))
            }
            _ => self.log_fixed_between(law, lower, upper),
        }
    }

    fn standardised(&mut self, x: Expr, mean: Expr, precision: Expr) -> Expr {
        let (distance, root) = (self.subtract(x, mean), self.unary(Unary::Sqrt, precision));
        self.multiply(root, distance)
    }

    fn log_normal_between(&mut self, low: Option<Expr>, high: Option<Expr>) -> Expr {
        self.log_between(low, high, Unary::Phi)
    }

    /// log(F(high) − F(low)) for a symmetric F.
    fn log_between(&mut self, low: Option<Expr>, high: Option<Expr>, cumulative: Unary) -> Expr {
        match (low, high) {
            (None, None) => self.constant(0.0),
            (Some(low), None) => {
                let opposite = self.scale(low, -1.0);
                let share = self.unary(cumulative, opposite);
                self.log(share)
            }
            (None, Some(high)) => {
                let share = self.unary(cumulative, high);
                self.log(share)
            }
            (Some(low), Some(high)) => {
                let (low, high) = (self.unary(cumulative, low), self.unary(cumulative, high));
                let share = self.subtract(high, low);
                self.log(share)
            }
        }
    }

    /// log(e^−low − e^−high) of cumulative hazards.
    fn log_survival_between(&mut self, low: Option<Expr>, high: Option<Expr>) -> Expr {
        let base = match low {
            Some(low) => self.scale(low, -1.0),
            None => self.constant(0.0),
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
        let below = sum(self, least, low - 1.0)?;
        Ok(self.unary(Unary::LogOneMinusExp, below))
    }

    /// With parameters and bounds that are numbers.
    fn log_fixed_between(&mut self, law: &Law, lower: Option<Expr>, upper: Option<Expr>) -> Result<Expr, String> {
        let parameters: Option<Vec<f64>> = law.parameters().into_iter().map(|e| self.value(e)).collect();
        let bound = |this: &Self, e: Option<Expr>, absent: f64| e.map_or(Some(absent), |e| this.value(e));
        let (Some(p), Some(low), Some(high)) =
            (parameters, bound(self, lower, f64::NEG_INFINITY), bound(self, upper, f64::INFINITY))
        else {
            return Err(format!("a truncated {} law needs parameters and bounds that are numbers", law.name()));
        };
        let cumulative = |x: f64| -> Option<f64> {
            if x == f64::INFINITY {
                return Some(1.0);
            }
            let positive = |f: &dyn Fn(f64) -> f64| if x <= 0.0 { 0.0 } else { f(x) };
            match law {
                Law::Gamma { .. } => Some(positive(&|x| incomplete_gamma(p[0], p[1] * x))),
                Law::ChiSquared { .. } => Some(positive(&|x| incomplete_gamma(0.5 * p[0], 0.5 * x))),
                Law::GeneralisedGamma { .. } => Some(positive(&|x| incomplete_gamma(p[0], (p[1] * x).powf(p[2])))),
                Law::Beta { .. } => Some(positive(&|x| if x >= 1.0 { 1.0 } else { incomplete_beta(p[0], p[1], x) })),
                Law::FDistribution { .. } => {
                    Some(positive(&|x| incomplete_beta(0.5 * p[0], 0.5 * p[1], p[0] * x / (p[0] * x + p[1]))))
                }
                Law::StudentT { .. } => Some(student_cdf((x - p[0]) * p[1].sqrt(), p[2])),
                Law::Laplace { .. } => {
                    let z = p[1] * (x - p[0]);
                    Some(if z < 0.0 { 0.5 * z.exp() } else { 1.0 - 0.5 * (-z).exp() })
                }
                _ => None,
            }
        };
        match (cumulative(high), cumulative(low)) {
            (Some(high), Some(low)) if high > low => Ok(self.constant((high - low).ln())),
            (Some(_), Some(_)) => Err("there is no probability between the bounds".to_owned()),
            _ => Err(format!("a {} law cannot be truncated", law.name())),
        }
    }
}

fn student_cdf(t: f64, df: f64) -> f64 {
    if t == f64::NEG_INFINITY {
        return 0.0;
    }
    let tail = 0.5 * incomplete_beta(0.5 * df, 0.5, df / (df + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

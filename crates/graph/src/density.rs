//! The log densities of the distributions, as expressions.

use super::distribution::{Distribution, VectorDistribution};
use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Unary};
use std::f64::consts::{LN_2, PI};

impl Expressions {
    pub(super) fn log(&mut self, e: Expr) -> Expr {
        self.unary(Unary::Log, e)
    }

    pub(super) fn log_gamma(&mut self, e: Expr) -> Expr {
        self.unary(Unary::LogGamma, e)
    }

    fn log_factorial(&mut self, e: Expr) -> Expr {
        let next = self.linear(&[(e, 1.0)], 1.0);
        self.log_gamma(next)
    }

    fn log_choose(&mut self, n: Expr, k: Expr) -> Expr {
        let rest = self.subtract(n, k);
        let (all, some, rest) = (self.log_factorial(n), self.log_factorial(k), self.log_factorial(rest));
        self.linear(&[(all, 1.0), (some, -1.0), (rest, -1.0)], 0.0)
    }

    pub(super) fn log_beta(&mut self, a: Expr, b: Expr) -> Expr {
        let sum = self.add(a, b);
        let (a, b, sum) = (self.log_gamma(a), self.log_gamma(b), self.log_gamma(sum));
        self.linear(&[(a, 1.0), (b, 1.0), (sum, -1.0)], 0.0)
    }

    /// `x` if `condition` ≥ 0, else −∞.
    pub(super) fn require(&mut self, condition: Expr, x: Expr) -> Expr {
        self.binary(Binary::Require, condition, x)
    }

    /// `x` if 0 ≤ p ≤ 1, else −∞: x alone need not be undefined for an invalid p.
    fn require_share(&mut self, p: Expr, x: Expr) -> Expr {
        let other = self.complement(p);
        let x = self.require(p, x);
        self.require(other, x)
    }

    /// `x` if no weight is negative, else −∞.
    fn require_weights(&mut self, weights: &[Expr], x: Expr) -> Expr {
        weights.iter().fold(x, |x, w| self.require(*w, x))
    }

    /// x log p + (n − x) log(1 − p).
    fn log_trials(&mut self, x: Expr, n: Expr, p: Expr) -> Expr {
        // Linear in the logit, so that like terms are collected over a whole plate.
        if let Node::Unary(Unary::Sigmoid, logit) = self.node(p) {
            let (some, softplus) = (self.multiply(x, logit), self.unary(Unary::Softplus, logit));
            let all = self.multiply(n, softplus);
            return self.subtract(some, all);
        }
        let (failures, other) = (self.subtract(n, x), self.complement(p));
        let (hits, misses) = (self.x_log_y(x, p), self.x_log_y(failures, other));
        let density = self.add(hits, misses);
        self.require_share(p, density)
    }

    /// The log density of a normal at this distance from its mean.
    fn log_normal(&mut self, distance: Expr, precision: Expr) -> Expr {
        let square = self.unary(Unary::Square, distance);
        let (energy, log) = (self.multiply(precision, square), self.log(precision));
        self.linear(&[(log, 0.5), (energy, -0.5)], -0.5 * (2.0 * PI).ln())
    }

    /// log p(x), for x in the support of the distribution as far as its bounds are constant. `normalised` says that the weights of
    /// a categorical distribution sum to 1. The match is long because it has one arm per distribution.
    pub(super) fn log_density(&mut self, distribution: &Distribution, x: Expr, normalised: bool) -> Expr {
        match *distribution {
            Distribution::Bernoulli { p } => {
                let one = self.constant(1.0);
                self.log_trials(x, one, p)
            }
            Distribution::Binomial { p, n } => {
                let (trials, ways) = (self.log_trials(x, n, p), self.log_choose(n, x));
                let (density, rest) = (self.add(trials, ways), self.subtract(n, x));
                self.require(rest, density)
            }
            Distribution::Categorical { ref weights } => {
                let chosen = self.select(x, weights);
                let log = self.log(chosen);
                let log = self.require_weights(weights, log);
                if normalised {
                    return log;
                }
                let terms: Vec<(Expr, f64)> = weights.iter().map(|w| (*w, 1.0)).collect();
                let total = self.linear(&terms, 0.0);
                let log_total = self.log(total);
                self.subtract(log, log_total)
            }
            Distribution::Poisson { rate } => {
                let (power, ways) = (self.x_log_y(x, rate), self.log_factorial(x));
                let density = self.linear(&[(power, 1.0), (rate, -1.0), (ways, -1.0)], 0.0);
                self.require(rate, density)
            }
            Distribution::NegativeBinomial { p, r } => {
                let (sum, other) = (self.add(x, r), self.complement(p));
                let (top, bottom, ways) = (self.log_gamma(sum), self.log_gamma(r), self.log_factorial(x));
                let (successes, failures) = (self.x_log_y(r, p), self.x_log_y(x, other));
                let terms = [(top, 1.0), (bottom, -1.0), (ways, -1.0), (successes, 1.0), (failures, 1.0)];
                let density = self.linear(&terms, 0.0);
                let density = self.require_share(p, density);
                self.require(r, density)
            }
            Distribution::Geometric { p } => {
                let (log, other) = (self.log(p), self.complement(p));
                let failures = self.x_log_y(x, other);
                let density = self.add(log, failures);
                self.require_share(p, density)
            }
            Distribution::FirstSuccess { p } => {
                let failures = self.linear(&[(x, 1.0)], -1.0);
                self.log_density(&Distribution::Geometric { p }, failures, normalised)
            }
            Distribution::Hypergeometric { n1, n2, m1, psi } => self.log_hypergeometric(x, n1, n2, m1, psi),
            Distribution::BetaBinomial { a, b, n } => {
                let rest = self.subtract(n, x);
                let (a_after, b_after) = (self.add(x, a), self.add(rest, b));
                let (ways, after, before) =
                    (self.log_choose(n, x), self.log_beta(a_after, b_after), self.log_beta(a, b));
                let density = self.linear(&[(ways, 1.0), (after, 1.0), (before, -1.0)], 0.0);
                self.require(rest, density)
            }
            Distribution::Normal { mean, precision } => {
                let distance = self.subtract(x, mean);
                self.log_normal(distance, precision)
            }
            Distribution::LogNormal { mean, precision } => {
                let log = self.log(x);
                let distance = self.subtract(log, mean);
                let normal = self.log_normal(distance, precision);
                self.subtract(normal, log)
            }
            Distribution::Gamma { shape, rate } => self.log_gamma_density(x, shape, rate),
            Distribution::InverseGamma { shape, scale } => {
                let (log_x, log_scale, norm) = (self.log(x), self.log(scale), self.log_gamma(shape));
                let more = self.linear(&[(shape, 1.0)], 1.0);
                let (base, power, energy) =
                    (self.multiply(shape, log_scale), self.multiply(more, log_x), self.divide(scale, x));
                self.linear(&[(base, 1.0), (power, -1.0), (energy, -1.0), (norm, -1.0)], 0.0)
            }
            Distribution::Exponential { rate } => {
                let (log, energy) = (self.log(rate), self.multiply(rate, x));
                self.subtract(log, energy)
            }
            Distribution::ChiSquared { df } => {
                let (shape, rate) = (self.scale(df, 0.5), self.constant(0.5));
                self.log_gamma_density(x, shape, rate)
            }
            Distribution::Beta { a, b } => {
                let other = self.complement(x);
                let (log, log_other, norm) = (self.log(x), self.log(other), self.log_beta(a, b));
                let (a, b) = (self.linear(&[(a, 1.0)], -1.0), self.linear(&[(b, 1.0)], -1.0));
                let (power, power_other) = (self.multiply(a, log), self.multiply(b, log_other));
                self.linear(&[(power, 1.0), (power_other, 1.0), (norm, -1.0)], 0.0)
            }
            Distribution::Uniform { lower, upper } => {
                let width = self.subtract(upper, lower);
                let log = self.log(width);
                let density = self.scale(log, -1.0);
                let (above, below) = (self.subtract(x, lower), self.subtract(upper, x));
                let density = self.require(above, density);
                self.require(below, density)
            }
            Distribution::StudentT { mean, precision, df } => {
                let distance = self.subtract(x, mean);
                let square = self.unary(Unary::Square, distance);
                let energy = self.multiply(precision, square);
                self.log_student(energy, df, precision)
            }
            Distribution::Laplace { mean, rate } => {
                let distance = self.subtract(x, mean);
                let length = self.unary(Unary::Abs, distance);
                let (log, energy) = (self.log(rate), self.multiply(rate, length));
                self.linear(&[(log, 1.0), (energy, -1.0)], -LN_2)
            }
            Distribution::Logistic { mean, rate } => {
                let distance = self.subtract(x, mean);
                let (log, z) = (self.log(rate), self.multiply(rate, distance));
                let opposite = self.scale(z, -1.0);
                let softplus = self.unary(Unary::Softplus, opposite);
                self.linear(&[(log, 1.0), (z, -1.0), (softplus, -2.0)], 0.0)
            }
            Distribution::Weibull { shape, rate } => {
                let (log_shape, log_rate) = (self.log(shape), self.log(rate));
                let power = self.power(x, shape);
                let energy = self.multiply(rate, power);
                let less = self.linear(&[(shape, 1.0)], -1.0);
                let powered = self.x_log_y(less, x);
                self.linear(&[(log_shape, 1.0), (log_rate, 1.0), (powered, 1.0), (energy, -1.0)], 0.0)
            }
            Distribution::Pareto { shape, lower } => {
                let (log_x, log_shape, log_lower) = (self.log(x), self.log(shape), self.log(lower));
                let (base, power) = (self.multiply(shape, log_lower), self.multiply(shape, log_x));
                let density = self.linear(&[(log_shape, 1.0), (base, 1.0), (power, -1.0), (log_x, -1.0)], 0.0);
                let above = self.subtract(x, lower);
                self.require(above, density)
            }
            Distribution::GeneralisedGamma { shape, rate, power } => {
                let (log_x, log_rate, log_power) = (self.log(x), self.log(rate), self.log(power));
                let (norm, product) = (self.log_gamma(shape), self.multiply(power, shape));
                let sum = self.add(log_x, log_rate);
                let (powered, exponent) = (self.multiply(product, sum), self.multiply(power, sum));
                let energy = self.unary(Unary::Exp, exponent);
                self.linear(&[(log_power, 1.0), (powered, 1.0), (log_x, -1.0), (energy, -1.0), (norm, -1.0)], 0.0)
            }
            Distribution::FDistribution { n, m } => {
                let (n, m) = (self.scale(n, 0.5), self.scale(m, 0.5));
                let (log_x, log_n, log_m, norm) = (self.log(x), self.log(n), self.log(m), self.log_beta(n, m));
                let (ratio, both) = (self.multiply(n, x), self.add(n, m));
                let mixed = self.add(ratio, m);
                let log_mixed = self.log(mixed);
                let less = self.linear(&[(n, 1.0)], -1.0);
                let terms = [
                    (self.multiply(n, log_n), 1.0),
                    (self.multiply(m, log_m), 1.0),
                    (self.multiply(less, log_x), 1.0),
                    (self.multiply(both, log_mixed), -1.0),
                    (norm, -1.0),
                ];
                self.linear(&terms, 0.0)
            }
            Distribution::Interval { time, ref cuts } => self.log_interval(x, time, cuts),
            Distribution::Flat | Distribution::HalfFlat => self.constant(0.0),
        }
    }

    fn log_gamma_density(&mut self, x: Expr, shape: Expr, rate: Expr) -> Expr {
        let (log_rate, norm) = (self.log(rate), self.log_gamma(shape));
        let less = self.linear(&[(shape, 1.0)], -1.0);
        let (base, power, energy) = (self.multiply(shape, log_rate), self.x_log_y(less, x), self.multiply(rate, x));
        self.linear(&[(base, 1.0), (power, 1.0), (energy, -1.0), (norm, -1.0)], 0.0)
    }

    /// A Student t log density; `energy` is the squared distance from the mean in units of the scale.
    fn log_student(&mut self, energy: Expr, df: Expr, precision: Expr) -> Expr {
        let (half, more) = (self.scale(df, 0.5), self.linear(&[(df, 0.5)], 0.5));
        let (top, bottom) = (self.log_gamma(more), self.log_gamma(half));
        let (log_precision, log_df) = (self.log(precision), self.log(df));
        let ratio = self.divide(energy, df);
        let inside = self.linear(&[(ratio, 1.0)], 1.0);
        let tail = self.log(inside);
        let tail = self.multiply(more, tail);
        self.linear(&[(top, 1.0), (bottom, -1.0), (log_precision, 0.5), (log_df, -0.5), (tail, -1.0)], -0.5 * PI.ln())
    }

    /// The builder ensures that n₁, n₂ and m₁ are constant.
    fn log_hypergeometric(&mut self, x: Expr, n1: Expr, n2: Expr, m1: Expr, psi: Expr) -> Expr {
        let number = |e: Expr| self.value(e).unwrap_or(0.0);
        let (first, second, drawn) = (number(n1), number(n2), number(m1));
        let (low, high) = ((drawn - second).max(0.0), first.min(drawn));
        let weight = |this: &mut Self, k: Expr| {
            let rest = this.subtract(m1, k);
            let (one, two, odds) = (this.log_choose(n1, k), this.log_choose(n2, rest), this.x_log_y(k, psi));
            this.linear(&[(one, 1.0), (two, 1.0), (odds, 1.0)], 0.0)
        };
        let mut all = Vec::new();
        let mut k = low;
        while k <= high {
            let value = self.constant(k);
            all.push(weight(self, value));
            k += 1.0;
        }
        let (own, total) = (weight(self, x), self.log_sum_exp(&all));
        self.subtract(own, total)
    }

    /// 0 if x is the interval that `time` falls into, else −∞.
    fn log_interval(&mut self, x: Expr, time: Expr, cuts: &[Expr]) -> Expr {
        let passed = self.intervals_passed(time, cuts);
        let distance = self.subtract(x, passed);
        let same = self.unary(Unary::IsZero, distance);
        let (condition, zero) = (self.linear(&[(same, 1.0)], -0.5), self.constant(0.0));
        self.require(condition, zero)
    }

    /// How many cut points lie below `time`.
    pub(super) fn intervals_passed(&mut self, time: Expr, cuts: &[Expr]) -> Expr {
        let passed: Vec<(Expr, f64)> = cuts
            .iter()
            .map(|cut| {
                let left = self.subtract(*cut, time);
                (self.unary(Unary::Step, left), -1.0)
            })
            .collect();
        self.linear(&passed, cuts.len() as f64)
    }

    /// log p(x) of a vector. `normalised` says that the probabilities of a multinomial sum to 1.
    pub(super) fn log_vector_density(
        &mut self,
        distribution: &VectorDistribution,
        x: &[Expr],
        normalised: bool,
    ) -> Expr {
        match distribution {
            VectorDistribution::Multinomial { p, n } => {
                let ways = self.log_factorial(*n);
                let mut terms = vec![(ways, 1.0)];
                for (x, p) in x.iter().zip(p) {
                    terms.push((self.x_log_y(*x, *p), 1.0));
                    terms.push((self.log_factorial(*x), -1.0));
                }
                if !normalised {
                    let shares: Vec<(Expr, f64)> = p.iter().map(|p| (*p, 1.0)).collect();
                    let total = self.linear(&shares, 0.0);
                    let log = self.log(total);
                    terms.push((self.multiply(*n, log), -1.0));
                }
                let density = self.linear(&terms, 0.0);
                self.require_weights(p, density)
            }
            VectorDistribution::Dirichlet { alpha } => {
                let mut terms = Vec::new();
                let mut sum = Vec::new();
                for (x, alpha) in x.iter().zip(alpha) {
                    // An element with weight 0 is not part of the simplex.
                    if self.value(*alpha) == Some(0.0) {
                        continue;
                    }
                    let less = self.linear(&[(*alpha, 1.0)], -1.0);
                    terms.push((self.x_log_y(less, *x), 1.0));
                    terms.push((self.log_gamma(*alpha), -1.0));
                    sum.push((*alpha, 1.0));
                }
                let sum = self.linear(&sum, 0.0);
                terms.push((self.log_gamma(sum), 1.0));
                self.linear(&terms, 0.0)
            }
            VectorDistribution::MultivariateNormal { mean, precision } => {
                let energy = self.energy(x, mean, precision);
                let log = self.log_determinant(precision, x.len());
                self.linear(&[(log, 0.5), (energy, -0.5)], -0.5 * x.len() as f64 * (2.0 * PI).ln())
            }
            VectorDistribution::MultivariateStudentT { mean, precision, df } => {
                let n = x.len() as f64;
                let (energy, log) = (self.energy(x, mean, precision), self.log_determinant(precision, x.len()));
                let (half, more) = (self.scale(*df, 0.5), self.linear(&[(*df, 0.5)], 0.5 * n));
                let (top, bottom, log_df) = (self.log_gamma(more), self.log_gamma(half), self.log(*df));
                let ratio = self.divide(energy, *df);
                let inside = self.linear(&[(ratio, 1.0)], 1.0);
                let tail = self.log(inside);
                let tail = self.multiply(more, tail);
                let terms = [(top, 1.0), (bottom, -1.0), (log, 0.5), (log_df, -0.5 * n), (tail, -1.0)];
                self.linear(&terms, -0.5 * n * PI.ln())
            }
            VectorDistribution::Wishart { scale, df } => {
                let n = scale.len().isqrt();
                let trace = self.inner_product(scale, x);
                let (log, log_scale) = (self.log_determinant(x, n), self.log_determinant(scale, n));
                let order = n as f64;
                let half_df = self.scale(*df, 0.5);
                let less = self.linear(&[(*df, 0.5)], -0.5 * (order + 1.0));
                let mut terms = vec![
                    (self.multiply(half_df, log_scale), 1.0),
                    (self.multiply(less, log), 1.0),
                    (trace, -0.5),
                    (*df, -0.5 * order * LN_2),
                ];
                for j in 0..n {
                    let argument = self.linear(&[(half_df, 1.0)], -0.5 * j as f64);
                    terms.push((self.log_gamma(argument), -1.0));
                }
                self.linear(&terms, -0.25 * order * (order - 1.0) * PI.ln())
            }
        }
    }

    /// (x − mean)ᵀ precision (x − mean).
    fn energy(&mut self, x: &[Expr], mean: &[Expr], precision: &[Expr]) -> Expr {
        let n = x.len();
        if let Some((factor, values)) = self.common_factor(precision) {
            let constants = self.constants(&values);
            let energy = self.energy(x, mean, &constants);
            return self.multiply(factor, energy);
        }
        let distance: Vec<Expr> = x.iter().zip(mean).map(|(x, m)| self.subtract(*x, *m)).collect();
        let mut terms = Vec::with_capacity(n);
        for i in 0..n {
            let row = self.inner_product(&precision[i * n..(i + 1) * n], &distance);
            terms.push((self.multiply(distance[i], row), 1.0));
        }
        self.linear(&terms, 0.0)
    }
}

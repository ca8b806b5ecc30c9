//! Draws from the distributions.

use super::distribution::{Bounds, Distribution, VectorDistribution};
use super::error::GraphError;
use super::expression::{Expr, Expressions, Node};
use super::node::{AnyDistribution, Graph, Random};
use super::sample_between::draw_inverted;
use hyperprior_math::linalg::{cholesky, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::special::ln_choose;
use rand::RngExt;
use rand_distr::{
    Beta, Binomial, ChiSquared, Distribution as _, Exp1, Gamma, Geometric, Poisson, StandardNormal, StudentT,
};

/// The most attempts at drawing a value between bounds by rejection.
const TRIES: usize = 1000;

impl Random {
    /// Everything that its distribution depends on.
    pub(super) fn parents(&self) -> Vec<Expr> {
        let mut parents = match &self.distribution {
            AnyDistribution::Scalar(distribution) => distribution.parameters(),
            AnyDistribution::Vector(VectorDistribution::Multinomial { p, n }) => {
                p.iter().copied().chain([*n]).collect()
            }
            AnyDistribution::Vector(VectorDistribution::Dirichlet { alpha }) => alpha.clone(),
            AnyDistribution::Vector(VectorDistribution::MultivariateNormal { mean, precision }) => {
                [&mean[..], precision].concat()
            }
            AnyDistribution::Vector(VectorDistribution::MultivariateStudentT { mean, precision, df }) => {
                [&mean[..], precision, &[*df]].concat()
            }
            AnyDistribution::Vector(VectorDistribution::Wishart { scale, df }) => [&scale[..], &[*df]].concat(),
        };
        parents.extend(self.bounds.iter().flat_map(|b| [b.lower, b.upper]).flatten());
        parents
    }

    /// Draws its value given those of its parents, whether or not it is observed; `values` are those of the earlier expressions.
    pub(super) fn draw(&self, values: &[f64], rng: &mut Stream) -> Result<Vec<f64>, GraphError> {
        let value = |e: &Expr| values[e.0 as usize];
        let unsupported = |reason: String| GraphError::Unsupported { name: self.name.clone(), reason };
        if let (AnyDistribution::Scalar(distribution), Some(added)) = (&self.distribution, self.added) {
            return draw_conjugate(distribution, added, self.bounds, &value, rng).map(|x| vec![x]).ok_or_else(|| {
                unsupported("its distribution has no mass between its bounds, so it cannot be drawn".to_owned())
            });
        }
        match &self.distribution {
            AnyDistribution::Scalar(distribution) => {
                draw_between(distribution, self.bounds, &value, rng).map(|x| vec![x]).ok_or_else(|| {
                    unsupported("its distribution has no mass between its bounds, so it cannot be drawn".to_owned())
                })
            }
            AnyDistribution::Vector(distribution) => draw_vector(distribution, &value, rng)
                .ok_or_else(|| unsupported("its matrix is not positive definite, so it cannot be drawn".to_owned())),
        }
    }
}

impl Graph {
    /// Draws the latents of a random node given the values of its parents; `values` are those of the earlier expressions.
    pub(super) fn draw(
        &self,
        node: &Random,
        values: &[f64],
        rng: &mut Stream,
    ) -> Result<Vec<(usize, f64)>, GraphError> {
        let drawn = node.draw(values, rng)?;
        let leaf = |e: &Expr| match self.arena.node(*e) {
            Node::Leaf(l) => Some(l as usize),
            _ => None,
        };
        Ok(node.value.iter().zip(drawn).filter_map(|(e, x)| leaf(e).map(|l| (l, x))).collect())
    }
}

fn draw_between(
    distribution: &Distribution,
    bounds: Option<Bounds>,
    value: &dyn Fn(&Expr) -> f64,
    rng: &mut Stream,
) -> Option<f64> {
    let Some(Bounds { lower, upper, .. }) = bounds else { return Some(draw(distribution, value, rng)) };
    let (low, high) = (lower.map_or(f64::NEG_INFINITY, |e| value(&e)), upper.map_or(f64::INFINITY, |e| value(&e)));
    let is_between = |x: &f64| !(*x < low || *x > high);
    let found = (0..TRIES).map(|_| draw(distribution, value, rng)).find(is_between);
    found.or_else(|| draw_inverted(distribution, [low, high], value, rng))
}

/// A draw given an observation that adds these to the two parameters; nothing if there is no mass between the bounds that can be found.
fn draw_conjugate(
    distribution: &Distribution,
    added: [f64; 2],
    bounds: Option<Bounds>,
    value: &dyn Fn(&Expr) -> f64,
    rng: &mut Stream,
) -> Option<f64> {
    let (mut arena, mut added) = (Expressions::default(), added.into_iter());
    let mut given = distribution.clone();
    given.each_parameter(|e| *e = arena.constant(value(e) + added.next().unwrap_or(0.0)));
    let mut constant = |e: Expr| arena.constant(value(&e));
    let bounds = bounds.map(|bounds| Bounds {
        lower: bounds.lower.map(&mut constant),
        upper: bounds.upper.map(&mut constant),
        ..bounds
    });
    draw_between(&given, bounds, &|e| arena.value(*e).unwrap_or(f64::NAN), rng)
}

/// A draw; NaN if the parameters are invalid. The match is long because it has one arm per distribution.
fn draw(distribution: &Distribution, value: &dyn Fn(&Expr) -> f64, rng: &mut Stream) -> f64 {
    fn of<D: rand_distr::Distribution<f64>, E>(distribution: Result<D, E>, rng: &mut Stream) -> f64 {
        distribution.map_or(f64::NAN, |distribution| distribution.sample(rng))
    }
    let gamma = |shape: f64, rate: f64, rng: &mut Stream| of(Gamma::new(shape, 1.0 / rate), rng);
    let poisson = |rate: f64, rng: &mut Stream| if rate == 0.0 { 0.0 } else { of(Poisson::new(rate), rng) };
    let binomial = |n: f64, p: f64, rng: &mut Stream| {
        if !(n >= 0.0) {
            return f64::NAN;
        }
        Binomial::new(n as u64, p).map_or(f64::NAN, |distribution| distribution.sample(rng) as f64)
    };
    let normal: fn(&mut Stream) -> f64 = |rng| StandardNormal.sample(rng);
    match distribution {
        Distribution::Bernoulli { p } => {
            let p = value(p);
            if (0.0..=1.0).contains(&p) { f64::from(rng.random::<f64>() < p) } else { f64::NAN }
        }
        Distribution::Binomial { p, n } => binomial(value(n), value(p), rng),
        Distribution::BetaBinomial { a, b, n } => {
            let p = of(Beta::new(value(a), value(b)), rng);
            binomial(value(n), p, rng)
        }
        Distribution::Categorical { weights } => {
            let weights: Vec<f64> = weights.iter().map(value).collect();
            1.0 + choose(&weights, rng) as f64
        }
        Distribution::Poisson { rate } => poisson(value(rate), rng),
        Distribution::NegativeBinomial { p, r } => {
            let (p, r) = (value(p), value(r));
            let rate = if p == 1.0 { 0.0 } else { gamma(r, p / (1.0 - p), rng) };
            poisson(rate, rng)
        }
        Distribution::Geometric { p } => {
            Geometric::new(value(p)).map_or(f64::NAN, |distribution| distribution.sample(rng) as f64)
        }
        Distribution::FirstSuccess { p } => {
            1.0 + Geometric::new(value(p)).map_or(f64::NAN, |distribution| distribution.sample(rng) as f64)
        }
        Distribution::Hypergeometric { n1, n2, m1, psi } => {
            let [n1, n2, m1, psi] = [n1, n2, m1, psi].map(value);
            let (low, high) = ((m1 - n2).max(0.0), n1.min(m1));
            let weight = |k: f64| ln_choose(n1, k) + ln_choose(n2, m1 - k) + k * psi.ln();
            let logs: Vec<f64> = (0..=(high - low) as usize).map(|k| weight(low + k as f64)).collect();
            let top = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            let weights: Vec<f64> = logs.iter().map(|w| (w - top).exp()).collect();
            low + choose(&weights, rng) as f64
        }
        Distribution::Normal { mean, precision } => value(mean) + normal(rng) / value(precision).sqrt(),
        Distribution::LogNormal { mean, precision } => (value(mean) + normal(rng) / value(precision).sqrt()).exp(),
        Distribution::Gamma { shape, rate } => gamma(value(shape), value(rate), rng),
        Distribution::InverseGamma { shape, scale } => gamma(value(shape), value(scale), rng).recip(),
        Distribution::Exponential { rate } => {
            let x: f64 = Exp1.sample(rng);
            x / value(rate)
        }
        Distribution::ChiSquared { df } => of(ChiSquared::new(value(df)), rng),
        Distribution::Beta { a, b } => of(Beta::new(value(a), value(b)), rng),
        Distribution::Uniform { lower, upper } => {
            let (low, high) = (value(lower), value(upper));
            low + (high - low) * rng.random::<f64>()
        }
        Distribution::StudentT { mean, precision, df } => {
            value(mean) + of(StudentT::new(value(df)), rng) / value(precision).sqrt()
        }
        Distribution::Laplace { mean, rate } => {
            let (x, sign): (f64, bool) = (Exp1.sample(rng), rng.random());
            value(mean) + if sign { x } else { -x } / value(rate)
        }
        Distribution::Logistic { mean, rate } => {
            let u: f64 = rng.random();
            value(mean) + (u / (1.0 - u)).ln() / value(rate)
        }
        Distribution::Weibull { shape, rate } => {
            let x: f64 = Exp1.sample(rng);
            (x / value(rate)).powf(1.0 / value(shape))
        }
        Distribution::Pareto { shape, lower } => {
            let x: f64 = Exp1.sample(rng);
            value(lower) * (x / value(shape)).exp()
        }
        Distribution::GeneralisedGamma { shape, rate, power } => {
            gamma(value(shape), 1.0, rng).powf(1.0 / value(power)) / value(rate)
        }
        Distribution::FDistribution { n, m } => {
            let (n, m) = (value(n), value(m));
            (of(ChiSquared::new(n), rng) / n) / (of(ChiSquared::new(m), rng) / m)
        }
        // Deterministic or improper: nothing to draw from.
        Distribution::Interval { .. } | Distribution::Flat | Distribution::HalfFlat => f64::NAN,
    }
}

/// An index drawn with probability proportional to its weight.
fn choose(weights: &[f64], rng: &mut Stream) -> usize {
    let total: f64 = weights.iter().sum();
    let mut left = rng.random::<f64>() * total;
    for (k, w) in weights.iter().enumerate() {
        left -= w;
        if left < 0.0 {
            return k;
        }
    }
    weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
}

fn draw_vector(distribution: &VectorDistribution, value: &dyn Fn(&Expr) -> f64, rng: &mut Stream) -> Option<Vec<f64>> {
    let all = |e: &[Expr]| -> Vec<f64> { e.iter().map(value).collect() };
    match distribution {
        VectorDistribution::Multinomial { p, n } => {
            let p = all(p);
            let mut out = vec![0.0; p.len()];
            for _ in 0..value(n) as u64 {
                out[choose(&p, rng)] += 1.0;
            }
            Some(out)
        }
        VectorDistribution::Dirichlet { alpha } => {
            let drawn: Vec<f64> = all(alpha)
                .into_iter()
                .map(|a| {
                    if a == 0.0 {
                        0.0
                    } else {
                        Gamma::new(a, 1.0).map_or(f64::NAN, |distribution| distribution.sample(rng))
                    }
                })
                .collect();
            let total: f64 = drawn.iter().sum();
            Some(drawn.into_iter().map(|x| x / total).collect())
        }
        VectorDistribution::MultivariateNormal { mean, precision } => {
            draw_normal(&all(mean), &all(precision), 1.0, rng)
        }
        VectorDistribution::MultivariateStudentT { mean, precision, df } => {
            let df = value(df);
            let squared = ChiSquared::new(df).map_or(f64::NAN, |distribution| distribution.sample(rng)) / df;
            draw_normal(&all(mean), &all(precision), 1.0 / squared.sqrt(), rng)
        }
        VectorDistribution::Wishart { scale, df } => {
            // R = L Lᵀ and B Bartlett's triangle: (L⁻ᵀ B)(L⁻ᵀ B)ᵀ has mean df · R⁻¹.
            let n = scale.len().isqrt();
            let l = cholesky(&all(scale), n)?;
            let df = value(df);
            let mut bartlett = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..i {
                    bartlett[i * n + j] = StandardNormal.sample(rng);
                }
                let squared: f64 =
                    ChiSquared::new(df - i as f64).map_or(f64::NAN, |distribution| distribution.sample(rng));
                bartlett[i * n + i] = squared.sqrt();
            }
            for j in 0..n {
                for i in (0..n).rev() {
                    let taken: f64 = (i + 1..n).map(|k| l[packed_len(k) + i] * bartlett[k * n + j]).sum();
                    bartlett[i * n + j] = (bartlett[i * n + j] - taken) / l[packed_len(i) + i];
                }
            }
            let product = |i: usize, j: usize| (0..n).map(|k| bartlett[i * n + k] * bartlett[j * n + k]).sum();
            Some((0..n * n).map(|e| product(e / n, e % n)).collect())
        }
    }
}

/// mean + scale · L⁻ᵀ ε with precision = L Lᵀ.
fn draw_normal(mean: &[f64], precision: &[f64], scale: f64, rng: &mut Stream) -> Option<Vec<f64>> {
    let n = mean.len();
    let l = cholesky(precision, n)?;
    let mut x: Vec<f64> = (0..n).map(|_| StandardNormal.sample(rng)).collect();
    for i in (0..n).rev() {
        let taken: f64 = (i + 1..n).map(|k| l[packed_len(k) + i] * x[k]).sum();
        x[i] = (x[i] - taken) / l[packed_len(i) + i];
    }
    Some(mean.iter().zip(&x).map(|(m, x)| m + scale * x).collect())
}

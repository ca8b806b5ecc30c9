//! The distributions of random nodes, in the parameterisation of BUGS: a normal has a precision, a gamma a rate.

use super::expression::Expr;

/// The distribution of a random number.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the parameters say it")]
pub enum Distribution {
    Bernoulli {
        p: Expr,
    },
    /// The number of successes in n trials.
    Binomial {
        p: Expr,
        n: Expr,
    },
    /// 1, 2, … with these weights, which need not sum to 1.
    Categorical {
        weights: Vec<Expr>,
    },
    Poisson {
        rate: Expr,
    },
    /// Failures before r successes; r need not be an integer.
    NegativeBinomial {
        p: Expr,
        r: Expr,
    },
    /// Failures before the first success.
    Geometric {
        p: Expr,
    },
    /// The trial of the first success, counted from one.
    FirstSuccess {
        p: Expr,
    },
    /// Fisher's noncentral hypergeometric: m1 drawn of n1 + n2, with odds ratio psi.
    Hypergeometric {
        n1: Expr,
        n2: Expr,
        m1: Expr,
        psi: Expr,
    },
    BetaBinomial {
        a: Expr,
        b: Expr,
        n: Expr,
    },
    Normal {
        mean: Expr,
        precision: Expr,
    },
    LogNormal {
        mean: Expr,
        precision: Expr,
    },
    Gamma {
        shape: Expr,
        rate: Expr,
    },
    /// The reciprocal of a gamma with this shape and with this scale as its rate.
    InverseGamma {
        shape: Expr,
        scale: Expr,
    },
    Exponential {
        rate: Expr,
    },
    ChiSquared {
        df: Expr,
    },
    Beta {
        a: Expr,
        b: Expr,
    },
    Uniform {
        lower: Expr,
        upper: Expr,
    },
    StudentT {
        mean: Expr,
        precision: Expr,
        df: Expr,
    },
    Laplace {
        mean: Expr,
        rate: Expr,
    },
    Logistic {
        mean: Expr,
        rate: Expr,
    },
    /// Density shape · rate · x^(shape − 1) · exp(−rate · x^shape).
    Weibull {
        shape: Expr,
        rate: Expr,
    },
    Pareto {
        shape: Expr,
        lower: Expr,
    },
    GeneralisedGamma {
        shape: Expr,
        rate: Expr,
        power: Expr,
    },
    FDistribution {
        n: Expr,
        m: Expr,
    },
    /// The interval between the cut points that a number falls into; deterministic given the number.
    Interval {
        time: Expr,
        cuts: Vec<Expr>,
    },
    /// Improper: density 1 on the real line.
    Flat,
    /// Improper: density 1 above zero.
    HalfFlat,
}

/// The distribution of a random vector or matrix; matrices are row-major.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the parameters say it")]
pub enum VectorDistribution {
    Multinomial {
        p: Vec<Expr>,
        n: Expr,
    },
    Dirichlet {
        alpha: Vec<Expr>,
    },
    MultivariateNormal {
        mean: Vec<Expr>,
        precision: Vec<Expr>,
    },
    MultivariateStudentT {
        mean: Vec<Expr>,
        precision: Vec<Expr>,
        df: Expr,
    },
    /// A random precision matrix with mean df · scale⁻¹.
    Wishart {
        scale: Vec<Expr>,
        df: Expr,
    },
}

/// The bounds of a truncated or censored distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest value.
    pub lower: Option<Expr>,
    /// The largest value.
    pub upper: Option<Expr>,
    /// Whether the density is divided by the probability between the bounds (truncation, not censoring).
    pub renormalised: bool,
}

impl Distribution {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bernoulli { .. } => "Bernoulli",
            Self::Binomial { .. } => "binomial",
            Self::Categorical { .. } => "categorical",
            Self::Poisson { .. } => "Poisson",
            Self::NegativeBinomial { .. } => "negative binomial",
            Self::Geometric { .. } => "geometric",
            Self::FirstSuccess { .. } => "geometric (from one)",
            Self::Hypergeometric { .. } => "hypergeometric",
            Self::BetaBinomial { .. } => "beta-binomial",
            Self::Normal { .. } => "normal",
            Self::LogNormal { .. } => "log-normal",
            Self::Gamma { .. } => "gamma",
            Self::InverseGamma { .. } => "inverse gamma",
            Self::Exponential { .. } => "exponential",
            Self::ChiSquared { .. } => "chi-squared",
            Self::Beta { .. } => "beta",
            Self::Uniform { .. } => "uniform",
            Self::StudentT { .. } => "Student t",
            Self::Laplace { .. } => "double exponential",
            Self::Logistic { .. } => "logistic",
            Self::Weibull { .. } => "Weibull",
            Self::Pareto { .. } => "Pareto",
            Self::GeneralisedGamma { .. } => "generalised gamma",
            Self::FDistribution { .. } => "F",
            Self::Interval { .. } => "interval",
            Self::Flat | Self::HalfFlat => "flat",
        }
    }

    /// Whether its values are integers.
    pub fn is_discrete(&self) -> bool {
        matches!(
            self,
            Self::Bernoulli { .. }
                | Self::Binomial { .. }
                | Self::Categorical { .. }
                | Self::Poisson { .. }
                | Self::NegativeBinomial { .. }
                | Self::Geometric { .. }
                | Self::FirstSuccess { .. }
                | Self::Hypergeometric { .. }
                | Self::BetaBinomial { .. }
                | Self::Interval { .. }
        )
    }

    /// Its parameters, in order.
    pub fn parameters(&self) -> Vec<Expr> {
        let mut all = Vec::new();
        self.clone().each_parameter(|e| all.push(*e));
        all
    }

    /// Calls `f` for each parameter, in order.
    pub(crate) fn each_parameter(&mut self, mut f: impl FnMut(&mut Expr)) {
        match self {
            Self::Bernoulli { p } | Self::Geometric { p } | Self::FirstSuccess { p } => f(p),
            Self::Binomial { p, n } => [p, n].into_iter().for_each(f),
            Self::Categorical { weights } => weights.iter_mut().for_each(f),
            Self::Poisson { rate } | Self::Exponential { rate } => f(rate),
            Self::NegativeBinomial { p, r } => [p, r].into_iter().for_each(f),
            Self::Hypergeometric { n1, n2, m1, psi } => [n1, n2, m1, psi].into_iter().for_each(f),
            Self::BetaBinomial { a, b, n } => [a, b, n].into_iter().for_each(f),
            Self::Normal { mean, precision } | Self::LogNormal { mean, precision } => {
                [mean, precision].into_iter().for_each(f);
            }
            Self::Gamma { shape, rate } | Self::Weibull { shape, rate } => [shape, rate].into_iter().for_each(f),
            Self::InverseGamma { shape, scale } => [shape, scale].into_iter().for_each(f),
            Self::ChiSquared { df } => f(df),
            Self::Beta { a, b } => [a, b].into_iter().for_each(f),
            Self::Uniform { lower, upper } => [lower, upper].into_iter().for_each(f),
            Self::StudentT { mean, precision, df } => [mean, precision, df].into_iter().for_each(f),
            Self::Laplace { mean, rate } | Self::Logistic { mean, rate } => [mean, rate].into_iter().for_each(f),
            Self::Pareto { shape, lower } => [shape, lower].into_iter().for_each(f),
            Self::GeneralisedGamma { shape, rate, power } => [shape, rate, power].into_iter().for_each(f),
            Self::FDistribution { n, m } => [n, m].into_iter().for_each(f),
            Self::Interval { time, cuts } => std::iter::once(time).chain(cuts).for_each(f),
            Self::Flat | Self::HalfFlat => {}
        }
    }
}

impl VectorDistribution {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Multinomial { .. } => "multinomial",
            Self::Dirichlet { .. } => "Dirichlet",
            Self::MultivariateNormal { .. } => "multivariate normal",
            Self::MultivariateStudentT { .. } => "multivariate Student t",
            Self::Wishart { .. } => "Wishart",
        }
    }

    /// The length of its value, and the order of its matrices.
    pub(crate) fn len(&self) -> (usize, usize) {
        match self {
            Self::Multinomial { p, .. } => (p.len(), p.len()),
            Self::Dirichlet { alpha } => (alpha.len(), alpha.len()),
            Self::MultivariateNormal { mean, .. } | Self::MultivariateStudentT { mean, .. } => (mean.len(), mean.len()),
            Self::Wishart { scale, .. } => (scale.len(), scale.len().isqrt()),
        }
    }
}

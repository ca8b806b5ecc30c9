//! The functions and distributions of the language by name.

use hyperprior_graph::Function;

/// The functions of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    /// A function of numbers, applied element by element.
    Elementwise(Function),
    Sum,
    Mean,
    Sd,
    Product,
    Min,
    Max,
    InnerProduct,
    Inverse,
    Cholesky,
    LogDeterminant,
    Transpose,
    Length,
    Dimension,
    Sort,
    Rank,
    Ranked,
    Order,
    Combine,
    Repeat,
    Interpolate,
    NormalProbability,
    Log10,
}

/// The distributions of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Bernoulli,
    Binomial,
    Categorical,
    Poisson,
    NegativeBinomial,
    Geometric,
    FirstSuccess,
    Hypergeometric,
    BetaBinomial,
    Normal,
    LogNormal,
    Gamma,
    InverseGamma,
    Exponential,
    ChiSquared,
    Beta,
    Uniform,
    StudentT,
    HalfCauchy,
    Laplace,
    Logistic,
    Weibull,
    Pareto,
    GeneralisedGamma,
    FDistribution,
    Interval,
    Flat,
    HalfFlat,
    Multinomial,
    Dirichlet,
    MultivariateNormal,
    MultivariateNormalCovariance,
    MultivariateStudentT,
    Wishart,
}

impl Family {
    /// Whether its values are vectors or matrices.
    pub fn is_vector(self) -> bool {
        matches!(
            self,
            Self::Multinomial
                | Self::Dirichlet
                | Self::MultivariateNormal
                | Self::MultivariateNormalCovariance
                | Self::MultivariateStudentT
                | Self::Wishart
        )
    }

    /// The parameter that is a precision although people may expect a standard deviation.
    pub fn precision(self) -> Option<usize> {
        matches!(self, Self::Normal | Self::LogNormal | Self::StudentT).then_some(1)
    }
}

/// The distribution with this name, and the names of its parameters.
pub(super) fn distribution(name: &str) -> Option<(Family, &'static [&'static str])> {
    Some(match name {
        "dbern" => (Family::Bernoulli, &["p"]),
        "dbin" | "dbinom" => (Family::Binomial, &["p", "n"]),
        "dcat" => (Family::Categorical, &["p[]"]),
        "dpois" => (Family::Poisson, &["rate"]),
        "dnegbin" | "dnbinom" => (Family::NegativeBinomial, &["p", "r"]),
        "dgeom" => (Family::FirstSuccess, &["p"]),
        "dgeom0" => (Family::Geometric, &["p"]),
        "dhyper" => (Family::Hypergeometric, &["n1", "n2", "m1", "psi"]),
        "dbetabin" | "dbetabinom" => (Family::BetaBinomial, &["a", "b", "n"]),
        "dnorm" => (Family::Normal, &["mean", "precision"]),
        "dlnorm" => (Family::LogNormal, &["mean", "precision"]),
        "dgamma" => (Family::Gamma, &["shape", "rate"]),
        "dinvgamma" => (Family::InverseGamma, &["shape", "scale"]),
        "dexp" => (Family::Exponential, &["rate"]),
        "dchisq" | "dchisqr" => (Family::ChiSquared, &["degrees"]),
        "dbeta" => (Family::Beta, &["a", "b"]),
        "dunif" => (Family::Uniform, &["lower", "upper"]),
        "dt" => (Family::StudentT, &["mean", "precision", "degrees"]),
        "dhalfcauchy" => (Family::HalfCauchy, &["scale"]),
        "ddexp" => (Family::Laplace, &["mean", "rate"]),
        "dlogis" => (Family::Logistic, &["mean", "rate"]),
        "dweib" | "dweibull" => (Family::Weibull, &["shape", "rate"]),
        "dpar" => (Family::Pareto, &["shape", "lower"]),
        "dgen.gamma" | "dggamma" => (Family::GeneralisedGamma, &["shape", "rate", "power"]),
        "df" => (Family::FDistribution, &["n", "m"]),
        "dinterval" => (Family::Interval, &["time", "cuts[]"]),
        "dflat" => (Family::Flat, &[]),
        "dhalfflat" => (Family::HalfFlat, &[]),
        "dmulti" | "dmultinom" => (Family::Multinomial, &["p[]", "n"]),
        "ddirch" | "ddirich" => (Family::Dirichlet, &["alpha[]"]),
        "dmnorm" => (Family::MultivariateNormal, &["mean[]", "precision[,]"]),
        "dmnorm.vcov" => (Family::MultivariateNormalCovariance, &["mean[]", "covariance[,]"]),
        "dmt" => (Family::MultivariateStudentT, &["mean[]", "precision[,]", "degrees"]),
        "dwish" => (Family::Wishart, &["scale[,]", "degrees"]),
        _ => return None,
    })
}

/// The function with this name, and the least and greatest number of its arguments.
pub(super) fn function(name: &str) -> Option<(Builtin, usize, usize)> {
    let one = |f| (Builtin::Elementwise(f), 1, 1);
    let two = |f| (Builtin::Elementwise(f), 2, 2);
    Some(match name {
        "abs" => one(Function::Abs),
        "exp" => one(Function::Exp),
        "log" => one(Function::Log),
        "log10" => (Builtin::Log10, 1, 1),
        "sqrt" => one(Function::Sqrt),
        "step" => one(Function::Step),
        "logit" => one(Function::Logit),
        "ilogit" => one(Function::InverseLogit),
        "probit" => one(Function::Probit),
        "phi" => one(Function::Phi),
        "cloglog" => one(Function::CLogLog),
        "icloglog" => one(Function::InverseCLogLog),
        "round" => one(Function::Round),
        "trunc" => one(Function::Trunc),
        "logfact" | "lfactorial" => one(Function::LogFactorial),
        "loggam" | "lgamma" => one(Function::LogGamma),
        "sin" => one(Function::Sin),
        "cos" => one(Function::Cos),
        "tan" => one(Function::Tan),
        "arcsin" | "asin" => one(Function::ArcSin),
        "arccos" | "acos" => one(Function::ArcCos),
        "arctan" | "atan" => one(Function::ArcTan),
        "sinh" => one(Function::SinH),
        "cosh" => one(Function::CosH),
        "tanh" => one(Function::TanH),
        "arcsinh" | "asinh" => one(Function::ArcSinH),
        "arccosh" | "acosh" => one(Function::ArcCosH),
        "arctanh" | "atanh" => one(Function::ArcTanH),
        "equals" => two(Function::Equal),
        "pow" => two(Function::Power),
        "ifelse" => (Builtin::Elementwise(Function::IfElse), 3, 3),
        "sum" => (Builtin::Sum, 1, usize::MAX),
        "prod" => (Builtin::Product, 1, usize::MAX),
        "mean" => (Builtin::Mean, 1, 1),
        "sd" => (Builtin::Sd, 1, 1),
        "min" => (Builtin::Min, 1, usize::MAX),
        "max" => (Builtin::Max, 1, usize::MAX),
        "inprod" => (Builtin::InnerProduct, 2, 2),
        "inverse" => (Builtin::Inverse, 1, 1),
        "chol" => (Builtin::Cholesky, 1, 1),
        "logdet" => (Builtin::LogDeterminant, 1, 1),
        "t" => (Builtin::Transpose, 1, 1),
        "length" => (Builtin::Length, 1, 1),
        "dim" => (Builtin::Dimension, 1, 1),
        "sort" => (Builtin::Sort, 1, 1),
        // In OpenBUGS, rank(x[], i) is the rank of element i, and ranked(x[], k) the element of rank k.
        "rank" => (Builtin::Rank, 1, 2),
        "ranked" => (Builtin::Ranked, 2, 2),
        "order" => (Builtin::Order, 1, 1),
        "c" => (Builtin::Combine, 1, usize::MAX),
        "rep" => (Builtin::Repeat, 2, 2),
        "interp.lin" => (Builtin::Interpolate, 3, 3),
        "pnorm" => (Builtin::NormalProbability, 3, 3),
        _ => return None,
    })
}

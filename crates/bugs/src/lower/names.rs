//! The functions and distributions of the language by name, and what was probably meant by a name that is not among them.

use hyperprior::model::graph::Function;

/// What a function's name stands for.
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
    LogDeterminant,
    Transpose,
    Length,
    Dimension,
    Sort,
    Rank,
    Order,
    Combine,
    Repeat,
    Interpolate,
    NormalProbability,
}

/// What a distribution's name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Bernoulli,
    Binomial,
    Categorical,
    Poisson,
    NegativeBinomial,
    Geometric,
    Hypergeometric,
    BetaBinomial,
    Normal,
    LogNormal,
    Gamma,
    Exponential,
    ChiSquared,
    Beta,
    Uniform,
    StudentT,
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

    /// Which parameter is a precision where people expect a standard deviation.
    pub fn precision(self) -> Option<usize> {
        matches!(self, Self::Normal | Self::LogNormal | Self::StudentT).then_some(1)
    }
}

/// The distribution of that name, with the names of its parameters.
pub(super) fn distribution(name: &str) -> Option<(Family, &'static [&'static str])> {
    Some(match name {
        "dbern" => (Family::Bernoulli, &["p"]),
        "dbin" | "dbinom" => (Family::Binomial, &["p", "n"]),
        "dcat" => (Family::Categorical, &["p[]"]),
        "dpois" => (Family::Poisson, &["rate"]),
        "dnegbin" | "dnbinom" => (Family::NegativeBinomial, &["p", "r"]),
        "dgeom" => (Family::Geometric, &["p"]),
        "dhyper" => (Family::Hypergeometric, &["n1", "n2", "m1", "psi"]),
        "dbetabin" | "dbetabinom" => (Family::BetaBinomial, &["a", "b", "n"]),
        "dnorm" => (Family::Normal, &["mean", "precision"]),
        "dlnorm" => (Family::LogNormal, &["mean", "precision"]),
        "dgamma" => (Family::Gamma, &["shape", "rate"]),
        "dexp" => (Family::Exponential, &["rate"]),
        "dchisq" | "dchisqr" => (Family::ChiSquared, &["degrees"]),
        "dbeta" => (Family::Beta, &["a", "b"]),
        "dunif" => (Family::Uniform, &["lower", "upper"]),
        "dt" => (Family::StudentT, &["mean", "precision", "degrees"]),
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

const DISTRIBUTIONS: &[&str] = &[
    "dbern",
    "dbin",
    "dcat",
    "dpois",
    "dnegbin",
    "dgeom",
    "dhyper",
    "dbetabin",
    "dnorm",
    "dlnorm",
    "dgamma",
    "dexp",
    "dchisqr",
    "dbeta",
    "dunif",
    "dt",
    "ddexp",
    "dlogis",
    "dweib",
    "dpar",
    "dgen.gamma",
    "df",
    "dinterval",
    "dflat",
    "dmulti",
    "ddirch",
    "dmnorm",
    "dmt",
    "dwish",
];

/// Distributions that JAGS or OpenBUGS have and this program does not, with a way around.
pub(super) fn unsupported_distribution(name: &str) -> Option<&'static str> {
    Some(match name {
        "dsum" | "dround" => "observe a sum through a distribution of its own, such as dpois or dnorm of the sum",
        "dnormmix" => "draw the component with `z ~ dcat(p[])`, and write `y ~ dnorm(mu[z], tau[z])`",
        "dnchisqr" | "dnt" | "dloglik" | "dgev" | "dgpar" => "express it through the distributions of the manual",
        "dscaled.gamma" | "dscaled.wishart" => "put the prior on the standard deviation: `sigma ~ dt(0, 1, 4) T(0,)`",
        "car.normal" | "car.proper" | "car.l1" | "mv.car" => "write the precision matrix out and use dmnorm",
        "dorder.logit" | "dordered.logit" | "dordered.probit" => "write the cumulative probabilities out and use dcat",
        "dmvt" => "write dmt(mean[], precision[,], degrees)",
        _ => return None,
    })
}

/// The function of that name, with the least and the greatest number of its arguments.
pub(super) fn function(name: &str) -> Option<(Builtin, usize, usize)> {
    let one = |f| (Builtin::Elementwise(f), 1, 1);
    let two = |f| (Builtin::Elementwise(f), 2, 2);
    Some(match name {
        "abs" => one(Function::Abs),
        "exp" => one(Function::Exp),
        "log" => one(Function::Log),
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
        "logdet" => (Builtin::LogDeterminant, 1, 1),
        "t" => (Builtin::Transpose, 1, 1),
        "length" => (Builtin::Length, 1, 1),
        "dim" => (Builtin::Dimension, 1, 1),
        "sort" => (Builtin::Sort, 1, 1),
        "rank" => (Builtin::Rank, 1, 1),
        "order" => (Builtin::Order, 1, 1),
        "c" => (Builtin::Combine, 1, usize::MAX),
        "rep" => (Builtin::Repeat, 2, 2),
        "interp.lin" => (Builtin::Interpolate, 3, 3),
        "pnorm" => (Builtin::NormalProbability, 3, 3),
        _ => return None,
    })
}

const FUNCTIONS: &[&str] = &[
    "abs",
    "exp",
    "log",
    "sqrt",
    "step",
    "logit",
    "ilogit",
    "probit",
    "phi",
    "cloglog",
    "icloglog",
    "round",
    "trunc",
    "logfact",
    "loggam",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "equals",
    "pow",
    "ifelse",
    "sum",
    "prod",
    "mean",
    "sd",
    "min",
    "max",
    "inprod",
    "inverse",
    "logdet",
    "length",
    "dim",
    "sort",
    "rank",
    "order",
    "rep",
    "interp.lin",
    "pnorm",
];

/// What to do about a distribution that there is none of.
pub(super) fn distribution_hint(name: &str) -> String {
    let bare: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let stem = bare.strip_prefix(['d', 'r']).filter(|stem| stem.len() > 3).unwrap_or(&bare);
    let meant = match stem {
        "normal" | "gaussian" | "gauss" => "dnorm(mean, precision)",
        "bernoulli" => "dbern(p)",
        "binomial" => "dbin(p, n)",
        "categorical" | "multinoulli" => "dcat(p[])",
        "poisson" => "dpois(rate)",
        "negbinomial" | "negativebinomial" | "negbinom" => "dnegbin(p, r)",
        "geometric" => "dgeom(p)",
        "lognormal" | "lognorm" => "dlnorm(mean, precision)",
        "exponential" => "dexp(rate)",
        "uniform" => "dunif(lower, upper)",
        "student" | "studentt" => "dt(mean, precision, degrees)",
        "cauchy" => "dt(location, 1 / scale^2, 1)",
        "halfcauchy" => "dt(0, 1 / scale^2, 1) T(0,)",
        "halfnormal" | "halfnorm" => "dnorm(0, precision) T(0,)",
        "laplace" | "doubleexponential" => "ddexp(mean, rate)",
        "logistic" => "dlogis(mean, rate)",
        "pareto" => "dpar(shape, lower)",
        "dirichlet" => "ddirch(alpha[])",
        "multinomial" => "dmulti(p[], n)",
        "multivariatenormal" | "mvnorm" | "mvnormal" | "multinormal" => "dmnorm(mean[], precision[,])",
        "wishart" => "dwish(scale[,], degrees)",
        "inversegamma" | "invgamma" | "igamma" => {
            return "draw its inverse: `tau ~ dgamma(a, b)`, and define `v <- 1 / tau`".into();
        }
        _ => match name.strip_prefix('r').map(|rest| format!("d{rest}")) {
            Some(density) if distribution(&density).is_some() => return format!("did you mean `{density}`?"),
            _ => {
                let with_d = format!("d{name}");
                if distribution(&with_d).is_some() {
                    return format!("did you mean `{with_d}`?");
                }
                return match nearest(name, DISTRIBUTIONS.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "the distributions are dnorm, dgamma, dbeta, dbern, dbin, dpois, dcat and others".into(),
                };
            }
        },
    };
    format!("did you mean `{meant}`?")
}

/// What to do about a function that there is none of.
pub(super) fn function_hint(name: &str) -> String {
    let meant = match name {
        "ln" => "log(x)",
        "power" => "pow(x, y)",
        "inv.logit" | "invlogit" | "inv_logit" | "expit" | "plogis" | "sigmoid" => "ilogit(x)",
        "Phi" => "phi(x)",
        "qnorm" => "probit(p)",
        "if.else" | "if_else" | "iif" => "ifelse(condition, yes, no)",
        "dot" | "inner" | "dot_product" => "inprod(a[], b[])",
        "factorial" => "exp(logfact(x))",
        "gamma" => "exp(loggam(x))",
        "floor" => "trunc(x)",
        "ceiling" | "ceil" => "-trunc(-x)",
        "log10" => "log(x) / log(10)",
        "log2" => "log(x) / log(2)",
        "log1p" => "log(1 + x)",
        "expm1" => "exp(x) - 1",
        "solve" | "inv" => "inverse(m[,])",
        "average" => "mean(x[])",
        "nrow" | "ncol" => "dim(x)",
        "std" | "stdev" => "sd(x[])",
        "cut" => return "there is no `cut`: it is not part of a joint distribution".into(),
        "seq" => return "write the integers as a range, `1:n`".into(),
        "ranked" => return "write `sort(x[])`, and take the element that is wanted".into(),
        _ => {
            return match nearest(name, FUNCTIONS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "if it is a variable, its indices go into brackets: `x[i]`".into(),
            };
        }
    };
    format!("did you mean `{meant}`?")
}

/// The name among `known` that is nearest, if it is near enough to be a slip of the pen.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .filter(|other| *other != name)
        .map(|other| {
            let same_letters = other.eq_ignore_ascii_case(name);
            (if same_letters { 0 } else { distance(name, other) }, other)
        })
        .filter(|(d, other)| *d <= allowed && *d < other.chars().count())
        .min()
        .map(|(_, other)| other)
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    rows[a.len()][b.len()]
}

/// Whether a name speaks of a standard deviation or a variance.
pub(super) fn speaks_of_spread(name: &str) -> bool {
    name.to_ascii_lowercase().split(['.', '_']).any(|word| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        matches!(word, "sd" | "sigma" | "sig" | "std" | "stdev" | "stddev" | "variance" | "sigmasq" | "sds")
    })
}

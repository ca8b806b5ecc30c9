//! Text for a random node: `y[17] = 3 ~ dpois(mu[17] = 0), model.bug:12`.

use super::distribution::{Distribution, VectorDistribution};
use super::expression::Expr;
use super::node::{AnyDistribution, Random};
use std::collections::HashMap;

/// Longer vectors are abbreviated.
const SHOWN: usize = 6;

/// The names of expressions. Equal quantities share an expression, so one may have several names.
pub(super) struct Names<'a>(HashMap<Expr, Vec<&'a str>>);

impl<'a> Names<'a> {
    pub(super) fn new(all: impl Iterator<Item = (&'a str, Expr)>) -> Self {
        let mut names: HashMap<Expr, Vec<&str>> = HashMap::new();
        for (name, e) in all {
            names.entry(e).or_default().push(name);
        }
        Self(names)
    }

    /// Prefers the name with the same index as the node: of `mu[3]` and `mu[17]`, the second for `y[17]`.
    fn of(&self, e: Expr, node: &str) -> Option<&'a str> {
        let index = |name: &str| name.find('[').map(|at| name[at..].to_owned());
        let all = self.0.get(&e)?;
        all.iter().find(|name| index(name).is_some() && index(name) == index(node)).or(all.first()).copied()
    }
}

/// A node with its distribution and its value, as far as the numbers are known.
pub(super) fn describe(
    node: &Random,
    origin: Option<&str>,
    names: &Names,
    is_constant: &dyn Fn(Expr) -> bool,
    value: &dyn Fn(Expr) -> Option<f64>,
) -> String {
    // A parameter without a name is shown by its value alone.
    let parameter = |e: Expr| match (names.of(e, &node.name), value(e)) {
        (Some(own), Some(x)) if !is_constant(e) => format!("{own} = {}", number(x)),
        (_, Some(x)) => number(x),
        (Some(own), None) => own.to_owned(),
        (None, None) => "?".to_owned(),
    };
    let vector = |name: &str, of: &[Expr]| {
        if of.iter().all(|e| value(*e).is_none()) {
            return name.to_owned();
        }
        let mut shown: Vec<String> =
            of.iter().take(SHOWN).map(|e| value(*e).map_or_else(|| "?".to_owned(), number)).collect();
        if of.len() > SHOWN {
            shown.push("…".to_owned());
        }
        format!("{name} = ({})", shown.join(", "))
    };
    let (distribution, parameters) = match &node.distribution {
        AnyDistribution::Scalar(distribution) => match distribution {
            Distribution::Categorical { weights } => ("dcat", vec![vector("p", weights)]),
            Distribution::Interval { time, cuts } => ("dinterval", vec![parameter(*time), vector("cuts", cuts)]),
            distribution => (in_bugs(distribution), distribution.parameters().into_iter().map(parameter).collect()),
        },
        AnyDistribution::Vector(distribution) => match distribution {
            VectorDistribution::Multinomial { p, n } => ("dmulti", vec![vector("p", p), parameter(*n)]),
            VectorDistribution::Dirichlet { alpha } => ("ddirch", vec![vector("alpha", alpha)]),
            VectorDistribution::MultivariateNormal { mean, precision } => {
                ("dmnorm", vec![vector("mean", mean), vector("precision", precision)])
            }
            VectorDistribution::MultivariateStudentT { mean, precision, df } => {
                ("dmt", vec![vector("mean", mean), vector("precision", precision), parameter(*df)])
            }
            VectorDistribution::Wishart { scale, df } => ("dwish", vec![vector("scale", scale), parameter(*df)]),
        },
    };
    let mut out = match node.value.as_slice() {
        [one] => match value(*one) {
            Some(x) => format!("{} = {}", node.name, number(x)),
            None => node.name.clone(),
        },
        all => vector(&format!("{}, …", node.name), all),
    };
    out += &format!(" ~ {distribution}({})", parameters.join(", "));
    if let Some(bounds) = node.bounds {
        let end = |e: Option<Expr>| e.map_or_else(String::new, parameter);
        out += &format!(" T({}, {})", end(bounds.lower), end(bounds.upper)).replace("(, ", "(,").replace(", )", ",)");
    }
    if let Some(origin) = origin {
        out += &format!(", {origin}");
    }
    out
}

/// A number short enough for a line.
fn number(x: f64) -> String {
    let size = x.abs();
    if x == f64::INFINITY {
        "∞".to_owned()
    } else if x == f64::NEG_INFINITY {
        "−∞".to_owned()
    } else if x.fract() == 0.0 && size < 1e15 {
        format!("{x}")
    } else if (1e-3..1e6).contains(&size) {
        let text = format!("{x:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{x:.3e}")
    }
}

/// Text for a density that is not finite.
pub(super) fn density(x: f64) -> &'static str {
    match x {
        f64::NEG_INFINITY => "−∞",
        f64::INFINITY => "+∞",
        _ => "not a number",
    }
}

/// The BUGS name of a distribution.
fn in_bugs(distribution: &Distribution) -> &'static str {
    match distribution {
        Distribution::Bernoulli { .. } => "dbern",
        Distribution::Binomial { .. } => "dbin",
        Distribution::Categorical { .. } => "dcat",
        Distribution::Poisson { .. } => "dpois",
        Distribution::NegativeBinomial { .. } => "dnegbin",
        Distribution::Geometric { .. } => "dgeom0",
        Distribution::FirstSuccess { .. } => "dgeom",
        Distribution::Hypergeometric { .. } => "dhyper",
        Distribution::BetaBinomial { .. } => "dbetabin",
        Distribution::Normal { .. } => "dnorm",
        Distribution::LogNormal { .. } => "dlnorm",
        Distribution::Gamma { .. } => "dgamma",
        Distribution::InverseGamma { .. } => "dinvgamma",
        Distribution::Exponential { .. } => "dexp",
        Distribution::ChiSquared { .. } => "dchisqr",
        Distribution::Beta { .. } => "dbeta",
        Distribution::Uniform { .. } => "dunif",
        Distribution::StudentT { .. } => "dt",
        Distribution::Laplace { .. } => "ddexp",
        Distribution::Logistic { .. } => "dlogis",
        Distribution::Weibull { .. } => "dweib",
        Distribution::Pareto { .. } => "dpar",
        Distribution::GeneralisedGamma { .. } => "dgen.gamma",
        Distribution::FDistribution { .. } => "df",
        Distribution::Interval { .. } => "dinterval",
        Distribution::Flat => "dflat",
        Distribution::HalfFlat => "dhalfflat",
    }
}

//! A random node in words: `y[17] = 3 ~ dpois(mu[17] = 0), model.bug:12`.

use super::expression::Expr;
use super::law::{Law, VectorLaw};
use super::node::{AnyLaw, Random};
use std::collections::HashMap;

/// Longer vectors than this are cut.
const SHOWN: usize = 6;

/// The names of expressions; equal ones share an expression, so that one may have several.
pub(super) struct Names<'a>(HashMap<Expr, Vec<&'a str>>);

impl<'a> Names<'a> {
    pub(super) fn new(all: impl Iterator<Item = (&'a str, Expr)>) -> Self {
        let mut names: HashMap<Expr, Vec<&str>> = HashMap::new();
        for (name, e) in all {
            names.entry(e).or_default().push(name);
        }
        Self(names)
    }

    /// The name with the node's own index where there is one: of `mu[3]` and `mu[17]`, `y[17]` is told by the second.
    fn of(&self, e: Expr, node: &str) -> Option<&'a str> {
        let index = |name: &str| name.find('[').map(|at| name[at..].to_owned());
        let all = self.0.get(&e)?;
        all.iter().find(|name| index(name).is_some() && index(name) == index(node)).or(all.first()).copied()
    }
}

/// A node with its law and its value, as far as numbers are known.
pub(super) fn told(
    node: &Random,
    origin: Option<&str>,
    names: &Names,
    is_constant: &dyn Fn(Expr) -> bool,
    value: &dyn Fn(Expr) -> Option<f64>,
) -> String {
    // What has no name of its own is told by its place among the law's parameters.
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
    let (law, parameters) = match &node.law {
        AnyLaw::Scalar(law) => match law {
            Law::Categorical { weights } => ("dcat", vec![vector("p", weights)]),
            Law::Interval { time, cuts } => ("dinterval", vec![parameter(*time), vector("cuts", cuts)]),
            law => (in_bugs(law), law.parameters().into_iter().map(parameter).collect()),
        },
        AnyLaw::Vector(law) => match law {
            VectorLaw::Multinomial { p, n } => ("dmulti", vec![vector("p", p), parameter(*n)]),
            VectorLaw::Dirichlet { alpha } => ("ddirch", vec![vector("alpha", alpha)]),
            VectorLaw::MultivariateNormal { mean, precision } => {
                ("dmnorm", vec![vector("mean", mean), vector("precision", precision)])
            }
            VectorLaw::MultivariateStudentT { mean, precision, df } => {
                ("dmt", vec![vector("mean", mean), vector("precision", precision), parameter(*df)])
            }
            VectorLaw::Wishart { scale, df } => ("dwish", vec![vector("scale", scale), parameter(*df)]),
        },
    };
    let mut out = match node.value.as_slice() {
        [one] => match value(*one) {
            Some(x) => format!("{} = {}", node.name, number(x)),
            None => node.name.clone(),
        },
        all => vector(&format!("{}, …", node.name), all),
    };
    out += &format!(" ~ {law}({})", parameters.join(", "));
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

/// What a density that is not finite is, in a few words.
pub(super) fn density(x: f64) -> &'static str {
    match x {
        f64::NEG_INFINITY => "−∞",
        f64::INFINITY => "+∞",
        _ => "not a number",
    }
}

/// A law's name in BUGS.
fn in_bugs(law: &Law) -> &'static str {
    match law {
        Law::Bernoulli { .. } => "dbern",
        Law::Binomial { .. } => "dbin",
        Law::Categorical { .. } => "dcat",
        Law::Poisson { .. } => "dpois",
        Law::NegativeBinomial { .. } => "dnegbin",
        Law::Geometric { .. } => "dgeom0",
        Law::FirstSuccess { .. } => "dgeom",
        Law::Hypergeometric { .. } => "dhyper",
        Law::BetaBinomial { .. } => "dbetabin",
        Law::Normal { .. } => "dnorm",
        Law::LogNormal { .. } => "dlnorm",
        Law::Gamma { .. } => "dgamma",
        Law::Exponential { .. } => "dexp",
        Law::ChiSquared { .. } => "dchisqr",
        Law::Beta { .. } => "dbeta",
        Law::Uniform { .. } => "dunif",
        Law::StudentT { .. } => "dt",
        Law::Laplace { .. } => "ddexp",
        Law::Logistic { .. } => "dlogis",
        Law::Weibull { .. } => "dweib",
        Law::Pareto { .. } => "dpar",
        Law::GeneralisedGamma { .. } => "dgen.gamma",
        Law::FDistribution { .. } => "df",
        Law::Interval { .. } => "dinterval",
        Law::Flat => "dflat",
        Law::HalfFlat => "dhalfflat",
    }
}

//! The supports of distributions, and checks of parameters and observations.

use super::distribution::{Bounds, Distribution, VectorDistribution};
use super::error::GraphError;
use super::expression::{Expr, Expressions, Known};
use super::node::Graph;

/// A bound of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Number(f64),
    Of(Expr),
}

/// The support of a continuous distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) lower: Option<End>,
    pub(crate) upper: Option<End>,
}

impl Expressions {
    /// The smallest and largest value of a discrete distribution as far as they are constant.
    pub(super) fn range(&self, distribution: &Distribution) -> (f64, f64) {
        let number = |e: Expr| self.value(e).unwrap_or(f64::INFINITY);
        match distribution {
            Distribution::Bernoulli { .. } => (0.0, 1.0),
            Distribution::Categorical { weights } => (1.0, weights.len() as f64),
            Distribution::FirstSuccess { .. } => (1.0, f64::INFINITY),
            Distribution::Binomial { n, .. } | Distribution::BetaBinomial { n, .. } => (0.0, number(*n)),
            Distribution::Hypergeometric { n1, n2, m1, .. } => {
                ((number(*m1) - number(*n2)).max(0.0), number(*n1).min(number(*m1)))
            }
            Distribution::Interval { cuts, .. } => (0.0, cuts.len() as f64),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// The support of a continuous distribution, within bounds.
    pub(super) fn span(&self, distribution: &Distribution, bounds: Option<Bounds>) -> Span {
        let end = |e: Expr| Some(self.value(e).map_or(End::Of(e), End::Number));
        let zero = Some(End::Number(0.0));
        let mut span = match *distribution {
            Distribution::LogNormal { .. }
            | Distribution::Gamma { .. }
            | Distribution::InverseGamma { .. }
            | Distribution::Exponential { .. }
            | Distribution::ChiSquared { .. }
            | Distribution::Weibull { .. }
            | Distribution::GeneralisedGamma { .. }
            | Distribution::FDistribution { .. }
            | Distribution::HalfFlat => Span { lower: zero, upper: None },
            Distribution::Beta { .. } => Span { lower: zero, upper: Some(End::Number(1.0)) },
            Distribution::Uniform { lower, upper } => Span { lower: end(lower), upper: end(upper) },
            Distribution::Pareto { lower, .. } => Span { lower: end(lower), upper: None },
            _ => Span::default(),
        };
        if let Some(Bounds { lower, upper, .. }) = bounds {
            span.narrow(lower.and_then(end), upper.and_then(end));
        }
        span
    }
}

impl Graph {
    /// The smallest and largest value of a discrete node given its distribution and bounds, ignoring observations.
    pub(super) fn discrete_range(&self, r: usize, distribution: &Distribution) -> (f64, f64) {
        let (low, high) = self.arena.range(distribution);
        let Some(bounds) = self.random[r].bounds else { return (low, high) };
        let number = |e: Option<Expr>| e.and_then(|e| self.arena.value(e));
        (low.max(number(bounds.lower).unwrap_or(low).ceil()), high.min(number(bounds.upper).unwrap_or(high).floor()))
    }
}

impl Span {
    /// Narrows the span; of a constant and a random bound the random one is taken.
    pub(super) fn narrow(&mut self, lower: Option<End>, upper: Option<End>) {
        let tighter = |own: Option<End>, other: Option<End>, sign: f64| match (own, other) {
            (Some(End::Number(a)), Some(End::Number(b))) if sign * a >= sign * b => own,
            (own, other) => other.or(own),
        };
        self.lower = tighter(self.lower, lower, 1.0);
        self.upper = tighter(self.upper, upper, -1.0);
    }
}

/// What is known about the values of a latent with this distribution.
pub(super) fn known(arena: &Expressions, distribution: &Distribution, bounds: Option<Bounds>) -> Known {
    if distribution.is_discrete() {
        let from_bounds = bounds.and_then(|b| b.lower).and_then(|e| arena.value(e)).unwrap_or(f64::NEG_INFINITY);
        let least = arena.range(distribution).0.max(from_bounds);
        let at_most_one = arena.range(distribution).1 <= 1.0;
        return Known { nonnegative: least >= 0.0, positive: least > 0.0, whole: true, at_most_one };
    }
    let span = arena.span(distribution, bounds);
    let positive = match span.lower {
        Some(End::Number(x)) => x >= 0.0,
        Some(End::Of(e)) => arena.known(e).nonnegative,
        None => false,
    };
    let at_most_one = match span.upper {
        Some(End::Number(x)) => x <= 1.0,
        Some(End::Of(e)) => arena.known(e).at_most_one,
        None => false,
    };
    Known { nonnegative: positive, positive, whole: false, at_most_one }
}

/// Rejects invalid constant parameters.
pub(super) fn check_parameters(arena: &Expressions, name: &str, distribution: &Distribution) -> Result<(), GraphError> {
    let bad = |parameter, e: Expr, reason, is_good: fn(f64) -> bool| match arena.value(e) {
        Some(value) if !is_good(value) => Err(GraphError::Parameter {
            name: name.to_owned(),
            distribution: distribution.name(),
            parameter,
            value,
            reason,
        }),
        _ => Ok(()),
    };
    let positive = |parameter, e| bad(parameter, e, "it must be above 0", |x| x > 0.0);
    let share = |parameter, e| bad(parameter, e, "it must lie between 0 and 1", |x| (0.0..=1.0).contains(&x));
    let size = |parameter, e| {
        bad(parameter, e, "it must be a whole number, 0 or more", |x| x >= 0.0 && x.fract() == 0.0 && x.is_finite())
    };
    let fixed = |parameter: &str, e: Expr| match arena.value(e) {
        Some(_) => Ok(()),
        None => Err(GraphError::Unsupported {
            name: name.to_owned(),
            reason: format!(
                "its {} distribution has a random {parameter}, which is not supported; make it constant",
                distribution.name()
            ),
        }),
    };
    match *distribution {
        Distribution::Bernoulli { p } => share("p", p),
        Distribution::Binomial { p, n } => share("p", p).and(size("n", n)),
        Distribution::Categorical { ref weights } => {
            let reason = "a weight must be 0 or more";
            weights.iter().try_for_each(|w| bad("a weight", *w, reason, |x| x >= 0.0))?;
            if weights.iter().all(|w| arena.value(*w) == Some(0.0)) {
                let reason = "its weights are all 0; at least one must be above 0".to_owned();
                return Err(GraphError::Unsupported { name: name.to_owned(), reason });
            }
            Ok(())
        }
        Distribution::Poisson { rate } => bad("rate", rate, "it must be 0 or more", |x| x >= 0.0),
        Distribution::NegativeBinomial { p, r } => share("p", p).and(positive("r", r)),
        Distribution::Geometric { p } | Distribution::FirstSuccess { p } => {
            bad("p", p, "it must be above 0 and at most 1", |x| x > 0.0 && x <= 1.0)
        }
        Distribution::Hypergeometric { n1, n2, m1, psi } => {
            for (parameter, e) in [("n1", n1), ("n2", n2), ("m1", m1)] {
                size(parameter, e)?;
                fixed(parameter, e)?;
            }
            positive("psi", psi)
        }
        Distribution::BetaBinomial { a, b, n } => positive("a", a).and(positive("b", b)).and(size("n", n)),
        Distribution::Normal { precision, .. } | Distribution::LogNormal { precision, .. } => {
            positive("precision", precision)
        }
        Distribution::Gamma { shape, rate } | Distribution::Weibull { shape, rate } => {
            positive("shape", shape).and(positive("rate", rate))
        }
        Distribution::InverseGamma { shape, scale } => positive("shape", shape).and(positive("scale", scale)),
        Distribution::Exponential { rate }
        | Distribution::Laplace { rate, .. }
        | Distribution::Logistic { rate, .. } => positive("rate", rate),
        Distribution::ChiSquared { df } => positive("df", df),
        Distribution::Beta { a, b } => positive("a", a).and(positive("b", b)),
        Distribution::Uniform { lower, upper } => match (arena.value(lower), arena.value(upper)) {
            (Some(low), Some(high)) if !(low < high) => {
                let reason = "it must be above the lower bound";
                let (distribution, parameter) = (distribution.name(), "upper");
                Err(GraphError::Parameter { name: name.to_owned(), distribution, parameter, value: high, reason })
            }
            _ => Ok(()),
        },
        Distribution::StudentT { precision, df, .. } => positive("precision", precision).and(positive("df", df)),
        Distribution::Pareto { shape, lower } => positive("shape", shape).and(positive("lower bound", lower)),
        Distribution::GeneralisedGamma { shape, rate, power } => {
            positive("shape", shape).and(positive("rate", rate)).and(positive("power", power))
        }
        Distribution::FDistribution { n, m } => positive("n", n).and(positive("m", m)),
        Distribution::Interval { .. } | Distribution::Flat | Distribution::HalfFlat => Ok(()),
    }
}

/// Rejects an observation that is impossible under the distribution.
pub(super) fn check_value(
    arena: &Expressions,
    name: &str,
    distribution: &Distribution,
    bounds: Option<Bounds>,
    value: f64,
) -> Result<(), GraphError> {
    let outside = |reason: String| {
        Err(GraphError::Outside { name: name.to_owned(), distribution: distribution.name(), value, reason })
    };
    if !value.is_finite() {
        return outside("an observation must be a finite number".to_owned());
    }
    if distribution.is_discrete() {
        let (low, high) = arena.range(distribution);
        if value.fract() != 0.0 {
            return outside("its values are whole numbers".to_owned());
        }
        if value < low || value > high {
            let to = if high < f64::INFINITY { format!("from {low} to {high}") } else { format!("{low} or more") };
            return outside(format!("its values are {to}"));
        }
        if let Distribution::Categorical { weights } = distribution
            && arena.value(weights[value as usize - 1]) == Some(0.0)
        {
            return outside("that value has weight 0".to_owned());
        }
        if let Distribution::Bernoulli { p } | Distribution::Binomial { p, .. } = distribution {
            let impossible = match arena.value(*p) {
                Some(0.0) => value > 0.0,
                // If the number of trials is random, it may be the observation.
                Some(1.0) => high < f64::INFINITY && value < high,
                _ => false,
            };
            if let (true, Some(p)) = (impossible, arena.value(*p)) {
                return outside(format!("its probability p is {p}"));
            }
        }
        if let Distribution::Poisson { rate } = distribution
            && arena.value(*rate) == Some(0.0)
            && value > 0.0
        {
            return outside("its rate is 0".to_owned());
        }
    } else {
        let number = |e: Option<Expr>| e.and_then(|e| arena.value(e));
        let (low, high, closed) = match distribution {
            Distribution::Uniform { lower, upper } => (number(Some(*lower)), number(Some(*upper)), true),
            Distribution::Beta { .. } => (Some(0.0), Some(1.0), false),
            Distribution::Pareto { lower, .. } => (number(Some(*lower)), None, true),
            // Some gammas and exponentials have a density at exactly 0.
            Distribution::Gamma { .. }
            | Distribution::Exponential { .. }
            | Distribution::ChiSquared { .. }
            | Distribution::Weibull { .. } => (Some(0.0), None, true),
            Distribution::LogNormal { .. }
            | Distribution::InverseGamma { .. }
            | Distribution::GeneralisedGamma { .. }
            | Distribution::FDistribution { .. }
            | Distribution::HalfFlat => (Some(0.0), None, false),
            _ => (None, None, true),
        };
        let below = low.is_some_and(|low| value < low || (!closed && value == low));
        let above = high.is_some_and(|high| value > high || (!closed && value == high));
        if below || above {
            return outside(match (low, high) {
                (Some(low), Some(high)) => format!("its values lie between {low} and {high}"),
                (Some(low), _) => format!("its values lie above {low}"),
                _ => "it has no density there".to_owned(),
            });
        }
    }
    if let Some(Bounds { lower, upper, .. }) = bounds {
        let number = |e: Option<Expr>| e.and_then(|e| arena.value(e));
        if number(lower).is_some_and(|l| value < l) || number(upper).is_some_and(|u| value > u) {
            return outside("it lies outside the bounds of its truncation".to_owned());
        }
    }
    Ok(())
}

/// Rejects vectors of the wrong length, invalid parameters and impossible observations.
pub(super) fn check_vector(
    arena: &Expressions,
    name: &str,
    distribution: &VectorDistribution,
    names_len: usize,
    observed: Option<&[f64]>,
) -> Result<(), GraphError> {
    let length = |what, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(GraphError::Length { name: name.to_owned(), distribution: distribution.name(), what, found, expected })
    };
    let (len, order) = distribution.len();
    length("value", names_len, len)?;
    length("value", observed.map_or(len, <[f64]>::len), len)?;
    match distribution {
        VectorDistribution::MultivariateNormal { precision, .. }
        | VectorDistribution::MultivariateStudentT { precision, .. } => {
            length("precision matrix", precision.len(), order * order)?;
        }
        VectorDistribution::Wishart { scale, df } => {
            length("scale matrix", scale.len(), order * order)?;
            if let Some(df) = arena.value(*df)
                && !(df > order as f64 - 1.0)
            {
                let reason = "it must be above the order of the matrix minus 1";
                let parameter = "df";
                let distribution = distribution.name();
                return Err(GraphError::Parameter {
                    name: name.to_owned(),
                    distribution,
                    parameter,
                    value: df,
                    reason,
                });
            }
        }
        VectorDistribution::Dirichlet { alpha } => {
            for a in alpha {
                if let Some(value) = arena.value(*a)
                    && !(value >= 0.0)
                {
                    let (distribution, parameter, reason) = (distribution.name(), "alpha", "it must be 0 or more");
                    return Err(GraphError::Parameter {
                        name: name.to_owned(),
                        distribution,
                        parameter,
                        value,
                        reason,
                    });
                }
            }
        }
        VectorDistribution::Multinomial { n, .. } if arena.value(*n).is_none() => {
            let reason = "its number of trials is random, which is not supported; make it constant".to_owned();
            return Err(GraphError::Unsupported { name: name.to_owned(), reason });
        }
        VectorDistribution::Multinomial { .. } => {}
    }
    match observed {
        Some(x) => check_vector_value(arena, name, distribution, x),
        None => Ok(()),
    }
}

/// Rejects an observation that is impossible under the distribution.
fn check_vector_value(
    arena: &Expressions,
    name: &str,
    distribution: &VectorDistribution,
    x: &[f64],
) -> Result<(), GraphError> {
    let outside = |value: f64, reason: &str| {
        let reason = reason.to_owned();
        Err(GraphError::Outside { name: name.to_owned(), distribution: distribution.name(), value, reason })
    };
    if let Some(value) = x.iter().find(|x| !x.is_finite()) {
        return outside(*value, "an observation must be a finite number");
    }
    let total: f64 = x.iter().sum();
    match distribution {
        VectorDistribution::Multinomial { n, .. } => {
            if let Some(value) = x.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
                return outside(*value, "its values are whole numbers, 0 or more");
            }
            if arena.value(*n).is_some_and(|n| n != total) {
                return outside(total, "the counts must sum to the number of trials");
            }
        }
        VectorDistribution::Dirichlet { .. } => {
            if let Some(value) = x.iter().find(|x| !(0.0..=1.0).contains(*x)) {
                return outside(*value, "its values lie between 0 and 1");
            }
            if (total - 1.0).abs() > 1e-6 {
                return outside(total, "its values sum to 1");
            }
        }
        _ => {}
    }
    Ok(())
}

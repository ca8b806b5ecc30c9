//! Where laws put their mass, and whether parameters and observations make sense there.

use super::error::GraphError;
use super::expression::{Expr, Expressions, Known};
use super::law::{Bounds, Law, VectorLaw};

/// An end of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Number(f64),
    Of(Expr),
}

/// Where a continuous law has its mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) lower: Option<End>,
    pub(crate) upper: Option<End>,
}

impl Expressions {
    /// The smallest and largest value of a discrete law as far as they are numbers.
    pub(super) fn range(&self, law: &Law) -> (f64, f64) {
        let number = |e: Expr| self.value(e).unwrap_or(f64::INFINITY);
        match law {
            Law::Bernoulli { .. } => (0.0, 1.0),
            Law::Categorical { weights } => (1.0, weights.len() as f64),
            Law::FirstSuccess { .. } => (1.0, f64::INFINITY),
            Law::Binomial { n, .. } | Law::BetaBinomial { n, .. } => (0.0, number(*n)),
            Law::Hypergeometric { n1, n2, m1, .. } => {
                ((number(*m1) - number(*n2)).max(0.0), number(*n1).min(number(*m1)))
            }
            Law::Interval { cuts, .. } => (0.0, cuts.len() as f64),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// Where a continuous law has its mass, between bounds.
    pub(super) fn span(&self, law: &Law, bounds: Option<Bounds>) -> Span {
        let end = |e: Expr| Some(self.value(e).map_or(End::Of(e), End::Number));
        let zero = Some(End::Number(0.0));
        let mut span = match *law {
            Law::LogNormal { .. }
            | Law::Gamma { .. }
            | Law::Exponential { .. }
            | Law::ChiSquared { .. }
            | Law::Weibull { .. }
            | Law::GeneralisedGamma { .. }
            | Law::FDistribution { .. }
            | Law::HalfFlat => Span { lower: zero, upper: None },
            Law::Beta { .. } => Span { lower: zero, upper: Some(End::Number(1.0)) },
            Law::Uniform { lower, upper } => Span { lower: end(lower), upper: end(upper) },
            Law::Pareto { lower, .. } => Span { lower: end(lower), upper: None },
            _ => Span::default(),
        };
        if let Some(Bounds { lower, upper, .. }) = bounds {
            span.narrow(lower.and_then(end), upper.and_then(end));
        }
        span
    }
}

impl Span {
    /// Narrows the span; of a number and a random end the random one is taken.
    pub(super) fn narrow(&mut self, lower: Option<End>, upper: Option<End>) {
        let tighter = |own: Option<End>, other: Option<End>, sign: f64| match (own, other) {
            (Some(End::Number(a)), Some(End::Number(b))) if sign * a >= sign * b => own,
            (own, other) => other.or(own),
        };
        self.lower = tighter(self.lower, lower, 1.0);
        self.upper = tighter(self.upper, upper, -1.0);
    }
}

/// What is known about a latent of this law.
pub(super) fn known(arena: &Expressions, law: &Law, bounds: Option<Bounds>) -> Known {
    if law.is_discrete() {
        let from_bounds = bounds.and_then(|b| b.lower).and_then(|e| arena.value(e)).unwrap_or(f64::NEG_INFINITY);
        let least = arena.range(law).0.max(from_bounds);
        let at_most_one = arena.range(law).1 <= 1.0;
        return Known { nonnegative: least >= 0.0, positive: least > 0.0, whole: true, at_most_one };
    }
    let span = arena.span(law, bounds);
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

/// Refuses parameters that are numbers without meaning.
pub(super) fn check_parameters(arena: &Expressions, name: &str, law: &Law) -> Result<(), GraphError> {
    let bad = |parameter, e: Expr, reason, is_good: fn(f64) -> bool| match arena.value(e) {
        Some(value) if !is_good(value) => {
            Err(GraphError::Parameter { name: name.to_owned(), law: law.name(), parameter, value, reason })
        }
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
            reason: format!("a {} law with a random {parameter} is not supported; make it a number", law.name()),
        }),
    };
    match *law {
        Law::Bernoulli { p } => share("p", p),
        Law::Binomial { p, n } => share("p", p).and(size("n", n)),
        Law::Categorical { ref weights } => {
            let reason = "a weight must be 0 or more";
            weights.iter().try_for_each(|w| bad("a weight", *w, reason, |x| x >= 0.0))?;
            if weights.iter().all(|w| arena.value(*w) == Some(0.0)) {
                let reason = "its weights are all 0; at least one must be above".to_owned();
                return Err(GraphError::Unsupported { name: name.to_owned(), reason });
            }
            Ok(())
        }
        Law::Poisson { rate } => bad("rate", rate, "it must be 0 or more", |x| x >= 0.0),
        Law::NegativeBinomial { p, r } => share("p", p).and(positive("r", r)),
        Law::Geometric { p } | Law::FirstSuccess { p } => {
            bad("p", p, "it must be above 0, at most 1", |x| x > 0.0 && x <= 1.0)
        }
        Law::Hypergeometric { n1, n2, m1, psi } => {
            for (parameter, e) in [("n1", n1), ("n2", n2), ("m1", m1)] {
                size(parameter, e)?;
                fixed(parameter, e)?;
            }
            positive("psi", psi)
        }
        Law::BetaBinomial { a, b, n } => positive("a", a).and(positive("b", b)).and(size("n", n)),
        Law::Normal { precision, .. } | Law::LogNormal { precision, .. } => positive("precision", precision),
        Law::Gamma { shape, rate } | Law::Weibull { shape, rate } => {
            positive("shape", shape).and(positive("rate", rate))
        }
        Law::Exponential { rate } | Law::Laplace { rate, .. } | Law::Logistic { rate, .. } => positive("rate", rate),
        Law::ChiSquared { df } => positive("df", df),
        Law::Beta { a, b } => positive("a", a).and(positive("b", b)),
        Law::Uniform { lower, upper } => match (arena.value(lower), arena.value(upper)) {
            (Some(low), Some(high)) if !(low < high) => {
                let reason = "the upper bound must be above the lower";
                let (law, parameter) = (law.name(), "upper");
                Err(GraphError::Parameter { name: name.to_owned(), law, parameter, value: high, reason })
            }
            _ => Ok(()),
        },
        Law::StudentT { precision, df, .. } => positive("precision", precision).and(positive("df", df)),
        Law::Pareto { shape, lower } => positive("shape", shape).and(positive("lower bound", lower)),
        Law::GeneralisedGamma { shape, rate, power } => {
            positive("shape", shape).and(positive("rate", rate)).and(positive("power", power))
        }
        Law::FDistribution { n, m } => positive("n", n).and(positive("m", m)),
        Law::Interval { .. } | Law::Flat | Law::HalfFlat => Ok(()),
    }
}

/// Refuses an observation that the law cannot give.
pub(super) fn check_value(
    arena: &Expressions,
    name: &str,
    law: &Law,
    bounds: Option<Bounds>,
    value: f64,
) -> Result<(), GraphError> {
    let outside = |reason: String| Err(GraphError::Outside { name: name.to_owned(), law: law.name(), value, reason });
    if !value.is_finite() {
        return outside("an observation is a finite number".to_owned());
    }
    if law.is_discrete() {
        let (low, high) = arena.range(law);
        if value.fract() != 0.0 {
            return outside("its values are whole numbers".to_owned());
        }
        if value < low || value > high {
            let to = if high < f64::INFINITY { format!("from {low} to {high}") } else { format!("{low} or more") };
            return outside(format!("its values are {to}"));
        }
        if let Law::Categorical { weights } = law
            && arena.value(weights[value as usize - 1]) == Some(0.0)
        {
            return outside("that value has weight 0".to_owned());
        }
        if let Law::Bernoulli { p } | Law::Binomial { p, .. } = law {
            let most = if value == low { 0.0 } else { 1.0 };
            let impossible = match arena.value(*p) {
                Some(0.0) => value > 0.0,
                Some(1.0) => value < high,
                _ => false,
            };
            if impossible {
                return outside(format!("its probability p is {}", 1.0 - most));
            }
        }
        if let Law::Poisson { rate } = law
            && arena.value(*rate) == Some(0.0)
            && value > 0.0
        {
            return outside("its rate is 0".to_owned());
        }
    } else {
        let number = |e: Option<Expr>| e.and_then(|e| arena.value(e));
        let (low, high, closed) = match law {
            Law::Uniform { lower, upper } => (number(Some(*lower)), number(Some(*upper)), true),
            Law::Beta { .. } => (Some(0.0), Some(1.0), false),
            Law::Pareto { lower, .. } => (number(Some(*lower)), None, true),
            // A value of exactly 0 has a density in some gammas and exponentials.
            Law::Gamma { .. } | Law::Exponential { .. } | Law::ChiSquared { .. } | Law::Weibull { .. } => {
                (Some(0.0), None, true)
            }
            Law::LogNormal { .. } | Law::GeneralisedGamma { .. } | Law::FDistribution { .. } | Law::HalfFlat => {
                (Some(0.0), None, false)
            }
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

/// Refuses vectors of the wrong length and observations that their law cannot give.
pub(super) fn check_vector(
    arena: &Expressions,
    name: &str,
    law: &VectorLaw,
    names_len: usize,
    observed: Option<&[f64]>,
) -> Result<(), GraphError> {
    let length = |what, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(GraphError::Length { name: name.to_owned(), law: law.name(), what, found, expected })
    };
    let (len, order) = law.len();
    length("value", names_len, len)?;
    length("value", observed.map_or(len, <[f64]>::len), len)?;
    match law {
        VectorLaw::MultivariateNormal { precision, .. } | VectorLaw::MultivariateStudentT { precision, .. } => {
            length("precision matrix", precision.len(), order * order)?;
        }
        VectorLaw::Wishart { scale, df } => {
            length("scale matrix", order * order, scale.len())?;
            if let Some(df) = arena.value(*df)
                && !(df > order as f64 - 1.0)
            {
                let reason = "it must be above the matrix's order less one";
                let parameter = "df";
                let law = law.name();
                return Err(GraphError::Parameter { name: name.to_owned(), law, parameter, value: df, reason });
            }
        }
        VectorLaw::Dirichlet { alpha } => {
            for a in alpha {
                if let Some(value) = arena.value(*a)
                    && !(value >= 0.0)
                {
                    let (law, parameter, reason) = (law.name(), "alpha", "it must be 0 or more");
                    return Err(GraphError::Parameter { name: name.to_owned(), law, parameter, value, reason });
                }
            }
        }
        VectorLaw::Multinomial { n, .. } if arena.value(*n).is_none() => {
            let reason =
                "a multinomial law with a random number of trials is not supported; make it a number".to_owned();
            return Err(GraphError::Unsupported { name: name.to_owned(), reason });
        }
        VectorLaw::Multinomial { .. } => {}
    }
    let Some(x) = observed else { return Ok(()) };
    let outside = |value: f64, reason: &str| {
        let reason = reason.to_owned();
        Err(GraphError::Outside { name: name.to_owned(), law: law.name(), value, reason })
    };
    if let Some(value) = x.iter().find(|x| !x.is_finite()) {
        return outside(*value, "an observation is a finite number");
    }
    let total: f64 = x.iter().sum();
    match law {
        VectorLaw::Multinomial { n, .. } => {
            if let Some(value) = x.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
                return outside(*value, "its values are whole numbers, 0 or more");
            }
            if arena.value(*n).is_some_and(|n| n != total) {
                return outside(total, "the counts must sum to the number of trials");
            }
        }
        VectorLaw::Dirichlet { .. } => {
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

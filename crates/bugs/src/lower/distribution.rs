//! From a distribution's name and parameters to a distribution of the graph.

use super::engine::{Engine, Frame, Lowered};
use super::ir::Node;
use super::names::Family;
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;
use hyperprior_graph::{Distribution, Expr, Function, VectorDistribution};

/// The distribution of a scalar, or of an array with its extents.
pub(super) enum AnyDistribution {
    /// With whether it is restricted to positive values.
    Scalar(Distribution, Sign),
    Vector(VectorDistribution, Vec<usize>),
}

/// Which values a scalar distribution is restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Any,
    Positive,
}

impl<'a> Engine<'a> {
    /// An expression that must be a single number.
    pub fn number(&mut self, node: &'a Node, what: &str, frame: &Frame) -> Lowered<Expr> {
        match self.eval(node, frame)? {
            Value::Scalar(e) => Ok(e),
            value => {
                let diagnostic = Diagnostic::error(format!("{what} must be a single number"), node.span)
                    .label(format!("this is {}", value.describe()))
                    .hint("choose an element with an index, such as `x[i]`");
                Err(self.fail("shapes", frame, diagnostic))
            }
        }
    }

    fn vector(&mut self, node: &'a Node, frame: &Frame) -> Lowered<Vec<Expr>> {
        let value = self.eval(node, frame)?;
        if value.shape().len() > 1 || value.elements().is_empty() {
            let diagnostic = Diagnostic::error("this parameter must be a vector", node.span)
                .label(format!("this is {}", value.describe()))
                .hint("choose a row or a column, such as `x[i, ]`");
            return Err(self.fail("shapes", frame, diagnostic));
        }
        Ok(value.into_elements())
    }

    fn matrix(&mut self, node: &'a Node, order: Option<usize>, frame: &Frame) -> Lowered<(Vec<Expr>, usize)> {
        let value = self.eval(node, frame)?;
        let found = match *value.shape() {
            [] => 1,
            [n, m] if n == m => n,
            _ => 0,
        };
        if found == 0 || order.is_some_and(|order| order != found) {
            let wanted = order.map_or("square".to_string(), |n| format!("{n} by {n}"));
            let diagnostic = Diagnostic::error(format!("this parameter must be a {wanted} matrix"), node.span)
                .label(format!("this is {}", value.describe()))
                .hint("check its extents and its indices");
            return Err(self.fail("shapes", frame, diagnostic));
        }
        Ok((value.into_elements(), found))
    }

    /// The distribution of a relation.
    pub fn distribution(
        &mut self,
        family: Family,
        parameters: &'a [Node],
        span: Span,
        frame: &Frame,
    ) -> Lowered<AnyDistribution> {
        if family.is_vector() {
            return self.vector_distribution(family, parameters, frame);
        }
        let distribution = match family {
            Family::Categorical => Distribution::Categorical { weights: self.vector(&parameters[0], frame)? },
            Family::HalfCauchy => {
                let distribution = self.half_cauchy(&parameters[0], frame)?;
                return Ok(AnyDistribution::Scalar(distribution, Sign::Positive));
            }
            Family::Interval => {
                let time = self.number(&parameters[0], "the time of dinterval", frame)?;
                Distribution::Interval { time, cuts: self.vector(&parameters[1], frame)? }
            }
            _ => {
                let mut x = Vec::with_capacity(parameters.len());
                for node in parameters {
                    x.push(self.number(node, "this parameter", frame)?);
                }
                match scalar_distribution(family, &x) {
                    Some(distribution) => distribution,
                    None => {
                        let diagnostic = Diagnostic::error("this distribution is not supported", span);
                        return Err(self.fail("distribution", frame, diagnostic));
                    }
                }
            }
        };
        Ok(AnyDistribution::Scalar(distribution, Sign::Any))
    }

    /// The Cauchy distribution around 0 with this scale.
    fn half_cauchy(&mut self, scale: &'a Node, frame: &Frame) -> Lowered<Distribution> {
        let e = self.number(scale, "the scale of dhalfcauchy", frame)?;
        if let Some(x) = self.builder.value(e).filter(|x| !(*x > 0.0)) {
            let diagnostic = Diagnostic::error("the scale of dhalfcauchy must be above 0", scale.span)
                .label(format!("it is {x}"))
                .hint("write dhalfcauchy(scale), with the median of the distribution as its scale");
            return Err(self.fail("distribution", frame, diagnostic));
        }
        let (zero, one, power) = (self.builder.constant(0.0), self.builder.constant(1.0), self.builder.constant(-2.0));
        let precision = self.builder.call(Function::Power, &[e, power]);
        Ok(Distribution::StudentT { mean: zero, precision, df: one })
    }

    fn vector_distribution(
        &mut self,
        family: Family,
        parameters: &'a [Node],
        frame: &Frame,
    ) -> Lowered<AnyDistribution> {
        if family == Family::Wishart {
            let (scale, n) = self.matrix(&parameters[0], None, frame)?;
            let df = self.number(&parameters[1], "the degrees of freedom", frame)?;
            return Ok(AnyDistribution::Vector(VectorDistribution::Wishart { scale, df }, vec![n, n]));
        }
        let first = self.vector(&parameters[0], frame)?;
        let n = first.len();
        let distribution = match family {
            Family::Multinomial => {
                let total = self.number(&parameters[1], "the number of trials", frame)?;
                VectorDistribution::Multinomial { p: first, n: total }
            }
            Family::Dirichlet => VectorDistribution::Dirichlet { alpha: first },
            Family::MultivariateStudentT => {
                let (precision, _) = self.matrix(&parameters[1], Some(n), frame)?;
                let df = self.number(&parameters[2], "the degrees of freedom", frame)?;
                VectorDistribution::MultivariateStudentT { mean: first, precision, df }
            }
            Family::MultivariateNormalCovariance => {
                let (covariance, _) = self.matrix(&parameters[1], Some(n), frame)?;
                VectorDistribution::MultivariateNormal { mean: first, precision: self.builder.inverse(&covariance, n) }
            }
            _ => {
                let (precision, _) = self.matrix(&parameters[1], Some(n), frame)?;
                VectorDistribution::MultivariateNormal { mean: first, precision }
            }
        };
        Ok(AnyDistribution::Vector(distribution, vec![n]))
    }
}

/// The scalar distribution with these parameters, whose number has been checked.
fn scalar_distribution(family: Family, x: &[Expr]) -> Option<Distribution> {
    Some(match (family, x) {
        (Family::Bernoulli, &[p]) => Distribution::Bernoulli { p },
        (Family::Binomial, &[p, n]) => Distribution::Binomial { p, n },
        (Family::Poisson, &[rate]) => Distribution::Poisson { rate },
        (Family::NegativeBinomial, &[p, r]) => Distribution::NegativeBinomial { p, r },
        (Family::Geometric, &[p]) => Distribution::Geometric { p },
        (Family::FirstSuccess, &[p]) => Distribution::FirstSuccess { p },
        (Family::Hypergeometric, &[n1, n2, m1, psi]) => Distribution::Hypergeometric { n1, n2, m1, psi },
        (Family::BetaBinomial, &[a, b, n]) => Distribution::BetaBinomial { a, b, n },
        (Family::Normal, &[mean, precision]) => Distribution::Normal { mean, precision },
        (Family::LogNormal, &[mean, precision]) => Distribution::LogNormal { mean, precision },
        (Family::Gamma, &[shape, rate]) => Distribution::Gamma { shape, rate },
        (Family::InverseGamma, &[shape, scale]) => Distribution::InverseGamma { shape, scale },
        (Family::Exponential, &[rate]) => Distribution::Exponential { rate },
        (Family::ChiSquared, &[df]) => Distribution::ChiSquared { df },
        (Family::Beta, &[a, b]) => Distribution::Beta { a, b },
        (Family::Uniform, &[lower, upper]) => Distribution::Uniform { lower, upper },
        (Family::StudentT, &[mean, precision, df]) => Distribution::StudentT { mean, precision, df },
        (Family::Laplace, &[mean, rate]) => Distribution::Laplace { mean, rate },
        (Family::Logistic, &[mean, rate]) => Distribution::Logistic { mean, rate },
        (Family::Weibull, &[shape, rate]) => Distribution::Weibull { shape, rate },
        (Family::Pareto, &[shape, lower]) => Distribution::Pareto { shape, lower },
        (Family::GeneralisedGamma, &[shape, rate, power]) => Distribution::GeneralisedGamma { shape, rate, power },
        (Family::FDistribution, &[n, m]) => Distribution::FDistribution { n, m },
        (Family::Flat, &[]) => Distribution::Flat,
        (Family::HalfFlat, &[]) => Distribution::HalfFlat,
        _ => return None,
    })
}

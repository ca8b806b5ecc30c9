//! From a distribution's name and parameters to a law of the graph.

use super::engine::{Engine, Frame, Lowered};
use super::ir::Node;
use super::names::Family;
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;
use hyperprior::model::graph::{Expr, Law, VectorLaw};

/// The law of a number, or that of an array with its extents.
pub(super) enum AnyLaw {
    Scalar(Law),
    Vector(VectorLaw, Vec<usize>),
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

    /// The law of a relation.
    pub fn law(&mut self, family: Family, parameters: &'a [Node], span: Span, frame: &Frame) -> Lowered<AnyLaw> {
        if family.is_vector() {
            return self.vector_law(family, parameters, frame);
        }
        let law = match family {
            Family::Categorical => Law::Categorical { weights: self.vector(&parameters[0], frame)? },
            Family::Interval => {
                let time = self.number(&parameters[0], "the time of dinterval", frame)?;
                Law::Interval { time, cuts: self.vector(&parameters[1], frame)? }
            }
            _ => {
                let mut x = Vec::with_capacity(parameters.len());
                for node in parameters {
                    x.push(self.number(node, "this parameter", frame)?);
                }
                match scalar_law(family, &x) {
                    Some(law) => law,
                    None => {
                        let diagnostic = Diagnostic::error("this distribution is not supported", span);
                        return Err(self.fail("law", frame, diagnostic));
                    }
                }
            }
        };
        Ok(AnyLaw::Scalar(law))
    }

    fn vector_law(&mut self, family: Family, parameters: &'a [Node], frame: &Frame) -> Lowered<AnyLaw> {
        if family == Family::Wishart {
            let (scale, n) = self.matrix(&parameters[0], None, frame)?;
            let df = self.number(&parameters[1], "the degrees of freedom", frame)?;
            return Ok(AnyLaw::Vector(VectorLaw::Wishart { scale, df }, vec![n, n]));
        }
        let first = self.vector(&parameters[0], frame)?;
        let n = first.len();
        let law = match family {
            Family::Multinomial => {
                let total = self.number(&parameters[1], "the number of trials", frame)?;
                VectorLaw::Multinomial { p: first, n: total }
            }
            Family::Dirichlet => VectorLaw::Dirichlet { alpha: first },
            Family::MultivariateStudentT => {
                let (precision, _) = self.matrix(&parameters[1], Some(n), frame)?;
                let df = self.number(&parameters[2], "the degrees of freedom", frame)?;
                VectorLaw::MultivariateStudentT { mean: first, precision, df }
            }
            Family::MultivariateNormalCovariance => {
                let (covariance, _) = self.matrix(&parameters[1], Some(n), frame)?;
                VectorLaw::MultivariateNormal { mean: first, precision: self.builder.inverse(&covariance, n) }
            }
            _ => {
                let (precision, _) = self.matrix(&parameters[1], Some(n), frame)?;
                VectorLaw::MultivariateNormal { mean: first, precision }
            }
        };
        Ok(AnyLaw::Vector(law, vec![n]))
    }
}

/// The law of a number whose parameters are numbers; their count was checked with the names.
fn scalar_law(family: Family, x: &[Expr]) -> Option<Law> {
    Some(match (family, x) {
        (Family::Bernoulli, &[p]) => Law::Bernoulli { p },
        (Family::Binomial, &[p, n]) => Law::Binomial { p, n },
        (Family::Poisson, &[rate]) => Law::Poisson { rate },
        (Family::NegativeBinomial, &[p, r]) => Law::NegativeBinomial { p, r },
        (Family::Geometric, &[p]) => Law::Geometric { p },
        (Family::FirstSuccess, &[p]) => Law::FirstSuccess { p },
        (Family::Hypergeometric, &[n1, n2, m1, psi]) => Law::Hypergeometric { n1, n2, m1, psi },
        (Family::BetaBinomial, &[a, b, n]) => Law::BetaBinomial { a, b, n },
        (Family::Normal, &[mean, precision]) => Law::Normal { mean, precision },
        (Family::LogNormal, &[mean, precision]) => Law::LogNormal { mean, precision },
        (Family::Gamma, &[shape, rate]) => Law::Gamma { shape, rate },
        (Family::Exponential, &[rate]) => Law::Exponential { rate },
        (Family::ChiSquared, &[df]) => Law::ChiSquared { df },
        (Family::Beta, &[a, b]) => Law::Beta { a, b },
        (Family::Uniform, &[lower, upper]) => Law::Uniform { lower, upper },
        (Family::StudentT, &[mean, precision, df]) => Law::StudentT { mean, precision, df },
        (Family::Laplace, &[mean, rate]) => Law::Laplace { mean, rate },
        (Family::Logistic, &[mean, rate]) => Law::Logistic { mean, rate },
        (Family::Weibull, &[shape, rate]) => Law::Weibull { shape, rate },
        (Family::Pareto, &[shape, lower]) => Law::Pareto { shape, lower },
        (Family::GeneralisedGamma, &[shape, rate, power]) => Law::GeneralisedGamma { shape, rate, power },
        (Family::FDistribution, &[n, m]) => Law::FDistribution { n, m },
        (Family::Flat, &[]) => Law::Flat,
        (Family::HalfFlat, &[]) => Law::HalfFlat,
        _ => return None,
    })
}

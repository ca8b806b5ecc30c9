//! Lowers one instance of a relation to the graph builder.

use super::distribution::{AnyDistribution, Sign};
use super::engine::{Engine, Failed, Frame, Lowered};
use super::ir::{Kind, Node, Relation, Restriction};
use super::value::{Value, by, describe, dropped};
use crate::diagnostic::Diagnostic;
use crate::syntax::Dialect;
use crate::syntax::ast::{Link, RestrictionKind};
use hyperprior_graph::{Bounds, Expr, Function, GraphError};

impl<'a> Engine<'a> {
    pub fn lower_instance(&mut self, instance: u32, frame: &Frame) -> Lowered<()> {
        let relation = self.relation(self.instances[instance as usize].relation as usize);
        let flats = self.target_flats(&relation.target, frame)?;
        match &relation.kind {
            Kind::Distribution { .. } if self.is_noise(relation.target.array, &flats) => Ok(()),
            Kind::Value { .. } if let Some(noise) = self.noise_of(relation, frame) => {
                self.lower_with_noise(instance, noise, &flats, frame)
            }
            Kind::Value { link, value } => {
                let mut value = self.eval(value, frame)?;
                if let Some(link) = link {
                    value = self.elementwise(inverse(*link), &[value], relation.span, frame)?;
                }
                self.assign(instance, relation, &flats, &value, frame)
            }
            Kind::Distribution { family, parameters, restriction, .. } => {
                let distribution = self.distribution(*family, parameters, relation.span, frame)?;
                self.draw(relation, &flats, distribution, restriction.as_ref(), frame)
            }
        }
    }

    fn assign(
        &mut self,
        instance: u32,
        relation: &'a Relation,
        flats: &[usize],
        value: &Value,
        frame: &Frame,
    ) -> Lowered<()> {
        let array = relation.target.array;
        let wanted = self.target_shape(&relation.target, frame)?;
        if !dropped(value.shape()).eq(wanted.iter().copied()) {
            return Err(self.unlike(relation, &wanted, value.shape(), frame));
        }
        for (&flat, &e) in flats.iter().zip(value.elements()) {
            if self.arrays[array].definitions[flat] != instance {
                self.transformed.insert((array, flat), e);
                continue;
            }
            self.arrays[array].values[flat] = Some(e);
            if self.naming {
                self.builder.name(&self.arrays[array].element_name(flat), e);
            }
        }
        Ok(())
    }

    fn draw(
        &mut self,
        relation: &'a Relation,
        flats: &[usize],
        distribution: AnyDistribution,
        restriction: Option<&'a Restriction>,
        frame: &Frame,
    ) -> Lowered<()> {
        let array = relation.target.array;
        let observed: Vec<Option<f64>> = flats
            .iter()
            .map(|&flat| match self.transformed.get(&(array, flat)) {
                None => Ok(self.arrays[array].datum(flat)),
                Some(e) => self.builder.value(*e).map(Some).ok_or(()),
            })
            .collect::<Result<_, ()>>()
            .map_err(|()| {
                let name = self.arrays[array].name;
                let diagnostic =
                    Diagnostic::error(format!("`{name}` has both a random value and a distribution"), relation.span)
                        .label("its value with `<-` must be computable from the data")
                        .hint("an element has either a value or a distribution");
                self.fail("random value", frame, diagnostic)
            })?;
        if let Some(relation) = frame.relation
            && let Some(place) = self.places.get(relation)
        {
            self.builder.set_origin(place);
        }
        match distribution {
            AnyDistribution::Scalar(distribution, sign) => {
                if flats.len() != 1 {
                    let name = self.arrays[array].name;
                    let message =
                        format!("{} elements of `{name}` have the distribution of a single number", flats.len());
                    let diagnostic = Diagnostic::error(message, relation.span)
                        .label("the two sides differ in size")
                        .hint("draw one element at a time, in a loop: `for (i in 1:n) { x[i] ~ … }`");
                    return Err(self.fail("shapes", frame, diagnostic));
                }
                let mut bounds = match restriction {
                    Some(restriction) => Some(self.bounds(restriction, &distribution.parameters(), frame)?),
                    None => None,
                };
                if sign == Sign::Positive {
                    bounds = Some(self.above_zero(bounds));
                }
                let name = self.arrays[array].element_name(flats[0]);
                let e = self
                    .builder
                    .stochastic(&name, distribution, bounds, observed[0])
                    .map_err(|error| self.refused(error, relation, frame))?;
                self.arrays[array].values[flats[0]] = Some(e);
                self.count(array, flats, observed[0].is_some());
            }
            AnyDistribution::Vector(distribution, shape) => {
                if let Some(restriction) = restriction {
                    let diagnostic = Diagnostic::error("a vector cannot be truncated or censored", restriction.span)
                        .label("only scalars can")
                        .hint("if its elements are independent, write them one by one");
                    return Err(self.fail("bounds", frame, diagnostic));
                }
                let wanted = self.target_shape(&relation.target, frame)?;
                if !dropped(&shape).eq(wanted.iter().copied()) {
                    return Err(self.unlike(relation, &wanted, &shape, frame));
                }
                self.draw_vector(relation, flats, distribution, &observed, frame)?;
            }
        }
        Ok(())
    }

    /// Reports that the two sides of a relation have different shapes.
    fn unlike(&mut self, relation: &Relation, left: &[usize], right: &[usize], frame: &Frame) -> Failed {
        let name = self.arrays[relation.target.array].name;
        let is_law = matches!(relation.kind, Kind::Distribution { .. });
        let count: usize = left.iter().product();
        let (part, is_many) = match left {
            [] => ("one element".to_string(), false),
            [n] => (format!("{n} elements"), true),
            more => (format!("the {} part", by(more)), false),
        };
        let how = match (is_law, is_many) {
            (true, true) => "have the distribution of",
            (true, false) => "has the distribution of",
            (false, true) => "are defined as",
            (false, false) => "is defined as",
        };
        let message = format!("{part} of `{name}` {how} {}", describe(right));
        let hint = match (left, right) {
            (_, right) if is_law => {
                let ranges: Vec<String> = right.iter().map(|n| format!("1:{n}")).collect();
                format!(
                    "write the left side with the extents of the distribution, such as `{name}[{}]`",
                    ranges.join(", ")
                )
            }
            ([n, m], [k, l]) if (n, m) == (l, k) => {
                "transpose the right side with `t(…)`, or define one element at a time in a loop".to_string()
            }
            ([_], [_, _, ..]) if right.iter().product::<usize>() == count => {
                "`c(…)` makes a vector of the right side, column by column".to_string()
            }
            ([n, _], [_]) if right.iter().product::<usize>() == count => format!(
                "define one element at a time in a loop; by column, `{name}[i, j]` is element `i + (j - 1) * {n}` of \
                 the vector"
            ),
            _ => "make both sides the same size, or define one element at a time in a loop".to_string(),
        };
        let label = if right.iter().product::<usize>() == count { "shape" } else { "size" };
        let diagnostic =
            Diagnostic::error(message, relation.span).label(format!("the two sides differ in {label}")).hint(hint);
        self.fail("shapes", frame, diagnostic)
    }

    fn draw_vector(
        &mut self,
        relation: &Relation,
        flats: &[usize],
        distribution: hyperprior_graph::VectorDistribution,
        observed: &[Option<f64>],
        frame: &Frame,
    ) -> Lowered<()> {
        let array = relation.target.array;
        let known: Vec<f64> = observed.iter().copied().flatten().collect();
        if !known.is_empty() && known.len() < flats.len() {
            let missing = observed.iter().position(Option::is_none).unwrap_or(0);
            let name = self.arrays[array].element_name(flats[missing]);
            let message = format!("a vector is only partly observed: `{name}` is missing (NA)");
            let diagnostic = Diagnostic::error(message, relation.span)
                .label(format!("{} of {} elements are in the data", known.len(), flats.len()))
                .hint("a vector with one distribution must be observed completely or not at all");
            return Err(self.fail("partial", frame, diagnostic));
        }
        let names: Vec<String> = flats.iter().map(|&flat| self.arrays[array].element_name(flat)).collect();
        let known = (!known.is_empty()).then_some(known.as_slice());
        let values = self
            .builder
            .stochastic_vector(&names, distribution, known)
            .map_err(|error| self.refused(error, relation, frame))?;
        for (&flat, e) in flats.iter().zip(values) {
            self.arrays[array].values[flat] = Some(e);
        }
        self.count(array, flats, known.is_some());
        Ok(())
    }

    pub fn count(&mut self, array: usize, flats: &[usize], is_observed: bool) {
        if is_observed {
            self.observed += 1;
            self.observations.extend(flats.iter().map(|flat| (array, *flat)));
        } else {
            self.latent += 1;
        }
    }

    fn bounds(&mut self, restriction: &'a Restriction, parameters: &[Expr], frame: &Frame) -> Lowered<Bounds> {
        let lower = self.bound(&restriction.lower, frame)?;
        let upper = self.bound(&restriction.upper, frame)?;
        let fixed = parameters.iter().all(|e| self.builder.value(*e).is_some());
        let fixed_bounds = [lower, upper].iter().flatten().all(|e| self.builder.value(*e).is_some());
        let renormalised = match restriction.kind {
            RestrictionKind::Truncation => true,
            RestrictionKind::Censoring => false,
            RestrictionKind::Interval if self.dialect == Dialect::Jags && !fixed => {
                let diagnostic =
                    Diagnostic::error("`I(,)` needs a distribution whose parameters are fixed", restriction.span)
                        .label("a parameter is random, so truncation and censoring differ")
                        .hint("write `T(,)` for truncation; for censoring write `is.censored ~ dinterval(t, cut)`");
                return Err(self.fail("bounds", frame, diagnostic));
            }
            RestrictionKind::Interval if self.dialect == Dialect::Jags => true,
            // If everything is fixed, the two differ by a constant; truncation has the density that integrates to 1.
            RestrictionKind::Interval => fixed && fixed_bounds,
        };
        Ok(Bounds { lower, upper, renormalised })
    }

    /// The part of these bounds above 0.
    fn above_zero(&mut self, bounds: Option<Bounds>) -> Bounds {
        let zero = self.builder.constant(0.0);
        let Some(bounds) = bounds else { return Bounds { lower: Some(zero), upper: None, renormalised: true } };
        let lower = bounds.lower.map_or(zero, |low| self.builder.call(Function::Max, &[low, zero]));
        Bounds { lower: Some(lower), ..bounds }
    }

    fn bound(&mut self, node: &'a Option<Node>, frame: &Frame) -> Lowered<Option<Expr>> {
        match node {
            Some(node) => self.number(node, "a bound", frame).map(Some),
            None => Ok(None),
        }
    }

    /// Reports an error of the builder at the relation.
    pub fn refused(&mut self, error: GraphError, relation: &Relation, frame: &Frame) -> Failed {
        let hint = match &error {
            GraphError::Impossible { density: "not a number", .. } => {
                let causes = "a matrix must be symmetric and positive definite, and 0/0 is undefined";
                Some(format!("check the parameters: {causes}"))
            }
            GraphError::Outside { .. } | GraphError::Impossible { .. } => {
                Some(match self.arrays[relation.target.array].source {
                    Some(file) => {
                        format!("check the datum in {file}, and whether this is the intended distribution")
                    }
                    None => "check the datum, and whether this is the intended distribution".to_owned(),
                })
            }
            GraphError::Parameter { .. } => {
                Some("check the parameter's value, and the order of the parameters".to_owned())
            }
            GraphError::Length { .. } => Some("check the indices of the parameters".to_owned()),
            _ => None,
        };
        let mut diagnostic = Diagnostic::error(error.to_string(), relation.span).label("this relation");
        diagnostic.hint = hint;
        self.fail("refused", frame, diagnostic)
    }
}

fn inverse(link: Link) -> Function {
    match link {
        Link::Log => Function::Exp,
        Link::Logit => Function::InverseLogit,
        Link::Probit => Function::Phi,
        Link::CLogLog => Function::InverseCLogLog,
    }
}

//! Standardised noise: `e ~ dnorm(0, 1)` of which one value is made, `x <- m + s * e`.
//!
//! That is `x ~ dnorm(m, pow(s, -2))` and `e <- (x - m) / s`, the same model. Written so, a random walk of standardised steps is one whose
//! states depend on their neighbours alone, and the graph may use the coordinates that suit the data.

use super::engine::{Engine, Failed, Frame, Lowered};
use super::ir::{Kind, Node, NodeKind, Reference, Relation};
use super::names::Family;
use super::value::Value;
use hyperprior_graph::{Distribution, Expr, Function};
use std::collections::HashSet;

impl Node {
    /// Calls `f` with every reference, those in indices included.
    fn references<'n>(&'n self, f: &mut dyn FnMut(&'n Reference)) {
        match &self.kind {
            NodeKind::Number(_) | NodeKind::Counter(_) => {}
            NodeKind::Reference(reference) => reference.references(f),
            NodeKind::Call { arguments: nodes, .. }
            | NodeKind::Logic { operands: nodes, .. }
            | NodeKind::MatrixProduct(nodes) => nodes.iter().for_each(|node| node.references(f)),
            NodeKind::Sum(nodes) | NodeKind::Product(nodes) => nodes.iter().for_each(|(_, node)| node.references(f)),
            NodeKind::Range { from, to } => {
                from.references(f);
                to.references(f);
            }
        }
    }

    /// The reference to an array in which the expression is linear.
    fn linear_in(&self, array: usize) -> Option<&Reference> {
        let has = |node: &Node| {
            let mut found = false;
            node.references(&mut |reference| found |= reference.array == array);
            found
        };
        match &self.kind {
            NodeKind::Reference(reference) if reference.array == array => Some(reference),
            NodeKind::Sum(terms) => terms.iter().find(|(_, term)| has(term))?.1.linear_in(array),
            NodeKind::Product(factors) => match factors.iter().find(|(_, factor)| has(factor))? {
                (false, factor) => factor.linear_in(array),
                (true, _) => None,
            },
            _ => None,
        }
    }
}

impl Reference {
    fn references<'n>(&'n self, f: &mut dyn FnMut(&'n Reference)) {
        f(self);
        self.indices.iter().flatten().flatten().for_each(|index| index.references(f));
    }
}

impl Relation {
    fn references<'n>(&'n self, f: &mut dyn FnMut(&'n Reference)) {
        self.target.indices.iter().flatten().flatten().for_each(|index| index.references(f));
        match &self.kind {
            Kind::Value { value, .. } => value.references(f),
            Kind::Distribution { parameters, restriction, .. } => {
                let bounds = restriction.iter().flat_map(|r| [&r.lower, &r.upper]).flatten();
                parameters.iter().chain(bounds).for_each(|node| node.references(f));
            }
        }
    }

    /// Whether it gives its elements a normal distribution with these numbers as its parameters.
    fn is_noise(&self) -> bool {
        match &self.kind {
            Kind::Distribution { family: Family::Normal, parameters, restriction: None } => {
                let numbers = [0, 1].map(|k| match parameters.get(k).map(|node| &node.kind) {
                    Some(NodeKind::Number(x)) => Some(*x),
                    _ => None,
                });
                matches!(numbers, [Some(_), Some(precision)] if precision > 0.0)
            }
            _ => false,
        }
    }
}

impl<'a> Engine<'a> {
    /// Finds the elements of standardised noise that one value is made of. `given` are arrays with starting values.
    pub fn find_noise(&mut self, given: &HashSet<&str>) {
        let relations = &self.block.relations;
        for array in 0..self.arrays.len() {
            let of = || relations.iter().filter(|relation| relation.target.array == array);
            let state = &self.arrays[array];
            if state.data.is_some()
                || given.contains(state.name)
                || of().next().is_none()
                || !of().all(Relation::is_noise)
            {
                continue;
            }
            // Each relation that uses it must be linear in one of its elements.
            let uses = |relation: &Relation| {
                let mut uses = 0;
                relation.references(&mut |reference| uses += usize::from(reference.array == array));
                uses
            };
            let users: Vec<Option<&Reference>> = relations
                .iter()
                .map(|relation| match &relation.kind {
                    Kind::Value { link: None, value } if uses(relation) == 1 => value.linear_in(array),
                    _ => None,
                })
                .collect();
            if relations.iter().zip(&users).any(|(relation, user)| user.is_none() && uses(relation) > 0) {
                continue;
            }
            let mut used = vec![0_usize; self.arrays[array].len()];
            let mut is_known = true;
            for instance in 0..self.instances.len() as u32 {
                let Some(reference) = users[self.instances[instance as usize].relation as usize] else { continue };
                match self.direct(reference, &self.frame(instance)) {
                    Some(flat) => used[flat] += 1,
                    None => is_known = false,
                }
            }
            if is_known {
                let is_noise = |flat: &usize| used[*flat] == 1 && self.arrays[array].definition(*flat).is_some();
                self.noise.extend((0..used.len()).filter(is_noise).map(|flat| (array, flat)));
            }
        }
    }

    /// Whether an element is noise that waits for its value.
    pub fn is_noise(&self, array: usize, flats: &[usize]) -> bool {
        matches!(flats, [flat] if self.noise.contains(&(array, *flat)))
    }

    /// The noise that a relation's value is made of.
    pub fn noise_of(&self, relation: &'a Relation, frame: &Frame) -> Option<(usize, usize)> {
        if self.noise.is_empty() {
            return None;
        }
        let mut found = None;
        relation.references(&mut |reference| {
            let element = self.direct(reference, frame).map(|flat| (reference.array, flat));
            found = found.or(element.filter(|element| self.noise.contains(element)));
        });
        found
    }

    /// Lowers a value that is made of noise: it gets a distribution if its scale is random and positive; else, the noise does.
    pub fn lower_with_noise(
        &mut self,
        instance: u32,
        (array, flat): (usize, usize),
        flats: &[usize],
        frame: &Frame,
    ) -> Lowered<()> {
        let relation = self.relation(self.instances[instance as usize].relation as usize);
        let Kind::Value { value, .. } = &relation.kind else { return Ok(()) };
        self.noise.remove(&(array, flat));
        let zero = self.builder.constant(0.0);
        self.arrays[array].values[flat] = Some(zero);
        let location = self.eval(value, frame);
        self.arrays[array].values[flat] = None;
        let scale = self.factor_of(value, array, frame);
        let target = relation.target.array;
        if let (Ok(Value::Scalar(location)), Ok(scale), [own]) = (location, scale, flats)
            && self.arrays[target].definitions[*own] == instance
            && self.builder.is_random(scale)
            && self.builder.is_positive(scale)
        {
            return self.draw_with_noise((target, *own), (array, flat), (location, scale), frame);
        }
        let noise = self.arrays[array].definitions[flat];
        let of_noise = self.frame(noise);
        self.lower_instance(noise, &of_noise)?;
        self.lower_instance(instance, frame)
    }

    /// What an element of an array is multiplied by in an expression that is linear in it.
    fn factor_of(&mut self, node: &'a Node, array: usize, frame: &Frame) -> Lowered<Expr> {
        let has = |node: &Node| node.linear_in(array).is_some();
        match &node.kind {
            NodeKind::Sum(terms) => {
                let Some((is_minus, term)) = terms.iter().find(|(_, term)| has(term)) else { return Err(Failed) };
                let factor = self.factor_of(term, array, frame)?;
                Ok(if *is_minus { self.builder.call(Function::Negate, &[factor]) } else { factor })
            }
            NodeKind::Product(factors) => {
                let mut total = self.builder.constant(1.0);
                for (divides, factor) in factors {
                    let next = match has(factor) {
                        true => self.factor_of(factor, array, frame)?,
                        false => self.number(factor, "a factor", frame)?,
                    };
                    let function = if *divides { Function::Divide } else { Function::Multiply };
                    total = self.call(function, &[total, next]);
                }
                Ok(total)
            }
            _ => Ok(self.builder.constant(1.0)),
        }
    }

    /// Declares a value with this location and scale of its noise.
    fn draw_with_noise(
        &mut self,
        (target, own): (usize, usize),
        (array, flat): (usize, usize),
        (location, scale): (Expr, Expr),
        frame: &Frame,
    ) -> Lowered<()> {
        let noise = self.relation(self.instances[self.arrays[array].definitions[flat] as usize].relation as usize);
        let Kind::Distribution { parameters, .. } = &noise.kind else { return Ok(()) };
        let [mean, precision] = [0, 1].map(|k| self.number(&parameters[k], "a parameter", frame));
        let (mean, precision) = (mean?, precision?);
        let minus_two = self.builder.constant(-2.0);
        let inverse_square = self.builder.call(Function::Power, &[scale, minus_two]);
        let shift = self.builder.multiply(scale, mean);
        let distribution = Distribution::Normal {
            mean: self.builder.add(location, shift),
            precision: self.builder.multiply(precision, inverse_square),
        };
        if let Some(place) = frame.relation.and_then(|relation| self.places.get(relation)) {
            self.builder.set_origin(place);
        }
        let name = self.arrays[target].element_name(own);
        let drawn = self.builder.stochastic(&name, distribution, None, None);
        let value = drawn.map_err(|error| self.refused(error, noise, frame))?;
        self.arrays[target].values[own] = Some(value);
        let away = self.builder.call(Function::Subtract, &[value, location]);
        let standardised = self.builder.call(Function::Divide, &[away, scale]);
        self.builder.name(&self.arrays[array].element_name(flat), standardised);
        self.arrays[array].values[flat] = Some(standardised);
        self.count(target, &[own], false);
        Ok(())
    }
}

//! Unrolls loops: every relation at every value of its counters becomes an instance, and every element is assigned the instance
//! that defines it.

use super::array::UNDEFINED;
use super::engine::{Engine, Failed, Frame, Instance, LIMIT, Lowered, State};
use super::ir::{Kind, Node, NodeKind, Statement};
use super::locate::{Axis, flats};
use crate::diagnostic::Diagnostic;
use crate::syntax::Dialect;

type Visit<'v, 'a> = dyn FnMut(&mut Engine<'a>, usize, &Frame) -> Lowered<()> + 'v;

impl<'a> Engine<'a> {
    /// Visits every relation at every value of its counters. After a failure, only that relation is skipped.
    pub fn walk(&mut self, visit: &mut Visit<'_, 'a>) -> Lowered<()> {
        let mut steps = 0;
        let mut failed = vec![false; self.block.relations.len()];
        let before = self.diagnostics.len();
        self.statements(&self.block.statements, &mut Frame::default(), &mut steps, &mut failed, visit)?;
        if self.diagnostics.len() > before { Err(Failed) } else { Ok(()) }
    }

    fn statements(
        &mut self,
        statements: &'a [Statement],
        frame: &mut Frame,
        steps: &mut usize,
        failed: &mut [bool],
        visit: &mut Visit<'_, 'a>,
    ) -> Lowered<()> {
        for statement in statements {
            match statement {
                Statement::Relation(number) => {
                    if failed[*number] {
                        continue;
                    }
                    frame.relation = Some(*number);
                    failed[*number] = visit(self, *number, frame).is_err();
                    frame.relation = None;
                }
                Statement::Loop { counter, range, body } => {
                    let Ok((values, count)) = self.counter_values(range, frame) else { continue };
                    *steps = steps.saturating_add(count);
                    if *steps > LIMIT {
                        let diagnostic = Diagnostic::error(format!("more than {LIMIT} loop steps"), range.span)
                            .label("this loop, inside the loops around it")
                            .hint("check the ends of the loops");
                        return Err(self.fail("large", frame, diagnostic));
                    }
                    self.loops.push(counter);
                    for k in 0..count {
                        frame.counters.push(match &values {
                            Values::From(first) => first + k as i64,
                            Values::Listed(list) => list[k],
                        });
                        let result = self.statements(body, frame, steps, failed, visit);
                        frame.counters.pop();
                        if result.is_err() {
                            self.loops.pop();
                            return result;
                        }
                    }
                    self.loops.pop();
                }
            }
        }
        Ok(())
    }

    /// The values that a counter runs over, and their number.
    fn counter_values(&mut self, range: &'a Node, frame: &Frame) -> Lowered<(Values, usize)> {
        self.must_be_known(range, "the range of a loop", frame)?;
        if let NodeKind::Range { from, to } = &range.kind {
            let from = self.whole_number(from, frame)?;
            let to = self.whole_number(to, frame)?;
            let count = usize::try_from(to.saturating_sub(from).saturating_add(1).max(0)).unwrap_or(usize::MAX);
            return Ok((Values::From(from), count));
        }
        let value = self.eval(range, frame)?;
        let mut list = Vec::with_capacity(value.elements().len());
        for e in value.elements() {
            match self.builder.value(*e) {
                Some(x) if x.fract() == 0.0 && x.abs() < 1e15 => list.push(x as i64),
                _ => {
                    let diagnostic =
                        Diagnostic::error("a loop must run over whole numbers", range.span).label("not a whole number");
                    return Err(self.fail("whole", frame, diagnostic));
                }
            }
        }
        let count = list.len();
        Ok((Values::Listed(list), count))
    }

    /// Creates the instances, and enters them as the definitions of their elements.
    pub fn record(&mut self) -> Lowered<()> {
        for relation in &self.block.relations {
            self.arrays[relation.target.array].make_definable();
        }
        self.walk(&mut |engine, number, frame| {
            let instance = engine.instances.len() as u32;
            engine.instances.push(Instance { relation: number as u32, counters: engine.counters.len() as u32 });
            engine.counters.extend_from_slice(&frame.counters);
            engine.states.push(State::New);
            let target = &engine.relation(number).target;
            if let Some(flat) = engine.direct(target, frame) {
                return engine.define(target.array, flat, instance, frame);
            }
            for index in target.indices.iter().flatten().flatten() {
                engine.must_be_known(index, "an index on the left", frame)?;
            }
            let axes = engine.locate(target, frame)?;
            if axes.iter().any(Axis::is_random) {
                // Random indices were rejected above; this is a calculated element.
                let diagnostic =
                    Diagnostic::error("an index on the left must be computable from the data", target.span);
                return Err(engine.fail("unknown", frame, diagnostic));
            }
            let extent = engine.arrays[target.array].extent.clone().unwrap_or_default();
            for flat in flats(&axes, &extent) {
                engine.define(target.array, flat, instance, frame)?;
            }
            Ok(())
        })
    }

    fn define(&mut self, array: usize, flat: usize, instance: u32, frame: &Frame) -> Lowered<()> {
        let number = self.instances[instance as usize].relation as usize;
        let by_value = |engine: &Self, number: usize| matches!(engine.relation(number).kind, Kind::Value { .. });
        let before = self.arrays[array].definitions[flat];
        if before == UNDEFINED {
            self.arrays[array].definitions[flat] = instance;
        } else {
            let other = self.instances[before as usize].relation as usize;
            let pair = (by_value(self, other), by_value(self, number));
            match pair {
                (true, false) if self.dialect == Dialect::OpenBugs => {
                    self.arrays[array].definitions[flat] = instance;
                    self.transforms.insert((array, flat), before);
                }
                (false, true) if self.dialect == Dialect::OpenBugs => {
                    if self.transforms.insert((array, flat), instance).is_some() {
                        return Err(self.defined_twice(array, flat, other, number, frame));
                    }
                }
                _ => return Err(self.defined_twice(array, flat, other, number, frame)),
            }
        }
        if by_value(self, number)
            && let Some(x) = self.arrays[array].datum(flat)
        {
            let name = self.arrays[array].element_name(flat);
            let diagnostic = Diagnostic::error(
                format!("`{name}` is calculated, but also has a value in the data"),
                self.relation(number).target.span,
            )
            .label(format!("{x} in the data"))
            .hint(format!("take `{name}` out of the data, or give it a distribution with `~`"));
            return Err(self.fail("given", frame, diagnostic));
        }
        Ok(())
    }

    fn defined_twice(&mut self, array: usize, flat: usize, first: usize, second: usize, frame: &Frame) -> Failed {
        let name = self.arrays[array].element_name(flat);
        let mixed = matches!(self.relation(first).kind, Kind::Value { .. })
            != matches!(self.relation(second).kind, Kind::Value { .. });
        let hint = if first == second {
            "the loop defines the same element again: use the counter in its index".to_string()
        } else if mixed {
            "an element has either a value or a distribution; to transform data before they are observed, put `<-` in a \
             `data { … }` block, or use the OpenBUGS dialect"
                .to_string()
        } else {
            "an element can have only one relation; rename one of the two".to_string()
        };
        let span = self.relation(second).target.span;
        let mut diagnostic =
            Diagnostic::error(format!("`{name}` is defined twice"), span).label("defined again here").hint(hint);
        if first != second {
            diagnostic = diagnostic.related(self.relation(first).target.span, "first defined here");
        }
        self.fail("twice", frame, diagnostic)
    }
}

enum Values {
    From(i64),
    Listed(Vec<i64>),
}

//! Lowers the instances in topological order, each after everything that it needs. The search has an explicit stack, so that a
//! chain of a hundred thousand steps does not overflow the call stack.

use super::engine::{Engine, Failed, Frame, Lowered, State};
use super::ir::{Kind, Node, NodeKind, Reference};
use super::locate::flats;
use super::names::Builtin;
use crate::diagnostic::Diagnostic;

impl<'a> Engine<'a> {
    /// Lowers every instance.
    pub fn lower_all(&mut self) {
        for instance in 0..self.instances.len() as u32 {
            if self.states[instance as usize] == State::New {
                self.lower_from(instance);
            }
        }
    }

    fn lower_from(&mut self, root: u32) {
        let mut stack = vec![root];
        let mut missing = Vec::new();
        while let Some(&top) = stack.last() {
            let state = &mut self.states[top as usize];
            if matches!(state, State::Done | State::Failed) {
                stack.pop();
                continue;
            }
            *state = State::Open;
            let frame = self.frame(top);
            missing.clear();
            let result = self.needs(top, &frame, &mut missing);
            if result.is_ok() && !missing.is_empty() {
                match missing.iter().find(|&&needed| self.states[needed as usize] == State::Open) {
                    Some(&needed) => {
                        self.report_cycle(&stack, needed);
                        self.states[top as usize] = State::Failed;
                    }
                    None => stack.extend_from_slice(&missing),
                }
                continue;
            }
            let result = result.and_then(|()| self.lower_instance(top, &frame));
            self.states[top as usize] = if result.is_ok() { State::Done } else { State::Failed };
        }
    }

    /// Reports a cycle: the open instances on the stack, from the one that is needed again to the top.
    fn report_cycle(&mut self, stack: &[u32], needed: u32) {
        let Some(start) = stack.iter().position(|&i| i == needed) else { return };
        let open: Vec<u32> =
            stack[start..].iter().copied().filter(|&i| self.states[i as usize] == State::Open).collect();
        let names: Vec<String> = open.iter().map(|&i| self.instance_name(i)).collect();
        let shown = if names.len() > 8 {
            format!("{} ← … ← {}", names[..4].join(" ← "), names[names.len() - 3..].join(" ← "))
        } else {
            names.join(" ← ")
        };
        let frame = self.frame(needed);
        let span = self.relation(self.instances[needed as usize].relation as usize).span;
        let message = format!("cycle: `{}` depends on itself", names[0]);
        let mut diagnostic = Diagnostic::error(message, span)
            .label(format!("{shown} ← {}", names[0]))
            .hint("relations must form a graph without cycles; a node cannot depend on itself through others");
        let mut seen = vec![self.instances[needed as usize].relation];
        for &other in &open[1..] {
            let relation = self.instances[other as usize].relation;
            if !seen.contains(&relation) && seen.len() < 5 {
                seen.push(relation);
                diagnostic = diagnostic.related(self.relation(relation as usize).span, "part of the cycle");
            }
        }
        self.fail("cycle", &frame, diagnostic);
    }

    /// The first element that an instance defines.
    fn instance_name(&mut self, instance: u32) -> String {
        let frame = self.frame(instance);
        let target = &self.relation(self.instances[instance as usize].relation as usize).target;
        let flat = self.target_flats(target, &frame).ok().and_then(|flats| flats.first().copied());
        self.arrays[target.array].element_name(flat.unwrap_or(0))
    }

    /// The elements of a left side.
    pub fn target_flats(&mut self, target: &'a Reference, frame: &Frame) -> Lowered<Vec<usize>> {
        if let Some(flat) = self.direct(target, frame) {
            return Ok(vec![flat]);
        }
        let axes = self.locate(target, frame)?;
        let extent = self.arrays[target.array].extent.clone().unwrap_or_default();
        Ok(flats(&axes, &extent))
    }

    /// The instances that an instance waits for; those behind an index are known once the index is.
    fn needs(&mut self, instance: u32, frame: &Frame, missing: &mut Vec<u32>) -> Lowered<()> {
        let relation = self.relation(self.instances[instance as usize].relation as usize);
        match &relation.kind {
            Kind::Value { value, .. } => self.needs_of(value, frame, missing),
            Kind::Distribution { parameters, restriction, .. } => {
                for parameter in parameters {
                    self.needs_of(parameter, frame, missing)?;
                }
                for bound in restriction.iter().flat_map(|r| [&r.lower, &r.upper]).flatten() {
                    self.needs_of(bound, frame, missing)?;
                }
                if !self.transforms.is_empty() {
                    for flat in self.target_flats(&relation.target, frame)? {
                        if let Some(&transform) = self.transforms.get(&(relation.target.array, flat)) {
                            self.need(transform, missing)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn need(&mut self, instance: u32, missing: &mut Vec<u32>) -> Lowered<()> {
        match self.states[instance as usize] {
            State::Done => {}
            State::Failed => return Err(Failed),
            State::New | State::Open => missing.push(instance),
        }
        Ok(())
    }

    fn needs_of(&mut self, node: &'a Node, frame: &Frame, missing: &mut Vec<u32>) -> Lowered<()> {
        match &node.kind {
            NodeKind::Number(_) | NodeKind::Counter(_) => Ok(()),
            NodeKind::Reference(reference) => self.needs_of_reference(reference, frame, missing),
            NodeKind::Call { function: Builtin::Length | Builtin::Dimension, arguments } => match &arguments[0].kind {
                NodeKind::Reference(reference) => reference
                    .indices
                    .iter()
                    .flatten()
                    .flatten()
                    .try_for_each(|index| self.needs_of(index, frame, missing)),
                _ => Ok(()),
            },
            NodeKind::Call { arguments: nodes, .. }
            | NodeKind::Logic { operands: nodes, .. }
            | NodeKind::MatrixProduct(nodes) => nodes.iter().try_for_each(|n| self.needs_of(n, frame, missing)),
            NodeKind::Sum(nodes) | NodeKind::Product(nodes) => {
                nodes.iter().try_for_each(|(_, n)| self.needs_of(n, frame, missing))
            }
            NodeKind::Range { from, to } => {
                self.needs_of(from, frame, missing)?;
                self.needs_of(to, frame, missing)
            }
        }
    }

    fn needs_of_reference(&mut self, reference: &'a Reference, frame: &Frame, missing: &mut Vec<u32>) -> Lowered<()> {
        if let Some(flat) = self.direct(reference, frame) {
            return match self.arrays[reference.array].definition(flat) {
                Some(instance) => self.need(instance, missing),
                None => Ok(()),
            };
        }
        let before = missing.len();
        for index in reference.indices.iter().flatten().flatten() {
            self.needs_of(index, frame, missing)?;
        }
        if missing.len() > before || self.arrays[reference.array].definitions.is_empty() {
            return Ok(());
        }
        let axes = self.locate(reference, frame)?;
        let extent = self.arrays[reference.array].extent.clone().unwrap_or_default();
        for flat in flats(&axes, &extent) {
            if let Some(instance) = self.arrays[reference.array].definition(flat) {
                self.need(instance, missing)?;
            }
        }
        Ok(())
    }
}

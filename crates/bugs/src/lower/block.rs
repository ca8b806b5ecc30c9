//! Lowering one block of a program, the data block or the model block.

use super::array::{ArrayState, Origin};
use super::engine::{Engine, Failed, Frame, Lowered, State};
use super::ir::Node;
use super::resolve::{Resolver, Symbol};
use crate::data::Data;
use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::{Span, ast};
use std::collections::HashSet;

/// The diagnostics of a program that cannot be lowered, with at least one error.
pub(super) fn with_an_error(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !has_errors(&diagnostics) {
        let message = "this program cannot be compiled for an unknown reason; this is a bug in the compiler";
        diagnostics.push(Diagnostic::new(Severity::Error, message, None).hint("please report the program"));
    }
    diagnostics
}

pub(super) fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// An array of the `var` block: its number, extents and place.
pub(super) type Declared = (usize, Vec<Node>, Span);

pub(super) fn declarations(program: &ast::Program, resolver: &mut Resolver) -> Vec<Declared> {
    let mut declared = Vec::new();
    for declaration in &program.declarations {
        let array = resolver.symbol(&declaration.name.text);
        if let Some(extents) = resolver.extents(declaration) {
            declared.push((array, extents, declaration.span));
        }
    }
    declared
}

pub(super) fn arrays<'a>(symbols: &'a [Symbol], data: &'a Data) -> Vec<ArrayState<'a>> {
    let state = |s: &'a Symbol| {
        let source = data.sources.get(&s.name).map(String::as_str);
        ArrayState { source, ..ArrayState::new(&s.name, data.arrays.get(&s.name), !s.indexed) }
    };
    symbols.iter().map(state).collect()
}

/// Lowers a block; in a model block, `starts` are the arrays with starting values.
pub(super) fn lower<'a>(
    engine: &mut Engine<'a>,
    declared: &'a [Declared],
    starts: Option<&HashSet<&str>>,
) -> Lowered<()> {
    engine.declare(declared)?;
    engine.find_early_constants();
    engine.find_extents()?;
    engine.record()?;
    engine.unrolling = false;
    if let Some(starts) = starts {
        engine.find_noise(starts);
    }
    engine.lower_all();
    // Every relation must have been lowered.
    if engine.states.iter().all(|state| *state == State::Done) { Ok(()) } else { Err(Failed) }
}

impl<'a> Engine<'a> {
    /// Enters the declared extents, and compares the data with them.
    fn declare(&mut self, declared: &'a [Declared]) -> Lowered<()> {
        let frame = Frame::default();
        let before = self.diagnostics.len();
        for (array, nodes, span) in declared {
            let Ok(extent) = self.declared_extent(nodes, &frame) else { continue };
            let state = &self.arrays[*array];
            match &state.extent {
                Some(found) if state.data.is_some() && *found != extent => {
                    let name = state.name;
                    let message =
                        format!("`{name}` is declared with extents {extent:?}, but has {found:?} in the data");
                    let diagnostic = Diagnostic::error(message, *span)
                        .label("declared here")
                        .hint("change the declaration or the data");
                    self.fail("declared", &frame, diagnostic);
                }
                Some(_) => {}
                None => self.set_extent(*array, extent, Origin::Declared)?,
            }
        }
        if self.diagnostics.len() > before { Err(Failed) } else { Ok(()) }
    }

    fn declared_extent(&mut self, nodes: &'a [Node], frame: &Frame) -> Lowered<Vec<usize>> {
        if nodes.is_empty() {
            return Ok(vec![1]);
        }
        let mut extent = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.must_be_known(node, "the extent of an array", frame)?;
            let n = self.whole_number(node, frame)?;
            match usize::try_from(n) {
                Ok(n) if n > 0 => extent.push(n),
                _ => {
                    let diagnostic =
                        Diagnostic::error(format!("{n} is not a valid extent of an array"), node.span).label("here");
                    return Err(self.fail("extent", frame, diagnostic));
                }
            }
        }
        Ok(extent)
    }
}

//! From a program and its data to a factor graph.
//!
//! The passes, in order: names are resolved; the data block is run; extents are found; loops are unrolled, so that every
//! element knows the relation that defines it; the relations are lowered in the order of their dependence.

mod array;
mod data_block;
mod engine;
mod evaluate;
mod extents;
mod functions;
mod ir;
mod law;
mod locate;
mod names;
mod order;
mod relation;
mod resolve;
mod shape;
mod start;
mod suggest;
mod unroll;
mod usage;
mod value;

use crate::data::Data;
use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::{Dialect, Span, ast, parse};
use array::{ArrayState, Origin};
use engine::{Engine, Frame, Lowered, State};
use hyperprior::model::graph::Graph;
use ir::Node;
use resolve::{Resolver, Symbol};

/// How to compile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Whose reading of the language to follow.
    pub dialect: Dialect,
    /// Starting values of latents.
    pub init: Option<Data>,
    /// The file of the program, so that a message about a fit can name the line; `line 12` where there is none.
    pub file: Option<String>,
}

/// A program that has become a graph.
#[derive(Debug)]
pub struct Compiled {
    /// What the model is called.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// What its author should know.
    pub warnings: Vec<Diagnostic>,
    /// How many nodes have a distribution and are in the data; a vector is one node.
    pub observed: usize,
    /// How many nodes have a distribution and are not in the data.
    pub latent: usize,
    /// The elements that have a distribution and are observed.
    pub observations: Vec<Observation>,
}

/// An element that has a distribution and is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// As the language writes it.
    pub name: String,
    /// Its array.
    pub array: String,
    /// Its place among the array's values.
    pub place: usize,
}

/// Compiles a program with its data; `name` is what the model is to be called.
///
/// ```
/// use hyperprior_bugs::{Array, Data, Options, compile};
///
/// let data = Data::default().with("y", Array::scalar(7.0));
/// let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
/// let compiled = compile(model, "coin", &data, &Options::default()).unwrap();
/// assert_eq!((compiled.observed, compiled.latent), (1, 1));
/// ```
///
/// # Errors
/// Everything that is wrong, as far as it could be found in one run, with the warnings among it.
pub fn compile(source: &str, name: &str, data: &Data, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    // What is found in the order of dependence is told in the order of the source.
    let by_place = |d: &Diagnostic| (d.span.is_none(), d.span);
    match compile_unordered(source, name, data, options) {
        Ok(mut compiled) => {
            compiled.warnings.sort_by_key(by_place);
            Ok(compiled)
        }
        Err(mut errors) => {
            errors.sort_by_key(by_place);
            Err(errors)
        }
    }
}

fn compile_unordered(source: &str, name: &str, data: &Data, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    let parsed = parse(source, options.dialect);
    let mut diagnostics = parsed.diagnostics;
    if has_errors(&diagnostics) {
        return Err(diagnostics);
    }
    let program = parsed.program;
    let mut resolver = Resolver::new(data, options.dialect);
    let extended =
        if program.data.is_empty() { None } else { Some(data_block::run(&program, &mut resolver, data, options)) };
    let block = match &extended {
        Some(Err(failures)) => {
            diagnostics.extend(failures.iter().cloned());
            None
        }
        _ => Some(resolver.block(&program.model)),
    };
    let declared = declarations(&program, &mut resolver);
    diagnostics.append(&mut resolver.diagnostics);
    let Some(block) = block.filter(|_| !has_errors(&diagnostics)) else { return Err(diagnostics) };
    let given = match &extended {
        Some(Ok(extended)) => extended,
        _ => data,
    };
    let mut engine = Engine::new(&block, arrays(&resolver.symbols, given), options.dialect, true);
    engine.places = places(source, &block, options.file.as_deref());
    let lowered = lower(&mut engine, &declared);
    diagnostics.append(&mut engine.diagnostics);
    if lowered.is_err() || has_errors(&diagnostics) {
        return Err(with_a_word(diagnostics));
    }
    if let Some(init) = &options.init {
        diagnostics.extend(engine.set_starts(init));
    }
    diagnostics.extend(usage::unused(&resolver.symbols, data));
    if has_errors(&diagnostics) {
        return Err(diagnostics);
    }
    let (observed, latent) = (engine.observed, engine.latent);
    let observation = |&(array, place): &(usize, usize)| {
        let state = &engine.arrays[array];
        Observation { name: state.element_name(place), array: state.name.to_string(), place }
    };
    let observations = engine.observations.iter().map(observation).collect();
    match engine.builder.build() {
        Ok(graph) => {
            Ok(Compiled { name: name.to_string(), graph, warnings: diagnostics, observed, latent, observations })
        }
        Err(error) => {
            diagnostics.push(Diagnostic::new(Severity::Error, error.to_string(), None));
            Err(diagnostics)
        }
    }
}

/// Diagnostics of a program that cannot be lowered, which must not go without a reason.
fn with_a_word(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !has_errors(&diagnostics) {
        let message = "this program cannot be compiled, and the reason was lost: that is a fault of the compiler";
        diagnostics.push(Diagnostic::new(Severity::Error, message, None).hint("please report the program"));
    }
    diagnostics
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// An array of the `var` block: its number, its extents, its place.
type Declared = (usize, Vec<Node>, Span);

fn declarations(program: &ast::Program, resolver: &mut Resolver) -> Vec<Declared> {
    let mut declared = Vec::new();
    for declaration in &program.declarations {
        let array = resolver.symbol(&declaration.name.text);
        if let Some(extents) = resolver.extents(declaration) {
            declared.push((array, extents, declaration.span));
        }
    }
    declared
}

fn arrays<'a>(symbols: &'a [Symbol], data: &'a Data) -> Vec<ArrayState<'a>> {
    let state = |s: &'a Symbol| {
        let source = data.sources.get(&s.name).map(String::as_str);
        ArrayState { source, ..ArrayState::new(&s.name, data.arrays.get(&s.name), !s.indexed) }
    };
    symbols.iter().map(state).collect()
}

/// The file and the line of each relation.
fn places(source: &str, block: &ir::Block, file: Option<&str>) -> Vec<String> {
    let starts: Vec<usize> = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let place = |relation: &ir::Relation| {
        let line = starts.partition_point(|start| *start <= relation.span.start);
        file.map_or_else(|| format!("line {line}"), |file| format!("{file}:{line}"))
    };
    block.relations.iter().map(place).collect()
}

fn lower<'a>(engine: &mut Engine<'a>, declared: &'a [Declared]) -> Lowered<()> {
    engine.declare(declared)?;
    engine.find_early_constants();
    engine.find_extents()?;
    engine.record()?;
    engine.unrolling = false;
    engine.lower_all();
    // A model with a relation left out would be another model.
    if engine.states.iter().all(|state| *state == State::Done) { Ok(()) } else { Err(engine::Failed) }
}

impl<'a> Engine<'a> {
    /// Enters the declared extents, and holds the data to them.
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
                        format!("`{name}` is declared with the extents {extent:?}, and has {found:?} in the data");
                    let diagnostic = Diagnostic::error(message, *span)
                        .label("declared here")
                        .hint("change the declaration or the data");
                    self.fail("declared", &frame, diagnostic);
                }
                Some(_) => {}
                None => self.set_extent(*array, extent, Origin::Declared)?,
            }
        }
        if self.diagnostics.len() > before { Err(engine::Failed) } else { Ok(()) }
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
                        Diagnostic::error(format!("{n} is no extent of an array"), node.span).label("here");
                    return Err(self.fail("extent", frame, diagnostic));
                }
            }
        }
        Ok(extent)
    }
}

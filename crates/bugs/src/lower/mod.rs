//! From a program and its data to a factor graph.
//!
//! The passes, in order: resolve names; run the data block; find extents; unroll loops, so that every element knows the relation
//! that defines it; lower the relations in topological order.

mod array;
mod block;
mod data_block;
mod distribution;
mod engine;
mod evaluate;
mod extents;
mod functions;
mod ir;
mod locate;
mod names;
mod noise;
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
use crate::syntax::{Dialect, parse};
use block::{arrays, declarations, has_errors, lower, with_an_error};
use engine::Engine;
use hyperprior_graph::Graph;
use resolve::Resolver;

/// Compiler options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The dialect of the language.
    pub dialect: Dialect,
    /// Starting values of latents.
    pub init: Option<Data>,
    /// The file of the program, for messages; without it they say `line 12`.
    pub file: Option<String>,
}

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    /// The name of the model.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// Warnings and notes.
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
    /// Its name in the language.
    pub name: String,
    /// Its array.
    pub array: String,
    /// Its place among the array's values.
    pub place: usize,
}

/// Compiles a program with its data; `name` is the name of the model.
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
/// All errors that could be found in one run, and the warnings.
pub fn compile(source: &str, name: &str, data: &Data, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    // Diagnostics are found in topological order, and reported in the order of the source.
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
    let extended = if program.data.is_empty() {
        None
    } else {
        Some(data_block::run(&program, &mut resolver, data, options.dialect))
    };
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
    let given_starts = options.init.iter().flat_map(|init| init.arrays.keys()).map(String::as_str).collect();
    let lowered = lower(&mut engine, &declared, Some(&given_starts));
    diagnostics.append(&mut engine.diagnostics);
    if lowered.is_err() || has_errors(&diagnostics) {
        return Err(with_an_error(diagnostics));
    }
    if let Some(init) = &options.init {
        diagnostics.extend(engine.set_starts(init));
    }
    diagnostics.extend(usage::unused(&resolver.symbols, data));
    if program.data.is_empty() {
        diagnostics.extend(usage::longer(&resolver.symbols, &engine.arrays));
    }
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

/// The file and the line of each relation.
fn places(source: &str, block: &ir::Block, file: Option<&str>) -> Vec<String> {
    let starts: Vec<usize> = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let place = |relation: &ir::Relation| {
        let line = starts.partition_point(|start| *start <= relation.span.start);
        file.map_or_else(|| format!("line {line}"), |file| format!("{file}:{line}"))
    };
    block.relations.iter().map(place).collect()
}

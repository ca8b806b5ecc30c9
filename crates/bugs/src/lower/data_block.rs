//! The data block: it runs once, before the model, and what it defines becomes data. Its draws have a fixed seed, so that the
//! same program has the same data in every run.

use super::block::{Declared, arrays, declarations, has_errors, lower, with_an_error};
use super::engine::Engine;
use super::ir::{Block, Kind};
use super::resolve::Resolver;
use crate::data::{Array, Data};
use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::{Dialect, ast};
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{GraphBuilder, Marginalise};
use std::collections::HashMap;

const SEED: u64 = 1;

/// The data extended by the data block.
pub(super) fn run(
    program: &ast::Program,
    resolver: &mut Resolver,
    data: &Data,
    dialect: Dialect,
) -> Result<Data, Vec<Diagnostic>> {
    let block = resolver.block(&program.data);
    // A declaration may refer to something that only the model defines; ignore errors in such declarations here.
    let before = resolver.diagnostics.len();
    let declared = declarations(program, resolver);
    resolver.diagnostics.truncate(before);
    if has_errors(&resolver.diagnostics) {
        return Err(Vec::new());
    }
    let result = calculate(&block, &declared, resolver, data, dialect);
    resolver.close_block();
    result
}

fn calculate(
    block: &Block,
    declared: &[Declared],
    resolver: &Resolver,
    data: &Data,
    dialect: Dialect,
) -> Result<Data, Vec<Diagnostic>> {
    let mut engine = Engine::new(block, arrays(&resolver.symbols, data), dialect, true);
    let lowered = lower(&mut engine, declared, None);
    if lowered.is_err() || has_errors(&engine.diagnostics) {
        return Err(with_an_error(engine.diagnostics));
    }
    let drawn = match block.relations.iter().find(|r| matches!(r.kind, Kind::Distribution { .. })) {
        None => HashMap::new(),
        Some(first) => simulate(engine.builder.clone())
            .map_err(|reason| vec![Diagnostic::error(reason, first.span).label("drawn in a data block")])?,
    };
    let mut extended = data.clone();
    for array in engine.arrays.iter().filter(|array| !array.definitions.is_empty()) {
        let number = |flat: usize| match array.values[flat] {
            Some(e) => {
                engine.builder.value(e).or_else(|| drawn.get(&array.element_name(flat)).copied()).unwrap_or(f64::NAN)
            }
            None => array.datum(flat).unwrap_or(f64::NAN),
        };
        let values: Vec<f64> = (0..array.len()).map(number).collect();
        if let Some(flat) = (0..values.len()).find(|&flat| values[flat].is_nan() && array.values[flat].is_some()) {
            let message = format!("the value of `{}` in the data block is not a number", array.element_name(flat));
            let relation = array.definition(flat).map(|i| engine.instances[i as usize].relation as usize);
            let span = relation.map(|number| block.relations[number].span);
            let hint = "look for 0/0, or for the logarithm or the root of a negative number";
            return Err(vec![Diagnostic::new(Severity::Error, message, span).label("this relation").hint(hint)]);
        }
        let shape = if array.bare && values.len() == 1 { Vec::new() } else { array.extent.clone().unwrap_or_default() };
        extended.arrays.insert(array.name.to_string(), Array { shape, values });
    }
    Ok(extended)
}

/// Draws everything in the graph.
fn simulate(builder: GraphBuilder) -> Result<HashMap<String, f64>, String> {
    let graph = builder.build().map_err(|e| e.to_string())?;
    let model = graph.model_with(&Marginalise::Nothing).map_err(|e| e.to_string())?;
    if !model.latents().is_empty() {
        return Err("a data block cannot draw a node that observations depend on".to_string());
    }
    let quantities = model.quantities();
    let values = model.complete(&Batch::zeros(0, 1), &quantities, SEED).map_err(|e| e.to_string())?;
    Ok(quantities.into_iter().enumerate().map(|(k, q)| (q.name, values.get(k, 0))).collect())
}

//! Unused data, whole or in part, and draws that nothing depends on.

use super::array::ArrayState;
use super::resolve::Symbol;
use super::suggest::nearest;
use crate::data::Data;
use crate::diagnostic::{Diagnostic, Severity};

/// Warnings about unused data and variables.
pub(super) fn unused(symbols: &[Symbol], data: &Data) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let idle = |s: &&Symbol| data.arrays.contains_key(&s.name) && !s.read && s.defined.is_none();
    let mut unused: Vec<&str> = symbols.iter().filter(idle).map(|s| s.name.as_str()).collect();
    for symbol in symbols.iter().filter(|s| s.drawn && !s.read && !s.given) {
        let Some(span) = symbol.defined else { continue };
        let name = &symbol.name;
        diagnostics.push(match nearest(name, unused.iter().copied()) {
            Some(near) => {
                let diagnostic = Diagnostic::warning(format!("`{name}` has no data, and nothing depends on it"), span)
                    .label("drawn, but never used")
                    .hint(format!("the data have `{near}`, which the model does not use; did you mean that?"));
                unused.retain(|other| *other != near);
                diagnostic
            }
            None => {
                Diagnostic::new(Severity::Note, format!("nothing depends on `{name}`, and it has no data"), Some(span))
                    .label("it is only predicted")
            }
        });
    }
    diagnostics.extend(unused.into_iter().map(|name| {
        let message = format!("the data have `{name}`, which the model does not use");
        Diagnostic::new(Severity::Warning, message, None).hint("remove it, or check its spelling in the model")
    }));
    diagnostics
}

/// Warnings about data that go on after the last entry (of a matrix, the last row) that the model uses. A single entry left over
/// is no mistake in a series that others lag behind, nor a single row of a matrix of which a triangle is used; it is one in a vector
/// whose entries have a distribution.
pub(super) fn longer(symbols: &[Symbol], arrays: &[ArrayState]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (symbol, array) in symbols.iter().zip(arrays) {
        let (Some(data), Some(extent)) = (array.data, &array.extent) else { continue };
        let rows = extent[0];
        let row_len = data.len().checked_div(rows).unwrap_or(0);
        let any = |row: usize, f: &dyn Fn(usize) -> bool| (row * row_len..(row + 1) * row_len).any(f);
        let is_used = |k: usize| array.used[k].get() || array.definition(k).is_some();
        let Some(used) = (0..rows).rev().find(|row| any(*row, &is_used)).map(|row| row + 1) else { continue };
        let Some(given) = (used..rows).rev().find(|row| any(*row, &|k| !data[k].is_nan())).map(|row| row + 1) else {
            continue;
        };
        if given - used < 2 && (symbol.defined.is_none() || extent.len() > 1) {
            continue;
        }
        let (name, noun) = (array.name, if extent.len() > 1 { "rows" } else { "entries" });
        let message = format!("`{name}` has {given} {noun} in the data, but the model uses only the first {used}");
        diagnostics.push(
            Diagnostic::new(Severity::Warning, message, symbol.defined)
                .label("defined here")
                .hint(format!("check the range of the loop, or remove the other {} from the data", given - used)),
        );
    }
    diagnostics
}

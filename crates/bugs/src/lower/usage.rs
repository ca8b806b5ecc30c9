//! Unused names: data that the model does not use, and draws that nothing depends on.

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

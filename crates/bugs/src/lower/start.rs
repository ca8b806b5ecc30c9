//! Starting values of latents.

use super::engine::Engine;
use super::ir::Kind;
use crate::data::Data;
use crate::diagnostic::{Diagnostic, Severity};
use hyperprior_graph::GraphError;

impl Engine<'_> {
    /// Passes the starting values to the builder, and warns of those that are not used.
    pub fn set_starts(&mut self, init: &Data) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let mut say = |severity, message: String| diagnostics.push(Diagnostic::new(severity, message, None));
        for (name, given) in &init.arrays {
            let Some(number) = self.arrays.iter().position(|array| array.name == name && !array.definitions.is_empty())
            else {
                say(
                    Severity::Warning,
                    format!("there is a starting value for `{name}`, which the model does not define"),
                );
                continue;
            };
            let array = &self.arrays[number];
            if given.values.len() != array.len() {
                let count = given.values.len();
                say(Severity::Error, format!("{count} starting values for the {} elements of `{name}`", array.len()));
                continue;
            }
            let mut calculated = false;
            for (flat, &x) in given.values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                let array = &self.arrays[number];
                let Some(instance) = array.definition(flat) else { continue };
                let relation = self.relation(self.instances[instance as usize].relation as usize);
                if matches!(relation.kind, Kind::Value { .. }) {
                    calculated = true;
                } else if array.datum(flat).is_none()
                    && !self.transformed.contains_key(&(number, flat))
                    && let Err(error) = self.builder.start(&array.element_name(flat), x)
                    // An element determined by others, such as half of a symmetric matrix, needs no starting value.
                    && !matches!(error, GraphError::UnknownStart { .. })
                {
                    say(Severity::Error, error.to_string());
                    break;
                }
            }
            if calculated {
                say(
                    Severity::Warning,
                    format!("the starting values of `{name}` are ignored: it is calculated, not drawn"),
                );
            }
        }
        diagnostics
    }
}

//! What is to be summed out of a graph, as a person writes it: `auto`, `none`, or names separated by commas.

use crate::names;
use hyperprior::model::graph::{Eliminate, Graph, Role};
use hyperprior::posterior::{ElementName, Monitor, MonitorError};
use thiserror::Error;

/// Why something cannot be summed out.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EliminateError {
    /// It is not written as names are.
    #[error(transparent)]
    Names(#[from] MonitorError),
    /// There is no such latent.
    #[error("there is no latent `{name}`; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// There is nothing to sum, or no end to it.
    #[error("`{name}` cannot be summed out: {reason}")]
    Impossible {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The graph is no model.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
}

/// Reads that.
///
/// # Errors
/// [`EliminateError`] for a name that the graph does not have, and for what is not discrete or idle.
pub fn eliminate(text: &str, graph: &Graph) -> Result<Eliminate, EliminateError> {
    match text {
        "auto" => return Ok(Eliminate::Auto),
        "none" => return Ok(Eliminate::Nothing),
        _ => {}
    }
    let wanted: Vec<String> = Monitor::parse_list(text)?.iter().map(ToString::to_string).collect();
    let is = |latent: &str, name: &str| latent == name || ElementName::parse(latent).array == name;
    for name in &wanted {
        if !graph.latent_names().any(|latent| is(latent, name)) {
            return Err(EliminateError::Unknown { name: name.clone(), known: names::line(graph.latent_names()) });
        }
    }
    let outline = graph.clone().model_with(&Eliminate::Nothing)?.outline();
    for name in &wanted {
        let of_name = || outline.iter().filter(|latent| is(&latent.name, name));
        if of_name().any(|latent| latent.is_discrete && latent.role != Role::FromLaw) {
            continue;
        }
        let reason = if of_name().any(|latent| latent.is_discrete) {
            "no observation depends on it, so that there is nothing to sum out".to_owned()
        } else {
            let others = names::line(outline.iter().filter(|o| o.is_discrete).map(|o| o.name.as_str()));
            let others = if others.is_empty() { "there are none here".to_owned() } else { format!("here {others}") };
            format!("it is not discrete, and only discrete latents can be summed out; {others}")
        };
        return Err(EliminateError::Impossible { name: name.clone(), reason });
    }
    Ok(Eliminate::Named(wanted))
}

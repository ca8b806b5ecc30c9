//! Parses which latents of a graph to marginalise: `auto`, `none`, or names separated by commas.

use hyperprior::posterior::{ElementName, Monitor, MonitorError, ranges};
use hyperprior_graph::{Graph, Marginalise, Role};
use thiserror::Error;

/// Why a latent cannot be marginalised.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MarginaliseError {
    /// The names cannot be parsed.
    #[error(transparent)]
    Names(#[from] MonitorError),
    /// There is no such latent.
    #[error("there is no latent `{name}`; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The latents of the model.
        known: String,
    },
    /// The latent is continuous, or no observation depends on it.
    #[error("`{name}` cannot be marginalised: {reason}")]
    Impossible {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The graph is not a valid model.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
}

/// Parses the text.
///
/// # Errors
/// [`MarginaliseError`] for a name that the graph does not have, and for a latent that is continuous or that no observation
/// depends on.
pub fn parse(text: &str, graph: &Graph) -> Result<Marginalise, MarginaliseError> {
    match text {
        "auto" => return Ok(Marginalise::Auto),
        "none" => return Ok(Marginalise::Nothing),
        _ => {}
    }
    let wanted: Vec<String> = Monitor::parse_list(text)?.iter().map(ToString::to_string).collect();
    let is = |latent: &str, name: &str| latent == name || ElementName::parse(latent).array == name;
    for name in &wanted {
        if !graph.latent_names().any(|latent| is(latent, name)) {
            return Err(MarginaliseError::Unknown { name: name.clone(), known: ranges::line(graph.latent_names()) });
        }
    }
    let outline = graph.clone().model_with(&Marginalise::Nothing)?.outline();
    for name in &wanted {
        let of_name = || outline.iter().filter(|latent| is(&latent.name, name));
        if of_name().any(|latent| latent.is_discrete && latent.role != Role::PriorOnly) {
            continue;
        }
        let reason = if of_name().any(|latent| latent.is_discrete) {
            "no observation depends on it".to_owned()
        } else {
            let others = ranges::line(outline.iter().filter(|o| o.is_discrete).map(|o| o.name.as_str()));
            let others =
                if others.is_empty() { "this model has none".to_owned() } else { format!("in this model: {others}") };
            format!("it is not discrete; only discrete latents can be marginalised ({others})")
        };
        return Err(MarginaliseError::Impossible { name: name.clone(), reason });
    }
    Ok(Marginalise::Named(wanted))
}

//! A model held against itself: its derivatives, its local terms, and what was summed out of it against plain enumeration.

mod elimination;
mod latents;
mod points;

pub use elimination::{Elimination, elimination};
pub use latents::{Row, rows};
pub use points::{Point, points, start};

use crate::error::CliError;
use hyperprior::model::CheckReport;
use hyperprior::{Error, Model};
use serde::Serialize;

/// What became of the checks of one form of a model.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Capabilities {
    /// They agree with the log joint.
    Agree {
        /// Points with a finite density, of those tried.
        finite: usize,
        /// Points tried.
        tried: usize,
        /// The gradient by central differences.
        gradient: bool,
        /// The terms around each discrete latent.
        locals: bool,
        /// The conditionals of the discrete latents.
        conditionals: bool,
    },
    /// There was nothing to check, or nowhere to do it.
    Skipped {
        /// Why.
        skipped: &'static str,
    },
}

/// Holds a model's gradient, local terms and conditionals against its log joint.
pub fn capabilities(model: &dyn Model, seed: u64) -> Result<Capabilities, CliError> {
    let latents = model.latents();
    let has = |is_discrete: bool| (0..latents.len()).any(|i| latents.support(i).is_discrete() == is_discrete);
    match hyperprior::check(model, seed) {
        Ok(CheckReport { finite, tried, locals, conditionals, gradient }) => Ok(Capabilities::Agree {
            finite,
            tried,
            gradient: gradient && has(false),
            locals: locals && has(true),
            conditionals: conditionals && has(true),
        }),
        Err(Error::EmptyModel) => Ok(Capabilities::Skipped { skipped: "no latent is left" }),
        Err(Error::NotFinite { .. }) => Ok(Capabilities::Skipped { skipped: "no random point is possible" }),
        Err(error @ Error::Capability { .. }) => Err(CliError::Internal(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

//! Checks of a model: its derivatives and local terms against its log joint, and its marginalisation against enumeration.

mod latents;
mod marginalisation;
mod points;

pub use latents::{Row, rows};
pub use marginalisation::{Marginalisation, marginalisation};
pub use points::{Point, points, start};

use crate::error::CliError;
use hyperprior::model::CheckReport;
use hyperprior::{Error, Model};
use serde::Serialize;

/// The results of the checks of a model.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Capabilities {
    /// They agree with the log joint.
    Agree {
        /// Points with a finite density.
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
    /// Not checked.
    Skipped {
        /// Why.
        skipped: &'static str,
    },
}

/// Compares a model's gradient, local terms and conditionals with its log joint.
pub fn capabilities(model: &dyn Model, seed: u64) -> Result<Capabilities, CliError> {
    let latents = model.latents();
    let has = |is_discrete: bool| (0..latents.len()).any(|i| latents.support(i).is_discrete() == is_discrete);
    match hyperprior::check(model, seed) {
        Ok(CheckReport { finite, tried, locals, conditionals, gradient, .. }) => Ok(Capabilities::Agree {
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

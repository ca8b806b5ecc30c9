//! Algorithm 1: black box inference with a hierarchical variational model.
//!
//! [`fit`] does short runs from several starts and continues the one with the best bound. [`Fit`] is the loop itself, with
//! control over every step.

mod algorithm;
mod hamiltonian;
mod multistart;
mod result;
mod settings;
mod start;
mod stopping;

pub use crate::observer::{Observer, Phase, Progress, Quiet, Trace};
pub use algorithm::Fit;
pub use hamiltonian::{FittedAnnealing, fit_annealing};
pub use multistart::{fit, fit_from};
pub use result::Fitted;
pub use settings::FitSettings;
pub(crate) use settings::half_cosine;
pub(crate) use start::cluster;
pub use start::{StartKind, StartSettings};
pub(crate) use stopping::RISE_MAX;
pub use stopping::{StepSizeStage, StoppingRule};

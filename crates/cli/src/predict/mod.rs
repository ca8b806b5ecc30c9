//! Predictions for new data with the draws of a run.

mod report;
mod run;

pub use report::Predicted;
pub use run::FittedRun;

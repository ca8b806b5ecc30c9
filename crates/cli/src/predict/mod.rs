//! New data under the draws of a run: what is carried over, what is drawn anew, and what is told of it.

mod report;
mod run;

pub use report::Predicted;
pub use run::FittedRun;

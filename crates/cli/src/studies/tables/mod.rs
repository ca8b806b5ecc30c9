//! The paper's tables of held-out perplexity, on any corpus: cells that are trained, measured, kept and told one by one.

mod bench;
mod curve;
mod grid;
mod heading;
mod job;
mod numbers;
mod paper;
mod plan;
mod report;
pub mod settings;
mod store;
mod watch;

pub use job::Job;
pub use plan::{Flows, Plan, Widths};
pub use settings::Choice;

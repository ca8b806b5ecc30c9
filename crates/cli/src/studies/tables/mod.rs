//! The paper's tables of held-out perplexity, for any corpus. Each cell is trained, evaluated and saved separately.

mod bench;
mod curve;
mod gains;
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

//! A fit of a model file: its progress, its files and its report.

mod checkpoint;
mod files;
mod job;
mod predictive;
mod report;
mod watch;

pub use files::{Config, write};
pub use job::Job;
pub use report::text;
pub use watch::Watch;

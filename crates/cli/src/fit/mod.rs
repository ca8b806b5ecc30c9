//! A fit of a model file: watched while it runs, and told afterwards.

mod files;
mod foretold;
mod job;
mod kept;
mod report;
mod watch;

pub use files::{Config, write};
pub use job::Job;
pub use report::report;
pub use watch::Watch;

//! A fit of a model file: watched while it runs, and told afterwards.

mod files;
mod foretold;
mod job;
mod kept;
mod report;
mod response;
mod told;
mod watch;

pub use files::{Config, write};
pub use foretold::Foretold;
pub use job::Job;
pub use report::report;
pub use response::Response;
pub use told::Told;
pub use watch::Watch;

//! A fit of a model file: watched while it runs, and told afterwards.

mod files;
mod report;
mod response;
mod told;
mod watch;

pub use files::{Config, write};
pub use report::report;
pub use response::Response;
pub use told::Told;
pub use watch::Watch;

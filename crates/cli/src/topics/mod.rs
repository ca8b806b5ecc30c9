//! Topics of a corpus: what is asked for, trained, measured on documents set aside, and told.

mod aside;
mod files;
mod foretold;
mod infer;
mod inferred;
mod input;
mod job;
mod layers;
mod report;
mod told;
mod watch;

pub use aside::{Aside, in_parts};
pub use files::{Config, write};
pub use foretold::Glance;
pub use infer::Inference;
pub use inferred::Inferred;
use input::read_again;
pub use input::{Input, NewDocuments, Reading, at_least_one, in_options, name_of};
pub use job::Job;
pub use layers::Layers;
pub use report::{duration, grouped, report};
pub use told::Told;
pub use watch::Watch;

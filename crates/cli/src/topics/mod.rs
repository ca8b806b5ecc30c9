//! Topics of a corpus: what is asked for, trained, measured on documents set aside, and told.

mod batches;
mod heldout;
mod files;
mod perplexity;
mod infer;
mod inference;
mod new_documents;
mod input;
mod job;
mod layers;
mod report;
mod summary;
mod watch;

pub use batches::in_parts;
pub use heldout::HeldOut;
pub use files::{Config, write};
pub use perplexity::Glance;
pub use inference::Inference;
pub use new_documents::NewDocumentTopics;
use input::read_again;
pub use input::{Input, NewDocuments, Reading, at_least_one, name_of};
pub use job::Job;
pub use layers::Layers;
pub use report::{duration, grouped, report};
pub use summary::TopicsReport;
pub use watch::Watch;

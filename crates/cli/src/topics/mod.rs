//! Topics of a corpus: reading, training, evaluation on held-out documents, and the report.

mod batches;
mod files;
mod heldout;
mod infer;
mod inference;
mod input;
mod job;
mod layers;
mod new_documents;
mod perplexity;
mod report;
mod summary;
mod watch;

pub use batches::in_batches;
pub use files::{Config, write};
pub use heldout::HeldOut;
pub use inference::Inference;
use input::read_again;
pub use input::{Input, NewDocuments, Reading, at_least_one, name_of};
pub use job::Job;
pub use layers::Layers;
pub use new_documents::NewDocumentTopics;
pub use perplexity::Glance;
pub use report::{duration, grouped, report};
pub use summary::TopicsReport;
pub use watch::Watch;

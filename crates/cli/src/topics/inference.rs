//! What `topics infer` is to do.

use hyperprior_def::heldout::FitSettings;
use std::path::PathBuf;

/// What is to be done.
pub struct Inference {
    /// The folder of the run.
    pub run: PathBuf,
    /// How documents are fitted.
    pub fit: FitSettings,
    /// The seed.
    pub seed: u64,
    /// How many topics of a document are told, and how many words of a topic.
    pub top: usize,
    pub words: usize,
    /// Where the files go.
    pub out: Option<PathBuf>,
    /// Whether `summary.json` is printed.
    pub json: bool,
    /// Whether nothing else is.
    pub quiet: bool,
}

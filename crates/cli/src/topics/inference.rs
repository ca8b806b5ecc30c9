//! The settings of `topics infer`.

use hyperprior_def::heldout::FitSettings;
use std::path::PathBuf;

/// An inference to run.
pub struct Inference {
    /// The folder of the run.
    pub run: PathBuf,
    /// The settings of the fit of a document.
    pub fit: FitSettings,
    /// The seed.
    pub seed: u64,
    /// The number of topics to show per document, and of words per topic.
    pub top: usize,
    pub words: usize,
    /// The folder for the files.
    pub out: Option<PathBuf>,
    /// Whether to print `summary.json`.
    pub json: bool,
    /// Whether to show no progress and no messages.
    pub quiet: bool,
}

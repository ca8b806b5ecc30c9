//! Batches of documents.

use hyperprior_def::Corpus;
use std::ops::Range;

/// The largest number of documents in a quick evaluation: during training, or after a signal to stop.
pub const QUICK_MAX: usize = 200;

/// Batches of documents: enough for every thread, and quickly done.
pub fn in_batches(len: usize) -> impl Iterator<Item = Range<usize>> {
    let batch = 8 * rayon::current_num_threads().max(1);
    (0..len).step_by(batch).map(move |start| start..len.min(start + batch))
}

/// The first documents of a corpus.
pub fn first(corpus: &Corpus, documents: usize) -> Corpus {
    corpus.subset(&(0..corpus.documents_len().min(documents)).collect::<Vec<_>>())
}

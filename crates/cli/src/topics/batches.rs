//! Documents a few at a time.

use hyperprior_def::Corpus;
use std::ops::Range;

/// Documents that are measured where someone waits for the end.
pub const HASTY: usize = 200;

/// Documents a few at a time: enough for every thread, and soon done.
pub fn in_parts(len: usize) -> impl Iterator<Item = Range<usize>> {
    let part = 8 * rayon::current_num_threads().max(1);
    (0..len).step_by(part).map(move |start| start..len.min(start + part))
}

/// The first documents of a corpus.
pub fn first(corpus: &Corpus, documents: usize) -> Corpus {
    corpus.subset(&(0..corpus.documents_len().min(documents)).collect::<Vec<_>>())
}

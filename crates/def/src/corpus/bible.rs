//! The built-in corpus: the King James Bible, one document for each chapter.

use super::bag_of_words::Corpus;
use super::ldac;
use super::lines::Lines;
use super::list::List;
use std::path::Path;

const COUNTS: &[u8] = include_bytes!("../../data/kjv.ldac.gz");
const VOCABULARY: &[u8] = include_bytes!("../../data/kjv.vocab.gz");
const NAMES: &[u8] = include_bytes!("../../data/kjv.names.gz");

/// The King James Bible of 1611 by chapter: 1,189 documents, from `Genesis 1` to `Revelation 22`.
///
/// Stop words and words in fewer than five chapters are left out; `data/kjv.sh` rebuilds the files.
///
/// ```
/// let bible = hyperprior_def::corpus::bible();
/// let created = bible.vocabulary().iter().position(|term| term == "created").unwrap() as u32;
/// assert!(bible.document(0).0.contains(&created));
/// ```
pub fn bible() -> Corpus {
    let open = |name: &str, bytes: &'static [u8]| Lines::new(Path::new(name), Box::new(bytes));
    let whole = "the built-in files are complete";
    let vocabulary = List::vocabulary(open("kjv.vocab", VOCABULARY)).expect(whole);
    let names = List::read(open("kjv.names", NAMES)).expect(whole).names;
    let (counts, _) = ldac::read(&mut open("kjv.ldac", COUNTS), Some(&vocabulary)).expect(whole);
    Corpus::from_counts(counts, names, vocabulary.names)
}

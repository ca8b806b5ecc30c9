//! Counts of words in documents: storage, reading and splitting.
//!
//! [`read`] takes LDA-C, UCI bag-of-words and Matrix Market files, text with a document on each line, and folders of text.
//! [`bible`] is built in. [`FixedVocabulary`] reads documents with a given vocabulary. [`Corpus::split`] holds out documents,
//! [`hold_out_types`] and [`hold_out_tokens`] hold out parts of a document.

mod bag_of_words;
mod bible;
mod builder;
mod fixed_vocabulary;
mod folder;
mod format;
mod holdout;
mod ldac;
mod lines;
mod list;
mod matrix_market;
mod number;
mod read;
mod sizes;
mod text;
mod triples;
mod uci;
mod warning;

pub use bag_of_words::Corpus;
pub use bible::bible;
pub use fixed_vocabulary::{FixedVocabulary, FixedVocabularyCorpus};
pub use format::Format;
pub use holdout::{Document, hold_out_tokens, hold_out_types};
pub use read::{ReadSettings, read, read_from};
pub use text::{StopWords, TextSettings, words};
pub use warning::Warning;

//! Warnings from reading a corpus.

use std::fmt;

/// Something that a reader did that the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Documents without a word were left out.
    EmptyDocuments {
        /// How many.
        dropped: usize,
        /// Of how many.
        seen: usize,
    },
    /// Documents with too few or too many words were left out.
    DocumentLength {
        /// How many had some words, but too few.
        short: usize,
        /// How many had too many.
        long: usize,
        /// Of how many.
        seen: usize,
    },
    /// The vocabulary of a text was limited.
    Vocabulary {
        /// The terms that were kept.
        kept: usize,
        /// The distinct words, without stop words.
        seen: usize,
    },
    /// There is no vocabulary, so terms are named by their numbers.
    NumberedTerms {
        /// The number of terms.
        terms_len: usize,
    },
    /// Files in a folder were left out because their names do not end in .txt, while others do.
    OtherFiles {
        /// How many.
        left_out: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::EmptyDocuments { dropped, seen } => {
                write!(f, "documents left out because they have no words: {dropped} of {seen}")
            }
            Self::DocumentLength { short, long, seen } => {
                write!(
                    f,
                    "documents left out because of their length: {short} too short and {long} too long, of {seen}"
                )
            }
            Self::Vocabulary { kept, seen } => write!(f, "{kept} of {seen} distinct words are in the vocabulary"),
            Self::NumberedTerms { terms_len } => {
                write!(f, "no vocabulary was given, so the {terms_len} terms are called by their numbers")
            }
            Self::OtherFiles { left_out } => {
                write!(f, "files left out because their names do not end in .txt: {left_out}")
            }
        }
    }
}

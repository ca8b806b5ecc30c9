//! What a reader did that its user should know.

use std::fmt;

/// Something that a reader did, short of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Documents without a word were left out.
    EmptyDocuments {
        /// How many.
        dropped: usize,
        /// Of how many.
        seen: usize,
    },
    /// Documents of too few or too many words were left out.
    DocumentLength {
        /// How many had too few words, though some.
        short: usize,
        /// How many had too many.
        long: usize,
        /// Of how many.
        seen: usize,
    },
    /// The vocabulary of a text was cut down to its limits.
    Vocabulary {
        /// The terms that were kept.
        kept: usize,
        /// The different words that there are, stop words left out.
        seen: usize,
    },
    /// There is no vocabulary, so that terms are called by their numbers.
    NumberedTerms {
        /// How many terms there are.
        terms_len: usize,
    },
    /// Files in a folder were left out because they are not called .txt, as others in it are.
    OtherFiles {
        /// How many.
        left_out: usize,
    },
}

impl fmt::Display for Note {
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
            Self::Vocabulary { kept, seen } => write!(f, "{kept} of {seen} different words are in the vocabulary"),
            Self::NumberedTerms { terms_len } => {
                write!(f, "no vocabulary was given, so the {terms_len} terms are called by their numbers")
            }
            Self::OtherFiles { left_out } => {
                write!(f, "files left out because they are not called .txt: {left_out}")
            }
        }
    }
}

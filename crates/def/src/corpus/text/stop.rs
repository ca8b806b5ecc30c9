//! Stop words: words that say nothing about the subject of a document.

use super::words::words;
use crate::corpus::lines::Lines;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;

/// Our own list: pronouns, articles, prepositions, conjunctions, auxiliaries and adverbs, including those of older English.
const ENGLISH: &str = include_str!("../../../data/english.stop");

/// The words that are left out of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWords {
    /// A list of English ones.
    #[default]
    English,
    /// None.
    None,
    /// Those in a file, one on each line.
    File(PathBuf),
}

impl StopWords {
    /// The set of words, split by [`words`].
    pub(in crate::corpus) fn set(&self) -> Result<HashSet<String>> {
        let mut set = HashSet::new();
        let mut add = |text: &str| words(text, |word| set.extend([word.to_string()]));
        match self {
            Self::English => add(ENGLISH),
            Self::None => {}
            Self::File(path) => {
                let mut lines = Lines::open(path)?;
                while lines.advance()? {
                    add(lines.text()?);
                }
            }
        }
        Ok(set)
    }
}

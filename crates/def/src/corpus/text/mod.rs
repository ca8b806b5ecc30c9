//! Turns text into counts: finds the words, and selects terms and documents.

mod limits;
mod stop;
mod words;

pub use stop::StopWords;
pub use words::words;

use super::builder::{Builder, Counts};
use super::lines::Lines;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// The settings for turning text into counts.
///
/// ```
/// use hyperprior_def::corpus::{ReadSettings, TextSettings, read_from};
///
/// let text = "The cat saw a cat.\nThe dog saw nothing.\n";
/// let text_settings = TextSettings::default().least_documents(1);
/// let settings = ReadSettings::default().text(text_settings);
/// let (corpus, _) = read_from("animals.txt", text.as_bytes(), &settings).unwrap();
/// assert_eq!(corpus.vocabulary(), ["cat", "dog", "saw"]);
/// assert_eq!(corpus.document(0), (&[0, 2][..], &[2.0, 1.0][..]));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextSettings {
    /// The stop words, which are left out.
    pub stop_words: StopWords,
    /// The least number of letters of a word.
    pub shortest_word: usize,
    /// The least number of documents that a term must be in.
    pub least_documents: usize,
    /// The largest share of the documents that a term may be in.
    pub largest_share: f64,
    /// The largest number of terms, those in most documents first; `None` for no limit.
    pub most_terms: Option<usize>,
    /// The least number of words of a document, not counting those outside the vocabulary.
    pub shortest_document: usize,
    /// The largest number of words of a document; longer ones are left out. `None` for no limit.
    pub longest_document: Option<usize>,
}

hyperprior::setters!(TextSettings {
    stop_words: StopWords, shortest_word: usize, least_documents: usize, largest_share: f64, shortest_document: usize;
    most_terms?: usize, longest_document?: usize
});

impl Default for TextSettings {
    fn default() -> Self {
        Self {
            stop_words: StopWords::English,
            shortest_word: 2,
            least_documents: 2,
            largest_share: 0.7,
            most_terms: Some(10_000),
            shortest_document: 1,
            longest_document: None,
        }
    }
}

impl TextSettings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad =
            |field, value: &dyn ToString, reason| Err(Error::BadSetting { field, value: value.to_string(), reason });
        for (field, value) in [
            ("shortest_word", self.shortest_word),
            ("least_documents", self.least_documents),
            ("most_terms", self.most_terms.unwrap_or(1)),
            ("shortest_document", self.shortest_document),
        ] {
            if value == 0 {
                return bad(field, &value, "it must be 1 or more");
            }
        }
        if !(self.largest_share > 0.0 && self.largest_share <= 1.0) {
            return bad("largest_share", &self.largest_share, "it must be above 0 and at most 1");
        }
        match self.longest_document {
            Some(longest) if longest < self.shortest_document => {
                bad("longest_document", &longest, "it must not be below the smallest length of a document")
            }
            _ => Ok(()),
        }
    }
}

/// Counts words, and numbers them in order of appearance.
pub(super) struct Counter {
    stop_words: HashSet<String>,
    shortest_word: usize,
    numbers: HashMap<String, u32>,
    builder: Builder,
}

impl Counter {
    pub fn new(settings: &TextSettings) -> Result<Self> {
        Ok(Self {
            stop_words: settings.stop_words.set()?,
            shortest_word: settings.shortest_word,
            numbers: HashMap::new(),
            builder: Builder::new(),
        })
    }

    /// Reads each line as a document.
    pub fn of_lines(lines: &mut Lines, settings: &TextSettings) -> Result<Self> {
        let mut counter = Self::new(settings)?;
        while lines.advance()? {
            counter.add(lines.text()?);
            counter.finish(lines)?;
        }
        Ok(counter)
    }

    /// Adds to the current document.
    pub fn add(&mut self, text: &str) {
        let Self { stop_words, shortest_word, numbers, builder } = self;
        words(text, |word| {
            if stop_words.contains(word) || (word.len() < *shortest_word * 4 && word.chars().count() < *shortest_word) {
                return;
            }
            let next = numbers.len() as u32;
            let number = match numbers.get(word) {
                Some(&number) => number,
                None => *numbers.entry(word.to_string()).or_insert(next),
            };
            builder.push(number, 1.0);
        });
    }

    /// The counts of all words, without limits, and the words by number.
    pub fn counts(self) -> (Counts, Vec<String>) {
        let mut words: Vec<(String, u32)> = self.numbers.into_iter().collect();
        words.sort_unstable_by_key(|word| word.1);
        (self.builder.counts(), words.into_iter().map(|word| word.0).collect())
    }

    /// Ends the current document.
    pub fn finish(&mut self, lines: &Lines) -> Result<()> {
        self.builder.finish().map_err(|term| lines.overflow(term))
    }
}

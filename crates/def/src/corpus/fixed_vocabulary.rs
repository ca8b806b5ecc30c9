//! Reads documents with a fixed vocabulary: that of a model to be fitted to them.

use super::bag_of_words::Corpus;
use super::builder::{Builder, Counts};
use super::folder;
use super::format::Format;
use super::lines::Lines;
use super::list::List;
use super::read::{ReadSettings, assemble, counted, format_of, given_names, nothing};
use super::text::{Counter, StopWords, TextSettings};
use super::warning::Warning;
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A fixed vocabulary for reading documents.
pub struct FixedVocabulary<'a> {
    /// The terms.
    pub vocabulary: &'a [String],
    /// The file they come from, for messages.
    pub path: &'a Path,
}

/// Documents reduced to the words of a fixed vocabulary.
#[derive(Debug, Clone)]
pub struct FixedVocabularyCorpus {
    /// Every document, including those without a word in the vocabulary.
    pub corpus: Corpus,
    /// The number of words that are not in the vocabulary, not counting stop words and words that are too short.
    pub unknown_len: u64,
    /// Other warnings.
    pub warnings: Vec<Warning>,
}

impl FixedVocabulary<'_> {
    /// Reads documents, in any of the formats of [`read`](super::read), with this vocabulary.
    ///
    /// Words of text are looked up in lower case. Files of counts refer to terms by their numbers in it, or by the names in
    /// [`ReadSettings::vocabulary`] if that is given. Every document is kept, in its position. Of [`ReadSettings::text`] only the
    /// stop words and the shortest word are used, to decide which unknown words are counted.
    ///
    /// # Errors
    /// As [`read`](super::read), and [`Error::Empty`] if no document has a word in the vocabulary.
    pub fn read(&self, path: &Path, settings: &ReadSettings) -> Result<FixedVocabularyCorpus> {
        settings.check()?;
        // The vocabulary decides which words are left out.
        let every = TextSettings { stop_words: StopWords::None, shortest_word: 1, ..TextSettings::default() };
        let counted_words = CountedWords::new(&settings.text)?;
        if path.is_dir() {
            if settings.format.is_some_and(|format| format != Format::Folder) {
                return Err(Error::Read { path: path.to_path_buf(), reason: std::io::ErrorKind::IsADirectory.into() });
            }
            check_no_vocabulary(settings)?;
            let (counter, names, warnings) = folder::read(path, &every)?;
            let (counts, words) = counter.counts();
            return self.recognise(
                path,
                &counts,
                Some((&words, &counted_words)),
                given_names(settings, Some(names))?,
                warnings,
            );
        }
        let mut lines = Lines::open(path)?;
        let format = format_of(&mut lines, settings)?;
        let names = given_names(settings, None)?;
        if format == Format::Text {
            check_no_vocabulary(settings)?;
            let (counts, words) = Counter::of_lines(&mut lines, &every)?.counts();
            return self.recognise(path, &counts, Some((&words, &counted_words)), names, Vec::new());
        }
        let own = settings.vocabulary.as_deref().map(List::open_vocabulary).transpose()?;
        let is_own = own.is_some();
        let list = own.unwrap_or_else(|| List { path: self.path.to_path_buf(), names: self.vocabulary.to_vec() });
        let (counts, _) = counted(&mut lines, format, Some(&list))?;
        self.recognise(path, &counts, is_own.then_some((&list.names, &counted_words)), names, Vec::new())
    }

    /// A corpus with another vocabulary, reduced to this one; errors call it `path`.
    ///
    /// # Errors
    /// [`Error::Empty`] if no document has a word in the vocabulary.
    pub fn of(&self, corpus: &Corpus, path: &Path) -> Result<FixedVocabularyCorpus> {
        let counts = Counts {
            starts: corpus.starts().to_vec(),
            terms: corpus.terms().to_vec(),
            counts: corpus.counts().to_vec(),
            numbers: (0..corpus.documents_len()).collect(),
            seen_len: corpus.documents_len(),
        };
        let names = List { path: path.to_path_buf(), names: corpus.names().to_vec() };
        let counted_words =
            CountedWords::new(&TextSettings { stop_words: StopWords::None, ..TextSettings::default() })?;
        self.recognise(path, &counts, Some((corpus.vocabulary(), &counted_words)), Some(names), Vec::new())
    }

    /// The corpus of counts of terms of this vocabulary, or of words to be looked up in it.
    fn recognise(
        &self,
        path: &Path,
        counts: &Counts,
        words: Option<(&[String], &CountedWords)>,
        names: Option<List>,
        warnings: Vec<Warning>,
    ) -> Result<FixedVocabularyCorpus> {
        if counts.seen_len == 0 {
            return Err(nothing(path));
        }
        let empty_len = counts.seen_len - counts.documents_len();
        if empty_len > EMPTY_MAX && empty_len > counts.documents_len() {
            let says = format!("{} documents, but only {} have words", counts.seen_len, counts.documents_len());
            let remedy = "correct the number of documents in the header".into();
            return Err(Error::Disagreement { path: path.to_path_buf(), message: says, remedy });
        }
        let numbers = words.map(|(words, counted)| self.numbers(words, counted));
        let mut builder = Builder::keeping_empty();
        let mut unknown_len = 0;
        let mut at = 0;
        for number in 0..counts.seen_len {
            if counts.numbers.get(at) == Some(&number) {
                let (terms, of_terms) = counts.document(at);
                for (&term, &count) in terms.iter().zip(of_terms) {
                    match numbers.as_ref().map_or(Place::Term(term), |numbers| numbers[term as usize]) {
                        Place::Term(term) => builder.push(term, count),
                        Place::Unknown => unknown_len += count as u64,
                        Place::Ignored => {}
                    }
                }
                at += 1;
            }
            builder.finish().map_err(|term| {
                let message = format!("one document has a count of more than 16777216 for term {term}");
                let remedy = "split the document, or check that it is a single document".into();
                Error::Disagreement { path: path.to_path_buf(), message, remedy }
            })?;
        }
        let counts = builder.counts();
        if counts.terms.is_empty() {
            if numbers.is_none() {
                return Err(nothing(path));
            }
            let message = format!("no document has a word that `{}` knows", self.path.display());
            let remedy =
                "check that these documents resemble the training documents and are in the same language".into();
            return Err(Error::Empty { path: path.to_path_buf(), message, remedy });
        }
        let (corpus, warnings) = assemble(path, counts, self.vocabulary.to_vec(), names, warnings)?;
        Ok(FixedVocabularyCorpus { corpus, unknown_len, warnings })
    }

    /// The place of each word in the vocabulary.
    fn numbers(&self, words: &[String], counted: &CountedWords) -> Vec<Place> {
        let mut known: HashMap<String, u32> = HashMap::with_capacity(self.vocabulary.len());
        for (v, term) in self.vocabulary.iter().enumerate() {
            known.entry(term.to_lowercase()).or_insert(v as u32);
        }
        // An exact match takes precedence over one that differs in case.
        for (v, term) in self.vocabulary.iter().enumerate() {
            known.insert(term.clone(), v as u32);
        }
        let place = |word: &String| match known.get(word).or_else(|| known.get(&word.to_lowercase())) {
            Some(v) => Place::Term(*v),
            None if counted.contains(word) => Place::Unknown,
            None => Place::Ignored,
        };
        words.iter().map(place).collect()
    }
}

fn check_no_vocabulary(settings: &ReadSettings) -> Result<()> {
    let Some(path) = &settings.vocabulary else { return Ok(()) };
    let reason = "the words of text are looked up directly; leave this out, or give a file of counts";
    Err(Error::BadSetting { field: "vocabulary", value: path.display().to_string(), reason })
}

/// The largest number of empty documents that are kept if most are empty: a header may claim any number.
const EMPTY_MAX: usize = 1_000_000;

/// The place of a word in a vocabulary.
#[derive(Clone, Copy)]
enum Place {
    Term(u32),
    Unknown,
    /// Not in the vocabulary, and not counted either.
    Ignored,
}

/// The words that are counted if they are not in the vocabulary.
struct CountedWords {
    stop_words: HashSet<String>,
    shortest: usize,
}

impl CountedWords {
    fn new(settings: &TextSettings) -> Result<Self> {
        Ok(Self { stop_words: settings.stop_words.set()?, shortest: settings.shortest_word })
    }

    fn contains(&self, word: &str) -> bool {
        !self.stop_words.contains(word) && word.chars().count() >= self.shortest
    }
}

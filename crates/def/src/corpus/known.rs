//! Documents in terms that are known already: those of a model that is to be fitted to them.

use super::builder::{Builder, Counts};
use super::lines::Lines;
use super::list::List;
use super::read::{assemble, counted, format_of, given_names, nothing};
use super::text::Counter;
use super::{Corpus, Format, Note, ReadSettings, StopWords, TextSettings, folder};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A vocabulary that documents are read into.
pub struct Known<'a> {
    /// The terms.
    pub vocabulary: &'a [String],
    /// The file that they are from, for messages.
    pub path: &'a Path,
}

/// Documents as far as their words are known.
#[derive(Debug, Clone)]
pub struct KnownCorpus {
    /// Every document, those without a known word too, over the known vocabulary.
    pub corpus: Corpus,
    /// How many words are not in the vocabulary, stop words and words that are too short not counted.
    pub unknown_len: u64,
    /// What is worth knowing beside that.
    pub notes: Vec<Note>,
}

impl Known<'_> {
    /// Reads documents, in any of the formats of [`read`](super::read), into this vocabulary.
    ///
    /// Words of text are looked up in it, in small letters. Counts are of its terms by their numbers, or by the names in
    /// [`ReadSettings::vocabulary`] where that is given. Every document is kept, in its place. Of [`ReadSettings::text`] only the
    /// stop words and the shortest word have a say, and only over which of the words that are not known are worth counting.
    ///
    /// # Errors
    /// As [`read`](super::read), and [`Error::Empty`] where no document has a word that is known.
    pub fn read(&self, path: &Path, settings: &ReadSettings) -> Result<KnownCorpus> {
        settings.check()?;
        // Which words are left out is for the vocabulary to say.
        let every = TextSettings { stop_words: StopWords::None, shortest_word: 1, ..TextSettings::default() };
        let worth = Worth::new(&settings.text)?;
        if path.is_dir() {
            if settings.format.is_some_and(|format| format != Format::Folder) {
                return Err(Error::Read { path: path.to_path_buf(), reason: std::io::ErrorKind::IsADirectory.into() });
            }
            check_no_vocabulary(settings)?;
            let (counter, names, notes) = folder::read(path, &every)?;
            let (counts, words) = counter.counts();
            return self.recognise(path, &counts, Some((&words, &worth)), given_names(settings, Some(names))?, notes);
        }
        let mut lines = Lines::open(path)?;
        let format = format_of(&mut lines, settings)?;
        let names = given_names(settings, None)?;
        if format == Format::Text {
            check_no_vocabulary(settings)?;
            let (counts, words) = Counter::of_lines(&mut lines, &every)?.counts();
            return self.recognise(path, &counts, Some((&words, &worth)), names, Vec::new());
        }
        let own = settings.vocabulary.as_deref().map(List::open_vocabulary).transpose()?;
        let is_own = own.is_some();
        let list = own.unwrap_or_else(|| List { path: self.path.to_path_buf(), names: self.vocabulary.to_vec() });
        let (counts, _) = counted(&mut lines, format, Some(&list))?;
        self.recognise(path, &counts, is_own.then_some((&list.names, &worth)), names, Vec::new())
    }

    /// A corpus over a vocabulary of its own in this one; `path` is what errors call it.
    ///
    /// # Errors
    /// [`Error::Empty`] where no document has a word that is known.
    pub fn of(&self, corpus: &Corpus, path: &Path) -> Result<KnownCorpus> {
        let counts = Counts {
            starts: corpus.starts.clone(),
            terms: corpus.terms.clone(),
            counts: corpus.counts.clone(),
            numbers: (0..corpus.documents_len()).collect(),
            seen_len: corpus.documents_len(),
        };
        let names = List { path: path.to_path_buf(), names: corpus.names.clone() };
        let worth = Worth::new(&TextSettings { stop_words: StopWords::None, ..TextSettings::default() })?;
        self.recognise(path, &counts, Some((&corpus.vocabulary, &worth)), Some(names), Vec::new())
    }

    /// Counts of terms of this vocabulary, or of words that are looked up in it.
    fn recognise(
        &self,
        path: &Path,
        counts: &Counts,
        words: Option<(&[String], &Worth)>,
        names: Option<List>,
        notes: Vec<Note>,
    ) -> Result<KnownCorpus> {
        if counts.seen_len == 0 {
            return Err(nothing(path));
        }
        let empty_len = counts.seen_len - counts.documents_len();
        if empty_len > EMPTY_MAX && empty_len > counts.documents_len() {
            let says = format!("{} documents, but only {} have words", counts.seen_len, counts.documents_len());
            let remedy = "mend the number of documents in the header".into();
            return Err(Error::Disagreement { path: path.to_path_buf(), message: says, remedy });
        }
        let numbers = words.map(|(words, worth)| self.numbers(words, worth));
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
                        Place::Nothing => {}
                    }
                }
                at += 1;
            }
            builder.finish().map_err(|term| {
                let message = format!("one document has more than 16777216 of term {term}");
                let remedy = "split the document, or check whether it is one".into();
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
                "check that these are documents like those that were learnt from, and in the same language".into();
            return Err(Error::Empty { path: path.to_path_buf(), message, remedy });
        }
        let (corpus, notes) = assemble(path, counts, self.vocabulary.to_vec(), names, notes)?;
        Ok(KnownCorpus { corpus, unknown_len, notes })
    }

    /// What each word is here.
    fn numbers(&self, words: &[String], worth: &Worth) -> Vec<Place> {
        let mut known: HashMap<String, u32> = HashMap::with_capacity(self.vocabulary.len());
        for (v, term) in self.vocabulary.iter().enumerate() {
            known.entry(term.to_lowercase()).or_insert(v as u32);
        }
        // A term that is written like the word goes before one that differs in its capitals.
        for (v, term) in self.vocabulary.iter().enumerate() {
            known.insert(term.clone(), v as u32);
        }
        let place = |word: &String| match known.get(word).or_else(|| known.get(&word.to_lowercase())) {
            Some(v) => Place::Term(*v),
            None if worth.counts(word) => Place::Unknown,
            None => Place::Nothing,
        };
        words.iter().map(place).collect()
    }
}

fn check_no_vocabulary(settings: &ReadSettings) -> Result<()> {
    let Some(path) = &settings.vocabulary else { return Ok(()) };
    let reason = "the words of a text are looked up as they are; leave this out, or give a file of counts";
    Err(Error::BadSetting { field: "vocabulary", value: path.display().to_string(), reason })
}

/// How many documents without words are kept where most have none: a header may promise any number.
const EMPTY_MAX: usize = 1_000_000;

/// What a word is in a vocabulary.
#[derive(Clone, Copy)]
enum Place {
    Term(u32),
    Unknown,
    /// Not known, and no loss.
    Nothing,
}

/// Which words are missed where they are not known.
struct Worth {
    stop_words: HashSet<String>,
    shortest: usize,
}

impl Worth {
    fn new(settings: &TextSettings) -> Result<Self> {
        Ok(Self { stop_words: settings.stop_words.set()?, shortest: settings.shortest_word })
    }

    fn counts(&self, word: &str) -> bool {
        !self.stop_words.contains(word) && word.chars().count() >= self.shortest
    }
}

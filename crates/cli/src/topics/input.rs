//! The corpus that `topics` is given: a file, a folder, or the Bible that is built in.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use hyperprior_def::Trained;
use hyperprior_def::corpus::{self, Corpus, Format, FixedVocabulary, FixedVocabularyCorpus, Warning, ReadSettings, StopWords, TextSettings};
use std::path::{Path, PathBuf};

/// The corpus and how it is read.
#[derive(Debug, Args)]
pub struct Input {
    /// A file of word counts or of text, a folder of text files, or the word bible for the King James Bible, which is built in
    // Required, but for subcommands.
    #[arg(required = true)]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// How a corpus is read.
#[derive(Debug, Args)]
pub struct Reading {
    /// The terms of a file of counts, one on each line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    vocab: Option<PathBuf>,
    /// The documents' names, one on each line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    names: Option<PathBuf>,
    /// How the corpus is written; told from its name and its first lines, where it is not given
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Reading")]
    format: Option<Written>,
    /// Text: the words to leave out: english, none, or a file with one on each line [default: english]
    #[arg(long, value_name = "WHICH", value_parser = stop_words, help_heading = "Reading")]
    stop_words: Option<StopWords>,
    /// Text: the fewest documents that a term is in [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    min_documents: Option<usize>,
    /// Text: the largest share of the documents that a term is in [default: 0.7]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Reading")]
    max_share: Option<f64>,
    /// Text: the most terms, those in the most documents first [default: 10000]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    max_terms: Option<usize>,
    /// Text: the fewest words of a document [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    min_length: Option<usize>,
    /// Text: the most words of a document; longer ones are left out
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    max_length: Option<usize>,
}

/// How a corpus is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// LDA-C: a line for each document, `terms term:count term:count …`, terms numbered from 0
    Ldac,
    /// UCI bag of words: three lines with the numbers of documents, terms and counts, then `document term count`, from 1
    Uci,
    /// Matrix Market: a sparse matrix with a document in each row and a term in each column
    Mtx,
    /// Text with a document on each line
    Text,
    /// A folder with a document in each text file
    Folder,
}

impl From<Written> for Format {
    fn from(written: Written) -> Self {
        match written {
            Written::Ldac => Self::LdaC,
            Written::Uci => Self::Uci,
            Written::Mtx => Self::MatrixMarket,
            Written::Text => Self::Text,
            Written::Folder => Self::Folder,
        }
    }
}

/// What the Bible is asked for by.
const BIBLE: &str = "bible";

pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a whole number, 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("write a share, above 0 and at most 1".to_owned()),
    }
}

fn stop_words(text: &str) -> Result<StopWords, String> {
    Ok(match text {
        "english" => StopWords::English,
        "none" => StopWords::None,
        file => StopWords::File(file.into()),
    })
}

impl Input {
    /// What the corpus is called: its file's or folder's name without what says how it is written; its folder's where the file's
    /// says nothing.
    pub fn name(&self) -> String {
        name_of(self.corpus())
    }

    /// Where it is.
    pub fn corpus(&self) -> &Path {
        self.corpus.as_deref().unwrap_or(Path::new(""))
    }

    /// How it is read; nothing for the Bible.
    pub fn settings(&self) -> Option<ReadSettings> {
        (!is_built_in(self.corpus())).then(|| self.reading.settings())
    }

    /// Reads it. With what is worth knowing of that.
    pub fn read(&self) -> Result<(Corpus, Vec<String>), CliError> {
        self.reading.read(self.corpus())
    }
}

impl Reading {
    /// The settings.
    fn settings(&self) -> ReadSettings {
        let usual = TextSettings::default();
        ReadSettings {
            format: self.format.map(Format::from),
            vocabulary: self.vocab.clone(),
            names: self.names.clone(),
            text: TextSettings {
                stop_words: self.stop_words.clone().unwrap_or(usual.stop_words),
                least_documents: self.min_documents.unwrap_or(usual.least_documents),
                largest_share: self.max_share.unwrap_or(usual.largest_share),
                most_terms: self.max_terms.or(usual.most_terms),
                shortest_document: self.min_length.unwrap_or(usual.shortest_document),
                longest_document: self.max_length,
                ..usual
            },
        }
    }

    /// Reads a corpus. With what is worth knowing of that.
    pub fn read(&self, corpus: &Path) -> Result<(Corpus, Vec<String>), CliError> {
        let of_text = [
            ("--stop-words", self.stop_words.is_some()),
            ("--min-documents", self.min_documents.is_some()),
            ("--max-share", self.max_share.is_some()),
            ("--max-terms", self.max_terms.is_some()),
            ("--min-length", self.min_length.is_some()),
            ("--max-length", self.max_length.is_some()),
        ];
        let of_text = of_text.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
        if is_built_in(corpus) {
            let of_file = [
                ("--vocab", self.vocab.is_some()),
                ("--names", self.names.is_some()),
                ("--format", self.format.is_some()),
            ];
            let of_file = of_file.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
            return match of_text.or(of_file) {
                Some(option) => Err(CliError::Usage(format!(
                    "{option} says nothing of the Bible that is built in, whose words are counted already; leave it out, or \
                     write ./{BIBLE} for a file of that name"
                ))),
                None => Ok((corpus::bible(), Vec::new())),
            };
        }
        let (read, notes) = corpus::read(corpus, &self.settings())?;
        // A text always tells of its vocabulary.
        if let Some(option) = of_text
            && !notes.iter().any(|note| matches!(note, Warning::Vocabulary { .. }))
        {
            let path = corpus.display();
            return Err(CliError::Usage(format!(
                "{option} is for text, and `{path}` has words that are counted already; leave it out, or give the text"
            )));
        }
        Ok((read, notes.iter().map(|note| format!("{note}{}", remedy(note))).collect()))
    }
}

/// Whether it is the Bible.
fn is_built_in(corpus: &Path) -> bool {
    corpus == Path::new(BIBLE)
}

/// Documents that the topics of a run are looked for in.
#[derive(Debug, Args)]
pub struct NewDocuments {
    /// The documents, as `hyperprior topics` reads them: a file of word counts or of text, a folder of text files, or bible
    #[arg(value_name = "NEWDOCS")]
    documents: PathBuf,
    /// The terms of a file of counts, one on each line, where they are not the run's own; they are looked up by their names
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    vocab: Option<PathBuf>,
    /// The documents' names, one on each line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    names: Option<PathBuf>,
    /// How the documents are written; told from the name and the first lines, where it is not given
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Reading")]
    format: Option<Written>,
    /// The words that are not missed where the run does not know them: english, none, or a file with one on each line
    /// [default: english]
    #[arg(long, value_name = "WHICH", value_parser = stop_words, help_heading = "Reading")]
    stop_words: Option<StopWords>,
}

impl NewDocuments {
    /// What they are called.
    pub fn name(&self) -> String {
        name_of(&self.documents)
    }

    /// Reads them into the words of a model from this file.
    pub fn read(&self, trained: &Trained, path: &Path) -> Result<FixedVocabularyCorpus, CliError> {
        let known = FixedVocabulary { vocabulary: trained.vocabulary(), path };
        if is_built_in(&self.documents) {
            return Ok(known.of(&corpus::bible(), &self.documents)?);
        }
        let settings = ReadSettings {
            format: self.format.map(Format::from),
            vocabulary: self.vocab.clone(),
            names: self.names.clone(),
            text: TextSettings { stop_words: self.stop_words.clone().unwrap_or_default(), ..TextSettings::default() },
        };
        Ok(known.read(&self.documents, &settings)?)
    }
}

/// What a corpus is called.
pub fn name_of(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let whole = name(path).unwrap_or_else(|| path.display().to_string());
    // UCI's own files are called docword.NAME.txt.
    let told = whole.strip_prefix("docword.").unwrap_or(&whole);
    let own = told.split('.').find(|part| !part.is_empty()).unwrap_or(told).to_owned();
    match path.parent().and_then(name) {
        Some(folder) if ["docs", "corpus"].contains(&own.as_str()) => folder,
        _ => own,
    }
}

/// Reads a corpus as it was read before; without settings it is the Bible.
pub fn read_again(path: &Path, settings: Option<&ReadSettings>) -> Result<(Corpus, Vec<String>), CliError> {
    match settings {
        None => Ok((corpus::bible(), Vec::new())),
        Some(settings) => Ok((corpus::read(path, settings)?.0, Vec::new())),
    }
}

fn remedy(note: &Warning) -> &'static str {
    match note {
        Warning::NumberedTerms { .. } => "; --vocab FILE names them",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        input: Input,
    }

    fn input(line: &str) -> Input {
        Line::parse_from(["topics"].into_iter().chain(line.split_whitespace())).input
    }

    #[test]
    fn a_corpus_has_the_name_that_says_most() {
        for (path, name) in
            [("bible", "bible"), ("a/nyt/docs.ldac.gz", "nyt"), ("docword.kos.txt", "kos"), ("a/mail/", "mail")]
        {
            assert_eq!(input(path).name(), name, "{path}");
        }
    }

    #[test]
    fn what_is_not_given_is_as_the_library_has_it() {
        assert_eq!(input("x.txt").settings(), Some(ReadSettings::default()));
        assert_eq!(input("bible").settings(), None);
        let given = input("x.txt --max-share 0.5 --stop-words none --max-length 9").settings().expect("settings");
        assert_eq!((given.text.largest_share, given.text.longest_document), (0.5, Some(9)));
        assert_eq!(given.text.stop_words, StopWords::None);
    }
}

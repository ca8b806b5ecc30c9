//! The corpus of `topics`: a file, a folder, or the built-in Bible.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use hyperprior_def::Trained;
use hyperprior_def::corpus::{
    self, Corpus, FixedVocabulary, FixedVocabularyCorpus, Format, ReadSettings, StopWords, TextSettings, Warning,
};
use std::path::{Path, PathBuf};

/// The corpus and how to read it.
#[derive(Debug, Args)]
pub struct Input {
    /// File of word counts or text, folder of text files, or `bible` for the built-in King James Bible
    // Required without a subcommand.
    #[arg(required = true)]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// How to read a corpus.
#[derive(Debug, Args)]
pub struct Reading {
    /// Terms of a file of counts, one per line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    vocab: Option<PathBuf>,
    /// Names of the documents, one per line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    names: Option<PathBuf>,
    /// Format of the corpus [default: by its name and its first lines]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Reading")]
    format: Option<Written>,
    /// Text: words to exclude: english, none, or a file with one per line [default: english]
    #[arg(long, value_name = "WHICH", value_parser = stop_words, help_heading = "Reading")]
    stop_words: Option<StopWords>,
    /// Text: smallest number of documents with a term [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    min_documents: Option<usize>,
    /// Text: largest share of documents with a term [default: 0.7]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Reading")]
    max_share: Option<f64>,
    /// Text: largest number of terms; those in the most documents are kept [default: 10000]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    max_terms: Option<usize>,
    /// Text: smallest number of words in a document; shorter ones are excluded [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    min_length: Option<usize>,
    /// Text: largest number of words in a document; longer ones are excluded [default: none]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Reading")]
    max_length: Option<usize>,
}

/// The format of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// LDA-C: one line per document, `terms term:count term:count …`, terms numbered from 0
    Ldac,
    /// UCI bag of words: three lines with the numbers of documents, terms and counts, then `document term count`, from 1
    Uci,
    /// Matrix Market: a sparse matrix with one row per document and one column per term
    Mtx,
    /// Text with one document per line
    Text,
    /// Folder with one text file per document
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

/// The name of the built-in Bible.
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
    /// The name of the corpus: that of its file or folder without extensions, or of the parent folder if the file is called
    /// `docs` or `corpus`.
    pub fn name(&self) -> String {
        name_of(self.corpus())
    }

    /// The path.
    pub fn corpus(&self) -> &Path {
        self.corpus.as_deref().unwrap_or(Path::new(""))
    }

    /// The settings for reading it; none for the Bible.
    pub fn settings(&self) -> Option<ReadSettings> {
        (!is_built_in(self.corpus())).then(|| self.reading.settings())
    }

    /// Reads the corpus; also returns notes.
    pub fn read(&self) -> Result<(Corpus, Vec<String>), CliError> {
        self.reading.read(self.corpus())
    }
}

impl Reading {
    /// The settings.
    fn settings(&self) -> ReadSettings {
        let default = TextSettings::default();
        let text = TextSettings::default()
            .stop_words(self.stop_words.clone().unwrap_or(default.stop_words))
            .least_documents(self.min_documents.unwrap_or(default.least_documents))
            .largest_share(self.max_share.unwrap_or(default.largest_share))
            .most_terms(self.max_terms.or(default.most_terms))
            .shortest_document(self.min_length.unwrap_or(default.shortest_document))
            .longest_document(self.max_length);
        ReadSettings::default()
            .format(self.format.map(Format::from))
            .vocabulary(self.vocab.clone())
            .names(self.names.clone())
            .text(text)
    }

    /// Reads a corpus; also returns notes.
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
                    "{option} does not apply to the built-in Bible, whose words are already counted; omit it, or write \
                     ./{BIBLE} for a file of that name"
                ))),
                None => Ok((corpus::bible(), Vec::new())),
            };
        }
        let (read, notes) = corpus::read(corpus, &self.settings())?;
        // Reading text always reports its vocabulary.
        if let Some(option) = of_text
            && !notes.iter().any(|note| matches!(note, Warning::Vocabulary { .. }))
        {
            let path = corpus.display();
            return Err(CliError::Usage(format!(
                "{option} is for text, but `{path}` is a file of word counts; omit it, or give the text"
            )));
        }
        Ok((read, notes.iter().map(|note| format!("{note}{}", remedy(note))).collect()))
    }
}

/// Whether it is the built-in Bible.
fn is_built_in(corpus: &Path) -> bool {
    corpus == Path::new(BIBLE)
}

/// New documents for the topics of a run.
#[derive(Debug, Args)]
pub struct NewDocuments {
    /// New documents, in any format of `hyperprior topics`
    #[arg(value_name = "NEWDOCS")]
    documents: PathBuf,
    /// Terms of a file of counts, one per line, looked up by name [default: the run's terms]
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    vocab: Option<PathBuf>,
    /// Names of the documents, one per line
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    names: Option<PathBuf>,
    /// Format of the documents [default: by their name and their first lines]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Reading")]
    format: Option<Written>,
    /// Words that do not count as unknown: english, none, or a file with one per line [default: english]
    #[arg(long, value_name = "WHICH", value_parser = stop_words, help_heading = "Reading")]
    stop_words: Option<StopWords>,
}

impl NewDocuments {
    /// Their name.
    pub fn name(&self) -> String {
        name_of(&self.documents)
    }

    /// Reads them with the vocabulary of the model in this file.
    pub fn read(&self, trained: &Trained, path: &Path) -> Result<FixedVocabularyCorpus, CliError> {
        let known = FixedVocabulary { vocabulary: trained.vocabulary(), path };
        if is_built_in(&self.documents) {
            return Ok(known.of(&corpus::bible(), &self.documents)?);
        }
        let settings = ReadSettings::default()
            .format(self.format.map(Format::from))
            .vocabulary(self.vocab.clone())
            .names(self.names.clone())
            .text(TextSettings::default().stop_words(self.stop_words.clone().unwrap_or_default()));
        Ok(known.read(&self.documents, &settings)?)
    }
}

/// The name of a corpus.
pub fn name_of(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let whole = name(path).unwrap_or_else(|| path.display().to_string());
    // UCI's files are called docword.NAME.txt.
    let rest = whole.strip_prefix("docword.").unwrap_or(&whole);
    let own = rest.split('.').find(|part| !part.is_empty()).unwrap_or(rest).to_owned();
    match path.parent().and_then(name) {
        Some(folder) if ["docs", "corpus"].contains(&own.as_str()) => folder,
        _ => own,
    }
}

/// Reads a corpus with the settings of an earlier run; without settings it is the Bible.
pub fn read_again(path: &Path, settings: Option<&ReadSettings>) -> Result<(Corpus, Vec<String>), CliError> {
    match settings {
        None => Ok((corpus::bible(), Vec::new())),
        Some(settings) => Ok((corpus::read(path, settings)?.0, Vec::new())),
    }
}

fn remedy(note: &Warning) -> &'static str {
    match note {
        Warning::NumberedTerms { .. } => "; name them with --vocab FILE",
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
    fn a_corpus_has_an_informative_name() {
        for (path, name) in
            [("bible", "bible"), ("a/nyt/docs.ldac.gz", "nyt"), ("docword.kos.txt", "kos"), ("a/mail/", "mail")]
        {
            assert_eq!(input(path).name(), name, "{path}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        assert_eq!(input("x.txt").settings(), Some(ReadSettings::default()));
        assert_eq!(input("bible").settings(), None);
        let given = input("x.txt --max-share 0.5 --stop-words none --max-length 9").settings().expect("settings");
        assert_eq!((given.text.largest_share, given.text.longest_document), (0.5, Some(9)));
        assert_eq!(given.text.stop_words, StopWords::None);
    }
}

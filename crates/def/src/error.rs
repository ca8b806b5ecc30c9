//! Errors, with what to do about them.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate: what is wrong, where, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A device for the training cannot be used.
    #[error("{reason}; train on the device `cpu` instead")]
    Device {
        /// Why.
        reason: String,
    },
    /// A file could not be opened or read.
    #[error("cannot read `{}`: {reason}; {}", path.display(), remedy(reason))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
    /// A compressed file is cut off or damaged.
    #[error(
        "{}: the compressed data {} after line {line}; download the file again, and check it with `gzip -t`",
        path.display(),
        if *cut_off { "end too early," } else { "are damaged" }
    )]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The last complete line.
        line: usize,
        /// Whether the file ends too early; otherwise its data are damaged.
        cut_off: bool,
    },
    /// A file contains bytes that are not text.
    #[error("{}: line {line}, column {column}: {found}; {remedy}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What was found.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A line does not follow the format.
    #[error("{}: line {line}, column {column}: {message}; {remedy}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// A count is not a whole number of at least 0.
    #[error("{}: line {line}, column {column}: the count `{count}` is {fault}; {remedy}", path.display())]
    BadCount {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The count as written.
        count: String,
        /// What is wrong with it.
        fault: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A term's number is past the end of the vocabulary.
    #[error(
        "{}: line {line}, column {column}: term {term}, but `{}` has {terms_len} terms, numbered from 0 to {}; use the \
         vocabulary that the counts were made with",
        path.display(),
        vocabulary.display(),
        terms_len - 1
    )]
    UnknownTerm {
        /// The file of counts.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The term's number, from 0.
        term: u64,
        /// The vocabulary's file.
        vocabulary: PathBuf,
        /// The number of terms in the vocabulary.
        terms_len: usize,
    },
    /// A vocabulary has a term twice.
    #[error("{}: line {line}: `{term}` is already on line {first}; give each term one line", path.display())]
    RepeatedTerm {
        /// The vocabulary's file.
        path: PathBuf,
        /// The later line, from 1.
        line: usize,
        /// The earlier line.
        first: usize,
        /// The term.
        term: String,
    },
    /// A file does not have as many of something as stated elsewhere.
    #[error("{}: {message}; {remedy}", path.display())]
    Disagreement {
        /// The file.
        path: PathBuf,
        /// What disagrees.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// There is nothing to fit.
    #[error("{}: {message}; {remedy}", path.display())]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// What is missing.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// Neither the name nor the contents of a file show its format.
    #[error(
        "{}: cannot recognise the format by the name or the first lines; name the file .ldac (LDA-C), .uci (UCI bag of \
         words), .mtx (Matrix Market) or .txt (a document on each line), or give the format",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// Parts that do not make a corpus.
    #[error("the corpus cannot be built: {message}; {remedy}")]
    BadCorpus {
        /// What is wrong, and in which document.
        message: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A training cannot be resumed from a file.
    #[error("cannot resume from this checkpoint: {reason}; start the training again")]
    Checkpoint {
        /// Why.
        reason: &'static str,
    },
    /// A file does not contain a trained model.
    #[error("this file does not contain a usable model: {reason}; train the model again")]
    Model {
        /// Why.
        reason: &'static str,
    },
    /// A field of the settings has an invalid value.
    #[error("setting `{field}` = {value} is invalid: {reason}")]
    BadSetting {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        reason: &'static str,
    },
}

impl Error {
    /// The kind of error if a file could not be read; `NotFound` if it does not exist.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Read { reason, .. } => Some(reason.kind()),
            _ => None,
        }
    }
}

fn remedy(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check that you may read it",
        io::ErrorKind::IsADirectory => "give the path of a file in it",
        io::ErrorKind::NotADirectory => "give the path of a folder, or another format",
        _ => "check the file",
    }
}

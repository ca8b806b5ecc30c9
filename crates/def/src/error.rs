//! What can go wrong, said so that a person can mend it.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate: what is wrong, where, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened or read.
    #[error("cannot read `{}`: {reason}; {}", path.display(), remedy(reason))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A compressed file is cut off or damaged.
    #[error(
        "{}: the compressed data {} after line {line}; fetch the file again, and try it with `gzip -t`",
        path.display(),
        if *cut_off { "end too early," } else { "are damaged" }
    )]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The last line that was whole.
        line: usize,
        /// Whether the file ends too early; otherwise what is there is wrong.
        cut_off: bool,
    },
    /// A file holds bytes that no text has.
    #[error("{}: line {line}, column {column}: {found}; {remedy}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is there.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A line is not in its format.
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
    /// A count is no whole number from 0 on.
    #[error("{}: line {line}, column {column}: the count `{count}` is {fault}; {remedy}", path.display())]
    BadCount {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The count as it is written.
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
        /// How many terms the vocabulary has.
        terms_len: usize,
    },
    /// A vocabulary has a term twice.
    #[error("{}: line {line}: `{term}` is on line {first} too; give each term one line", path.display())]
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
    /// A file does not have as much of something as another place says.
    #[error("{}: {message}; {remedy}", path.display())]
    Disagreement {
        /// The file.
        path: PathBuf,
        /// What does not agree.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// Nothing is left to fit.
    #[error("{}: {message}; {remedy}", path.display())]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// What there is nothing of.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// Neither the name nor the contents of a file say how it is written.
    #[error(
        "{}: cannot tell the format from the name or from the first lines; call it .ldac (LDA-C), .uci (UCI bag of \
         words), .mtx (Matrix Market) or .txt (a document on each line), or name the format",
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
    /// A file does not hold a training that can go on.
    #[error("this checkpoint cannot be gone on from: {reason}; start the training anew")]
    Checkpoint {
        /// Why.
        reason: &'static str,
    },
    /// A file does not hold a trained model.
    #[error("this file has no model that documents can be fitted with: {reason}; train the model anew")]
    Model {
        /// Why.
        reason: &'static str,
    },
    /// A field of the settings has a value that has no meaning.
    #[error("setting `{field}` = {value} is not possible: {reason}")]
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
    /// What the system said, where it refused to hand over a file; `NotFound` for a file that is not there.
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
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::NotADirectory => "name a folder, or another format",
        _ => "check the file",
    }
}

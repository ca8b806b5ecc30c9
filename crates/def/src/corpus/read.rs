//! Reads a corpus in any format.

use super::bag_of_words::Corpus;
use super::builder::Counts;
use super::format::Format;
use super::lines::Lines;
use super::list::List;
use super::text::{self, TextSettings};
use super::warning::Warning;
use super::{folder, ldac, matrix_market, uci};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The settings for reading a corpus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadSettings {
    /// The format; `None` to recognise it by the name and the first lines.
    pub format: Option<Format>,
    /// A file with a term on each line, for formats that number their terms; `None` to name them by their numbers.
    pub vocabulary: Option<PathBuf>,
    /// A file with the name of a document on each line; `None` to name them by their numbers from 1, or by their files.
    pub names: Option<PathBuf>,
    /// How text becomes counts.
    pub text: TextSettings,
}

hyperprior::setters!(ReadSettings {
    text: TextSettings;
    format?: Format, vocabulary?: PathBuf, names?: PathBuf
});

impl ReadSettings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        self.text.check()
    }

    /// A vocabulary that would have no effect is an error.
    fn check_no_vocabulary(&self) -> Result<()> {
        let Some(path) = &self.vocabulary else { return Ok(()) };
        let reason = "text has its own vocabulary; leave this out, or give a file of counts";
        Err(Error::BadSetting { field: "vocabulary", value: path.display().to_string(), reason })
    }
}

/// Reads a corpus from a file, plain or compressed with gzip, or from a folder of text.
///
/// Documents without words are left out, and a [`Warning`] gives their number.
///
/// # Errors
/// What is wrong with the file, at which line and column, and what to do about it.
pub fn read(path: impl AsRef<Path>, settings: &ReadSettings) -> Result<(Corpus, Vec<Warning>)> {
    let path = path.as_ref();
    settings.check()?;
    if !path.is_dir() {
        return read_lines(Lines::open(path)?, settings);
    }
    match settings.format {
        None | Some(Format::Folder) => {
            settings.check_no_vocabulary()?;
            let (counter, names, mut warnings) = folder::read(path, &settings.text)?;
            let (counts, vocabulary) = counter.limited(path, &settings.text, &mut warnings)?;
            assemble(path, counts, vocabulary, given_names(settings, Some(names))?, warnings)
        }
        Some(_) => Err(Error::Read { path: path.to_path_buf(), reason: std::io::ErrorKind::IsADirectory.into() }),
    }
}

/// Reads a corpus from any reader, such as standard input; errors call it `path`.
///
/// ```
/// use hyperprior_def::corpus::{ReadSettings, read_from};
///
/// let (corpus, warnings) = read_from("docs.ldac", "2 0:1 2:3\n1 1:1\n".as_bytes(), &ReadSettings::default()).unwrap();
/// assert_eq!((corpus.documents_len(), corpus.terms_len()), (2, 3));
/// assert_eq!(warnings[0].to_string(), "no vocabulary was given, so the 3 terms are called by their numbers");
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from(path: impl AsRef<Path>, reader: impl Read, settings: &ReadSettings) -> Result<(Corpus, Vec<Warning>)> {
    settings.check()?;
    read_lines(Lines::new(path.as_ref(), Box::new(reader)), settings)
}

fn read_lines(mut lines: Lines, settings: &ReadSettings) -> Result<(Corpus, Vec<Warning>)> {
    let path = lines.path().to_path_buf();
    let format = format_of(&mut lines, settings)?;
    let mut warnings = Vec::new();
    if format == Format::Text {
        settings.check_no_vocabulary()?;
        let counter = text::Counter::of_lines(&mut lines, &settings.text)?;
        let (counts, vocabulary) = counter.limited(&path, &settings.text, &mut warnings)?;
        return assemble(&path, counts, vocabulary, given_names(settings, None)?, warnings);
    }
    let vocabulary = settings.vocabulary.as_deref().map(List::open_vocabulary).transpose()?;
    let (counts, terms_len) = counted(&mut lines, format, vocabulary.as_ref())?;
    let terms = match vocabulary {
        Some(list) => list.names,
        None => {
            warnings.push(Warning::NumberedTerms { terms_len });
            (0..terms_len).map(|term| term.to_string()).collect()
        }
    };
    let dropped = counts.seen_len - counts.documents_len();
    if dropped > 0 {
        warnings.push(Warning::EmptyDocuments { dropped, seen: counts.seen_len });
    }
    assemble(&path, counts, terms, given_names(settings, None)?, warnings)
}

/// The format of the settings, or the one that the name and the first lines indicate.
pub(super) fn format_of(lines: &mut Lines, settings: &ReadSettings) -> Result<Format> {
    settings.format.or_else(|| Format::of(lines.path(), lines.head())).ok_or_else(|| no_format(lines))
}

/// The counts of a file that numbers its terms, and the number of terms.
pub(super) fn counted(lines: &mut Lines, format: Format, vocabulary: Option<&List>) -> Result<(Counts, usize)> {
    match format {
        Format::LdaC => ldac::read(lines, vocabulary),
        Format::Uci => uci::read(lines, vocabulary),
        Format::MatrixMarket => matrix_market::read(lines, vocabulary),
        Format::Text | Format::Folder => {
            let path = lines.path().to_path_buf();
            Err(Error::Read { path, reason: std::io::ErrorKind::NotADirectory.into() })
        }
    }
}

/// The error for a file of unknown format: why it cannot be read at all, if so.
fn no_format(lines: &mut Lines) -> Error {
    let path = lines.path().to_path_buf();
    match lines.advance() {
        Err(error) => error,
        Ok(false) => nothing(&path),
        Ok(true) => lines.text().err().unwrap_or(Error::UnknownFormat { path }),
    }
}

pub(super) fn given_names(settings: &ReadSettings, otherwise: Option<List>) -> Result<Option<List>> {
    match &settings.names {
        Some(path) => Lines::open(path).and_then(List::read).map(Some),
        None => Ok(otherwise),
    }
}

pub(super) fn assemble(
    path: &Path,
    counts: Counts,
    vocabulary: Vec<String>,
    names: Option<List>,
    warnings: Vec<Warning>,
) -> Result<(Corpus, Vec<Warning>)> {
    if counts.documents_len() == 0 {
        return Err(nothing(path));
    }
    let names = match names {
        Some(list) if list.names.len() != counts.seen_len => {
            let message =
                format!("names for {} documents, but `{}` has {}", list.names.len(), path.display(), counts.seen_len);
            let remedy = "put the name of one document on each line, in the same order".into();
            return Err(Error::Disagreement { path: list.path, message, remedy });
        }
        Some(mut list) => counts.numbers.iter().map(|&i| std::mem::take(&mut list.names[i])).collect(),
        None => counts.numbers.iter().map(|i| (i + 1).to_string()).collect(),
    };
    Ok((Corpus::from_counts(counts, names, vocabulary), warnings))
}

pub(super) fn nothing(path: &Path) -> Error {
    let message = "no document has a word in it".into();
    Error::Empty {
        path: path.to_path_buf(),
        message,
        remedy: "check that this is the right file, and that it is complete".into(),
    }
}

//! Reading a corpus, whatever its format.

use super::builder::Counts;
use super::lines::Lines;
use super::list::List;
use super::triples::Sizes;
use super::{Corpus, Format, Note, TextSettings, folder, ldac, matrix_market, text, uci};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Everything that decides how a corpus is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadSettings {
    /// The format; none to tell it from the name and the first lines.
    pub format: Option<Format>,
    /// A file with a term on each line, for formats that number their terms; none to call them by their numbers.
    pub vocabulary: Option<PathBuf>,
    /// A file with the name of a document on each line; none to call them by their numbers from 1, or by their files.
    pub names: Option<PathBuf>,
    /// How text becomes counts.
    pub text: TextSettings,
}

impl ReadSettings {
    /// Whether every field has a meaning.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        self.text.check()
    }

    /// A vocabulary that would have no say must not be passed over in silence.
    fn check_no_vocabulary(&self) -> Result<()> {
        let Some(path) = &self.vocabulary else { return Ok(()) };
        let reason = "a text makes its own vocabulary; leave this out, or give a file of counts";
        Err(Error::BadSetting { field: "vocabulary", value: path.display().to_string(), reason })
    }
}

/// Reads a corpus from a file, plain or compressed with gzip, or from a folder of text.
///
/// Documents without a word are left out, and a [`Note`] says how many.
///
/// # Errors
/// What is wrong with the file, at which line and column, and what to do about it.
pub fn read(path: impl AsRef<Path>, settings: &ReadSettings) -> Result<(Corpus, Vec<Note>)> {
    let path = path.as_ref();
    settings.check()?;
    if !path.is_dir() {
        return read_lines(Lines::open(path)?, settings);
    }
    match settings.format {
        None | Some(Format::Folder) => {
            settings.check_no_vocabulary()?;
            let (counter, names, mut notes) = folder::read(path, &settings.text)?;
            let (counts, vocabulary) = counter.limited(path, &settings.text, &mut notes)?;
            assemble(path, counts, vocabulary, given_names(settings, Some(names))?, notes)
        }
        Some(_) => Err(Error::Read { path: path.to_path_buf(), reason: std::io::ErrorKind::IsADirectory.into() }),
    }
}

/// Reads a corpus from anything that can be read, such as standard input; `path` is what errors call it.
///
/// ```
/// use hyperprior_def::corpus::{ReadSettings, read_from};
///
/// let (corpus, notes) = read_from("docs.ldac", "2 0:1 2:3\n1 1:1\n".as_bytes(), &ReadSettings::default()).unwrap();
/// assert_eq!((corpus.documents_len(), corpus.terms_len()), (2, 3));
/// assert_eq!(notes[0].to_string(), "no vocabulary was given, so the 3 terms are called by their numbers");
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from(path: impl AsRef<Path>, reader: impl Read, settings: &ReadSettings) -> Result<(Corpus, Vec<Note>)> {
    settings.check()?;
    read_lines(Lines::new(path.as_ref(), Box::new(reader)), settings)
}

fn read_lines(mut lines: Lines, settings: &ReadSettings) -> Result<(Corpus, Vec<Note>)> {
    let path = lines.path().to_path_buf();
    let format = format_of(&mut lines, settings)?;
    let mut notes = Vec::new();
    if format == Format::Text {
        settings.check_no_vocabulary()?;
        let counter = text::Counter::of_lines(&mut lines, &settings.text)?;
        let (counts, vocabulary) = counter.limited(&path, &settings.text, &mut notes)?;
        return assemble(&path, counts, vocabulary, given_names(settings, None)?, notes);
    }
    let vocabulary = settings.vocabulary.as_deref().map(List::open_vocabulary).transpose()?;
    let (counts, terms_len) = counted(&mut lines, format, vocabulary.as_ref())?;
    let terms = match vocabulary {
        Some(list) => list.names,
        None => {
            notes.push(Note::NumberedTerms { terms_len });
            (0..terms_len).map(|term| term.to_string()).collect()
        }
    };
    let dropped = counts.seen_len - counts.documents_len();
    if dropped > 0 {
        notes.push(Note::EmptyDocuments { dropped, seen: counts.seen_len });
    }
    assemble(&path, counts, terms, given_names(settings, None)?, notes)
}

/// The format that is asked for, or the one that the name and the first lines speak of.
pub(super) fn format_of(lines: &mut Lines, settings: &ReadSettings) -> Result<Format> {
    settings.format.or_else(|| Format::of(lines.path(), lines.head())).ok_or_else(|| no_format(lines))
}

/// The counts of a file that numbers its terms, and how many terms there are.
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

/// What to say of a file in no known format: what keeps it from being read at all, if something does.
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
    notes: Vec<Note>,
) -> Result<(Corpus, Vec<Note>)> {
    if counts.documents_len() == 0 {
        return Err(nothing(path));
    }
    let names = match names {
        Some(list) if list.names.len() != counts.seen_len => {
            let message =
                format!("names for {} documents, but `{}` has {}", list.names.len(), path.display(), counts.seen_len);
            let remedy = "put the name of one document on each line, in their order".into();
            return Err(Error::Disagreement { path: list.path, message, remedy });
        }
        Some(mut list) => counts.numbers.iter().map(|&i| std::mem::take(&mut list.names[i])).collect(),
        None => counts.numbers.iter().map(|i| (i + 1).to_string()).collect(),
    };
    Ok((Corpus::from_counts(counts, names, vocabulary), notes))
}

pub(super) fn nothing(path: &Path) -> Error {
    let message = "no document has a word in it".into();
    Error::Empty {
        path: path.to_path_buf(),
        message,
        remedy: "check that this is the right file, and a whole one".into(),
    }
}

/// How many terms may be called by their numbers; one number too long must not fill the memory with names.
const UNNAMED_MAX: u64 = 1_000_000;

const UNNAMED_REMEDY: &str = "give the vocabulary's file, or mend the number if it is wrong";

/// The number of a term that goes without a vocabulary.
pub(super) fn unnamed(lines: &Lines, at: usize, term: u64) -> Result<u32> {
    if term < UNNAMED_MAX {
        return Ok(term as u32);
    }
    let message = format!("term {term}, but without a vocabulary there are {UNNAMED_MAX} terms at most");
    Err(lines.malformed(at, message, UNNAMED_REMEDY))
}

/// Whether the sizes of a header are possible, and fit the vocabulary; the number of terms.
pub(super) fn check_sizes(lines: &Lines, sizes: &Sizes, vocabulary: Option<&List>) -> Result<usize> {
    if sizes.documents_len > u64::from(u32::MAX) {
        let message =
            format!("the header says {} documents, but there can be {} at most", sizes.documents_len, u32::MAX);
        return Err(lines.disagreement(message, "mend the header"));
    }
    let Some(list) = vocabulary else {
        if sizes.terms_len > UNNAMED_MAX {
            let says = format!("the header says {} terms", sizes.terms_len);
            let message = format!("{says}, but without a vocabulary there can be {UNNAMED_MAX} at most");
            return Err(lines.disagreement(message, UNNAMED_REMEDY));
        }
        return Ok(sizes.terms_len as usize);
    };
    let terms_len = list.names.len();
    if sizes.terms_len == terms_len as u64 {
        return Ok(terms_len);
    }
    let turned = sizes.documents_len == terms_len as u64;
    let remedy = if turned {
        "transpose the matrix: a document is a row, a term a column"
    } else {
        "use the vocabulary that the counts were made with"
    };
    let says = format!("the header says {} terms", sizes.terms_len);
    Err(lines.disagreement(format!("{says}, but `{}` has {terms_len}", list.path.display()), remedy))
}

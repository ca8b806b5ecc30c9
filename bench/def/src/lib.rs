//! What the programs of this bench share: the corpus that is read, and numbers that Python reads.

use hyperprior_def::Corpus;
use hyperprior_def::corpus::{ReadSettings, read};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The counts in `docs`, over the terms in `vocabulary`.
///
/// # Errors
/// What is wrong with the files.
pub fn corpus(docs: &Path, vocabulary: &Path) -> Result<Corpus, Box<dyn Error>> {
    let settings = ReadSettings::default().vocabulary(PathBuf::from(vocabulary));
    Ok(read(docs, &settings)?.0)
}

/// Writes 64-bit numbers as numpy reads them.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, numbers: impl IntoIterator<Item = f64>) -> std::io::Result<()> {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
    std::fs::write(path, bytes)
}

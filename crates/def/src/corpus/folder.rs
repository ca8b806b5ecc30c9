//! A folder of text, with a document in each file.

use super::format::Format;
use super::lines::Lines;
use super::list::List;
use super::text::{Counter, TextSettings};
use super::warning::Warning;
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The words of every file in a folder and its subfolders, and the names of the files, sorted.
///
/// If some files are called .txt, only these are read.
pub(super) fn read(folder: &Path, settings: &TextSettings) -> Result<(Counter, List, Vec<Warning>)> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort_unstable();
    let seen = files.len();
    let is_text = |file: &PathBuf| Format::of_name(file) == Some(Format::Text);
    if let Some(file) = files.iter().find(|file| !is_text(file) && Format::of_name(file).is_some()) {
        let message = format!("the folder contains a file of counts, `{}`", name_in(folder, file));
        let remedy = "give the path of that file, or move it elsewhere to read the text".into();
        return Err(Error::Disagreement { path: folder.to_path_buf(), message, remedy });
    }
    if files.iter().any(is_text) {
        files.retain(is_text);
    }
    let mut warnings = Vec::new();
    if files.len() < seen {
        warnings.push(Warning::OtherFiles { left_out: seen - files.len() });
    }
    if files.is_empty() {
        let (message, remedy) = ("the folder has no files".into(), "put each document into a .txt file".into());
        return Err(Error::Empty { path: folder.to_path_buf(), message, remedy });
    }
    let mut counter = Counter::new(settings)?;
    let mut names = Vec::with_capacity(files.len());
    for file in files {
        let mut lines = Lines::open(&file)?;
        while lines.advance()? {
            counter.add(lines.text()?);
        }
        counter.finish(&lines)?;
        names.push(name_in(folder, &file));
    }
    Ok((counter, List { path: folder.to_path_buf(), names }, warnings))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        |reason| Error::Read { path, reason }
    };
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        // Links to folders are not followed, since they may lead back here.
        let kind = entry.file_type().map_err(failed(&path))?;
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() || path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn name_in(folder: &Path, file: &Path) -> String {
    file.strip_prefix(folder).unwrap_or(file).display().to_string()
}

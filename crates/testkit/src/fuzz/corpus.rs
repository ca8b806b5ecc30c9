//! The inputs from which cases are made.

use std::path::{Path, PathBuf};

/// Inputs, ordered by file name.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// The contents of the files.
    pub inputs: Vec<Vec<u8>>,
}

impl Corpus {
    /// Every file of a folder and its subfolders whose name has this ending; all files if it is empty. A missing folder has none.
    ///
    /// # Panics
    /// If a file cannot be read.
    pub fn read(folder: &Path, ending: &str) -> Self {
        let mut files = Vec::new();
        collect(folder, &mut files);
        files.retain(|file| file.to_string_lossy().ends_with(ending));
        let read = |file: &PathBuf| std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Self { inputs: files.iter().map(read).collect() }
    }

    /// Adds the files of another folder.
    pub fn and(mut self, folder: &Path, ending: &str) -> Self {
        self.inputs.extend(Self::read(folder, ending).inputs);
        self
    }

    /// Adds one input.
    pub fn with(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.inputs.push(input.into());
        self
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    if !folder.exists() {
        return;
    }
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

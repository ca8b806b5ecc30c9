//! The inputs that cases are made from.

use std::path::{Path, PathBuf};

/// Inputs, in the order of their files' names.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// As they are.
    pub inputs: Vec<Vec<u8>>,
}

impl Corpus {
    /// Every file of a folder, and of the folders in it, whose name ends like this; of any name where that is empty. A folder that is
    /// not there has none.
    ///
    /// # Panics
    /// Where one cannot be read.
    pub fn read(folder: &Path, ending: &str) -> Self {
        let mut files = Vec::new();
        collect(folder, &mut files);
        files.retain(|file| file.to_string_lossy().ends_with(ending));
        let read = |file: &PathBuf| std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Self { inputs: files.iter().map(read).collect() }
    }

    /// With those of another folder.
    pub fn and(mut self, folder: &Path, ending: &str) -> Self {
        self.inputs.extend(Self::read(folder, ending).inputs);
        self
    }

    /// With one more.
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

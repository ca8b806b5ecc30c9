//! Files that get their name only when complete, so that an interrupted run leaves the old ones in place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder could not be created.
    #[error("cannot create the folder `{}`: {reason}; {}", path.display(), hint(reason))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A file could not be written or moved into place.
    #[error("cannot write `{}`: {reason}; {}", path.display(), hint(reason))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The value cannot be written in the file's format.
    #[error("cannot write `{}`: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space or choose another disk",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that you are allowed to write to"
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            "something else has that name: move it or choose another name"
        }
        _ => "check the path or choose another folder",
    }
}

/// Creates a folder and its parents if necessary.
pub fn create_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|reason| WriteError::Folder { path: path.to_owned(), reason })
}

/// Removes temporary files of processes that no longer run.
pub fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.file_name().and_then(|name| writer(name.to_str()?)).is_some_and(|process| !is_running(process)) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The process that writes a temporary file: 12 for `.model.12-3.tmp`.
fn writer(name: &str) -> Option<u32> {
    let (_, process) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    let (process, count) = process.split_once('-')?;
    count.parse::<u64>().ok()?;
    process.parse().ok()
}

/// Whether a process is running; true if that is unknown.
fn is_running(process: u32) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(process.to_string()).exists()
}

/// A complete file under a temporary name, in its final folder, since a rename is atomic only within one file system.
pub struct Pending {
    temporary: PathBuf,
    target: PathBuf,
}

impl Pending {
    /// Writes the file with `fill`.
    pub fn new(target: PathBuf, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<Self, WriteError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let pending = Self { temporary: target.with_file_name(name), target };
        pending.fill(fill).map_err(|reason| pending.failed(reason))?;
        Ok(pending)
    }

    fn fill(&self, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&self.temporary)?);
        fill(&mut file)?;
        file.flush()?;
        // A full disk may only be detected here.
        file.get_ref().sync_all()
    }

    /// Gives the file its name.
    pub fn publish(self) -> Result<PathBuf, WriteError> {
        fs::rename(&self.temporary, &self.target).map_err(|reason| self.failed(reason))?;
        Ok(self.target.clone())
    }

    fn failed(&self, reason: io::Error) -> WriteError {
        WriteError::File { path: self.target.clone(), reason }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; after a failure, nothing more to do.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::writer;

    /// Catches a sweep that removes a user's files.
    #[test]
    fn only_our_own_files_are_swept() {
        assert_eq!(writer(".model.12-3.tmp"), Some(12));
        assert_eq!(writer(".trace.csv.4-0.tmp"), Some(4));
        for name in
            ["model.12-3.tmp", ".model.tmp", ".model.12.tmp", ".model.a-3.tmp", ".12-3.tmp.txt", ".model.12-.tmp"]
        {
            assert_eq!(writer(name), None, "{name}");
        }
    }
}

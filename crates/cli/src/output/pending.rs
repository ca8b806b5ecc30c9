//! Files that take their name only when they are complete, so that an interrupted run leaves the old ones in place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder could not be made.
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
    /// The file's format cannot hold what was to be written.
    #[error("cannot write `{}`: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What does not fit.
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
            "something else has that name: move it away or choose another name"
        }
        _ => "check the path or choose another folder",
    }
}

/// Makes a folder, and those that it lies in, unless it is there.
pub fn create_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|reason| WriteError::Folder { path: path.to_owned(), reason })
}

/// Takes away what a run that was killed had begun to write.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(ENDING) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The end of a temporary name.
const ENDING: &str = ".hyperprior-tmp";

/// A complete file under a temporary name in its final folder, since a rename is atomic only within one disk.
pub struct Pending {
    temporary: PathBuf,
    target: PathBuf,
}

impl Pending {
    /// Has `fill` write the file.
    pub fn new(target: PathBuf, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<Self, WriteError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}-{}{ENDING}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let pending = Self { temporary: target.with_file_name(name), target };
        pending.fill(fill).map_err(|reason| pending.failed(reason))?;
        Ok(pending)
    }

    fn fill(&self, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&self.temporary)?);
        fill(&mut file)?;
        file.flush()?;
        // A full disk may only be noticed here.
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
        // After a rename there is nothing left to remove; after a failure, nothing more to be done.
        let _ = fs::remove_file(&self.temporary);
    }
}

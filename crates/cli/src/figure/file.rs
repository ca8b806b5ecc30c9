//! Puts a figure on disk as `.svg` and `.png`, whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::raster;

/// Pixels of the PNG per unit of the SVG: sharp on a dense screen and in print at column width.
const PNG_SCALE: f32 = 2.0;

/// Why a figure was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The path has no file name to add `.svg` and `.png` to.
    #[error("`{}` names no file for a figure; give a path such as `figures/posterior`", path.display())]
    NoName {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder of the figure could not be made.
    #[error("cannot create the folder `{}`: {reason}; {}", path.display(), hint(reason))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A file could not be written or moved into place.
    #[error("cannot write `{}`: {reason}; {}", path.display(), hint(reason))]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The SVG could not be turned into pixels.
    #[error("cannot draw the figure as PNG: {reason}; draw fewer points or panels")]
    Raster {
        /// What the renderer said.
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

/// Writes `svg` to `path_without_extension` + `.svg` and, drawn at twice its size, + `.png`; returns both paths.
///
/// The folder is made if need be. Both files are complete before either takes its name, so an interrupted run
/// leaves the old figure in place. A dot in the name is kept: `figure.1` becomes `figure.1.svg`.
///
/// # Errors
///
/// [`FigureError`], which names the path and says what to do about it.
pub fn write(svg: &str, path_without_extension: &Path) -> Result<[PathBuf; 2], FigureError> {
    let Some(name) = path_without_extension.file_name() else {
        return Err(FigureError::NoName { path: path_without_extension.to_owned() });
    };
    let png = raster::png(svg, PNG_SCALE)?;
    let folder = match path_without_extension.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(|reason| FigureError::Folder { path: folder.to_owned(), reason })?;

    let target = |extension: &str| {
        let mut file = name.to_owned();
        file.push(extension);
        path_without_extension.with_file_name(file)
    };
    let pending = [Pending::new(target(".svg"), svg.as_bytes())?, Pending::new(target(".png"), &png)?];
    for file in &pending {
        file.publish()?;
    }
    Ok(pending.map(|file| file.target.clone()))
}

/// A complete file under a temporary name in its final folder, since a rename is atomic only within one disk.
struct Pending {
    temporary: PathBuf,
    target: PathBuf,
}

impl Pending {
    fn new(target: PathBuf, bytes: &[u8]) -> Result<Self, FigureError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let pending = Self { temporary: target.with_file_name(name), target };
        pending.fill(bytes).map_err(|reason| pending.failed(reason))?;
        Ok(pending)
    }

    fn fill(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(&self.temporary)?;
        file.write_all(bytes)?;
        // A full disk may only be noticed here.
        file.sync_all()
    }

    fn publish(&self) -> Result<(), FigureError> {
        fs::rename(&self.temporary, &self.target).map_err(|reason| self.failed(reason))
    }

    fn failed(&self, reason: io::Error) -> FigureError {
        FigureError::Write { path: self.target.clone(), reason }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove; after a failure, nothing more to be done.
        let _ = fs::remove_file(&self.temporary);
    }
}

//! Puts a figure on disk as `.svg` and `.png`, whole or not at all.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::raster;
use crate::output::pending::{Pending, WriteError, create_folder};

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
    /// A file or its folder could not be written.
    #[error(transparent)]
    File(#[from] WriteError),
    /// The SVG could not be turned into pixels.
    #[error("cannot draw the figure as PNG: {reason}; draw fewer points or panels")]
    Raster {
        /// What the renderer said.
        reason: String,
    },
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
    create_folder(folder)?;

    let target = |extension: &str| {
        let mut file = name.to_owned();
        file.push(extension);
        path_without_extension.with_file_name(file)
    };
    let pending = |extension: &str, bytes: &[u8]| Pending::new(target(extension), |file| file.write_all(bytes));
    let (svg, png) = (pending(".svg", svg.as_bytes())?, pending(".png", &png)?);
    Ok([svg.publish()?, png.publish()?])
}

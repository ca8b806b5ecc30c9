//! Writes a figure as `.svg` and `.png`, atomically.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::error::FigureError;
use super::raster;
use crate::run_dir::pending::{Pending, create_folder};

/// Pixels of the PNG per unit of the SVG: sharp on a dense screen and in print at column width.
const PNG_SCALE: f32 = 2.0;

/// Writes `svg` to `path_without_extension` + `.svg` and, at twice its size, + `.png`; returns both paths.
///
/// Creates the folder if necessary. Both files are complete before either gets its name, so an interrupted run
/// leaves the old figure in place. A dot in the name is kept: `figure.1` becomes `figure.1.svg`.
///
/// # Errors
///
/// [`FigureError`], which names the path and suggests a remedy.
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

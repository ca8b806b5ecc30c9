//! Errors of figures.

use crate::run_dir::pending::WriteError;
use std::path::PathBuf;

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
    /// The SVG could not be rasterised.
    #[error("cannot render the figure as PNG: {reason}; draw fewer points or panels")]
    Raster {
        /// What the renderer said.
        reason: String,
    },
}

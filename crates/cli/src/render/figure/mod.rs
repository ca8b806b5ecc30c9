//! Pictures of a fit: heat maps, scatter plots and bars as SVG text, and the same text rasterised to PNG.
//!
//! A picture is a plain struct ([`Heatmap`], [`Scatter`], [`Bars`]) whose `svg()` returns the document; [`write()`] writes it to
//! disk. Drawing cannot fail: a value that is not a number is drawn as missing, with a note in the caption.

mod axis;
mod bars;
mod colour;
mod colour_bar;
mod error;
mod file;
mod heatmap;
mod layout;
mod raster;
mod scatter;
mod svg;
mod text;

#[cfg(test)]
mod tests;

pub use axis::{Axis, linear_ticks};
pub use bars::{Bar, Bars, Strength};
pub use colour::Palette;
pub use error::FigureError;
pub use file::write;
pub use heatmap::{Heatmap, Origin, Panel};
pub use scatter::{Group, Point, Scatter, ScatterPanel};

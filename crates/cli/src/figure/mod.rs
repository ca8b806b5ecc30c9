//! Pictures of a fit: heat maps, scatter plots and bars as SVG text, and the same text rasterised to PNG.
//!
//! A picture is a plain struct ([`Heatmap`], [`Scatter`], [`Bars`]) whose `svg()` returns the document; [`write()`] puts it on
//! disk. No picture can fail to draw: a value that is not a number is drawn as missing, and said so in the caption.

mod axis;
mod bars;
mod colour;
mod colour_bar;
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
pub use file::{FigureError, write};
pub use heatmap::{Heatmap, Origin, Panel};
pub use scatter::{Group, Point, Scatter, ScatterPanel};

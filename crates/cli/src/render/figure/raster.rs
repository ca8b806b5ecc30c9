//! SVG text to PNG bytes, with DejaVu Sans built in so that the picture does not depend on installed fonts.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::error::FigureError;

/// Parses an SVG document with the built-in fonts.
pub(super) fn parse(svg: &str) -> Result<Tree, FigureError> {
    let options = Options { font_family: "DejaVu Sans".to_owned(), fontdb: fonts(), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| FigureError::Raster { reason: error.to_string() })
}

/// Renders an SVG document at `scale` times its size.
pub(super) fn png(svg: &str, scale: f32) -> Result<Vec<u8>, FigureError> {
    let tree = parse(svg)?;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| FigureError::Raster {
        reason: format!("a picture of {width} × {height} pixels is too large"),
    })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| FigureError::Raster { reason: error.to_string() })
}

fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut database = fontdb::Database::new();
        for face in [dejavu::sans::regular(), dejavu::sans::bold()] {
            database.load_font_source(fontdb::Source::Binary(Arc::new(face)));
        }
        database.set_sans_serif_family("DejaVu Sans");
        Arc::new(database)
    };
    Arc::clone(FONTS.get_or_init(load))
}

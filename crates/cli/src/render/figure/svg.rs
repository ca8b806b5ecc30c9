//! An SVG document under construction: a few shapes, escaped text and numbers that are always finite.

use std::fmt::Write as _;

/// Fonts that a reader may have; the first is that of the PNG.
const FONT_FAMILY: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";

/// Ink for text and frames; dark grey reads better than black next to saturated cells.
pub(super) const INK: &str = "#222222";
/// Ink for subtitles and captions.
pub(super) const SOFT_INK: &str = "#555555";

/// Where a text's x coordinate lies in it.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The look of a text.
#[derive(Clone, Copy)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
    pub fill: &'static str,
    pub anchor: Anchor,
    /// Rotated by a quarter turn, to be read from bottom to top.
    pub upward: bool,
}

impl Font {
    pub(super) const fn new(size: f64, fill: &'static str, anchor: Anchor) -> Self {
        Self { size, bold: false, fill, anchor, upward: false }
    }

    pub(super) const fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub(super) const fn upward(mut self) -> Self {
        self.upward = true;
        self
    }

    pub(super) fn width(&self, text: &str) -> f64 {
        super::text::width(text, self.size, self.bold)
    }

    pub(super) fn wrap(&self, text: &str, room: f64) -> Vec<String> {
        super::text::wrap(text, self.size, self.bold, room)
    }

    /// Distance between the baselines of two lines.
    pub(super) fn leading(&self) -> f64 {
        (self.size * 1.3).round()
    }
}

/// The shapes drawn so far; [`Canvas::finish`] wraps them in a document.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// An unfilled rectangle, drawn over its content.
    pub(super) fn frame(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let (x, y, width, height) = (number(x), number(y), number(width), number(height));
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#777777\"/>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let (x1, y1, x2, y2) = (number(from.0), number(from.1), number(to.0), number(to.1));
        self.push(format_args!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{stroke}\"/>"));
    }

    /// Filled rectangles of one colour as a single element; crisp, so that neighbours show no seam.
    pub(super) fn cells(&mut self, fill: &str, rectangles: &[[f64; 4]]) {
        let mut path = String::new();
        for &[x, y, width, height] in rectangles {
            let (x, y, width, height) = (number(x), number(y), number(width), number(height));
            let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        }
        self.push(format_args!("<path shape-rendering=\"crispEdges\" fill=\"{fill}\" d=\"{path}\"/>"));
    }

    /// Dots of one colour as a single group.
    pub(super) fn dots(&mut self, fill: &str, opacity: f64, radius: f64, centres: &[(f64, f64)]) {
        self.push(format_args!("<g fill=\"{fill}\" fill-opacity=\"{}\">", number(opacity)));
        let radius = number(radius);
        for &(x, y) in centres {
            self.push(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>", number(x), number(y)));
        }
        self.push(format_args!("</g>"));
    }

    /// One line of text with its baseline at `y`, or at `x` when the font is turned upward.
    pub(super) fn text(&mut self, x: f64, y: f64, font: Font, text: &str) {
        let (x, y) = (number(x), number(y));
        let anchor = match font.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if font.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if font.upward { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}{turn}>{}</text>",
            number(font.size),
            font.fill,
            escape(text)
        ));
    }

    /// The whole document on white. `title` and `description` are for screen readers.
    pub(super) fn finish(self, width: f64, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (number(width.ceil()), number(height.ceil()));
        // No element has an id, so that several figures can be inlined in one page of HTML.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" font-family=\"{FONT_FAMILY}\">\n\
             <title>{title}</title>\n<desc>{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escape(description),
            self.body,
            title = escape(title),
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }
}

/// At most two decimals, no trailing zeros; a non-finite number becomes 0, since one NaN invalidates a whole path.
fn number(value: f64) -> String {
    let rounded = if value.is_finite() { (value * 100.0).round() / 100.0 } else { 0.0 };
    // Adding zero turns −0 into 0.
    format!("{}", rounded + 0.0)
}

/// Text as XML character data or an attribute value, without the control characters that XML 1.0 forbids.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

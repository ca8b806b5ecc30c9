//! Shared layout of figures: fonts, margins, headings, panel titles and captions.

use super::svg::{Anchor, Canvas, Font, INK, SOFT_INK};

/// The largest width of a figure, about the text width of a page on a screen.
pub(super) const FIGURE_WIDTH: f64 = 900.0;
pub(super) const MARGIN: f64 = 18.0;
/// Length of a tick and the space between it and its number.
pub(super) const TICK_LENGTH: f64 = 4.0;
pub(super) const TICK_SPACE: f64 = 4.0;
pub(super) const TICK_INK: &str = "#777777";

pub(super) const HEADING: Font = Font::new(16.0, INK, Anchor::Middle).bold();
pub(super) const TITLE: Font = Font::new(14.0, INK, Anchor::Middle).bold();
pub(super) const SUBTITLE: Font = Font::new(13.0, SOFT_INK, Anchor::Middle);
pub(super) const LABEL: Font = Font::new(14.0, INK, Anchor::Middle);
pub(super) const X_TICK: Font = Font::new(12.0, INK, Anchor::Middle);
pub(super) const Y_TICK: Font = Font::new(12.0, INK, Anchor::End);
pub(super) const NOTE: Font = Font::new(13.0, SOFT_INK, Anchor::Start);

/// Height below a panel for its x ticks, their numbers and the axis label.
pub(super) const X_AXIS_HEIGHT: f64 = 44.0;

/// Columns and rows for `len` panels: at most `most` per row, and rows as even as possible.
pub(super) fn grid(len: usize, most: usize) -> (usize, usize) {
    let rows = len.div_ceil(most).max(1);
    (len.div_ceil(rows).max(1), rows)
}

/// Draws `text` in lines from `top` down and returns the y coordinate below it.
pub(super) fn paragraph(canvas: &mut Canvas, x: f64, top: f64, room: f64, font: Font, text: &str) -> f64 {
    let mut y = top;
    for line in font.wrap(text, room) {
        canvas.text(x, y + font.size, font, &line);
        y += font.leading();
    }
    y
}

/// The figure's heading, if it has one; returns the top of the panels' titles.
pub(super) fn heading(canvas: &mut Canvas, width: f64, text: &str) -> f64 {
    let end = paragraph(canvas, width / 2.0, MARGIN, width - 2.0 * MARGIN, HEADING, text);
    if end > MARGIN { end + 10.0 } else { end }
}

/// The caption below everything; returns the height of the whole figure.
pub(super) fn caption(canvas: &mut Canvas, width: f64, top: f64, text: &str) -> f64 {
    paragraph(canvas, MARGIN, top + 6.0, width - 2.0 * MARGIN, NOTE, text) + MARGIN
}

/// Panel titles and subtitles, with the height of the longest so that rows of panels line up.
pub(super) struct Headers {
    room: f64,
    title_height: f64,
    subtitle_height: f64,
}

impl Headers {
    pub(super) fn measure<'a>(panels: impl Iterator<Item = (&'a str, &'a str)>, room: f64) -> Self {
        let mut headers = Self { room, title_height: 0.0, subtitle_height: 0.0 };
        let height = |font: Font, text| font.wrap(text, room).len() as f64 * font.leading();
        for (title, subtitle) in panels {
            headers.title_height = headers.title_height.max(height(TITLE, title));
            headers.subtitle_height = headers.subtitle_height.max(height(SUBTITLE, subtitle));
        }
        headers
    }

    pub(super) fn height(&self) -> f64 {
        self.title_height + self.subtitle_height + 8.0
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, centre: f64, top: f64, title: &str, subtitle: &str) {
        // A short title stays close to its subtitle.
        let title_height = TITLE.wrap(title, self.room).len() as f64 * TITLE.leading();
        paragraph(canvas, centre, top + self.title_height - title_height, self.room, TITLE, title);
        paragraph(canvas, centre, top + self.title_height, self.room, SUBTITLE, subtitle);
    }
}

/// A tick below the panel whose lower edge is `y`.
pub(super) fn x_tick(canvas: &mut Canvas, x: f64, y: f64, label: &str) {
    canvas.line((x, y), (x, y + TICK_LENGTH), TICK_INK);
    canvas.text(x, y + TICK_LENGTH + TICK_SPACE + 0.8 * X_TICK.size, X_TICK, label);
}

/// A tick to the left of the panel whose left edge is `x`.
pub(super) fn y_tick(canvas: &mut Canvas, x: f64, y: f64, label: &str) {
    canvas.line((x - TICK_LENGTH, y), (x, y), TICK_INK);
    canvas.text(x - TICK_LENGTH - TICK_SPACE, y + 0.36 * Y_TICK.size, Y_TICK, label);
}

/// The axis label below the ticks of the panel whose lower edge is `y`.
pub(super) fn x_label(canvas: &mut Canvas, centre: f64, y: f64, label: &str) {
    canvas.text(centre, y + 35.0, LABEL, label);
}

/// The text of an empty panel.
pub(super) fn no_data(canvas: &mut Canvas, centre: f64, middle: f64) {
    canvas.text(centre, middle, SUBTITLE, "no data");
}

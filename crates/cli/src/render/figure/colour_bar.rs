//! The colour bar: the legend of a heat map.

use super::axis::{Tick, linear_ticks, square_root_ticks};
use super::colour::Palette;
use super::layout::{LABEL, TICK_INK, TICK_LENGTH, TICK_SPACE, Y_TICK};
use super::svg::{Anchor, Canvas, Font};

const THICKNESS: f64 = 16.0;
const LABEL_GAP: f64 = 10.0;
const STRIPS: usize = 120;
const NUMBER: Font = Font { anchor: Anchor::Start, ..Y_TICK };

/// A palette stretched over the values 0..=end, or −end..=end when it diverges.
pub(super) struct ColourBar {
    pub palette: Palette,
    /// Positive.
    pub end: f64,
    ticks: Vec<Tick>,
    label: String,
}

impl ColourBar {
    pub(super) fn new(palette: Palette, end: f64, label: &str) -> Self {
        let ticks = match palette {
            Palette::Sequential => linear_ticks(0.0, end, 5),
            Palette::SequentialSquareRoot => square_root_ticks(end),
            Palette::Diverging => linear_ticks(-end, end, 4),
        };
        Self { palette, end, ticks, label: label.to_owned() }
    }

    /// The position of `value` along the bar, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        self.palette.position(value, self.end)
    }

    /// The width of a bar of this height, including numbers and label.
    pub(super) fn width(&self, height: f64) -> f64 {
        self.numbers_end() + LABEL_GAP + self.label_lines(height).len() as f64 * LABEL.leading()
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, x: f64, y: f64, height: f64) {
        let strip = height / STRIPS as f64;
        for k in 0..STRIPS {
            let position = 1.0 - (k as f64 + 0.5) / STRIPS as f64;
            // Half a pixel of overlap hides the seam below each strip except the last.
            let overlap = if k + 1 < STRIPS { 0.5 } else { 0.0 };
            canvas.cells(&self.palette.at(position), &[[x, y + k as f64 * strip, THICKNESS, strip + overlap]]);
        }
        canvas.frame(x, y, THICKNESS, height);
        for tick in &self.ticks {
            let tick_y = y + height * (1.0 - self.position(tick.value));
            canvas.line((x + THICKNESS, tick_y), (x + THICKNESS + TICK_LENGTH, tick_y), TICK_INK);
            let number_x = x + THICKNESS + TICK_LENGTH + TICK_SPACE;
            canvas.text(number_x, tick_y + 0.36 * NUMBER.size, NUMBER, &tick.label);
        }
        for (k, line) in self.label_lines(height).iter().enumerate() {
            let baseline = x + self.numbers_end() + LABEL_GAP + 0.8 * LABEL.size + k as f64 * LABEL.leading();
            canvas.text(baseline, y + height / 2.0, LABEL.upward(), line);
        }
    }

    fn numbers_end(&self) -> f64 {
        let numbers = self.ticks.iter().map(|tick| NUMBER.width(&tick.label)).fold(0.0, f64::max);
        THICKNESS + TICK_LENGTH + TICK_SPACE + numbers
    }

    fn label_lines(&self, height: f64) -> Vec<String> {
        // The column above and below the bar is free, so a label may stick out a little.
        let room = height + 30.0;
        let mut lines = LABEL.wrap(&self.label, room);
        if self.palette == Palette::SequentialSquareRoot {
            lines.extend(LABEL.wrap("(square-root colour scale)", room));
        }
        lines
    }
}

//! Horizontal bars, one per name, with the value at the end of each.

use super::axis::{Axis, AxisScale};
use super::layout::{self, FIGURE_WIDTH, MARGIN, NOTE, X_AXIS_HEIGHT, x_label, x_tick};
use super::svg::{Anchor, Canvas, Font, INK, SOFT_INK};

const PITCH: f64 = 30.0;
const THICKNESS: f64 = 18.0;
const GAP: f64 = 8.0;
const GRID: &str = "#e6e6e6";
const LABEL: Font = Font::new(13.0, INK, Anchor::End);
/// Space for the text beyond the longest bar, as a share of the axis.
const TEXT_SHARE: f64 = 0.22;

/// Whether a bar shows a value or an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strength {
    /// The value itself.
    #[default]
    Full,
    /// A bound on the value.
    Pale,
}

impl Strength {
    fn fill(self) -> &'static str {
        match self {
            Self::Full => "#1763ab",
            Self::Pale => "#9fc1de",
        }
    }
}

/// One bar of [`Bars`].
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Its length; without a value, or with one that has no place on the axis, only the text is shown.
    pub value: Option<f64>,
    /// The text at its end.
    pub text: String,
    /// Its colour.
    pub strength: Strength,
}

/// Bars from top to bottom over one axis.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Heading, also the figure's name for screen readers; may be empty.
    pub title: String,
    /// Text below the bars; may be empty.
    pub caption: String,
    /// The axis of the values.
    pub axis: Axis,
    /// The bars.
    pub bars: Vec<Bar>,
}

impl Bars {
    /// The figure as an SVG document.
    pub fn svg(&self) -> String {
        let labels = self.bars.iter().map(|bar| LABEL.width(&bar.label)).fold(0.0, f64::max);
        let left = (MARGIN + labels + GAP).round();
        let (width, right) = (FIGURE_WIDTH, FIGURE_WIDTH - MARGIN);
        let mut canvas = Canvas::default();
        let top = layout::heading(&mut canvas, width, &self.title).round();
        let height = PITCH * self.bars.len().max(1) as f64;
        let axis = Axis { range: Some(self.ends()), ..self.axis.clone() };
        let ends = axis.ends(std::iter::empty());
        let at = |value: f64| axis.fraction(value, ends).map(|fraction| left + fraction * (right - left));
        for tick in axis.ticks(ends) {
            if let Some(x) = at(tick.value) {
                canvas.line((x, top), (x, top + height), GRID);
                x_tick(&mut canvas, x, top + height, &tick.label);
            }
        }
        for (row, bar) in self.bars.iter().enumerate() {
            let y = top + PITCH * row as f64 + 0.5 * (PITCH - THICKNESS);
            let baseline = y + 0.5 * THICKNESS + 0.36 * LABEL.size;
            canvas.text(left - GAP, baseline, LABEL, &bar.label);
            let end = bar.value.and_then(at);
            if let Some(end) = end {
                canvas.cells(bar.strength.fill(), &[[left, y, end - left, THICKNESS]]);
            }
            let font = Font { fill: if end.is_some() { INK } else { SOFT_INK }, ..NOTE };
            canvas.text(end.unwrap_or(left) + GAP, baseline, font, &bar.text);
        }
        canvas.line((left, top), (left, top + height), layout::TICK_INK);
        canvas.line((left, top + height), (right, top + height), layout::TICK_INK);
        x_label(&mut canvas, 0.5 * (left + right), top + height, &self.axis.label);
        let height = layout::caption(&mut canvas, width, top + height + X_AXIS_HEIGHT, &self.caption);
        canvas.finish(width, height, if self.title.is_empty() { "Bar chart" } else { &self.title }, &self.caption)
    }

    /// From 0, or on a logarithmic axis from the decade below the shortest bar, to the longest bar plus space for its text.
    fn ends(&self) -> (f64, f64) {
        let is_log = self.axis.scale == AxisScale::Log;
        let values = self.bars.iter().filter_map(|bar| bar.value).filter(|v| v.is_finite() && (!is_log || *v > 0.0));
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
        let stretch = 1.0 / (1.0 - TEXT_SHARE);
        match (is_log, high > 0.0) {
            (_, false) if is_log => (0.1, 1.0),
            (_, false) => (0.0, 1.0),
            (false, true) => (0.0, high * stretch),
            (true, true) => {
                // Start well below the shortest bar, so that it stays visible.
                let first = 10f64.powf((low.log10() - 0.15).floor());
                (first, first * (high / first).powf(stretch))
            }
        }
    }
}

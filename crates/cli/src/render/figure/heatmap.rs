//! Matrices as coloured cells on one colour scale: joint probabilities, or pairwise correlations.

use std::collections::BTreeMap;

use super::axis::{index_ticks, tick_label};
use super::colour::Palette;
use super::colour_bar::ColourBar;
use super::layout::{
    self, FIGURE_WIDTH, Headers, LABEL, MARGIN, TICK_LENGTH, TICK_SPACE, X_AXIS_HEIGHT, Y_TICK, no_data, x_label,
    x_tick, y_tick,
};
use super::svg::{Anchor, Canvas, Font, INK};

/// Beyond this a single panel looks coarse.
const LARGEST_SIDE: f64 = 340.0;
const SMALLEST_SIDE: f64 = 60.0;
/// The colour bar is as tall as the panels, but never too short for its ticks.
const SHORTEST_BAR: f64 = 120.0;
const MOST_COLUMNS: usize = 4;
const BAR_GAP: f64 = 24.0;
/// No palette passes through grey, so grey can mean "no value".
const MISSING: &str = "#c8c8c8";

/// Which corner holds the first row and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// y grows upwards, as for counts.
    #[default]
    BottomLeft,
    /// y grows downwards, as in a printed matrix.
    TopLeft,
}

/// One matrix of a [`Heatmap`].
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Such as `Mean-field`.
    pub title: String,
    /// Such as `KL 0.3509`; may be empty.
    pub subtitle: String,
    /// Cells along the horizontal axis.
    pub x_len: usize,
    /// Cells along the vertical axis.
    pub y_len: usize,
    /// The value at (x, y) is `values[x * y_len + y]`; missing and non-finite values are drawn grey.
    pub values: Vec<f64>,
}

/// Panels that share one colour scale.
#[derive(Clone, Debug, Default)]
pub struct Heatmap {
    /// Heading, also the figure's name for screen readers; may be empty.
    pub title: String,
    /// Text below the panels; may be empty.
    pub caption: String,
    /// Such as `z₁`.
    pub x_label: String,
    /// Such as `z₂`.
    pub y_label: String,
    /// The label of the colour bar, such as `probability`.
    pub value_label: String,
    /// The map from values to colours.
    pub palette: Palette,
    /// The end of the colour bar; `None` takes the largest value.
    pub limit: Option<f64>,
    /// Which way y grows.
    pub origin: Origin,
    /// The index of the first row and column: 0 for counts, 1 for sites.
    pub first_index: usize,
    /// Write the values, to two decimals, into cells that are large enough (about 24 px).
    pub annotate: bool,
    /// The matrices, left to right.
    pub panels: Vec<Panel>,
}

impl Panel {
    /// A square matrix over 0..len on both axes, row-major with x as the row.
    pub fn square(title: impl Into<String>, subtitle: impl Into<String>, len: usize, values: Vec<f64>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), x_len: len, y_len: len, values }
    }

    fn value(&self, x: usize, y: usize) -> Option<f64> {
        self.values.get(x * self.y_len + y).copied().filter(|v| v.is_finite())
    }

    fn is_empty(&self) -> bool {
        self.x_len == 0 || self.y_len == 0
    }

    /// Side of a cell when the longer side of the matrix gets `side` pixels.
    fn cell(&self, side: f64) -> f64 {
        let exact = side / self.x_len.max(self.y_len).max(1) as f64;
        // Whole device pixels of the PNG, or the cells look uneven.
        if exact >= 1.0 { (exact * 2.0).floor() / 2.0 } else { exact }
    }

    fn plot_size(&self, side: f64) -> (f64, f64) {
        if self.is_empty() {
            return (side, side);
        }
        (self.x_len as f64 * self.cell(side), self.y_len as f64 * self.cell(side))
    }
}

/// The layout; all panels get the same slot.
struct Slots {
    side: f64,
    left: f64,
    gap: f64,
    width: f64,
    height: f64,
    figure_width: f64,
}

impl Heatmap {
    /// The figure as an SVG document.
    pub fn svg(&self) -> String {
        let bar = ColourBar::new(self.palette, self.bar_end(), &self.value_label);
        let (columns, rows) = layout::grid(self.panels.len(), MOST_COLUMNS);
        let slots = self.slots(columns, &bar);

        let mut canvas = Canvas::default();
        let top = layout::heading(&mut canvas, slots.figure_width, &self.title);
        let names = self.panels.iter().map(|panel| (panel.title.as_str(), panel.subtitle.as_str()));
        let headers = Headers::measure(names, slots.width + 12.0);
        let pitch = headers.height() + slots.height + X_AXIS_HEIGHT + 14.0;
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, row) = (index % columns, index / columns);
            let x = slots.left + column as f64 * (slots.width + slots.gap);
            let y = top + row as f64 * pitch;
            let (plot_width, plot_height) = panel.plot_size(slots.side);
            // Centred in the slot and standing on its floor; whole pixels keep the cells crisp.
            let plot_x = (x + (slots.width - plot_width) / 2.0).round();
            let plot_y = (y + headers.height() + slots.height - plot_height).round();
            headers.draw(&mut canvas, plot_x + plot_width / 2.0, y, &panel.title, &panel.subtitle);
            self.draw_panel(&mut canvas, panel, plot_x, plot_y, slots.side, &bar);
            if column == 0 {
                let middle = plot_y + plot_height / 2.0;
                canvas.text(MARGIN + LABEL.size, middle, LABEL.upward(), &self.y_label);
            }
        }
        let bar_x = slots.left + columns as f64 * (slots.width + slots.gap) - slots.gap + BAR_GAP;
        bar.draw(&mut canvas, bar_x.round(), (top + headers.height()).round(), slots.height);

        let caption = self.full_caption();
        let bottom = top + rows as f64 * pitch - 14.0;
        let height = layout::caption(&mut canvas, slots.figure_width, bottom, &caption);
        canvas.finish(slots.figure_width, height, self.name(), &caption)
    }

    fn name(&self) -> &str {
        if self.title.is_empty() { "Heat map" } else { &self.title }
    }

    fn full_caption(&self) -> String {
        let missing = |panel: &Panel| (0..panel.x_len).any(|x| (0..panel.y_len).any(|y| panel.value(x, y).is_none()));
        let note = if self.panels.iter().any(missing) { " Grey cells have no value." } else { "" };
        format!("{}{note}", self.caption).trim().to_owned()
    }

    fn bar_end(&self) -> f64 {
        let size = |v: f64| if self.palette == Palette::Diverging { v.abs() } else { v };
        let values = self.panels.iter().flat_map(|panel| &panel.values).filter(|v| v.is_finite());
        let largest = values.fold(0.0f64, |largest, &v| largest.max(size(v)));
        let end = self.limit.filter(|&l| l.is_finite() && l > 0.0).unwrap_or(largest);
        if end > 0.0 { end.clamp(1e-150, 1e150) } else { 1.0 }
    }

    fn slots(&self, columns: usize, bar: &ColourBar) -> Slots {
        let longest = self.panels.iter().map(|panel| panel.y_len.max(1)).max().unwrap_or(1);
        let number_width = Y_TICK.width(&(longest - 1 + self.first_index).to_string()) + TICK_LENGTH + TICK_SPACE;
        let left = MARGIN + LABEL.leading() + 4.0 + number_width;
        let gap = number_width + 22.0;
        let fit = |bar_width: f64| {
            let around = left + (columns - 1) as f64 * gap + BAR_GAP + bar_width + MARGIN;
            let side = ((FIGURE_WIDTH - around) / columns as f64).clamp(SMALLEST_SIDE, LARGEST_SIDE);
            let sizes = self.panels.iter().map(|panel| panel.plot_size(side));
            let (width, height) = sizes.fold((SMALLEST_SIDE, SHORTEST_BAR), |(w, h), (pw, ph)| (w.max(pw), h.max(ph)));
            let figure_width = around + columns as f64 * width;
            Slots { side, left, gap, width, height, figure_width }
        };
        // A shorter bar wraps its label onto more lines, which leaves less space for the panels: fit to the shortest
        // possible bar, then to the resulting height.
        let cautious = fit(bar.width(SHORTEST_BAR));
        fit(bar.width(cautious.height))
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, left: f64, top: f64, side: f64, bar: &ColourBar) {
        let (width, height) = panel.plot_size(side);
        let cell = panel.cell(side);
        let cell_top = |y: usize| match self.origin {
            Origin::BottomLeft => top + height - (y + 1) as f64 * cell,
            Origin::TopLeft => top + y as f64 * cell,
        };
        // A sorted map, so that the same values always give the same file.
        let mut by_colour: BTreeMap<String, Vec<[f64; 4]>> = BTreeMap::new();
        for y in 0..panel.y_len {
            let colour = |x| match panel.value(x, y) {
                Some(value) => self.palette.at(bar.position(value)),
                None => MISSING.to_owned(),
            };
            let mut start = 0;
            while start < panel.x_len {
                let fill = colour(start);
                let run = (start..panel.x_len).take_while(|&x| colour(x) == fill).count();
                let rectangle = [left + start as f64 * cell, cell_top(y), run as f64 * cell, cell];
                by_colour.entry(fill).or_default().push(rectangle);
                start += run;
            }
        }
        for (fill, rectangles) in &by_colour {
            canvas.cells(fill, rectangles);
        }
        if self.annotate {
            self.draw_values(canvas, panel, left, &cell_top, cell, bar);
        }
        canvas.frame(left, top, width, height);
        if panel.is_empty() {
            return no_data(canvas, left + width / 2.0, top + height / 2.0);
        }
        for (x, label) in index_ticks(panel.x_len, self.first_index, cell) {
            x_tick(canvas, left + (x as f64 + 0.5) * cell, top + height, &label);
        }
        for (y, label) in index_ticks(panel.y_len, self.first_index, cell) {
            y_tick(canvas, left, cell_top(y) + 0.5 * cell, &label);
        }
        x_label(canvas, left + width / 2.0, top + height, &self.x_label);
    }

    fn draw_values(
        &self,
        canvas: &mut Canvas,
        panel: &Panel,
        left: f64,
        cell_top: &dyn Fn(usize) -> f64,
        cell: f64,
        bar: &ColourBar,
    ) {
        // Most numbers, such as "−.42", are at most 2.5 em wide; below 8 px they are illegible.
        let size = ((cell - 3.0) / 2.5).min(13.0);
        if size < 8.0 {
            return;
        }
        for x in 0..panel.x_len {
            for y in 0..panel.y_len {
                let Some(value) = panel.value(x, y) else { continue };
                let dark = self.palette.is_dark(bar.position(value));
                let font = Font::new(size, if dark { "#ffffff" } else { INK }, Anchor::Middle);
                let number = short_number(value);
                let middle = left + (x as f64 + 0.5) * cell;
                if font.width(&number) < cell {
                    canvas.text(middle, cell_top(y) + 0.5 * cell + 0.36 * size, font, &number);
                }
            }
        }
    }
}

/// Two significant decimals without the zero before the point, as tables of correlations are printed.
fn short_number(value: f64) -> String {
    let scale = match value.abs() {
        size if size < 0.995 => 100.0,
        size if size < 9.95 => 10.0,
        _ => 1.0,
    };
    let number = tick_label((value * scale).round() / scale);
    match number.strip_prefix('−').map_or((false, number.as_str()), |rest| (true, rest)) {
        (false, digits) => digits.strip_prefix('0').filter(|rest| !rest.is_empty()).unwrap_or(digits).to_owned(),
        (true, digits) => format!("−{}", digits.strip_prefix('0').unwrap_or(digits)),
    }
}

//! Scatter plots, coloured by group: draws of λ and the corresponding draws of z; or curves, if the points are joined.

use super::axis::Axis;
use super::layout::{
    self, FIGURE_WIDTH, Headers, LABEL, MARGIN, NOTE, TICK_INK, TICK_LENGTH, TICK_SPACE, X_AXIS_HEIGHT, Y_TICK,
    no_data, x_label, x_tick, y_tick,
};
use super::svg::{Canvas, Font, INK};

const LARGEST_SIDE: f64 = 370.0;
const MOST_COLUMNS: usize = 3;
const PANEL_GAP: f64 = 30.0;
const MINOR_TICK: f64 = 2.5;
const GRID: &str = "#e6e6e6";

/// The group of a point, which gives its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Neither region; drawn first, below the others.
    Grey,
    /// The first region.
    Red,
    /// The second region.
    Blue,
}

/// One draw.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Horizontal coordinate.
    pub x: f64,
    /// Vertical coordinate.
    pub y: f64,
    /// Its colour.
    pub group: Group,
}

/// One cloud of a [`Scatter`].
#[derive(Clone, Debug, Default)]
pub struct ScatterPanel {
    /// Such as `(a) Draws of λ`.
    pub title: String,
    /// A second line; may be empty.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The draws; those that are not finite, or not positive on a log axis, are omitted and counted in the caption.
    pub points: Vec<Point>,
    /// Whether consecutive points of a colour are joined by lines.
    pub is_joined: bool,
}

/// Panels of points with one legend.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// Heading, also the figure's name for screen readers; may be empty.
    pub title: String,
    /// Text below the panels; may be empty.
    pub caption: String,
    /// What the colours mean, in the order shown; may be empty.
    pub legend: Vec<(Group, String)>,
    /// The clouds, left to right.
    pub panels: Vec<ScatterPanel>,
}

impl Group {
    const DRAWING_ORDER: [Self; 3] = [Self::Grey, Self::Red, Self::Blue];

    fn fill(self) -> &'static str {
        match self {
            Self::Grey => "#9b9b9b",
            Self::Red => "#c8252c",
            Self::Blue => "#1763ab",
        }
    }

    fn opacity(self) -> f64 {
        if self == Self::Grey { 0.4 } else { 0.75 }
    }
}

impl ScatterPanel {
    fn ends(&self) -> ((f64, f64), (f64, f64)) {
        (self.x.ends(self.points.iter().map(|p| p.x)), self.y.ends(self.points.iter().map(|p| p.y)))
    }

    /// The point's place in the panel, as fractions from the lower left.
    fn place(&self, point: &Point, (x_ends, y_ends): ((f64, f64), (f64, f64))) -> Option<(f64, f64)> {
        Some((self.x.fraction(point.x, x_ends)?, self.y.fraction(point.y, y_ends)?))
    }

    fn omitted(&self) -> usize {
        let ends = self.ends();
        self.points.iter().filter(|point| self.place(point, ends).is_none()).count()
    }

    fn number_width(&self) -> f64 {
        let ticks = self.y.ticks(self.ends().1);
        ticks.iter().map(|tick| Y_TICK.width(&tick.label)).fold(0.0, f64::max) + TICK_LENGTH + TICK_SPACE
    }

    fn draw(&self, canvas: &mut Canvas, left: f64, top: f64, side: f64, radius: f64) {
        let ends = self.ends();
        let (x_at, y_at) = (|f: f64| left + f * side, |f: f64| top + (1.0 - f) * side);
        let places = |axis: &Axis, ends| {
            let ticks = axis.ticks(ends).into_iter();
            ticks.filter_map(|tick| Some((axis.fraction(tick.value, ends)?, tick.label))).collect::<Vec<_>>()
        };
        for (fraction, label) in places(&self.x, ends.0) {
            canvas.line((x_at(fraction), top), (x_at(fraction), top + side), GRID);
            x_tick(canvas, x_at(fraction), top + side, &label);
        }
        for (fraction, label) in places(&self.y, ends.1) {
            canvas.line((left, y_at(fraction)), (left + side, y_at(fraction)), GRID);
            y_tick(canvas, left, y_at(fraction), &label);
        }
        for fraction in self.x.minor_ticks(ends.0).into_iter().filter_map(|v| self.x.fraction(v, ends.0)) {
            canvas.line((x_at(fraction), top + side), (x_at(fraction), top + side + MINOR_TICK), TICK_INK);
        }
        for fraction in self.y.minor_ticks(ends.1).into_iter().filter_map(|v| self.y.fraction(v, ends.1)) {
            canvas.line((left - MINOR_TICK, y_at(fraction)), (left, y_at(fraction)), TICK_INK);
        }
        let mut drawn = 0;
        for group in Group::DRAWING_ORDER {
            let members = self.points.iter().filter(|point| point.group == group);
            let centres: Vec<_> =
                members.filter_map(|point| self.place(point, ends)).map(|(x, y)| (x_at(x), y_at(y))).collect();
            drawn += centres.len();
            if self.is_joined {
                centres.windows(2).for_each(|pair| canvas.line(pair[0], pair[1], group.fill()));
            }
            if !centres.is_empty() {
                canvas.dots(group.fill(), group.opacity(), radius, &centres);
            }
        }
        if drawn == 0 {
            no_data(canvas, left + side / 2.0, top + side / 2.0);
        }
        canvas.frame(left, top, side, side);
        x_label(canvas, left + side / 2.0, top + side, &self.x.label);
        let label_x = left - self.number_width() - 0.6 * LABEL.size;
        canvas.text(label_x, top + side / 2.0, LABEL.upward(), &self.y.label);
    }
}

impl Scatter {
    /// The figure as an SVG document.
    pub fn svg(&self) -> String {
        let (columns, rows) = layout::grid(self.panels.len(), MOST_COLUMNS);
        let numbers = self.panels.iter().map(ScatterPanel::number_width).fold(0.0, f64::max);
        let lead = numbers + LABEL.leading();
        let free = FIGURE_WIDTH - 2.0 * MARGIN - columns as f64 * lead - (columns - 1) as f64 * PANEL_GAP;
        let side = (free / columns as f64).clamp(60.0, LARGEST_SIDE).floor();
        let step = lead + side + PANEL_GAP;
        let width = 2.0 * MARGIN + columns as f64 * step - PANEL_GAP;

        let mut canvas = Canvas::default();
        let top = layout::heading(&mut canvas, width, &self.title);
        let names = self.panels.iter().map(|panel| (panel.title.as_str(), panel.subtitle.as_str()));
        let headers = Headers::measure(names, side + PANEL_GAP);
        let pitch = headers.height() + side + X_AXIS_HEIGHT + 14.0;
        for (index, panel) in self.panels.iter().enumerate() {
            let left = (MARGIN + (index % columns) as f64 * step + lead).round();
            let y = top + (index / columns) as f64 * pitch;
            headers.draw(&mut canvas, left + side / 2.0, y, &panel.title, &panel.subtitle);
            panel.draw(&mut canvas, left, (y + headers.height()).round(), side, self.radius());
        }
        let below = top + rows as f64 * pitch - 8.0;
        let below = self.draw_legend(&mut canvas, below, width);
        let caption = self.full_caption();
        let height = layout::caption(&mut canvas, width, below, &caption);
        canvas.finish(width, height, if self.title.is_empty() { "Scatter plot" } else { &self.title }, &caption)
    }

    /// The more points, the smaller the dots; the same in all panels.
    fn radius(&self) -> f64 {
        match self.panels.iter().map(|panel| panel.points.len()).max().unwrap_or(0) {
            0..=400 => 3.0,
            401..=2000 => 2.3,
            _ => 1.7,
        }
    }

    fn full_caption(&self) -> String {
        let mut caption = self.caption.clone();
        for (index, panel) in self.panels.iter().enumerate() {
            let (out, all) = (panel.omitted(), panel.points.len());
            if out > 0 {
                let name = if panel.title.is_empty() { format!("Panel {}", index + 1) } else { panel.title.clone() };
                caption.push_str(&format!(" {name}: {out} of {all} points lie outside the axes."));
            }
        }
        caption.trim().to_owned()
    }

    /// Entries flow from left to right, on as many lines as necessary.
    fn draw_legend(&self, canvas: &mut Canvas, top: f64, width: f64) -> f64 {
        const DOT: f64 = 5.0;
        let font = Font { fill: INK, ..NOTE };
        let (mut x, mut y) = (MARGIN, top);
        for (group, label) in &self.legend {
            let entry = 2.0 * DOT + 8.0 + font.width(label);
            if x > MARGIN && x + entry > width - MARGIN {
                (x, y) = (MARGIN, y + font.leading() + 2.0);
            }
            canvas.dots(group.fill(), 0.9, DOT, &[(x + DOT, y + 0.62 * font.size)]);
            canvas.text(x + 2.0 * DOT + 7.0, y + font.size, font, label);
            x += entry + 26.0;
        }
        if self.legend.is_empty() { top } else { y + font.leading() }
    }
}

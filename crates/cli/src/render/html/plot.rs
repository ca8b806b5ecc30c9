//! The axes of a small plot. Colours come from the page, so that they follow its theme.

use super::escape;
use crate::render::figure::linear_ticks;
use std::fmt::Write as _;

/// The size of a plot, and the margins around its axes.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 44.0;

/// The ranges of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// The left and the right edge.
    pub x: (f64, f64),
    /// The lower and the upper edge.
    pub y: (f64, f64),
}

impl Plane {
    /// The pixel coordinate of `x`.
    pub fn x(&self, x: f64) -> f64 {
        LEFT + (x - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    /// The pixel coordinate of `y`.
    pub fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - (y - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// Whether a point is inside the axes.
    pub fn has(&self, x: f64, y: f64) -> bool {
        (self.x.0..=self.x.1).contains(&x) && (self.y.0..=self.y.1).contains(&y)
    }

    /// Round numbers along the x axis.
    pub fn numbers_x(&self) -> Vec<(f64, String)> {
        linear_ticks(self.x.0, self.x.1, 5).into_iter().map(|tick| (tick.value, tick.label)).collect()
    }

    /// Round numbers along the y axis.
    pub fn numbers_y(&self) -> Vec<(f64, String)> {
        linear_ticks(self.y.0, self.y.1, 5).into_iter().map(|tick| (tick.value, tick.label)).collect()
    }

    /// The plot: the SVG in `drawn`, with ticks along the axes and the names of the axes, which are plain text.
    pub fn picture(
        &self,
        label: &str,
        drawn: &str,
        [x_name, y_name]: [&str; 2],
        [along_x, along_y]: [&[(f64, String)]; 2],
    ) -> String {
        let mut out = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape::text(label)
        );
        let (bottom, middle) = (HEIGHT - BOTTOM, (HEIGHT - BOTTOM + TOP) / 2.0);
        for (x, text) in along_x.iter().filter(|(x, _)| (self.x.0..=self.x.1).contains(x)) {
            let x = self.x(*x);
            let _ = write!(
                out,
                "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 15.0,
                escape::text(text)
            );
        }
        for (y, text) in along_y.iter().filter(|(y, _)| (self.y.0..=self.y.1).contains(y)) {
            let y = self.y(*y);
            let _ = write!(
                out,
                "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 7.0,
                y + 4.0,
                escape::text(text)
            );
        }
        let _ = write!(
            out,
            "<path class=\"frame\" d=\"M{LEFT} {TOP}V{bottom}H{}\"/>{drawn}<text class=\"name middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"name middle\" transform=\"translate(11 {middle:.1}) rotate(-90)\">{}</text></svg>",
            WIDTH - RIGHT,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0,
            escape::text(&short(x_name)),
            escape::text(&short(y_name)),
        );
        out
    }
}

/// A name, shortened to fit along an axis.
pub fn short(name: &str) -> String {
    const MOST: usize = 28;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

/// A range with a margin, never empty.
pub fn with_margin((low, high): (f64, f64)) -> (f64, f64) {
    let margin = if high > low { 0.04 * (high - low) } else { 0.5 * low.abs().max(1.0) };
    (low - margin, high + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_map_to_the_edges() {
        let plane = Plane { x: (-1.0, 3.0), y: (0.0, 10.0) };
        assert_eq!([plane.x(-1.0), plane.x(3.0), plane.y(0.0), plane.y(10.0)], [52.0, 310.0, 236.0, 8.0]);
        assert!(plane.has(3.0, 0.0) && !plane.has(3.1, 0.0) && !plane.has(0.0, f64::NAN));
        let svg = plane.picture("<a>", "", ["x\"", "y"], [&plane.numbers_x(), &plane.numbers_y()]);
        assert!(svg.contains("aria-label=\"&lt;a&gt;\"") && svg.contains("x&quot;"), "{svg}");
    }

    #[test]
    fn a_range_is_never_empty() {
        assert_eq!(with_margin((2.0, 2.0)), (1.0, 3.0));
        assert_eq!(with_margin((0.0, 1.0)), (-0.04, 1.04));
    }
}

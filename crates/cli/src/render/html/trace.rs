//! The trace of the objective: a line over the width of the page, with labelled marks.

use super::escape;
use super::plot::with_margin;
use crate::render::figure::linear_ticks;
use std::fmt::Write as _;

/// Points of the line.
const POINTS: usize = 500;
/// The first share of the steps does not set the scale: the bound rises so far there that nothing else would be visible.
const EARLY: f64 = 0.1;
/// The size in SVG units; the plot is stretched to the width of the page.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;

/// A labelled vertical line.
pub struct Mark {
    pub at: f64,
    pub label: String,
}

/// The plot; empty for fewer than two points. `level` is a value to mark with a horizontal line.
pub fn picture(
    points: &[(f64, f64)],
    marks: &[Mark],
    level: Option<(f64, &str)>,
    [x_name, y_name]: [&str; 2],
) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    if points.len() < 2 || !(last.0 > first.0) {
        return String::new();
    }
    let x = (first.0.min(0.0), last.0);
    let late = points.iter().filter(|(at, _)| *at >= x.0 + EARLY * (x.1 - x.0)).map(|point| point.1);
    let level = level.filter(|(value, _)| value.is_finite());
    let ends = late.chain(level.map(|(value, _)| value));
    let y = with_margin(ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v))));
    let across = |value: f64| (value - x.0) / (x.1 - x.0);
    let down = |value: f64| (y.1 - value) / (y.1 - y.0);
    let mut path = String::new();
    for (i, (at, value)) in thinned(points).enumerate() {
        // Far below the plot counts as just below it.
        let down = down(value).min(2.0);
        let letter = if i == 0 { "M" } else { "L" };
        let _ = write!(path, "{letter}{:.1} {:.1}", WIDTH * across(at), HEIGHT * down);
    }
    let mut lines = String::new();
    let mut labels = String::new();
    for tick in linear_ticks(y.0, y.1, 5) {
        let place = down(tick.value);
        let _ = write!(lines, "<path class=\"grid\" d=\"M0 {0:.1}H{WIDTH}\"/>", HEIGHT * place);
        let _ = write!(labels, "<span class=\"y\" style=\"top:{:.2}%\">{}</span>", 100.0 * place, tick.label);
    }
    for tick in linear_ticks(x.0, x.1, 6) {
        let _ =
            write!(labels, "<span class=\"x\" style=\"left:{:.2}%\">{}</span>", 100.0 * across(tick.value), tick.label);
    }
    for Mark { at, label } in marks.iter().filter(|mark| mark.at > x.0 && mark.at < x.1) {
        let place = across(*at);
        let _ = write!(lines, "<path class=\"mark\" d=\"M{:.1} 0V{HEIGHT}\"/>", WIDTH * place);
        let _ =
            write!(labels, "<span class=\"mark\" style=\"left:{:.2}%\">{}</span>", 100.0 * place, escape::text(label));
    }
    let mut caption = String::new();
    if let Some((value, label)) = level {
        let place = down(value);
        let _ = write!(lines, "<path class=\"level\" d=\"M0 {0:.1}H{WIDTH}\"/>", HEIGHT * place);
        caption = format!("; the dashed line is {}", escape::text(label));
    }
    let [x_name, y_name] = [x_name, y_name].map(escape::text);
    format!(
        "<figure class=\"trace\"><div class=\"plane\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{y_name} by {x_name}\">{lines}<path class=\"line\" d=\"{path}\"/></svg>{labels}</div>\
         <figcaption>{y_name} by {x_name}{caption}</figcaption></figure>\n"
    )
}

/// Means of neighbours, if there are more points than can be distinguished.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.chunks(points.len().div_ceil(POINTS)).map(|chunk| {
        let len = chunk.len() as f64;
        let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / len, sum.1 / len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_and_its_marks_are_drawn() {
        let points: Vec<(f64, f64)> = (1..=2000).map(|i| (f64::from(i), -5.0 - 1e6 / f64::from(i).powi(3))).collect();
        let marks = [Mark { at: 1000.0, label: "size ÷ 2".to_owned() }, Mark { at: 9000.0, label: "never".to_owned() }];
        let svg = picture(&points, &marks, Some((-5.0, "<bound>")), ["step", "bound"]);
        assert!(svg.contains("size ÷ 2") && svg.contains("left:50.00%") && !svg.contains("never"), "{svg}");
        assert!(svg.contains("&lt;bound&gt;") && svg.len() < 12_000, "{}", svg.len());
        // The first steps do not set the scale.
        assert!(svg.contains(">−5</span>") && !svg.contains("×10"), "{svg}");
        assert_eq!(picture(&points[..1], &[], None, ["step", "bound"]), "");
    }

    #[test]
    fn a_flat_line_is_a_line() {
        let svg = picture(&[(1.0, 2.0), (2.0, 2.0)], &[], None, ["step", "bound"]);
        assert!(svg.contains("class=\"line\"") && !svg.contains("NaN"), "{svg}");
    }
}

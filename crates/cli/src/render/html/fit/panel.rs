//! A plot of two parameters: dots if both are continuous, the probability of each pair of values if both are discrete, and
//! otherwise a density for each value. Runs that are compared have the same axes.

use super::density::Sorted;
use crate::render::html::plot::{Plane, with_margin};
use hyperprior::posterior::Kind;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// The largest number of dots.
const DOTS: usize = 700;
/// The number of paths for the dots.
const LAYERS: usize = 10;
/// The share of the draws beyond each edge.
const OUTSIDE: f64 = 0.002;
/// The largest number of values of a discrete parameter to show; if it has more, the most probable.
const VALUES: usize = 10;
/// Values rarer than this are not shown.
const RARE: f64 = 0.005;
/// The largest number of cells with the probability written in them.
const WRITTEN: usize = 30;
/// The smallest number of draws for a density.
const DENSE: usize = 30;
/// Points of a density.
const POINTS: usize = 48;

/// The draws of two parameters.
#[derive(Clone)]
pub struct Two<'a> {
    pub names: [&'a str; 2],
    pub kinds: [Kind; 2],
    pub values: [&'a [f64]; 2],
}

impl Two<'_> {
    /// With the discrete one on the x axis.
    pub fn turned(self) -> Self {
        match self.kinds {
            [Kind::Continuous, Kind::Discrete] => {
                let ([a, b], [u, v], [x, y]) = (self.names, self.kinds, self.values);
                Self { names: [b, a], kinds: [v, u], values: [y, x] }
            }
            _ => self,
        }
    }
}

/// Plots of the same two parameters in several runs, on the same axes.
pub fn pictures(runs: &[Two]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    match first.kinds {
        [Kind::Continuous, Kind::Continuous] => {
            let plane = Plane { x: range(runs, 0), y: range(runs, 1) };
            runs.iter().map(|two| dots(two, &plane)).collect()
        }
        [Kind::Discrete, Kind::Discrete] => {
            let values = [values(runs, 0), values(runs, 1)];
            let tables: Vec<Table> = runs.iter().map(|two| joint(two, &values)).collect();
            let top = tables.iter().flat_map(|table| table.values()).copied().fold(0.0, f64::max);
            runs.iter().zip(&tables).map(|(two, table)| cells(two, &values, table, top)).collect()
        }
        _ => {
            let (values, y) = (values(runs, 0), range(runs, 1));
            runs.iter().map(|two| violins(two, &values, y)).collect()
        }
    }
}

/// Nearly all draws of all runs.
fn range(runs: &[Two], which: usize) -> (f64, f64) {
    let mut all: Vec<f64> = runs.iter().flat_map(|two| two.values[which].iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let cut = (OUTSIDE * all.len() as f64) as usize;
    match all.get(cut..all.len() - cut) {
        Some([low, .., high]) => with_margin((*low, *high)),
        _ => (0.0, 1.0),
    }
}

/// The most probable values over all runs, sorted.
fn values(runs: &[Two], which: usize) -> Vec<i64> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    runs.iter().flat_map(|two| two.values[which]).for_each(|x| *counts.entry(*x as i64).or_default() += 1);
    let mut values: Vec<(i64, usize)> = counts.into_iter().collect();
    values.sort_by_key(|(value, count)| (std::cmp::Reverse(*count), *value));
    let total: usize = values.iter().map(|(_, count)| count).sum();
    let is_shown = |(place, (_, count)): &(usize, (i64, usize))| *place < 2 || *count as f64 >= RARE * total as f64;
    let shown = values.into_iter().enumerate().filter(is_shown).take(VALUES);
    let mut values: Vec<i64> = shown.map(|(_, (value, _))| value).collect();
    values.sort_unstable();
    values
}

fn dots(two: &Two, plane: &Plane) -> String {
    let ([x, y], len) = (two.values, two.values[0].len());
    let shown = len.min(DOTS);
    // Dots of one path do not darken each other; those of different paths do.
    let mut paths = vec![String::new(); LAYERS];
    for (k, s) in (0..shown).map(|k| (k, k * len / shown)).filter(|(_, s)| plane.has(x[*s], y[*s])) {
        let _ = write!(paths[k % LAYERS], "M{:.1} {:.1}h0", plane.x(x[s]), plane.y(y[s]));
    }
    let drawn: String = paths.iter().map(|path| format!("<path class=\"dots\" d=\"{path}\"/>")).collect();
    let label = format!("Draws of {} and {}", two.names[0], two.names[1]);
    let along = [plane.numbers_x(), plane.numbers_y()];
    plane.picture(&label, &drawn, two.names, [&along[0], &along[1]])
}

type Table = HashMap<(i64, i64), f64>;

/// The probability of each pair of shown values.
fn joint(two: &Two, [first, second]: &[Vec<i64>; 2]) -> Table {
    let ([x, y], mut table) = (two.values, Table::new());
    for (x, y) in x.iter().zip(y).map(|(x, y)| (*x as i64, *y as i64)) {
        if first.binary_search(&x).is_ok() && second.binary_search(&y).is_ok() {
            *table.entry((x, y)).or_default() += 1.0;
        }
    }
    table.values_mut().for_each(|count| *count /= x.len() as f64);
    table
}

fn cells(two: &Two, [first, second]: &[Vec<i64>; 2], table: &Table, top: f64) -> String {
    let plane = Plane { x: (-0.5, first.len() as f64 - 0.5), y: (-0.5, second.len() as f64 - 0.5) };
    let named = |values: &[i64]| -> Vec<(f64, String)> {
        values.iter().enumerate().map(|(i, value)| (i as f64, value.to_string().replace('-', "−"))).collect()
    };
    let is_written = first.len() * second.len() <= WRITTEN;
    let mut drawn = String::new();
    for (i, a) in first.iter().enumerate() {
        for (j, b) in second.iter().enumerate() {
            let p = table.get(&(*a, *b)).copied().unwrap_or(0.0);
            let (left, right) = (plane.x(i as f64 - 0.5) + 1.0, plane.x(i as f64 + 0.5) - 1.0);
            let (upper, lower) = (plane.y(j as f64 + 0.5) + 1.0, plane.y(j as f64 - 0.5) - 1.0);
            let opacity = if top > 0.0 { p / top } else { 0.0 };
            let _ = write!(
                drawn,
                "<rect class=\"cell\" x=\"{left:.1}\" y=\"{upper:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill-opacity=\"{opacity:.3}\">\
                 <title>{a}, {b}: {p:.3}</title></rect>",
                right - left,
                lower - upper,
            );
            if is_written {
                let (x, y) = ((left + right) / 2.0, (upper + lower) / 2.0 + 4.0);
                let text = if p > 0.0 { format!("{p:.3}") } else { "0".to_owned() };
                let _ = write!(drawn, "<text class=\"p middle\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
            }
        }
    }
    let label = format!("Joint probabilities of {} and {}", two.names[0], two.names[1]);
    plane.picture(&label, &drawn, two.names, [&named(first), &named(second)])
}

fn violins(two: &Two, values: &[i64], y: (f64, f64)) -> String {
    let plane = Plane { x: (-0.5, values.len() as f64 - 0.5), y };
    let [label, number] = two.values;
    let mut drawn = String::new();
    let mut largest = 0.0_f64;
    let parts: Vec<Vec<f64>> = values
        .iter()
        .map(|value| {
            label.iter().zip(number).filter(|(z, _)| **z as i64 == *value).map(|(_, x)| *x).collect::<Vec<_>>()
        })
        .inspect(|own| largest = largest.max(own.len() as f64))
        .collect();
    for (i, own) in parts.iter().enumerate() {
        let centre = plane.x(i as f64);
        let half = 0.44 * (plane.x(1.0) - plane.x(0.0));
        let opacity = 0.25 + 0.75 * own.len() as f64 / largest;
        match Sorted::new(own, Kind::Continuous).filter(|_| own.len() >= DENSE) {
            Some(sorted) => {
                let _ = write!(
                    drawn,
                    "<path class=\"violin\" fill-opacity=\"{opacity:.2}\" d=\"{}\"/>",
                    violin(&sorted, &plane, (centre, half.min(36.0)))
                );
            }
            None => {
                let dot = |y: &f64| format!("M{centre:.1} {:.1}h0", plane.y(*y));
                let path: String = own.iter().filter(|y| plane.has(i as f64, **y)).map(dot).collect();
                let _ = write!(drawn, "<path class=\"dots\" d=\"{path}\"/>");
            }
        }
    }
    let total = label.len() as f64;
    let named: Vec<(f64, String)> = values
        .iter()
        .zip(&parts)
        .enumerate()
        .map(|(i, (value, own))| {
            let p = own.len() as f64 / total;
            // With many values there is no space for their probabilities.
            let text = if values.len() <= 4 { format!("{value} ({p:.2})") } else { value.to_string() };
            (i as f64, text.replace('-', "−"))
        })
        .collect();
    let label = format!("{} for each value of {}", two.names[1], two.names[0]);
    plane.picture(&label, &drawn, two.names, [&named, &plane.numbers_y()])
}

/// The density of these draws, vertical and mirrored.
fn violin(sorted: &Sorted, plane: &Plane, (centre, half): (f64, f64)) -> String {
    let (low, high) = sorted.range();
    let (low, high) = (low.max(plane.y.0), high.min(plane.y.1));
    if !(high > low) {
        return format!("M{:.1} {:.1}h{:.1}", centre - half, plane.y(low.clamp(plane.y.0, plane.y.1)), 2.0 * half);
    }
    let heights = sorted.density((low, high), POINTS);
    let at = |i: usize| plane.y(low + (high - low) * i as f64 / (POINTS - 1) as f64);
    let mut path = String::new();
    for (i, height) in heights.iter().enumerate() {
        let _ = write!(path, "{}{:.1} {:.1}", if i == 0 { "M" } else { "L" }, centre + half * height, at(i));
    }
    for (i, height) in heights.iter().enumerate().rev() {
        let _ = write!(path, "L{:.1} {:.1}", centre - half * height, at(i));
    }
    path + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two<'a>(kinds: [Kind; 2], values: [&'a [f64]; 2]) -> Two<'a> {
        Two { names: ["<a>", "b"], kinds, values }
    }

    #[test]
    fn cells_have_their_probabilities() {
        let runs = [two([Kind::Discrete; 2], [&[1.0, 1.0, 1.0, 2.0], &[5.0, 5.0, 7.0, 7.0]])];
        let svg = &pictures(&runs)[0];
        assert!(svg.contains("<title>1, 5: 0.500</title>") && svg.contains("<title>2, 5: 0.000</title>"), "{svg}");
        assert!(svg.contains("<title>1, 7: 0.250</title>") && svg.contains("&lt;a&gt;"), "{svg}");
        assert_eq!(svg.matches("fill-opacity=\"1.000\"").count(), 1, "{svg}");
    }

    #[test]
    fn compared_runs_share_their_axes() {
        let wide: Vec<f64> = (0..1000).map(|i| f64::from(i) / 10.0).collect();
        let narrow: Vec<f64> = wide.iter().map(|x| 40.0 + x / 100.0).collect();
        let kinds = [Kind::Continuous; 2];
        let runs = [two(kinds, [&wide, &wide]), two(kinds, [&narrow, &narrow])];
        let svgs = pictures(&runs);
        let ticks = |svg: &String| svg.split("<path").next().map(|head| head.matches("class=\"tick").count());
        assert_eq!(ticks(&svgs[0]), ticks(&svgs[1]));
        assert!(svgs[1].contains("100</text>"), "{}", svgs[1]);
    }

    #[test]
    fn a_label_is_on_the_x_axis_with_a_density_for_each_value() {
        let label: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let number: Vec<f64> = (0..400).map(|i| f64::from(i % 2) * 5.0 + f64::from(i % 37) / 37.0).collect();
        let turned = two([Kind::Continuous, Kind::Discrete], [&number, &label]).turned();
        assert_eq!(turned.names, ["b", "<a>"]);
        let svg = &pictures(&[turned])[0];
        assert_eq!(svg.matches("class=\"violin\"").count(), 2, "{svg}");
        assert!(svg.contains("0 (0.50)"), "{svg}");
    }

    /// Neither a single value nor a few draws are an error.
    #[test]
    fn degenerate_draws_are_drawn() {
        for kinds in [[Kind::Continuous; 2], [Kind::Discrete; 2], [Kind::Discrete, Kind::Continuous]] {
            for len in [1, 2, 100] {
                let svg = &pictures(&[two(kinds, [&vec![3.0; len], &vec![3.0; len]])])[0];
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }
}

//! A sequence of numbers as a one-line plot.

/// Eight heights.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The means of `width` equal parts of the values, one character each. Values below the median by more than three times the
/// distance from the median to the top are drawn at the bottom, so that a bad start does not flatten the rest. The plot spans at
/// least `height`, so that smaller noise looks flat.
pub fn sparkline(values: &[f64], width: usize, height: f64) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let width = width.min(finite.len());
    let part = |k: usize| &finite[k * finite.len() / width..(k + 1) * finite.len() / width];
    let means: Vec<f64> = (0..width).map(|k| part(k).iter().sum::<f64>() / part(k).len() as f64).collect();
    let mut sorted = means.clone();
    sorted.sort_by(f64::total_cmp);
    let (Some(lowest), Some(top)) = (sorted.first(), sorted.last()) else { return String::new() };
    let middle = sorted[(sorted.len() - 1) / 2];
    let bottom = lowest.max(middle - 3.0 * (top - middle)).min(top - height);
    // If all values are equal, all are at the top.
    let share = |x: f64| if top > &bottom { ((x - bottom) / (top - bottom)).clamp(0.0, 1.0) } else { 1.0 };
    let level = |x: f64| (share(x) * (LEVELS.len() - 1) as f64).round() as usize;
    means.iter().map(|x| LEVELS[level(*x)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_with_the_values() {
        let values: Vec<f64> = (0..80).map(f64::from).collect();
        assert_eq!(sparkline(&values, 8, 0.0), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[1.0, 2.0], 8, 0.0), "▁█");
        assert_eq!(sparkline(&[f64::NAN], 8, 0.0), "");
        assert_eq!(sparkline(&[3.0; 20], 4, 0.1), "████");
        // One value far below does not flatten the others.
        let fallen: Vec<f64> = std::iter::once(-1e6).chain((1..80).map(f64::from)).collect();
        assert!(sparkline(&fallen, 80, 0.0).ends_with('█') && sparkline(&fallen, 80, 0.0).starts_with("▁▅"));
    }
}

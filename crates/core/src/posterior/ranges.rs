//! Short names for many elements of arrays: `z[1:150]`, `eta[1,1:2]`, `mu`.

use super::name::ElementName;
use std::fmt::Write as _;

/// The maximum number of ranges in a line of text.
const SHOWN: usize = 8;

/// The elements as ranges that cover exactly them, array by array.
///
/// ```
/// use hyperprior::posterior::ranges::ranges;
/// assert_eq!(ranges(["mu", "z[1]", "z[2]", "z[3]", "z[7]"]), ["mu", "z[1:3]", "z[7]"]);
/// ```
pub fn ranges<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut arrays: Vec<(&str, Vec<Vec<u64>>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for name in names {
        let element = ElementName::parse(name);
        let array = *known.entry(element.array).or_insert_with(|| {
            arrays.push((element.array, Vec::new()));
            arrays.len() - 1
        });
        arrays[array].1.push(element.indices);
    }
    arrays.into_iter().flat_map(|(array, indices)| of_array(array, indices)).collect()
}

/// The ranges as a line of text, shortened if there are many.
///
/// ```
/// use hyperprior::posterior::ranges::line;
/// assert_eq!(line(["mu", "z[1]", "z[2]"]), "mu, z[1:2]");
/// ```
pub fn line<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let ranges = ranges(names);
    let mut text = ranges[..ranges.len().min(SHOWN)].join(", ");
    if ranges.len() > SHOWN {
        let _ = write!(text, " and {} more", ranges.len() - SHOWN);
    }
    text
}

fn of_array(array: &str, mut indices: Vec<Vec<u64>>) -> Vec<String> {
    indices.sort_unstable();
    indices.dedup();
    let rank = indices[0].len();
    if indices.iter().any(|i| i.len() != rank) || rank == 0 {
        return indices.iter().map(|i| text(array, &i.iter().map(|k| (*k, *k)).collect::<Vec<_>>())).collect();
    }
    let end = |d: usize, pick: fn(u64, u64) -> u64| indices.iter().map(|i| i[d]).reduce(pick).unwrap_or(0);
    let whole: Vec<(u64, u64)> = (0..rank).map(|d| (end(d, u64::min), end(d, u64::max))).collect();
    let size = whole.iter().fold(1_u64, |size, (from, to)| size.saturating_mul(to - from + 1));
    if size == indices.len() as u64 {
        return vec![text(array, &whole)];
    }
    // Runs along the last index.
    let next = |a: &Vec<u64>, b: &Vec<u64>| a[..rank - 1] == b[..rank - 1] && a[rank - 1] + 1 == b[rank - 1];
    let run = |run: &[Vec<u64>]| {
        let mut ranges: Vec<(u64, u64)> = run[0].iter().map(|k| (*k, *k)).collect();
        ranges[rank - 1].1 = run[run.len() - 1][rank - 1];
        text(array, &ranges)
    };
    indices.chunk_by(next).map(run).collect()
}

fn text(array: &str, ranges: &[(u64, u64)]) -> String {
    let range = |(from, to): &(u64, u64)| if from == to { from.to_string() } else { format!("{from}:{to}") };
    match ranges {
        [] => array.to_owned(),
        ranges => format!("{array}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_exactly_the_elements() {
        let said = |names: &[&str]| ranges(names.iter().copied()).join(" ");
        assert_eq!(said(&["mu", "z[1]", "b[2]", "z[2]", "z[3]"]), "mu z[1:3] b[2]");
        assert_eq!(said(&["y[3]", "y[7]", "y[8]"]), "y[3] y[7:8]");
        assert_eq!(said(&["a[1,1]", "a[1,2]", "a[2,1]", "a[2,2]"]), "a[1:2,1:2]");
        assert_eq!(said(&["a[1,1]", "a[1,2]", "a[2,2]"]), "a[1,1:2] a[2,2]");
        assert_eq!(said(&[]), "");
        let many: Vec<String> = (0..10).map(|i| format!("x{i}")).collect();
        assert!(line(many.iter().map(String::as_str)).ends_with("x7 and 2 more"));
    }
}

//! The probability of each value of each discrete variable.

use super::number::probability;
use super::page;
use crate::render::terminal::table;
use hyperprior::posterior::{ElementName, Summary};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// With more values than this, a line lists the most probable values instead of a table with a column for each.
const VALUES_MAX: usize = 10;
/// The number of values in such a line.
const LISTED: usize = 6;

/// One table for the arrays that share their values, and a line for each variable with too many values for a table. Constant
/// variables are in the table of summaries.
pub fn probabilities(summaries: &[Summary], rows_max: usize) -> String {
    let discrete: Vec<(&str, &BTreeMap<i64, f64>)> =
        summaries.iter().filter_map(|s| s.pmf.as_ref().map(|pmf| (s.name.as_str(), pmf))).collect();
    if discrete.is_empty() {
        return String::new();
    }
    // The values of an array, not of an element: one that was always 1 could have been 2.
    let mut values: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    for (name, pmf) in &discrete {
        values.entry(ElementName::parse(name).array).or_default().extend(pmf.keys());
    }
    let discrete: Vec<_> = discrete.into_iter().filter(|(_, pmf)| pmf.len() > 1).collect();
    let names: Vec<&str> = discrete.iter().map(|(name, _)| *name).collect();
    let shown = page::rows(&names, rows_max);
    let mut tables: Vec<(&BTreeSet<i64>, Vec<Vec<String>>)> = Vec::new();
    let mut lines = String::new();
    for (name, pmf) in shown.iter().map(|i| discrete[*i]) {
        let values = &values[ElementName::parse(name).array];
        if values.len() > VALUES_MAX {
            let _ = writeln!(lines, "{name}: {}", listed(pmf));
            continue;
        }
        let shares = values.iter().map(|value| probability(pmf.get(value).copied().unwrap_or(0.0)));
        let row = [name.to_owned()].into_iter().chain(shares).collect();
        match tables.iter_mut().find(|(of, _)| *of == values) {
            Some((_, rows)) => rows.push(row),
            None => tables.push((values, vec![row])),
        }
    }
    let mut parts: Vec<String> = tables
        .iter()
        .map(|(values, rows)| {
            let header: Vec<String> =
                ["P(·)".to_owned()].into_iter().chain(values.iter().map(i64::to_string)).collect();
            table::render(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows)
        })
        .collect();
    parts.extend((!lines.is_empty()).then_some(lines));
    parts.join("\n") + &page::remainder(discrete.len(), shown.len())
}

/// The most probable values and their probabilities.
fn listed(pmf: &BTreeMap<i64, f64>) -> String {
    let mut values: Vec<(&i64, &f64)> = pmf.iter().collect();
    values.sort_by(|a, b| b.1.total_cmp(a.1));
    let texts: Vec<String> = values.iter().take(LISTED).map(|(value, p)| format!("{value} ({p:.3})")).collect();
    let more = values.len().saturating_sub(LISTED);
    texts.join(", ") + &if more > 0 { format!(" and {more} more values") } else { String::new() }
}

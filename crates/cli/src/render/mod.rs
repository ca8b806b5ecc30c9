//! A posterior as text for a terminal: the table of summaries, and what is to be known of discrete variables.

mod configurations;
mod dependence;
mod number;
mod page;
mod parameters;
mod probabilities;
mod sparkline;

#[cfg(test)]
mod tests;

use hyperprior::posterior::{Draws, DrawsError, Kind, PairSettings, Summary, strongest_pairs, top_configurations};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use number::{Digits, estimate, two_figures};
pub use sparkline::sparkline;

/// How many rows a table has before it is cut.
pub const ROWS: usize = 40;

/// How many joint configurations and pairs are shown.
const TOP: usize = 5;

/// The table of summaries: a row per scalar, at most `rows_max`, and a line that says what was left out.
pub fn parameters(summaries: &[Summary], rows_max: usize) -> String {
    parameters::table(summaries, rows_max, None)
}

/// The same, with a column of corrected standard deviations where there are any.
pub fn parameters_with(summaries: &[Summary], rows_max: usize, corrected: Option<&BTreeMap<String, f64>>) -> String {
    parameters::table(summaries, rows_max, corrected)
}

/// The discrete variables: probabilities of their values, joint configurations, and pairs that depend on each other. Empty
/// where there are none.
pub fn discrete(draws: &Draws, summaries: &[Summary], rows_max: usize) -> Result<String, DrawsError> {
    let mut out = probabilities::probabilities(summaries, rows_max);
    // By array, since a loop over two of them draws their elements in turn.
    let arrays = draws.arrays().into_iter().flat_map(|(_, columns)| columns);
    let columns: Vec<usize> = arrays.filter(|i| draws.columns()[*i].kind == Kind::Discrete).collect();
    if columns.len() > 1 {
        let found = top_configurations(draws, &columns, TOP)?;
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = write!(out, "{gap}{}", configurations::configurations(draws, &found));
        let found = strongest_pairs(draws, &columns, PairSettings { top: TOP, ..PairSettings::default() })?;
        let _ = write!(out, "\n{}", dependence::dependence(draws, &found));
    }
    Ok(out)
}

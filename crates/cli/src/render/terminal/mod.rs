//! A posterior as text for a terminal: the table of summaries, and the section on discrete variables.

mod configurations;
mod dependence;
mod number;
mod page;
mod parameters;
mod probabilities;
mod remedy;
mod sparkline;
pub mod table;

#[cfg(test)]
mod tests;

use hyperprior::posterior::{Draws, DrawsError, Kind, PairSettings, Summary, strongest_pairs, top_configurations};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use number::{Digits, estimate, two_figures};
pub use remedy::remedy;
pub use sparkline::sparkline;

/// The largest number of rows in a table.
pub const ROWS: usize = 40;

/// The number of joint configurations and pairs shown.
const TOP: usize = 5;

/// The table of summaries: a row per scalar, at most `rows_max`, and a line with the number of rows omitted.
pub fn parameters(summaries: &[Summary], rows_max: usize) -> String {
    parameters::table(summaries, rows_max, None)
}

/// The same, with a column of corrected standard deviations if there are any.
pub fn parameters_with(
    summaries: &[Summary],
    rows_max: usize,
    corrected: Option<&BTreeMap<String, Option<f64>>>,
) -> String {
    parameters::table(summaries, rows_max, corrected)
}

/// The discrete variables: probabilities of their values, joint configurations, and dependent pairs. Empty if there are none.
pub fn discrete(draws: &Draws, summaries: &[Summary], rows_max: usize) -> Result<String, DrawsError> {
    let mut out = probabilities::probabilities(summaries, rows_max);
    // By array, since a loop over two arrays declares their elements in turn.
    let arrays = draws.arrays().into_iter().flat_map(|(_, columns)| columns);
    let columns: Vec<usize> = arrays.filter(|i| draws.columns()[*i].kind == Kind::Discrete).collect();
    if columns.len() > 1 {
        let found = top_configurations(draws, &columns, TOP)?;
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = write!(out, "{gap}{}", configurations::configurations(draws, &found));
        let found = strongest_pairs(draws, &columns, PairSettings::default().top(TOP))?;
        let _ = write!(out, "\n{}", dependence::dependence(draws, &found));
    }
    Ok(out)
}

//! The most probable joint configurations of the discrete variables.

use super::number::probability;
use hyperprior::posterior::{Configuration, Configurations, Draws, ElementName};
use std::fmt::Write as _;

/// With more variables than this, the configurations after the first are shown by their differences from it.
const WHOLE_MAX: usize = 12;
/// The largest number of values or differences shown.
const SHOWN: usize = 40;

/// A line for each configuration, except those drawn only once, whose probability is unknown.
pub fn configurations(draws: &Draws, found: &Configurations) -> String {
    let len = found.columns.len();
    let once = 1.5 / draws.weights().effective_len();
    let top: Vec<&Configuration> = found.top.iter().filter(|c| c.probability > once || found.distinct == 1).collect();
    let Some(first) = top.first() else {
        return format!("No joint configuration of the {len} discrete variables was drawn twice.\n");
    };
    let mut out = format!("Most probable of {} joint configurations of {len} discrete variables:\n", found.distinct);
    for configuration in &top {
        let text = if configuration.values == first.values || len <= WHOLE_MAX {
            whole(draws, found, configuration)
        } else {
            difference(draws, found, first, configuration)
        };
        let _ = writeln!(out, "  {}  {text}", probability(configuration.probability));
    }
    let others = 1.0 - top.iter().map(|c| c.probability).sum::<f64>();
    let text = match found.distinct - top.len() {
        0 => return out,
        1 => "the other".to_owned(),
        len => format!("the {len} others together"),
    };
    let _ = writeln!(out, "  {}  {text}", probability(others));
    out
}

/// `z = 1 1 2; g = 0`.
fn whole(draws: &Draws, found: &Configurations, configuration: &Configuration) -> String {
    let mut out = String::new();
    let mut array_last = None;
    for (i, value) in found.columns.iter().zip(&configuration.values).take(SHOWN) {
        let array = ElementName::parse(&draws.columns()[*i].name).array;
        let _ = match array_last {
            Some(last) if last == array => write!(out, " {value}"),
            Some(_) => write!(out, "; {array} = {value}"),
            None => write!(out, "{array} = {value}"),
        };
        array_last = Some(array);
    }
    let more = found.columns.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = write!(out, " … and {more} more");
    }
    out
}

/// `the same except z[3] = 2, z[9] = 1`.
fn difference(draws: &Draws, found: &Configurations, first: &Configuration, other: &Configuration) -> String {
    let places: Vec<usize> = (0..found.columns.len()).filter(|k| first.values[*k] != other.values[*k]).collect();
    let texts: Vec<String> = places
        .iter()
        .take(SHOWN / 4)
        .map(|k| format!("{} = {}", draws.columns()[found.columns[*k]].name, other.values[*k]))
        .collect();
    let more = places.len() - texts.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the same except {}{more}", texts.join(", "))
}

//! The pairs of discrete variables that depend most on each other.

use crate::table;
use hyperprior::posterior::{Dependences, Draws};
use std::fmt::Write as _;

/// A table of the pairs, and what it leaves out.
pub fn dependence(draws: &Draws, found: &Dependences) -> String {
    let name = |i: usize| draws.columns()[i].name.clone();
    let mut out = if found.pairs.is_empty() {
        "No two discrete variables depend on each other more than chance gives.\n".to_owned()
    } else {
        let rows: Vec<Vec<String>> =
            found.pairs.iter().map(|p| vec![name(p.first), name(p.second), format!("{:.3}", p.nats)]).collect();
        "Strongest dependence between discrete variables (mutual information in nats):\n".to_owned()
            + &table::render(&["variable", "variable", "nats"], &rows)
    };
    let shown = |i: &usize| found.pairs.iter().any(|p| p.first == *i || p.second == *i);
    if found.grouped.iter().any(shown) {
        let _ =
            writeln!(out, "Where a variable has many values, neighbouring ones are taken together, and more is lost.");
    }
    if found.left_out_len > 0 {
        let (left_out, len) = (found.left_out_len, found.pairs_len);
        let _ = writeln!(out, "{left_out} of {len} pairs, those that vary least, were not looked at.");
    }
    out
}

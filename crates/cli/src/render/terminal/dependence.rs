//! The pairs of discrete variables with the strongest dependence.

use crate::render::terminal::table;
use hyperprior::posterior::{Dependences, Draws};
use std::fmt::Write as _;

/// A table of the pairs, with notes.
pub fn dependence(draws: &Draws, found: &Dependences) -> String {
    let name = |i: usize| draws.columns()[i].name.clone();
    let mut out = if found.pairs.is_empty() {
        "No pair of discrete variables shows dependence beyond chance.\n".to_owned()
    } else {
        let rows: Vec<Vec<String>> =
            found.pairs.iter().map(|p| vec![name(p.first), name(p.second), format!("{:.3}", p.nats)]).collect();
        "Strongest dependence between discrete variables (mutual information in nats):\n".to_owned()
            + &table::render(&["variable", "variable", "nats"], &rows)
    };
    let shown = |i: &usize| found.pairs.iter().any(|p| p.first == *i || p.second == *i);
    if found.grouped.iter().any(shown) {
        let _ = writeln!(out, "Variables with many values are binned, which lowers their mutual information.");
    }
    if found.left_out_len > 0 {
        let (skipped, len) = (found.left_out_len, found.pairs_len);
        let _ = writeln!(out, "{skipped} of {len} pairs, those that vary least, were not examined.");
    }
    out
}

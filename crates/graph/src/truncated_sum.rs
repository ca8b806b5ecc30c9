//! Sums over counts that are cut off: whether what is left out is negligible.

use super::expression::Expr;
use super::marginalise::Tail;
use super::tape::{TILE, Tape, Workspace};

/// A truncated sum is accurate enough if the terms left out are below this share of it.
const TAIL: f64 = 1e-10;

/// The outputs that [`short`] needs.
pub(super) fn ends(tails: &[Tail]) -> Vec<Expr> {
    tails.iter().flat_map(|t| [t.last, t.previous, t.sum]).collect()
}

/// The draws whose truncated sums leave out too much. The ratio of successive terms falls, so the terms left out are bounded by
/// a geometric series with the ratio of the last two.
pub(super) fn short(tape: &Tape, workspace: &Workspace, tails_len: usize) -> [bool; TILE] {
    let mut short = [false; TILE];
    for t in 0..tails_len {
        let [last, previous, sum] = [0, 1, 2].map(|k| tape.output(3 * t + k, workspace));
        for i in 0..TILE {
            if last[i] == f64::NEG_INFINITY {
                continue;
            }
            let ratio = (last[i] - previous[i]).exp();
            let rest = (last[i] - sum[i]).exp() * ratio / (1.0 - ratio);
            short[i] |= !(ratio < 1.0 && rest < TAIL);
        }
    }
    short
}

/// Sets the densities of draws whose sums leave out too much to NaN.
pub(super) fn known(mut total: [f64; TILE], short: [bool; TILE]) -> [f64; TILE] {
    for (t, short) in total.iter_mut().zip(short) {
        if short {
            *t = f64::NAN;
        }
    }
    total
}

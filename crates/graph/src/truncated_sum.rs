//! Sums over counts that are cut off: whether what is left out is negligible.

use super::expression::Expr;
use super::marginalise::Tail;
use super::tape::{TILE, Tape, Workspace};

/// A truncated sum is accurate enough if what it leaves out is below this share of it, as a logarithm: 1e-10.
const LOG_TAIL: f64 = -23.025_850_929_940_457;
/// If no value in the sum is possible, and the log probability of the others is below this, none is.
const LOG_IMPOSSIBLE: f64 = -1e4;

/// The outputs that [`short`] needs.
pub(super) fn ends(tails: &[Tail]) -> Vec<Expr> {
    tails.iter().flat_map(|t| [t.rest, t.sum]).collect()
}

/// How many outputs each truncated sum has.
pub(super) const ENDS: usize = 2;

/// Whether a sum leaves out too much, given a bound of what it leaves out; both are logarithms. An undefined sum is not improved by
/// more values.
pub(super) fn is_short(rest: f64, sum: f64) -> bool {
    match sum {
        _ if sum.is_nan() => false,
        f64::NEG_INFINITY => !(rest < LOG_IMPOSSIBLE),
        _ => !(rest - sum < LOG_TAIL),
    }
}

/// The draws whose truncated sums leave out too much.
pub(super) fn short(tape: &Tape, workspace: &Workspace, tails_len: usize) -> [bool; TILE] {
    let mut short = [false; TILE];
    for t in 0..tails_len {
        let [rest, sum] = [0, 1].map(|k| tape.output(ENDS * t + k, workspace));
        for i in 0..workspace.len() {
            short[i] |= is_short(rest[i], sum[i]);
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

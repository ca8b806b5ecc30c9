//! The tape: expressions laid out as runs of like operations, evaluated over a tile of draws at once.
//!
//! Expressions at the same depth with the same operation form a run: one dispatch, then a loop over its members, and inside
//! it a loop over the draws of a tile, in SIMD. A plate of a thousand likelihood terms is then a few loops. The value of an
//! expression is a row of [`TILE`] numbers; rows are numbered in the order of evaluation, so that a run writes a contiguous
//! block and reads only earlier rows.

mod backward;
mod below;
mod compile;
mod forward;
mod log_sums;
mod program;
mod row;
mod terminal;

pub(crate) use below::{Below, Sum};
pub(crate) use forward::Workspace;
pub(crate) use program::Tape;
pub(crate) use row::TILE;

#[cfg(test)]
mod tests;

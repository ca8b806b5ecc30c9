//! Rows: the values of an expression for a tile of draws, and the SIMD vectors in them.

use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V};

/// Draws in a tile.
pub(crate) const TILE: usize = 16;
/// A row of values.
pub(crate) type Row = [f64; TILE];

/// SIMD vectors in a row.
pub(super) const VECTORS: usize = TILE / LANES;

#[inline(always)]
pub(super) fn get<S: Simd>(s: S, row: &Row, v: usize) -> V<S> {
    V::from_slice(s, &row[v * LANES..(v + 1) * LANES])
}

#[inline(always)]
pub(super) fn put<S: Simd>(x: V<S>, row: &mut Row, v: usize) {
    x.store_slice(&mut row[v * LANES..(v + 1) * LANES]);
}

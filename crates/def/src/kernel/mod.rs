//! The inner loops: latents in lanes, sixteen at a time, in single precision.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

pub(crate) mod continuous;
pub(crate) mod conway_maxwell;
#[cfg(test)]
mod dense;
pub(crate) mod draw;
pub(crate) mod layer;
pub(crate) mod low_rank;
pub(crate) mod normal;
pub(crate) mod words;

use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::single::Tile;
use hyperprior_math::single::simd::{V, load};

/// The sum of the lanes.
#[inline(always)]
pub(crate) fn total<S: Simd>(v: V<S>) -> f32 {
    v.reduce_sum()
}

/// Sixteen numbers of one draw.
#[inline(always)]
pub(crate) fn row<S: Simd>(s: S, tile: &Tile, draw: usize) -> V<S> {
    load(s, &tile.0[draw])
}

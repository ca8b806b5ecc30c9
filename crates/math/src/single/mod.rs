//! Single precision, for many small posteriors, each with its own parameters.
//!
//! A fit of thousands of documents has a prior and a recursive approximation for each of them, and spends its time moving
//! those parameters through memory: half the bytes take half the time. With few draws and no shared parameters, the latents
//! go into lanes, sixteen at a time, and most sums run over draws.

pub mod planar;
pub mod simd;

/// How many numbers a vector holds.
pub const LANES: usize = 16;

/// How many draws are processed together.
pub const DRAWS: usize = 8;

/// Sixteen neighbouring latents, aligned to a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Lanes(pub [f32; LANES]);

/// Eight draws of sixteen neighbouring latents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Tile(pub [[f32; LANES]; DRAWS]);

/// How many [`Lanes`] a row of `len` numbers takes.
pub const fn lanes_len(len: usize) -> usize {
    len.div_ceil(LANES)
}

/// Writes numbers into lanes; lanes beyond the last number become zero.
pub fn read_row(numbers: &[f64], row: &mut [Lanes]) {
    let mut numbers = numbers.iter();
    for x in row.iter_mut().flat_map(|lanes| &mut lanes.0) {
        *x = numbers.next().map_or(0.0, |n| *n as f32);
    }
}

/// Fills `numbers` from the lanes.
pub fn write_row(row: &[Lanes], numbers: &mut [f64]) {
    for (n, x) in numbers.iter_mut().zip(row.iter().flat_map(|lanes| &lanes.0)) {
        *n = f64::from(*x);
    }
}

/// Sets the lanes beyond the first `len` numbers to zero.
pub fn clear_padding(len: usize, row: &mut [Lanes]) {
    let whole = len / LANES;
    if let Some(last) = row.get_mut(whole) {
        last.0[len % LANES..].fill(0.0);
    }
}

//! Single precision, for many small posteriors that have parameters of their own.
//!
//! A fit of thousands of documents keeps a prior and a recursive approximation for each of them, and the time goes into moving
//! those parameters through memory: half the bytes is half the time. With few draws and parameters that no other posterior
//! shares, it is the latents that lie in lanes, sixteen at a time, and most sums run over draws.

pub mod planar;
pub mod simd;

/// How many numbers a vector holds.
pub const LANES: usize = 16;

/// How many draws are worked on together.
pub const DRAWS: usize = 8;

/// Sixteen neighbouring latents, where a cache line starts.
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

/// Writes numbers into lanes; those beyond the last number become zero.
pub fn read_row(numbers: &[f64], row: &mut [Lanes]) {
    let mut numbers = numbers.iter();
    for x in row.iter_mut().flat_map(|lanes| &mut lanes.0) {
        *x = numbers.next().map_or(0.0, |n| *n as f32);
    }
}

/// Reads as many numbers from lanes as there is room for.
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

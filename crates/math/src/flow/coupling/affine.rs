//! The affine bend, RealNVP's: y = x eˢ + t with s = 2 tanh(raw / 2), so that a layer stretches by e² at most.
//!
//! Two columns define the bend of a number, its shape: tanh(raw / 2), and t.

use crate::simd::{self, LANES, Simd, V, load, prelude::*, splat, store};

/// How many columns a shape has.
pub const COLUMNS: usize = 2;

/// The largest |s|.
const LIMIT: f64 = 2.0;

#[inline(always)]
fn prepare_kernel<S: Simd>(s: S, shape: &mut [f64], draws_len: usize) {
    let bounded = &mut shape[..draws_len];
    for at in (0..draws_len).step_by(LANES) {
        store(simd::tanh(s, load(s, bounded, at, 0.0) * (1.0 / LIMIT)), bounded, at);
    }
}
crate::simd_fn!(
        /// Turns the network's output into the shape.
    pub fn prepare(shape: &mut [f64], draws_len: usize) = prepare_kernel
);

/// The bounded column's log scale and its exponential.
#[inline(always)]
fn scale<S: Simd>(s: S, bounded: V<S>) -> (V<S>, V<S>) {
    let log_scale = bounded * LIMIT;
    (log_scale, simd::exp(s, log_scale))
}

#[inline(always)]
fn forward_kernel<S: Simd>(s: S, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
    let (bounded, shift) = shape.split_at(x.len());
    for at in (0..x.len()).step_by(LANES) {
        let (log_scale, scale) = scale(s, load(s, bounded, at, 0.0));
        store(scale.mul_add(load(s, x, at, 0.0), load(s, shift, at, 0.0)), x, at);
        store(load(s, log_det, at, 0.0) + log_scale, log_det, at);
    }
}
crate::simd_fn!(
    /// x ← y; log_det += s.
    pub fn forward(shape: &[f64], x: &mut [f64], log_det: &mut [f64]) = forward_kernel
);

#[inline(always)]
fn invert_kernel<S: Simd>(s: S, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
    let (bounded, shift) = shape.split_at(x.len());
    for at in (0..x.len()).step_by(LANES) {
        let (log_scale, scale) = scale(s, load(s, bounded, at, 0.0));
        store((load(s, x, at, 0.0) - load(s, shift, at, 0.0)) / scale, x, at);
        store(load(s, log_det, at, 0.0) + log_scale, log_det, at);
    }
}
crate::simd_fn!(
    /// From y back to x; log_det += s.
    pub fn invert(shape: &[f64], x: &mut [f64], log_det: &mut [f64]) = invert_kernel
);

#[inline(always)]
fn pullback_kernel<S: Simd>(s: S, shape: &[f64], x: &[f64], d_x: &mut [f64], d_log_det: &[f64], d_shape: &mut [f64]) {
    let (bounded, _) = shape.split_at(x.len());
    let (d_raw, d_shift) = d_shape.split_at_mut(x.len());
    for at in (0..x.len()).step_by(LANES) {
        let bounded = load(s, bounded, at, 0.0);
        let (_, scale) = scale(s, bounded);
        let (x, d_y) = (load(s, x, at, 0.0), load(s, d_x, at, 0.0));
        let through = d_y * scale;
        let d_log_scale = through.mul_add(x, load(s, d_log_det, at, 0.0));
        // d s / d raw = 2 (1 − tanh²) / 2.
        store(d_log_scale * (-bounded).mul_add(bounded, splat(s, 1.0)), d_raw, at);
        store(d_y, d_shift, at);
        store(through, d_x, at);
    }
}
crate::simd_fn!(
    /// Pulls the cotangents of y and of the log-determinant back to x (replacing those of y) and to the network's output.
    pub fn pullback(
        shape: &[f64],
        x: &[f64],
        d_x: &mut [f64],
        d_log_det: &[f64],
        d_shape: &mut [f64],
    ) = pullback_kernel
);

//! The spline bend: a monotone rational-quadratic spline on \[−5, 5\], the identity outside (Durkan et al., 2019).
//!
//! In a bin of width w and height h, with slopes a and b at its two knots, ρ = h/w, ξ = (x − left)/w and u = ξ(1 − ξ):
//!
//! y = bottom + h (ρξ² + au) / D, D = ρ(1 − 2u) + (a + b)u, and dy/dx = ρ² N / D², N = bξ² + 2ρu + a(1 − ξ)².
//!
//! The shape of a number is K columns of shares of the width, K of the height, and K − 1 raw slopes for the inner knots; at
//! ±5 the slope is 1. No bin is narrower or flatter than a hundredth of an even share, and slopes are e^(6 tanh(raw/6)), so
//! that the spline is invertible for every network output. An output of zero gives exactly the identity, which is why y is
//! computed as x plus a deviation.

use crate::simd::{self, LANES, Simd, V, load, prelude::*, splat, store};

/// The spline transforms numbers between −EDGE and EDGE.
pub const EDGE: f64 = 5.0;
/// The share of the range that is divided evenly among the bins.
const EVEN: f64 = 0.01;
/// The largest |log slope| of a knot.
const LOG_SLOPE_LIMIT: f64 = 6.0;
/// The width per unit of share.
const SPREAD: f64 = 2.0 * EDGE * (1.0 - EVEN);

/// How many columns a shape has.
pub fn columns_len(bins: usize) -> usize {
    3 * bins - 1
}

/// How many bins a shape has.
#[inline(always)]
fn bins_len(shape: &[f64], draws_len: usize) -> usize {
    (shape.len() / draws_len.max(1) + 1) / 3
}

#[inline(always)]
fn column(shape: &[f64], draws_len: usize, i: usize) -> &[f64] {
    &shape[i * draws_len..(i + 1) * draws_len]
}

#[inline(always)]
fn prepare_kernel<S: Simd>(s: S, shape: &mut [f64], draws_len: usize) {
    let bins = bins_len(shape, draws_len);
    for side in shape[..2 * bins * draws_len].chunks_exact_mut((bins * draws_len).max(1)) {
        for at in (0..draws_len).step_by(LANES) {
            let mut top = splat(s, f64::NEG_INFINITY);
            for raw in side.chunks_exact(draws_len) {
                top = top.max(load(s, raw, at, 0.0));
            }
            let mut sum = splat(s, 0.0);
            for raw in side.chunks_exact_mut(draws_len) {
                let part = simd::exp(s, load(s, raw, at, 0.0) - top);
                sum += part;
                store(part, raw, at);
            }
            for part in side.chunks_exact_mut(draws_len) {
                store(load(s, part, at, 0.0) / sum, part, at);
            }
        }
    }
}
crate::simd_fn!(
    /// Turns the network's output into the shape: the bins' shares of the width and of the height.
    pub fn prepare(shape: &mut [f64], draws_len: usize) = prepare_kernel
);

/// The bin that contains a number, for eight draws: widths first, heights second.
#[derive(Clone, Copy)]
struct Bin<S: Simd> {
    index: V<S>,
    /// The total share of the bins before it.
    below: [V<S>; 2],
    share: [V<S>; 2],
    /// Its left and bottom edges.
    corner: [V<S>; 2],
    raw_slopes: [V<S>; 2],
}

/// The bin that contains `value`, an input if `side` is 0 and an output if it is 1.
#[inline(always)]
fn find<S: Simd>(s: S, shape: &[f64], draws_len: usize, at: usize, value: V<S>, side: usize) -> Bin<S> {
    let bins = bins_len(shape, draws_len);
    let read = |i: usize| load(s, column(shape, draws_len, i), at, 0.0);
    let zero = splat(s, 0.0);
    let mut found = Bin { index: zero, below: [zero; 2], share: [zero; 2], corner: [zero; 2], raw_slopes: [zero; 2] };
    let (mut below, mut corner) = ([zero; 2], [splat(s, -EDGE); 2]);
    let mut raw_left = zero;
    for k in 0..bins {
        let share = [read(k), read(bins + k)];
        let raw_right = if k + 1 < bins { read(2 * bins + k) } else { zero };
        // The first bin takes everything before it, the last everything after: rounding cannot lose a number.
        let here = if k == 0 { zero.simd_eq(zero) } else { value.simd_ge(corner[side]) };
        found.index = here.select(splat(s, k as f64), found.index);
        found.raw_slopes = [here.select(raw_left, found.raw_slopes[0]), here.select(raw_right, found.raw_slopes[1])];
        for i in 0..2 {
            found.below[i] = here.select(below[i], found.below[i]);
            found.share[i] = here.select(share[i], found.share[i]);
            found.corner[i] = here.select(corner[i], found.corner[i]);
            below[i] += share[i];
            corner[i] += size(s, share[i], bins);
        }
        raw_left = raw_right;
    }
    found
}

/// The width or height of a bin with this share.
#[inline(always)]
fn size<S: Simd>(s: S, share: V<S>, bins: usize) -> V<S> {
    share.mul_add(splat(s, SPREAD), splat(s, 2.0 * EDGE * EVEN / bins as f64))
}

/// The quantities in the formulas.
#[derive(Clone, Copy)]
struct Curve<S: Simd> {
    width: V<S>,
    height: V<S>,
    /// ρ.
    slope: V<S>,
    /// a and b, and their derivatives along the network's output.
    slopes: [V<S>; 2],
    d_slopes: [V<S>; 2],
}

/// The formulas at one point.
#[derive(Clone, Copy)]
struct Place<S: Simd> {
    xi: V<S>,
    /// 1 − ξ.
    rest: V<S>,
    u: V<S>,
    denominator: V<S>,
    numerator: V<S>,
}

impl<S: Simd> Curve<S> {
    #[inline(always)]
    fn new(s: S, bin: &Bin<S>, bins: usize) -> Self {
        let (width, height) = (size(s, bin.share[0], bins), size(s, bin.share[1], bins));
        let (a, d_a) = knot_slope(s, bin.raw_slopes[0]);
        let (b, d_b) = knot_slope(s, bin.raw_slopes[1]);
        Self { width, height, slope: height / width, slopes: [a, b], d_slopes: [d_a, d_b] }
    }

    #[inline(always)]
    fn place(&self, s: S, xi: V<S>) -> Place<S> {
        let [a, b] = self.slopes;
        let xi = xi.max(splat(s, 0.0)).min(splat(s, 1.0));
        let rest = splat(s, 1.0) - xi;
        let u = xi * rest;
        let denominator = (a + b).mul_add(u, self.slope * (splat(s, 1.0) - u * 2.0));
        let numerator = (b * xi).mul_add(xi, (self.slope * u).mul_add(splat(s, 2.0), a * rest * rest));
        Place { xi, rest, u, denominator, numerator }
    }

    /// log dy/dx.
    #[inline(always)]
    fn log_derivative(&self, s: S, at: &Place<S>) -> V<S> {
        let ratio = self.slope / at.denominator;
        simd::ln(s, ratio * ratio * at.numerator)
    }
}

/// e^(6 tanh(raw/6)) and its derivative.
#[inline(always)]
fn knot_slope<S: Simd>(s: S, raw: V<S>) -> (V<S>, V<S>) {
    let t = simd::tanh(s, raw * (1.0 / LOG_SLOPE_LIMIT));
    let slope = simd::exp(s, t * LOG_SLOPE_LIMIT);
    (slope, slope * (-t).mul_add(t, splat(s, 1.0)))
}

#[inline(always)]
fn forward_kernel<S: Simd>(s: S, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
    let draws_len = x.len();
    for at in (0..draws_len).step_by(LANES) {
        let input = load(s, x, at, 0.0);
        let bin = find(s, shape, draws_len, at, input, 0);
        let curve = Curve::new(s, &bin, bins_len(shape, draws_len));
        let place = curve.place(s, (input - bin.corner[0]) / curve.width);
        let [a, b] = curve.slopes;
        // h (g − ξ), where y = bottom + h g.
        let bulge = (a - curve.slope) * place.rest - (b - curve.slope) * place.xi;
        let bulge = curve.height * place.u * bulge / place.denominator;
        let deviation = (curve.height - curve.width).mul_add(place.xi, bin.corner[1] - bin.corner[0]) + bulge;
        let inside = input.abs().simd_lt(splat(s, EDGE));
        store(inside.select(input + deviation, input), x, at);
        let log_derivative = inside.select(curve.log_derivative(s, &place), splat(s, 0.0));
        store(load(s, log_det, at, 0.0) + log_derivative, log_det, at);
    }
}
crate::simd_fn!(
    /// x ← y; log_det += log dy/dx.
    pub fn forward(shape: &[f64], x: &mut [f64], log_det: &mut [f64]) = forward_kernel
);

#[inline(always)]
fn invert_kernel<S: Simd>(s: S, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
    let draws_len = x.len();
    for at in (0..draws_len).step_by(LANES) {
        let output = load(s, x, at, 0.0);
        let bin = find(s, shape, draws_len, at, output, 1);
        let curve = Curve::new(s, &bin, bins_len(shape, draws_len));
        let [a, b] = curve.slopes;
        let rise = (output - bin.corner[1]).max(splat(s, 0.0)).min(curve.height);
        // The root in [0, 1] of p ξ² + q ξ = ρ rise.
        let bent = (a + b - curve.slope * 2.0) * rise;
        let p = curve.height.mul_add(curve.slope - a, bent);
        let q = curve.height.mul_add(a, -bent);
        let constant = curve.slope * rise;
        let root = q.mul_add(q, p * constant * 4.0).max(splat(s, 0.0)).sqrt();
        // Of its two forms, the one without cancellation.
        let xi = q.simd_ge(splat(s, 0.0)).select(constant * 2.0 / (q + root), (root - q) / (p * 2.0));
        let place = curve.place(s, xi);
        let inside = output.abs().simd_lt(splat(s, EDGE));
        store(inside.select(place.xi.mul_add(curve.width, bin.corner[0]), output), x, at);
        let log_derivative = inside.select(curve.log_derivative(s, &place), splat(s, 0.0));
        store(load(s, log_det, at, 0.0) + log_derivative, log_det, at);
    }
}
crate::simd_fn!(
    /// From y back to x; log_det += log dy/dx there.
    pub fn invert(shape: &[f64], x: &mut [f64], log_det: &mut [f64]) = invert_kernel
);

#[inline(always)]
fn pullback_kernel<S: Simd>(s: S, shape: &[f64], x: &[f64], d_x: &mut [f64], d_log_det: &[f64], d_shape: &mut [f64]) {
    let draws_len = x.len();
    let bins = bins_len(shape, draws_len);
    let (zero, one) = (splat(s, 0.0), splat(s, 1.0));
    for at in (0..draws_len).step_by(LANES) {
        let input = load(s, x, at, 0.0);
        let inside = input.abs().simd_lt(splat(s, EDGE));
        let bin = find(s, shape, draws_len, at, input, 0);
        let curve = Curve::new(s, &bin, bins);
        let place = curve.place(s, (input - bin.corner[0]) / curve.width);
        let ([a, b], rho, Place { xi, rest, u, denominator, numerator }) = (curve.slopes, curve.slope, place);
        let outer = load(s, d_x, at, 0.0);
        // Outside the edges nothing depends on the shape.
        let d_y = inside.select(outer, zero);
        let d_log = inside.select(load(s, d_log_det, at, 0.0), zero);

        // The partial derivatives of g = (ρξ² + au)/D and of log dy/dx = 2 log ρ + log N − 2 log D.
        let (inverse, by_numerator) = (one / denominator, d_log / numerator);
        let by_denominator = d_log * inverse * -2.0;
        let rise = (rho * xi).mul_add(xi, a * u);
        let scaled = d_y * curve.height * inverse * inverse;
        let even = one - u * 2.0;
        let d_rho = scaled * (xi * xi * denominator - rise * even)
            + d_log * 2.0 / rho
            + by_numerator * u * 2.0
            + by_denominator * even;
        let d_a = scaled * u * (rho * rest).mul_add(rest, b * u) + by_numerator * rest * rest + by_denominator * u;
        let d_b = by_numerator * xi * xi + by_denominator * u - scaled * u * rise;
        let tilt = one - xi * 2.0;
        let d_numerator = (b * xi + rho * tilt - a * rest) * 2.0;
        let d_xi = scaled * rho * numerator + by_numerator * d_numerator + by_denominator * (a + b - rho * 2.0) * tilt;

        let narrow = one / curve.width;
        let to_input = d_xi * narrow;
        store(inside.select(to_input, outer), d_x, at);
        // The cotangents of the bin's size, and of its corner, which depends on every bin before it.
        let d_size = [-(d_rho * rho + d_xi * xi) * narrow, d_y * rise * inverse + d_rho * narrow];
        let d_corner = [-to_input, d_y];
        for side in 0..2 {
            let mean = bin.below[side].mul_add(d_corner[side], bin.share[side] * d_size[side]);
            for k in 0..bins {
                let index = splat(s, k as f64);
                let own = bin.index.simd_eq(index).select(d_size[side], zero);
                let d = index.simd_lt(bin.index).select(d_corner[side], own);
                let i = side * bins + k;
                let share = load(s, column(shape, draws_len, i), at, 0.0);
                let out = &mut d_shape[i * draws_len..(i + 1) * draws_len];
                store(share * (d - mean) * SPREAD, out, at);
            }
        }
        for knot in 1..bins {
            let left = bin.index.simd_eq(splat(s, knot as f64)).select(d_a * curve.d_slopes[0], zero);
            let right = bin.index.simd_eq(splat(s, (knot - 1) as f64)).select(d_b * curve.d_slopes[1], zero);
            let i = 2 * bins + knot - 1;
            store(left + right, &mut d_shape[i * draws_len..(i + 1) * draws_len], at);
        }
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

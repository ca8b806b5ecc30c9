//! SIMD kernels of the diagonal Gaussian.

use hyperprior_math::simd::{LANES, Simd, load, prelude::*, splat, store, sums};

#[inline(always)]
fn half_squares_kernel<S: Simd>(s: S, x: &[f64], out: &mut [f64]) {
    let draws_len = out.len();
    for at in (0..draws_len).step_by(LANES) {
        let mut sum = [splat(s, 0.0); 4];
        let columns = x.chunks_exact(4 * draws_len);
        for column in columns.remainder().chunks_exact(draws_len) {
            let x = load(s, column, at, 0.0);
            sum[0] = x.mul_add(x, sum[0]);
        }
        for four in columns {
            for j in 0..4 {
                let x = load(s, &four[j * draws_len..(j + 1) * draws_len], at, 0.0);
                sum[j] = x.mul_add(x, sum[j]);
            }
        }
        let sum = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        store(sum.mul_add(splat(s, -0.5), load(s, out, at, 0.0)), out, at);
    }
}
hyperprior_math::simd_fn!(
    /// out\[s\] −= Σ_i x\[i, s\]² / 2.
    pub(super) fn subtract_half_squares(x: &[f64], out: &mut [f64]) = half_squares_kernel
);

#[inline(always)]
fn shift_and_scale_kernel<S: Simd>(s: S, mean: &[f64], scale: &[f64], eps: &[f64], lambda: &mut [f64]) {
    let draws_len = (lambda.len() / mean.len()).max(1);
    let columns = eps.chunks_exact(draws_len).zip(lambda.chunks_exact_mut(draws_len));
    for ((mean, scale), (eps, lambda)) in mean.iter().zip(scale).zip(columns) {
        for at in (0..draws_len).step_by(LANES) {
            store(splat(s, *scale).mul_add(load(s, eps, at, 0.0), splat(s, *mean)), lambda, at);
        }
    }
}
hyperprior_math::simd_fn!(
    /// λ\[i, s\] = mean\[i\] + scale\[i\] ε\[i, s\].
    pub(super) fn shift_and_scale(mean: &[f64], scale: &[f64], eps: &[f64], lambda: &mut [f64]) = shift_and_scale_kernel
);

#[inline(always)]
fn shift_and_scale_pullback_kernel<S: Simd>(
    s: S,
    scale: &[f64],
    eps: &[f64],
    d_lambda: &[f64],
    d_mean: &mut [f64],
    d_log_scale: &mut [f64],
) {
    let draws_len = (eps.len() / scale.len()).max(1);
    let tiles = eps.chunks(LANES * draws_len).zip(d_lambda.chunks(LANES * draws_len));
    for (tile, (eps, d_lambda)) in tiles.enumerate() {
        // Eight columns at a time, so that their sums over draws become one vector.
        let (mut plain, mut weighted) = ([splat(s, 0.0); LANES], [splat(s, 0.0); LANES]);
        for j in 0..LANES {
            if (j + 1) * draws_len <= eps.len() {
                let column = j * draws_len..(j + 1) * draws_len;
                let (eps, d_lambda) = (&eps[column.clone()], &d_lambda[column]);
                let (mut a, mut b) = (splat(s, 0.0), splat(s, 0.0));
                for at in (0..draws_len).step_by(LANES) {
                    let d = load(s, d_lambda, at, 0.0);
                    a += d;
                    b = d.mul_add(load(s, eps, at, 0.0), b);
                }
                (plain[j], weighted[j]) = (a, b);
            }
        }
        let at = tile * LANES;
        store(load(s, d_mean, at, 0.0) + sums(plain), d_mean, at);
        let scale = load(s, scale, at, 0.0);
        store(sums(weighted).mul_add(scale, load(s, d_log_scale, at, 0.0)), d_log_scale, at);
    }
}
hyperprior_math::simd_fn!(
    /// Adds to the cotangents of the means and of the logarithms of the scales.
    pub(super) fn shift_and_scale_pullback(
        scale: &[f64],
        eps: &[f64],
        d_lambda: &[f64],
        d_mean: &mut [f64],
        d_log_scale: &mut [f64],
    ) = shift_and_scale_pullback_kernel
);

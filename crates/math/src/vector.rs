//! Elementary functions over slices, eight numbers at a time.

use crate::simd::{self, LANES, Simd, load, prelude::*, store};

macro_rules! map {
    ($(#[$meta:meta])* $name:ident, $kernel:ident, $lane:path) => {
        #[inline(always)]
        fn $kernel<S: Simd>(s: S, x: &[f64], out: &mut [f64]) {
            let n = x.len().min(out.len());
            let (x, out) = (&x[..n], &mut out[..n]);
            for at in (0..n).step_by(LANES) {
                store($lane(s, load(s, x, at, 1.0)), out, at);
            }
        }
        crate::simd_fn!($(#[$meta])* pub fn $name(x: &[f64], out: &mut [f64]) = $kernel);
    };
}

map!(
    /// out = eˣ, to 1e-15 relative.
    ///
    /// ```
    /// let mut y = [0.0; 2];
    /// hyperprior_math::vector::exp(&[0.0, 1.0], &mut y);
    /// assert_eq!(y[0], 1.0);
    /// assert!((y[1] - std::f64::consts::E).abs() < 1e-15);
    /// ```
    exp, exp_kernel, simd::exp
);
map!(
    /// out = ln x.
    ln, ln_kernel, simd::ln
);
map!(
    /// out = ln(1 + x).
    ln_1p, ln_1p_kernel, simd::ln_1p
);
map!(
    /// out = tanh x, to 5e-16 absolute.
    tanh, tanh_kernel, simd::tanh
);

#[inline(always)]
fn softplus_sigmoid_kernel<S: Simd>(s: S, x: &[f64], softplus: &mut [f64], sigmoid: &mut [f64]) {
    for at in (0..x.len()).step_by(LANES) {
        let (a, b) = simd::softplus_sigmoid(s, load(s, x, at, 1.0));
        store(a, softplus, at);
        store(b, sigmoid, at);
    }
}
crate::simd_fn!(
    /// softplus = ln(1 + eˣ) and sigmoid = its derivative.
    pub fn softplus_sigmoid(x: &[f64], softplus: &mut [f64], sigmoid: &mut [f64]) = softplus_sigmoid_kernel
);

#[inline(always)]
fn add_scaled_kernel<S: Simd>(s: S, a: f64, x: &[f64], out: &mut [f64]) {
    let n = x.len().min(out.len());
    let (x, out) = (&x[..n], &mut out[..n]);
    let a = simd::splat(s, a);
    for at in (0..n).step_by(LANES) {
        store(a.mul_add(load(s, x, at, 0.0), load(s, out, at, 0.0)), out, at);
    }
}
crate::simd_fn!(
    /// out += a · x.
    pub fn add_scaled(a: f64, x: &[f64], out: &mut [f64]) = add_scaled_kernel
);

#[inline(always)]
fn dot_kernel<S: Simd>(s: S, x: &[f64], y: &[f64]) -> f64 {
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    let mut sum = [simd::splat(s, 0.0); 4];
    for (turn, at) in (0..n).step_by(LANES).enumerate() {
        sum[turn & 3] = load(s, x, at, 0.0).mul_add(load(s, y, at, 0.0), sum[turn & 3]);
    }
    ((sum[0] + sum[1]) + (sum[2] + sum[3])).reduce_sum()
}
crate::simd_fn!(
    /// x · y.
    pub fn dot(x: &[f64], y: &[f64]) -> f64 = dot_kernel
);

#[inline(always)]
fn log_sum_exp_columns_kernel<S: Simd>(s: S, x: &[f64], out: &mut [f64]) {
    let draws_len = out.len();
    for at in (0..draws_len).step_by(LANES) {
        let mut top = simd::splat(s, f64::NEG_INFINITY);
        for column in x.chunks_exact(draws_len) {
            top = top.max(load(s, column, at, 0.0));
        }
        // If every term is −∞, or one is +∞, the maximum is the answer; the sum then only shows whether one is NaN.
        let infinity = simd::splat(s, f64::INFINITY);
        let finite = top.simd_gt(-infinity) & top.simd_lt(infinity);
        let shift = finite.select(top, simd::splat(s, 0.0));
        let mut sum = simd::splat(s, 0.0);
        for column in x.chunks_exact(draws_len) {
            sum += simd::exp(s, load(s, column, at, 0.0) - shift);
        }
        store(finite.select(shift + simd::ln(s, sum), top + sum), out, at);
    }
}
crate::simd_fn!(
    /// out\[s\] = log Σ_v exp x\[v, s\] over the columns of `x`, each `out.len()` long; −∞ where every term is, NaN where any is.
    pub fn log_sum_exp_columns(x: &[f64], out: &mut [f64]) = log_sum_exp_columns_kernel
);

#[inline(always)]
fn bernoulli_kernel<S: Simd>(s: S, logit: &[f64], z: &[f64], out: &mut [f64]) {
    let n = out.len();
    for at in (0..n).step_by(LANES) {
        let (logit, z) = (load(s, &logit[..n], at, 0.0), load(s, &z[..n], at, 0.0));
        let (softplus, _) = simd::softplus_sigmoid(s, logit);
        let value = z.mul_add(logit, -softplus);
        let possible = z.simd_eq(simd::splat(s, 0.0)) | z.simd_eq(simd::splat(s, 1.0));
        store(possible.select(value, simd::splat(s, f64::NEG_INFINITY)), out, at);
    }
}
crate::simd_fn!(
    /// out = z·logit − ln(1 + e^logit), the log probability of z = 0 or 1; −∞ for any other z.
    pub fn log_bernoulli(logit: &[f64], z: &[f64], out: &mut [f64]) = bernoulli_kernel
);

#[inline(always)]
fn scale_exp_kernel<S: Simd>(s: S, x: &mut [f64], shift: &[f64]) {
    let draws_len = shift.len();
    for column in x.chunks_exact_mut(draws_len.max(1)) {
        for at in (0..draws_len).step_by(LANES) {
            store(simd::exp(s, load(s, column, at, 0.0) - load(s, shift, at, 0.0)), column, at);
        }
    }
}
crate::simd_fn!(
    /// x\[v, s\] ← exp(x\[v, s\] − shift\[s\]) over the columns of `x`, each `shift.len()` long.
    pub fn exp_shifted_columns(x: &mut [f64], shift: &[f64]) = scale_exp_kernel
);

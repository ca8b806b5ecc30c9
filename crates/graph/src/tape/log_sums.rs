//! Logarithms of sums of exponentials and of products, and their derivatives.

use super::row::{Row, TILE, get, put};
use crate::operation::log_sum;
use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V, exp, ln, splat};

/// The largest of some rows.
#[inline(always)]
fn largest<S: Simd, const N: usize>(s: S, operands: &[u32], before: &[Row]) -> [V<S>; N] {
    let mut top = [splat(s, f64::NEG_INFINITY); N];
    for o in operands {
        let row = &before[*o as usize];
        for v in 0..N {
            let x = get(s, row, v);
            // NaN must win, or an undefined term would go unnoticed.
            top[v] = x.simd_le(top[v]).select(top[v], x);
        }
    }
    top
}

/// The logarithm of a sum of exponentials, from the sum in units of the largest.
#[inline(always)]
fn log_total<S: Simd>(s: S, top: V<S>, sum: V<S>) -> V<S> {
    let lowest = splat(s, f64::NEG_INFINITY);
    // If all terms are −∞, the differences from the largest are NaN.
    top.simd_eq(lowest).select(lowest, top + ln(s, sum))
}

#[inline(always)]
pub(super) fn log_sum_exp<S: Simd, const N: usize>(
    s: S,
    len: usize,
    operands: &[u32],
    before: &[Row],
    own: &mut [Row],
) {
    for (out, operands) in own.iter_mut().zip(operands.chunks_exact(len)) {
        let top = largest::<S, N>(s, operands, before);
        let mut sums = [splat(s, 0.0); N];
        for o in operands {
            let row = &before[*o as usize];
            for v in 0..N {
                sums[v] += exp(s, get(s, row, v) - top[v]);
            }
        }
        for v in 0..N {
            put(log_total(s, top[v], sums[v]), out, v);
        }
    }
}

/// The same, with the terms replaced by their shares of the sum: differentiating needs these, and no exponential again.
#[inline(always)]
pub(super) fn log_sum_exp_with_shares<S: Simd, const N: usize>(
    s: S,
    len: usize,
    operands: &[u32],
    before: &mut [Row],
    own: &mut [Row],
) {
    for (out, operands) in own.iter_mut().zip(operands.chunks_exact(len)) {
        let top = largest::<S, N>(s, operands, before);
        let mut sums = [splat(s, 0.0); N];
        for o in operands {
            let row = &mut before[*o as usize];
            for v in 0..N {
                let e = exp(s, get(s, row, v) - top[v]);
                sums[v] += e;
                put(e, row, v);
            }
        }
        let mut inverse = [splat(s, 0.0); N];
        for v in 0..N {
            put(log_total(s, top[v], sums[v]), out, v);
            inverse[v] = splat(s, 1.0) / sums[v];
        }
        for o in operands {
            let row = &mut before[*o as usize];
            for v in 0..N {
                put(get(s, row, v) * inverse[v], row, v);
            }
        }
    }
}

/// Sums of products outside this range may have lost terms that are too small, or be too large.
const SAFE: (f64, f64) = (1e-200, 1e200);
/// Exponentials below this have lost digits, or all.
const LOST: f64 = 1e-290;

/// Logarithms of sums of products, of which the first factors are the exponentials of the same rows for all. `further` gets these
/// exponentials, in units of the largest, and the inverses of the sums; NaN where the sum had to be computed in another way.
#[inline(always)]
pub(super) fn log_product<S: Simd, const N: usize>(
    s: S,
    len: usize,
    operands: &[u32],
    before: &[Row],
    own: &mut [Row],
    further: &mut [Row],
) {
    let (shared, others) = operands.split_at(len);
    let (exponentials, inverses) = further.split_at_mut(len);
    let top = largest::<S, N>(s, shared, before);
    for (o, e) in shared.iter().zip(&mut *exponentials) {
        for v in 0..N {
            put(exp(s, get(s, &before[*o as usize], v) - top[v]), e, v);
        }
    }
    for ((out, inverse), own) in own.iter_mut().zip(inverses).zip(others.chunks_exact(2 * len)) {
        let (logs, factors) = own.split_at(len);
        let mut sums = [splat(s, 0.0); N];
        let mut largest = [splat(s, 0.0); N];
        for (e, o) in exponentials.iter().zip(factors) {
            for v in 0..N {
                let factor = get(s, &before[*o as usize], v);
                sums[v] = get(s, e, v).mul_add(factor, sums[v]);
                largest[v] = largest[v].max(factor);
            }
        }
        let mut is_safe = true;
        for v in 0..N {
            // An exponential that is too small for a number may have met the largest factor.
            let least = (largest[v] * LOST).max(splat(s, SAFE.0));
            let safe = sums[v].simd_gt(least) & sums[v].simd_lt(splat(s, SAFE.1));
            is_safe &= safe.all_true();
            put(top[v] + ln(s, sums[v]), out, v);
            put(safe.select(splat(s, 1.0) / sums[v], splat(s, f64::NAN)), inverse, v);
        }
        if !is_safe {
            add_logs(shared, logs, before, inverse, out);
        }
    }
}

/// The same by adding logarithms, where the inverse of the sum is NaN.
#[cold]
fn add_logs(shared: &[u32], logs: &[u32], before: &[Row], inverse: &Row, out: &mut Row) {
    for i in (0..TILE).filter(|i| inverse[*i].is_nan()) {
        let terms: Vec<f64> =
            shared.iter().zip(logs).map(|(a, b)| before[*a as usize][i] + before[*b as usize][i]).collect();
        // The largest of the terms does not know of one that is undefined.
        out[i] = if terms.iter().any(|x| x.is_nan()) { f64::NAN } else { log_sum(&terms) };
    }
}

/// Logarithms of sums of products: each term's share of its sum goes to the logarithms of both factors.
#[inline(always)]
pub(super) fn log_product_slopes<S: Simd, const N: usize>(
    s: S,
    len: usize,
    operands: &[u32],
    (values, values_own, further): (&[Row], &[Row], &[Row]),
    own: &[Row],
    before: &mut [Row],
) {
    let (shared, others) = operands.split_at(len);
    let (exponentials, inverses) = further.split_at(len);
    for (((d, total), inverse), own) in own.iter().zip(values_own).zip(inverses).zip(others.chunks_exact(2 * len)) {
        let (logs, factors) = own.split_at(len);
        let is_safe = !inverse[..N * LANES].iter().any(|x| x.is_nan());
        for ((a, b), (e, factor)) in shared.iter().zip(logs).zip(exponentials.iter().zip(factors)) {
            let (a, b) = (*a as usize, *b as usize);
            if !is_safe {
                add_shares(&values[a], &values[b], total, d, &mut before[a]);
                add_shares(&values[a], &values[b], total, d, &mut before[b]);
                continue;
            }
            for v in 0..N {
                let share = get(s, e, v) * get(s, &values[*factor as usize], v) * get(s, inverse, v);
                let d = get(s, d, v);
                put(d.mul_add(share, get(s, &before[a], v)), &mut before[a], v);
                put(d.mul_add(share, get(s, &before[b], v)), &mut before[b], v);
            }
        }
    }
}

/// The same from logarithms.
#[cold]
fn add_shares(a: &Row, b: &Row, total: &Row, d: &Row, to: &mut Row) {
    for i in (0..TILE).filter(|i| d[*i] != 0.0) {
        to[i] += d[i] * (a[i] + b[i] - total[i]).exp();
    }
}

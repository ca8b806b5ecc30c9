//! The chain applied to a batch.

use super::layers::{Planar, bends_kernel, groups};
use crate::simd::{self, LANES, Simd, V, load, prelude::*, splat, store};

#[inline(always)]
fn chain_forward_kernel<S: Simd>(
    s: S,
    flow: Planar,
    parameters: &[f64],
    draws_len: usize,
    x: &mut [f64],
    log_det: &mut [f64],
    tanh: &mut [f64],
) {
    for layers in groups(flow.layers_len) {
        let bends = bends_kernel(s, flow, parameters, layers.clone());
        for at in (0..draws_len).step_by(LANES) {
            let mut w_x = weigh(s, flow.layer(parameters, layers.start).1, x, draws_len, at);
            let mut total = load(s, log_det, at, 0.0);
            for (l, bend) in layers.clone().zip(bends) {
                let (u, w, b) = flow.layer(parameters, l);
                let t = simd::tanh(s, w_x + b);
                let det = (splat(s, 1.0) - t * t).mul_add(splat(s, bend.w_uhat), splat(s, 1.0));
                total += simd::ln(s, det);
                store(t, &mut tanh[l * draws_len..(l + 1) * draws_len], at);
                // The last layer of a group does not use the next layer's w·x.
                let next = flow.layer(parameters, (l + 1).min(layers.end - 1)).1;
                w_x = advance(s, [u, w, next], [t, t * bend.bend], x, draws_len, at);
            }
            store(total, log_det, at);
        }
    }
}
crate::simd_fn!(
    pub(super) fn chain_forward(
        flow: Planar,
        parameters: &[f64],
        draws_len: usize,
        x: &mut [f64],
        log_det: &mut [f64],
        tanh: &mut [f64],
    ) = chain_forward_kernel
);

/// w·x for the eight draws from `at`.
#[inline(always)]
fn weigh<S: Simd>(s: S, w: &[f64], x: &[f64], draws_len: usize, at: usize) -> V<S> {
    let mut sum = [splat(s, 0.0); 4];
    let (mut w, mut x) = (w, x);
    while let Some((four, rest)) = w.split_first_chunk::<4>() {
        let (columns, others) = x.split_at(4 * draws_len);
        for j in 0..4 {
            sum[j] = splat(s, four[j]).mul_add(load(s, &columns[j * draws_len..(j + 1) * draws_len], at, 0.0), sum[j]);
        }
        (w, x) = (rest, others);
    }
    for (w, column) in w.iter().zip(x.chunks_exact(draws_len)) {
        sum[0] = splat(s, *w).mul_add(load(s, column, at, 0.0), sum[0]);
    }
    (sum[0] + sum[1]) + (sum[2] + sum[3])
}

/// x ← x + u t + w t' for the eight draws from `at`, in the same pass as next·x.
#[inline(always)]
fn advance<S: Simd>(
    s: S,
    [u, w, next]: [&[f64]; 3],
    [t, bent]: [V<S>; 2],
    x: &mut [f64],
    draws_len: usize,
    at: usize,
) -> V<S> {
    let mut sum = [splat(s, 0.0); 4];
    let ((u4, u1), (w4, w1), (next4, next1)) = (u.as_chunks::<4>(), w.as_chunks::<4>(), next.as_chunks::<4>());
    let (x4, x1) = x.split_at_mut(4 * draws_len * u4.len());
    for (((u, w), next), columns) in u4.iter().zip(w4).zip(next4).zip(x4.chunks_exact_mut(4 * draws_len)) {
        for j in 0..4 {
            let column = &mut columns[j * draws_len..(j + 1) * draws_len];
            let y = splat(s, w[j]).mul_add(bent, splat(s, u[j]).mul_add(t, load(s, column, at, 0.0)));
            store(y, column, at);
            sum[j] = splat(s, next[j]).mul_add(y, sum[j]);
        }
    }
    for (((u, w), next), column) in u1.iter().zip(w1).zip(next1).zip(x1.chunks_exact_mut(draws_len)) {
        let y = splat(s, *w).mul_add(bent, splat(s, *u).mul_add(t, load(s, column, at, 0.0)));
        store(y, column, at);
        sum[0] = splat(s, *next).mul_add(y, sum[0]);
    }
    (sum[0] + sum[1]) + (sum[2] + sum[3])
}

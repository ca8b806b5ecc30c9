//! The pullback of the chain.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use super::layers::{Bend, Planar, bends_kernel, groups};
use crate::simd::{LANES, Simd, V, load, prelude::*, splat, store, sums, transpose};

/// Eight draws of eight neighbouring numbers, a row per draw: in the pullback most sums run over draws, so the numbers go
/// into lanes.
type Tile = [[f64; LANES]; LANES];

#[inline(always)]
fn chain_pullback_kernel<S: Simd>(
    s: S,
    flow: Planar,
    parameters: &[f64],
    x: &mut [f64],
    d_x: &mut [f64],
    d_log_det: &[f64],
    tanh: &[f64],
    d_parameters: &mut [f64],
    work: &mut [f64],
) {
    let (n, draws_len) = (flow.len, d_log_det.len());
    let tiles_len = n.div_ceil(LANES);
    let skip = work.as_ptr().align_offset(size_of::<[f64; LANES]>()).min(LANES);
    let (vectors, _) = work[skip..].as_chunks_mut::<LANES>();
    let (tiles, rows) = vectors.split_at_mut(2 * tiles_len * LANES);
    let (inputs, cotangents) = tiles.as_chunks_mut::<LANES>().0.split_at_mut(tiles_len);
    let (d_u_hat, d_w) = rows[..2 * tiles_len].split_at_mut(tiles_len);
    for at in (0..draws_len).step_by(LANES) {
        read_tiles(s, x, draws_len, at, inputs);
        read_tiles(s, d_x, draws_len, at, cotangents);
        for layers in groups(flow.layers_len).rev() {
            let bends = bends_kernel(s, flow, parameters, layers.clone());
            let last = layers.end - 1;
            let mut d_tanh = weigh_tiles(s, flow.layer(parameters, last), bends[last - layers.start], cotangents);
            for l in layers.clone().rev() {
                let (layer, bend) = (flow.layer(parameters, l), bends[l - layers.start]);
                let t = load(s, &tanh[l * draws_len..(l + 1) * draws_len], at, 0.0);
                let slope = splat(s, 1.0) - t * t;
                let c = load(s, d_log_det, at, 0.0) / slope.mul_add(splat(s, bend.w_uhat), splat(s, 1.0));
                let d_inner = slope * (t * c).mul_add(splat(s, -2.0 * bend.w_uhat), d_tanh);
                // The first layer of a group does not use the cotangent of the layer below.
                let below = l.max(layers.start + 1) - 1;
                let below = (flow.layer(parameters, below), bends[below - layers.start]);
                let d_bend;
                (d_tanh, d_bend) = retreat(s, (layer, bend), below, [t, d_inner], inputs, cotangents, d_u_hat, d_w);
                let d_layer = &mut d_parameters[l * flow.layer_len()..(l + 1) * flow.layer_len()];
                d_layer[2 * n] += d_inner.reduce_sum();
                let d_w_uhat = (slope * c).reduce_sum();
                layer_pullback(s, layer, bend, [d_w_uhat, d_bend], d_u_hat, d_w, d_layer);
            }
        }
        write_tiles(s, inputs, draws_len, at, x);
        write_tiles(s, cotangents, draws_len, at, d_x);
    }
}
crate::simd_fn!(
    pub(super) fn chain_pullback(
        flow: Planar,
        parameters: &[f64],
        x: &mut [f64],
        d_x: &mut [f64],
        d_log_det: &[f64],
        tanh: &[f64],
        d_parameters: &mut [f64],
        work: &mut [f64],
    ) = chain_pullback_kernel
);

/// The eight draws from `at` as tiles, with zeros beyond the last draw and the last number.
#[inline(always)]
fn read_tiles<S: Simd>(s: S, x: &[f64], draws_len: usize, at: usize, tiles: &mut [Tile]) {
    for (columns, tile) in x.chunks(LANES * draws_len).zip(tiles) {
        let mut v = [splat(s, 0.0); LANES];
        for j in 0..LANES {
            if (j + 1) * draws_len <= columns.len() {
                v[j] = load(s, &columns[j * draws_len..(j + 1) * draws_len], at, 0.0);
            }
        }
        let v = transpose(v);
        for j in 0..LANES {
            v[j].store_slice(&mut tile[j]);
        }
    }
}

/// Writes the tiles back to their columns.
#[inline(always)]
fn write_tiles<S: Simd>(s: S, tiles: &[Tile], draws_len: usize, at: usize, x: &mut [f64]) {
    for (columns, tile) in x.chunks_mut(LANES * draws_len).zip(tiles) {
        let mut v = [splat(s, 0.0); LANES];
        for j in 0..LANES {
            v[j] = V::from_slice(s, &tile[j]);
        }
        let v = transpose(v);
        if columns.len() == LANES * draws_len && at + LANES <= draws_len {
            for j in 0..LANES {
                v[j].store_slice(&mut columns[j * draws_len + at..][..LANES]);
            }
            continue;
        }
        for j in 0..LANES {
            if (j + 1) * draws_len <= columns.len() {
                store(v[j], &mut columns[j * draws_len..(j + 1) * draws_len], at);
            }
        }
    }
}

/// w and û of eight neighbouring numbers.
#[inline(always)]
fn directions<S: Simd>(s: S, (u, w, _): (&[f64], &[f64], f64), bend: Bend, at: usize) -> (V<S>, V<S>) {
    let w = load(s, w, at, 0.0);
    (w, w.mul_add(splat(s, bend.bend), load(s, u, at, 0.0)))
}

/// û·d_x for eight draws.
#[inline(always)]
fn weigh_tiles<S: Simd>(s: S, layer: (&[f64], &[f64], f64), bend: Bend, d_x: &[Tile]) -> V<S> {
    let mut sum = [splat(s, 0.0); LANES];
    for (i, d_x) in d_x.iter().enumerate() {
        let (_, u_hat) = directions(s, layer, bend, i * LANES);
        for j in 0..LANES {
            sum[j] = u_hat.mul_add(V::from_slice(s, &d_x[j]), sum[j]);
        }
    }
    sums(sum)
}

/// One layer backwards, x and d_x in one pass: fills the cotangents of û and of w (through w·x alone). Returns the
/// cotangent of the tanh of the layer below, below·d_x, and d_û·w.
#[inline(always)]
fn retreat<S: Simd>(
    s: S,
    (layer, bend): ((&[f64], &[f64], f64), Bend),
    (below, below_bend): ((&[f64], &[f64], f64), Bend),
    [t, d_inner]: [V<S>; 2],
    x: &mut [Tile],
    d_x: &mut [Tile],
    d_u_hat: &mut [[f64; LANES]],
    d_w: &mut [[f64; LANES]],
) -> (V<S>, f64) {
    let mut sum = [splat(s, 0.0); LANES];
    let mut along_w = splat(s, 0.0);
    for (i, (((x, d_x), d_u_hat), d_w)) in x.iter_mut().zip(d_x).zip(d_u_hat).zip(d_w).enumerate() {
        let (w, u_hat) = directions(s, layer, bend, i * LANES);
        let (_, below) = directions(s, below, below_bend, i * LANES);
        let (mut to_u, mut to_w) = (splat(s, 0.0), splat(s, 0.0));
        let back = -u_hat;
        for j in 0..LANES {
            let (t, d) = (splat(s, t[j]), splat(s, d_inner[j]));
            let (y, g) = (V::from_slice(s, &x[j]), V::from_slice(s, &d_x[j]));
            let input = back.mul_add(t, y);
            input.store_slice(&mut x[j]);
            to_w = d.mul_add(input, to_w);
            to_u = t.mul_add(g, to_u);
            let g = d.mul_add(w, g);
            g.store_slice(&mut d_x[j]);
            sum[j] = below.mul_add(g, sum[j]);
        }
        along_w = to_u.mul_add(w, along_w);
        to_u.store_slice(d_u_hat);
        to_w.store_slice(d_w);
    }
    (sums(sum), along_w.reduce_sum())
}

/// d_layer += the pullback of û = u + bend·w and of w·û, along u and w.
#[inline(always)]
fn layer_pullback<S: Simd>(
    s: S,
    (u, w, _): (&[f64], &[f64], f64),
    bend: Bend,
    [d_w_uhat, along_w]: [f64; 2],
    d_u_hat: &[[f64; LANES]],
    d_w: &[[f64; LANES]],
    d_layer: &mut [f64],
) {
    let flat = bend.w_w == 0.0;
    let d_bend = if flat { 0.0 } else { along_w / bend.w_w };
    let d_w_u = splat(s, (d_w_uhat + d_bend) * bend.slope - d_bend);
    let d_w_w = splat(s, -2.0 * d_bend * bend.bend);
    // If w = 0 only u matters.
    let to_w_share = if flat { 0.0 } else { 1.0 };
    let (d_u_out, rest) = d_layer.split_at_mut(u.len());
    let d_w_out = &mut rest[..u.len()];
    for (i, (d_u_hat, d_w)) in d_u_hat.iter().zip(d_w).enumerate() {
        let at = i * LANES;
        let (u, w, d_u_hat) = (load(s, u, at, 0.0), load(s, w, at, 0.0), V::from_slice(s, d_u_hat));
        store(load(s, d_u_out, at, 0.0) + w.mul_add(d_w_u, d_u_hat), d_u_out, at);
        let to_w = d_u_hat.mul_add(splat(s, bend.bend), V::from_slice(s, d_w));
        let to_w = u.mul_add(d_w_u, w.mul_add(d_w_w, to_w));
        store(to_w.mul_add(splat(s, to_w_share), load(s, d_w_out, at, 0.0)), d_w_out, at);
    }
}

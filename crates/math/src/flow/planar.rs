//! Planar flows: y = x + û tanh(w·x + b), layer after layer, with û bent so that every layer is invertible.
//!
//! û = u + (softplus(w·u) − 1 − w·u) w / |w|², so that w·û = softplus(w·u) − 1 > −1, and
//! log|det ∂y/∂x| = log(1 + (1 − tanh²) w·û).
//!
//! One map serves both of the paper's flows. Run from λ₀ to λ it is the *flow* of a variational prior,
//! log q(λ) = log q(λ₀) − Σ log|det|. Run from λ to λ₀ it is the *inverse flow* of a recursive approximation, whose
//! inverse functions have the parametric form: log r(λ) = log r(λ₀) + Σ log|det|.
//!
//! A layer costs O(d) per draw. The pullback is reversible: x is recovered from y, so no activations are kept but one
//! number per layer and draw.

use crate::batch::Batch;
use crate::random::Stream;
use crate::scratch::Scratch;
use crate::simd::{self, LANES, Simd, V, load, prelude::*, splat, store, sums, transpose};
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// A chain of planar layers over `len` numbers; layer by layer its parameters are u (`len`), w (`len`) and b.
///
/// A chain of no layers is the identity.
///
/// ```
/// use hyperprior_math::{batch::Batch, flow::Planar};
/// let flow = Planar { len: 2, layers_len: 1 };
/// let parameters = [1.0, -2.0, 0.5, 1.5, 0.1];
/// let mut x = Batch::from_columns(vec![0.3, -0.7], 1);
/// let (mut log_det, mut tanh) = ([0.0], [0.0]);
/// flow.forward(&parameters, &mut x, &mut log_det, &mut tanh);
/// assert!((log_det[0] + 0.723506).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planar {
    /// How many numbers are transformed.
    pub len: usize,
    /// How many layers there are.
    pub layers_len: usize,
}

/// What a layer's parameters say about every draw: w·u with the slope of its softplus, w·û, the bend (û = u + bend·w) and
/// |w|².
#[derive(Clone, Copy, Debug, Default)]
struct Bend {
    slope: f64,
    w_uhat: f64,
    bend: f64,
    w_w: f64,
}

/// The bends of up to eight layers, whose softplus is taken at once.
#[inline(always)]
fn bends_kernel<S: Simd>(s: S, flow: Planar, parameters: &[f64], layers: Range<usize>) -> [Bend; LANES] {
    let (mut u_sums, mut w_sums) = ([splat(s, 0.0); LANES], [splat(s, 0.0); LANES]);
    let (mut w_u, mut w_w) = ([0.0; LANES], [0.0; LANES]);
    for (i, l) in layers.enumerate() {
        let (u, w, _) = flow.layer(parameters, l);
        let (mut with_u, mut with_w) = ([splat(s, 0.0); 2], [splat(s, 0.0); 2]);
        let ((u2, u1), (w2, w1)) = (u.as_chunks::<{ 2 * LANES }>(), w.as_chunks::<{ 2 * LANES }>());
        for (u, w) in u2.iter().zip(w2) {
            for j in 0..2 {
                let (u, w) = (load(s, u, j * LANES, 0.0), load(s, w, j * LANES, 0.0));
                with_u[j] = u.mul_add(w, with_u[j]);
                with_w[j] = w.mul_add(w, with_w[j]);
            }
        }
        u_sums[i] = with_u[0] + with_u[1];
        w_sums[i] = with_w[0] + with_w[1];
        for (u, w) in u1.iter().zip(w1) {
            w_u[i] += u * w;
            w_w[i] += w * w;
        }
    }
    let total = sums(u_sums) + load(s, &w_u, 0, 0.0);
    let (softplus, slope) = simd::softplus_sigmoid(s, total);
    store(total, &mut w_u, 0);
    store(sums(w_sums) + load(s, &w_w, 0, 0.0), &mut w_w, 0);
    std::array::from_fn(
        #[inline(always)]
        |i| {
            if w_w[i] < 1e-280 {
                // Without a direction the layer is the shift x + u tanh b, whose determinant is 1.
                return Bend::default();
            }
            let w_uhat = softplus[i] - 1.0;
            Bend { slope: slope[i], w_uhat, bend: (w_uhat - w_u[i]) / w_w[i], w_w: w_w[i] }
        },
    )
}
crate::simd_fn!(
    fn bends(flow: Planar, parameters: &[f64], layers: Range<usize>) -> [Bend; LANES] = bends_kernel
);

impl Planar {
    /// How many parameters the chain has.
    pub fn parameters_len(&self) -> usize {
        self.layers_len * self.layer_len()
    }

    fn layer_len(&self) -> usize {
        2 * self.len + 1
    }

    fn layer<'a>(&self, parameters: &'a [f64], l: usize) -> (&'a [f64], &'a [f64], f64) {
        let layer = &parameters[l * self.layer_len()..(l + 1) * self.layer_len()];
        (&layer[..self.len], &layer[self.len..2 * self.len], layer[2 * self.len])
    }

    /// Parameters of the identity map: û = 0 in every layer, in a random direction w of length about `size`, so that a fit
    /// can leave it.
    pub fn identity(&self, size: f64, rng: &mut Stream, parameters: &mut [f64]) {
        // û = 0 where softplus(w·u) = 1.
        let w_u = (std::f64::consts::E - 1.0).ln();
        let scale = size / (self.len as f64).sqrt();
        for layer in parameters.chunks_exact_mut(self.layer_len()) {
            let (u, rest) = layer.split_at_mut(self.len);
            let (w, b) = rest.split_at_mut(self.len);
            for w in w.iter_mut() {
                let z: f64 = StandardNormal.sample(rng);
                *w = scale * z;
            }
            let w_w = crate::vector::dot(w, w);
            for (u, w) in u.iter_mut().zip(w.iter()) {
                *u = if w_w > 0.0 { w_u * w / w_w } else { 0.0 };
            }
            b[0] = 0.0;
        }
    }

    /// x ← the chain applied to x; log_det\[s\] += Σ log|det|; tanh\[l · S + s\] is kept for [`pullback`](Self::pullback).
    pub fn forward(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], tanh: &mut [f64]) {
        let draws_len = x.draws_len();
        chain_forward(*self, parameters, draws_len, x.as_mut_slice(), log_det, tanh);
    }

    /// Goes back through the chain: `x` holds the output and becomes the input, `d_x` holds the cotangent of the output and
    /// becomes that of the input, and `d_parameters` is added to. `d_log_det` is the cotangent of the log-determinant.
    pub fn pullback(
        &self,
        parameters: &[f64],
        x: &mut Batch,
        d_x: &mut Batch,
        d_log_det: &[f64],
        tanh: &[f64],
        d_parameters: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let tiles_len = self.len.div_ceil(LANES);
        // A little more than is needed, so that the tiles can start where a cache line does.
        let mut work = scratch.take(2 * tiles_len * LANES * (LANES + 1) + LANES);
        let (x, d_x) = (x.as_mut_slice(), d_x.as_mut_slice());
        chain_pullback(*self, parameters, x, d_x, d_log_det, tanh, d_parameters, &mut work);
        scratch.give(work);
    }

    /// Undoes the chain: `x` holds the output and becomes the input; log_det\[s\] += Σ log|det| of the chain there.
    ///
    /// Each layer asks for one root per draw, of a + w·û tanh(a + b) = w·y, which is increasing in a.
    pub fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64]) {
        let draws_len = x.draws_len();
        for l in (0..self.layers_len).rev() {
            let (u, w, b) = self.layer(parameters, l);
            let bend = bends(*self, parameters, l..l + 1)[0];
            for s in 0..draws_len {
                let w_y: f64 = (0..self.len).map(|i| w[i] * x.get(i, s)).sum();
                let t = (solve_layer(bend.w_uhat, b, w_y) + b).tanh();
                for i in 0..self.len {
                    x.set(i, s, x.get(i, s) - (u[i] + bend.bend * w[i]) * t);
                }
                log_det[s] += (bend.w_uhat * (1.0 - t * t)).ln_1p();
            }
        }
    }
}

/// The root a of a + c tanh(a + b) = y, c > −1: Newton's steps, kept inside a bracket that shrinks.
fn solve_layer(c: f64, b: f64, y: f64) -> f64 {
    let (mut low, mut high) = (y - c.abs(), y + c.abs());
    let mut a = y;
    for _ in 0..200 {
        let t = (a + b).tanh();
        let excess = a + c * t - y;
        if excess > 0.0 {
            high = high.min(a);
        } else {
            low = low.max(a);
        }
        let step = excess / (1.0 + c * (1.0 - t * t));
        let next = a - step;
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - a).abs() <= 1e-15 * (1.0 + a.abs()) {
            return next;
        }
        a = next;
    }
    a
}

/// The layers in groups of up to eight.
fn groups(layers_len: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    (0..layers_len.div_ceil(LANES)).map(move |g| g * LANES..(g * LANES + LANES).min(layers_len))
}

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
                // The last layer of a group has no use for what the next one would see.
                let next = flow.layer(parameters, (l + 1).min(layers.end - 1)).1;
                w_x = advance(s, [u, w, next], [t, t * bend.bend], x, draws_len, at);
            }
            store(total, log_det, at);
        }
    }
}
crate::simd_fn!(
    fn chain_forward(
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

/// Eight draws of eight neighbouring numbers, a row per draw: on the way back most sums run over draws, so here it is the
/// numbers that lie in lanes.
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
                // The first layer of a group has no use for what the one below would see.
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
    fn chain_pullback(
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

/// Puts the tiles back in their columns.
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
    // Without a direction only u counts.
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

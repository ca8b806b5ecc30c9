//! Planar layers over tiles: the map, log-determinant and pullback of [`flow::Planar`](crate::flow::Planar) in single
//! precision, for one posterior and eight draws.
//!
//! The functions are kernels, to be called inside the caller's [`simd_fn!`](crate::simd_fn).

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use super::simd::{self, V, load, load_draws, splat, sums};
use super::{DRAWS, LANES, Lanes, Tile, lanes_len, read_row, write_row};
use crate::simd::fearless_simd::{Simd, prelude::*};

/// A chain of planar layers over `len` latents. Its parameters are, layer by layer, the rows u and w, and then all b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planar {
    /// How many numbers are transformed.
    pub len: usize,
    /// How many layers there are.
    pub layers_len: usize,
}

/// The part of a layer shared by all draws: softplus(w·u) = 1 + w·û with its slope, the bend (û = u + bend·w) and |w|².
///
/// The determinant 1 + (1 − t²) w·û is written t² + (1 − t²) softplus, which is positive however near −1 w·û is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bend {
    softplus: f32,
    slope: f32,
    bend: f32,
    w_w: f32,
}

impl Default for Bend {
    /// If w = 0 the layer is the shift x + u tanh b, whose determinant is 1.
    fn default() -> Self {
        Self { softplus: 1.0, slope: 0.0, bend: 0.0, w_w: 0.0 }
    }
}

/// Whether a gradient replaces the stored value or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// It replaces it.
    Replace,
    /// It is added.
    Add,
}

impl Into {
    /// Stores `v`.
    #[inline(always)]
    pub fn store<S: Simd>(self, s: S, v: V<S>, to: &mut Lanes) {
        let v = if self == Self::Add { v + load(s, &to.0) } else { v };
        v.store_slice(&mut to.0);
    }
}

impl Planar {
    /// How many [`Lanes`] the parameters take.
    pub const fn parameters_len(self) -> usize {
        2 * self.layers_len * self.row_len() + lanes_len(self.layers_len)
    }

    const fn row_len(self) -> usize {
        lanes_len(self.len)
    }

    fn layer(self, parameters: &[Lanes], l: usize) -> (&[Lanes], &[Lanes]) {
        parameters[2 * l * self.row_len()..2 * (l + 1) * self.row_len()].split_at(self.row_len())
    }

    fn shift(self, parameters: &[Lanes], l: usize) -> f32 {
        parameters[2 * self.layers_len * self.row_len() + l / LANES].0[l % LANES]
    }

    /// Reads parameters in the layout of [`flow::Planar`](crate::flow::Planar).
    pub fn read(self, numbers: &[f64], parameters: &mut [Lanes]) {
        let (rows, shifts) = parameters.split_at_mut(2 * self.layers_len * self.row_len());
        shifts.fill(Lanes::default());
        for l in 0..self.layers_len {
            let layer = &numbers[l * (2 * self.len + 1)..][..2 * self.len + 1];
            let (u, w) = rows[2 * l * self.row_len()..2 * (l + 1) * self.row_len()].split_at_mut(self.row_len());
            read_row(&layer[..self.len], u);
            read_row(&layer[self.len..2 * self.len], w);
            shifts[l / LANES].0[l % LANES] = layer[2 * self.len] as f32;
        }
    }

    /// Writes parameters in that layout.
    pub fn write(self, parameters: &[Lanes], numbers: &mut [f64]) {
        for l in 0..self.layers_len {
            let layer = &mut numbers[l * (2 * self.len + 1)..][..2 * self.len + 1];
            let (u, w) = self.layer(parameters, l);
            write_row(u, &mut layer[..self.len]);
            write_row(w, &mut layer[self.len..2 * self.len]);
            layer[2 * self.len] = f64::from(self.shift(parameters, l));
        }
    }
}

/// The bends of all layers.
#[inline(always)]
pub fn bends<S: Simd>(s: S, flow: Planar, parameters: &[Lanes], out: &mut [Bend]) {
    for (group, out) in out.chunks_mut(LANES).enumerate() {
        let (mut w_u, mut w_w) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..out.len() {
            let (u, w) = flow.layer(parameters, group * LANES + i);
            let (mut with_u, mut with_w) = (splat(s, 0.0), splat(s, 0.0));
            for (u, w) in u.iter().zip(w) {
                let w = load(s, &w.0);
                with_u = w.mul_add(load(s, &u.0), with_u);
                with_w = w.mul_add(w, with_w);
            }
            w_u[i] = with_u.reduce_sum();
            w_w[i] = with_w.reduce_sum();
        }
        let (softplus, slope) = simd::softplus_sigmoid(s, load(s, &w_u));
        for (i, out) in out.iter_mut().enumerate() {
            *out = Bend::default();
            if w_w[i] >= 1e-30 {
                let softplus = softplus[i].max(f32::MIN_POSITIVE);
                let bend = (softplus - 1.0 - w_u[i]) / w_w[i];
                *out = Bend { softplus, slope: slope[i], bend, w_w: w_w[i] };
            }
        }
    }
}

/// x ← the chain applied to x; returns Σ log|det|, one lane per draw, and stores each layer's tanh.
#[inline(always)]
pub fn forward<S: Simd>(
    s: S,
    flow: Planar,
    parameters: &[Lanes],
    bends: &[Bend],
    x: &mut [Tile],
    tanh: &mut [[f32; DRAWS]],
) -> V<S> {
    let mut log_det = splat(s, 0.0);
    let mut w_x = match flow.layers_len {
        0 => return log_det,
        _ => weigh(s, flow.layer(parameters, 0).1, x),
    };
    for l in 0..flow.layers_len {
        let (layer, bend) = (flow.layer(parameters, l), bends[l]);
        let t = simd::tanh(s, load_draws(s, &w_x) + flow.shift(parameters, l));
        log_det += simd::ln(s, determinant(s, t, bend));
        tanh[l] = std::array::from_fn(
            #[inline(always)]
            |q| t[q],
        );
        if l + 1 < flow.layers_len {
            w_x = advance::<S, true>(s, layer, flow.layer(parameters, l + 1).1, bend, &tanh[l], x);
        } else {
            advance::<S, false>(s, layer, layer.1, bend, &tanh[l], x);
        }
    }
    log_det
}

/// t² + (1 − t²) softplus(w·u).
#[inline(always)]
fn determinant<S: Simd>(s: S, t: V<S>, bend: Bend) -> V<S> {
    let square = t * t;
    (splat(s, 1.0) - square).mul_add(splat(s, bend.softplus), square)
}

/// row·x for eight draws.
#[inline(always)]
fn weigh<S: Simd>(s: S, row: &[Lanes], x: &[Tile]) -> [f32; DRAWS] {
    let mut sum = [splat(s, 0.0); DRAWS];
    for (row, x) in row.iter().zip(x) {
        let row = load(s, &row.0);
        for q in 0..DRAWS {
            sum[q] = row.mul_add(load(s, &x.0[q]), sum[q]);
        }
    }
    sums(s, sum)
}

/// x ← x + û t, in the same pass as next·x if there is a next layer.
#[inline(always)]
fn advance<S: Simd, const NEXT: bool>(
    s: S,
    (u, w): (&[Lanes], &[Lanes]),
    next: &[Lanes],
    bend: Bend,
    tanh: &[f32; DRAWS],
    x: &mut [Tile],
) -> [f32; DRAWS] {
    let mut sum = [splat(s, 0.0); DRAWS];
    for (((u, w), next), x) in u.iter().zip(w).zip(next).zip(x) {
        let (u_hat, next) = (u_hat(s, u, w, bend), load(s, &next.0));
        for q in 0..DRAWS {
            let y = u_hat.mul_add(splat(s, tanh[q]), load(s, &x.0[q]));
            y.store_slice(&mut x.0[q]);
            if NEXT {
                sum[q] = next.mul_add(y, sum[q]);
            }
        }
    }
    if NEXT { sums(s, sum) } else { [0.0; DRAWS] }
}

#[inline(always)]
fn u_hat<S: Simd>(s: S, u: &Lanes, w: &Lanes, bend: Bend) -> V<S> {
    load(s, &w.0).mul_add(splat(s, bend.bend), load(s, &u.0))
}

/// The pullback of the chain: `x` holds the output and becomes the input, `d_x` holds the cotangent of the output and
/// becomes that of the input. `d_log_det` is the cotangent of the log-determinant; `rows` is scratch space for two rows.
#[inline(always)]
pub fn pullback<S: Simd>(
    s: S,
    flow: Planar,
    (parameters, bends, tanh): (&[Lanes], &[Bend], &[[f32; DRAWS]]),
    x: &mut [Tile],
    d_x: &mut [Tile],
    d_log_det: V<S>,
    rows: &mut [Lanes],
    into: Into,
    d_parameters: &mut [Lanes],
) {
    let n = flow.row_len();
    let (d_u_hat, d_w) = rows[..2 * n].split_at_mut(n);
    let (d_layers, d_shifts) = d_parameters.split_at_mut(2 * flow.layers_len * n);
    if into == Into::Replace {
        d_shifts.fill(Lanes::default());
    }
    let mut d_tanh = match flow.layers_len {
        0 => return,
        len => weigh_bent(s, flow.layer(parameters, len - 1), bends[len - 1], d_x),
    };
    for l in (0..flow.layers_len).rev() {
        let (layer, bend) = (flow.layer(parameters, l), bends[l]);
        let t = load_draws(s, &tanh[l]);
        let slope = splat(s, 1.0) - t * t;
        let c = d_log_det / determinant(s, t, bend);
        let d_inner = slope * (t * c).mul_add(splat(s, -2.0 * (bend.softplus - 1.0)), load_draws(s, &d_tanh));
        let along_w;
        // There is no layer below the first.
        let below = (flow.layer(parameters, l.max(1) - 1), bends[l.max(1) - 1]);
        (d_tanh, along_w) = if l > 0 {
            retreat::<S, true>(s, (layer, bend), below, &tanh[l], d_inner, x, d_x, d_u_hat, d_w)
        } else {
            retreat::<S, false>(s, (layer, bend), below, &tanh[l], d_inner, x, d_x, d_u_hat, d_w)
        };
        d_shifts[l / LANES].0[l % LANES] += d_inner.reduce_sum();
        let d_layer = &mut d_layers[2 * l * n..2 * (l + 1) * n];
        layer_pullback(s, layer, bend, [(slope * c).reduce_sum(), along_w], d_u_hat, d_w, into, d_layer);
    }
}

/// û·d_x for eight draws.
#[inline(always)]
fn weigh_bent<S: Simd>(s: S, (u, w): (&[Lanes], &[Lanes]), bend: Bend, d_x: &[Tile]) -> [f32; DRAWS] {
    let mut sum = [splat(s, 0.0); DRAWS];
    for ((u, w), d_x) in u.iter().zip(w).zip(d_x) {
        let u_hat = u_hat(s, u, w, bend);
        for q in 0..DRAWS {
            sum[q] = u_hat.mul_add(load(s, &d_x.0[q]), sum[q]);
        }
    }
    sums(s, sum)
}

/// A layer's u and w, with its bend.
type Bent<'a> = ((&'a [Lanes], &'a [Lanes]), Bend);

/// One layer backwards, x and d_x in one pass: fills the cotangents of û and of w (through w·x alone). Returns û·d_x of the
/// layer below if there is one, and d_û·w.
#[inline(always)]
fn retreat<S: Simd, const BELOW: bool>(
    s: S,
    ((u, w), bend): Bent,
    ((u_below, w_below), bend_below): Bent,
    tanh: &[f32; DRAWS],
    d_inner: V<S>,
    x: &mut [Tile],
    d_x: &mut [Tile],
    d_u_hat: &mut [Lanes],
    d_w: &mut [Lanes],
) -> ([f32; DRAWS], f32) {
    let mut sum = [splat(s, 0.0); DRAWS];
    let mut along_w = splat(s, 0.0);
    let known = u.iter().zip(w).zip(u_below.iter().zip(w_below));
    let tiles = x.iter_mut().zip(d_x);
    let rows = d_u_hat.iter_mut().zip(d_w);
    for ((((u, w), (u_below, w_below)), (x, d_x)), (d_u_hat, d_w)) in known.zip(tiles).zip(rows) {
        let (back, w) = (-u_hat(s, u, w, bend), load(s, &w.0));
        let below = u_hat(s, u_below, w_below, bend_below);
        let (mut to_u, mut to_w) = (splat(s, 0.0), splat(s, 0.0));
        for q in 0..DRAWS {
            let (t, d) = (splat(s, tanh[q]), splat(s, d_inner[q]));
            let input = back.mul_add(t, load(s, &x.0[q]));
            input.store_slice(&mut x.0[q]);
            let g = load(s, &d_x.0[q]);
            to_w = d.mul_add(input, to_w);
            to_u = t.mul_add(g, to_u);
            let g = d.mul_add(w, g);
            g.store_slice(&mut d_x.0[q]);
            if BELOW {
                sum[q] = below.mul_add(g, sum[q]);
            }
        }
        along_w = to_u.mul_add(w, along_w);
        to_u.store_slice(&mut d_u_hat.0);
        to_w.store_slice(&mut d_w.0);
    }
    (if BELOW { sums(s, sum) } else { [0.0; DRAWS] }, along_w.reduce_sum())
}

/// The pullback of û = u + bend·w and of w·û, along u and w.
#[inline(always)]
fn layer_pullback<S: Simd>(
    s: S,
    (u, w): (&[Lanes], &[Lanes]),
    bend: Bend,
    [d_w_uhat, along_w]: [f32; 2],
    d_u_hat: &[Lanes],
    d_w: &[Lanes],
    into: Into,
    d_layer: &mut [Lanes],
) {
    let is_flat = bend.w_w == 0.0;
    let d_bend = if is_flat { 0.0 } else { along_w / bend.w_w };
    let d_w_u = splat(s, (d_w_uhat + d_bend) * bend.slope - d_bend);
    let d_w_w = splat(s, -2.0 * d_bend * bend.bend);
    // If w = 0 only u matters.
    let share = splat(s, if is_flat { 0.0 } else { 1.0 });
    let (to_u, to_w) = d_layer.split_at_mut(u.len());
    let known = u.iter().zip(w).zip(d_u_hat.iter().zip(d_w));
    for (((u, w), (d_u_hat, d_w)), (to_u, to_w)) in known.zip(to_u.iter_mut().zip(to_w)) {
        let (u, w, d_u_hat) = (load(s, &u.0), load(s, &w.0), load(s, &d_u_hat.0));
        into.store(s, w.mul_add(d_w_u, d_u_hat), to_u);
        let along = d_u_hat.mul_add(splat(s, bend.bend), load(s, &d_w.0));
        into.store(s, u.mul_add(d_w_u, w.mul_add(d_w_w, along)) * share, to_w);
    }
}

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
use crate::simd::{self, LANES, Simd, load, prelude::*, splat, store, sums};
use crate::special::{sigmoid, softplus};
use rand_distr::{Distribution, StandardNormal};

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

/// What a layer's parameters say about every draw: w·û, the bend (û = u + bend·w) and |w|².
#[derive(Clone, Copy, Debug)]
struct Bend {
    w_u: f64,
    w_uhat: f64,
    bend: f64,
    w_w: f64,
}

impl Bend {
    fn new(u: &[f64], w: &[f64]) -> Self {
        let w_u = crate::vector::dot(u, w);
        let w_w = crate::vector::dot(w, w);
        if w_w < 1e-280 {
            // Without a direction the layer is the shift x + u tanh b, whose determinant is 1.
            return Self { w_u, w_uhat: 0.0, bend: 0.0, w_w: 0.0 };
        }
        let w_uhat = softplus(w_u) - 1.0;
        Self { w_u, w_uhat, bend: (w_uhat - w_u) / w_w, w_w }
    }
}

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
        for l in 0..self.layers_len {
            let (u, w, b) = self.layer(parameters, l);
            let bend = Bend::new(u, w);
            let tanh = &mut tanh[l * draws_len..(l + 1) * draws_len];
            layer_forward(u, w, b, bend, draws_len, x.as_mut_slice(), log_det, tanh);
        }
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
        let draws_len = x.draws_len();
        let mut rows = scratch.take(2 * self.len);
        let mut d_inner = scratch.take(draws_len);
        for l in (0..self.layers_len).rev() {
            let (u, w, _) = self.layer(parameters, l);
            let bend = Bend::new(u, w);
            let tanh = &tanh[l * draws_len..(l + 1) * draws_len];
            let (d_u_hat, d_w) = rows.split_at_mut(self.len);
            let d_w_uhat = layer_pullback(
                u,
                w,
                bend,
                x.as_mut_slice(),
                d_x.as_mut_slice(),
                d_log_det,
                tanh,
                &mut d_inner,
                d_u_hat,
                d_w,
            );
            let d_layer = &mut d_parameters[l * self.layer_len()..(l + 1) * self.layer_len()];
            let (d_u_out, rest) = d_layer.split_at_mut(self.len);
            let (d_w_out, d_b_out) = rest.split_at_mut(self.len);
            d_b_out[0] += d_inner.iter().sum::<f64>();
            if bend.w_w == 0.0 {
                for i in 0..self.len {
                    d_u_out[i] += d_u_hat[i];
                }
                continue;
            }
            let d_bend = crate::vector::dot(d_u_hat, w) / bend.w_w;
            let d_w_u = (d_w_uhat + d_bend) * sigmoid(bend.w_u) - d_bend;
            let d_w_w = -2.0 * d_bend * bend.bend;
            for i in 0..self.len {
                d_u_out[i] += d_u_hat[i] + d_w_u * w[i];
                d_w_out[i] += d_w[i] + bend.bend * d_u_hat[i] + d_w_u * u[i] + d_w_w * w[i];
            }
        }
        scratch.give(rows);
        scratch.give(d_inner);
    }

    /// Undoes the chain: `x` holds the output and becomes the input; log_det\[s\] += Σ log|det| of the chain there.
    ///
    /// Each layer asks for one root per draw, of a + w·û tanh(a + b) = w·y, which is increasing in a.
    pub fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64]) {
        let draws_len = x.draws_len();
        for l in (0..self.layers_len).rev() {
            let (u, w, b) = self.layer(parameters, l);
            let bend = Bend::new(u, w);
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

#[inline(always)]
fn layer_forward_kernel<S: Simd>(
    s: S,
    u: &[f64],
    w: &[f64],
    b: f64,
    bend: Bend,
    draws_len: usize,
    x: &mut [f64],
    log_det: &mut [f64],
    tanh: &mut [f64],
) {
    let n = u.len();
    for at in (0..draws_len).step_by(LANES) {
        let mut sum = [splat(s, 0.0); 4];
        for i in 0..n {
            let column = &x[i * draws_len..(i + 1) * draws_len];
            sum[i & 3] = splat(s, w[i]).mul_add(load(s, column, at, 0.0), sum[i & 3]);
        }
        let t = simd::tanh(s, (sum[0] + sum[1]) + (sum[2] + sum[3]) + b);
        let det = (splat(s, 1.0) - t * t).mul_add(splat(s, bend.w_uhat), splat(s, 1.0));
        store(load(s, log_det, at, 0.0) + simd::ln(s, det), log_det, at);
        store(t, tanh, at);
        for i in 0..n {
            let column = &mut x[i * draws_len..(i + 1) * draws_len];
            let u_hat = splat(s, u[i] + bend.bend * w[i]);
            store(u_hat.mul_add(t, load(s, column, at, 0.0)), column, at);
        }
    }
}
crate::simd_fn!(
    fn layer_forward(
        u: &[f64],
        w: &[f64],
        b: f64,
        bend: Bend,
        draws_len: usize,
        x: &mut [f64],
        log_det: &mut [f64],
        tanh: &mut [f64],
    ) = layer_forward_kernel
);

/// One layer backwards. Fills `d_inner` (the cotangent of w·x + b), `d_u_hat` and `d_w` (the part through w·x); returns
/// the cotangent of w·û that comes from the log-determinant.
#[inline(always)]
fn layer_pullback_kernel<S: Simd>(
    s: S,
    u: &[f64],
    w: &[f64],
    bend: Bend,
    x: &mut [f64],
    d_x: &mut [f64],
    d_log_det: &[f64],
    tanh: &[f64],
    d_inner: &mut [f64],
    d_u_hat: &mut [f64],
    d_w: &mut [f64],
) -> f64 {
    let (n, draws_len) = (u.len(), tanh.len());
    let mut d_w_uhat = splat(s, 0.0);
    for at in (0..draws_len).step_by(LANES) {
        let mut sum = [splat(s, 0.0); 4];
        for i in 0..n {
            let u_hat = splat(s, u[i] + bend.bend * w[i]);
            let column = &d_x[i * draws_len..(i + 1) * draws_len];
            sum[i & 3] = u_hat.mul_add(load(s, column, at, 0.0), sum[i & 3]);
        }
        let d_tanh = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        let t = load(s, tanh, at, 0.0);
        let slope = splat(s, 1.0) - t * t;
        let c = load(s, d_log_det, at, 0.0) / slope.mul_add(splat(s, bend.w_uhat), splat(s, 1.0));
        d_w_uhat = slope.mul_add(c, d_w_uhat);
        store(slope * (t * c).mul_add(splat(s, -2.0 * bend.w_uhat), d_tanh), d_inner, at);
    }
    let mut first = 0;
    while first < n {
        // Eight columns at a time, so that their sums over draws become one vector.
        let tile = (n - first).min(LANES);
        let mut w_sums = [splat(s, 0.0); LANES];
        let mut u_sums = [splat(s, 0.0); LANES];
        for j in 0..tile {
            let i = first + j;
            let (w_i, u_hat) = (splat(s, w[i]), splat(s, u[i] + bend.bend * w[i]));
            let column = i * draws_len..(i + 1) * draws_len;
            let (x, d_x) = (&mut x[column.clone()], &mut d_x[column]);
            for at in (0..draws_len).step_by(LANES) {
                let (t, d) = (load(s, tanh, at, 0.0), load(s, d_inner, at, 0.0));
                let (input, g) = (load(s, x, at, 0.0) - u_hat * t, load(s, d_x, at, 0.0));
                store(input, x, at);
                w_sums[j] = d.mul_add(input, w_sums[j]);
                u_sums[j] = t.mul_add(g, u_sums[j]);
                store(d.mul_add(w_i, g), d_x, at);
            }
        }
        store(sums(w_sums), &mut d_w[..first + tile], first);
        store(sums(u_sums), &mut d_u_hat[..first + tile], first);
        first += tile;
    }
    d_w_uhat.reduce_sum()
}
crate::simd_fn!(
    fn layer_pullback(
        u: &[f64],
        w: &[f64],
        bend: Bend,
        x: &mut [f64],
        d_x: &mut [f64],
        d_log_det: &[f64],
        tanh: &[f64],
        d_inner: &mut [f64],
        d_u_hat: &mut [f64],
        d_w: &mut [f64],
    ) -> f64 = layer_pullback_kernel
);

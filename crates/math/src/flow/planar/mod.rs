//! Planar flows: y = x + û tanh(w·x + b), layer after layer, with û chosen so that every layer is invertible.
//!
//! û = u + (softplus(w·u) − 1 − w·u) w / |w|², so that w·û = softplus(w·u) − 1 > −1, and
//! log|det ∂y/∂x| = log(1 + (1 − tanh²) w·û).
//!
//! One map serves both of the paper's flows. Run from λ₀ to λ it is the *flow* of a variational prior,
//! log q(λ) = log q(λ₀) − Σ log|det|. Run from λ to λ₀ it is the *inverse flow* of a recursive approximation, whose
//! inverse functions have the parametric form: log r(λ) = log r(λ₀) + Σ log|det|.
//!
//! A layer costs O(d) per draw. The pullback recovers x from y, so only one activation per layer and draw is stored.

mod forward;
mod layers;
mod pullback;

pub use layers::Planar;

use crate::batch::Batch;
use crate::random::Stream;
use crate::scratch::Scratch;
use crate::simd::LANES;
use rand_distr::{Distribution, StandardNormal};

impl Planar {
    /// Parameters of the identity map: û = 0 in every layer, with a random direction w of length about `size`, so that a fit
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

    /// x ← the chain applied to x; log_det\[s\] += Σ log|det|; tanh\[l · S + s\] is stored for [`pullback`](Self::pullback).
    pub fn forward(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], tanh: &mut [f64]) {
        let draws_len = x.draws_len();
        forward::chain_forward(*self, parameters, draws_len, x.as_mut_slice(), log_det, tanh);
    }

    /// The pullback of the chain: `x` holds the output and becomes the input, `d_x` holds the cotangent of the output and
    /// becomes that of the input; adds to `d_parameters`. `d_log_det` is the cotangent of the log-determinant.
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
        // Slightly more than needed, so that the tiles can be aligned to a cache line.
        let mut work = scratch.take(2 * tiles_len * LANES * (LANES + 1) + LANES);
        let (x, d_x) = (x.as_mut_slice(), d_x.as_mut_slice());
        pullback::chain_pullback(*self, parameters, x, d_x, d_log_det, tanh, d_parameters, &mut work);
        scratch.give(work);
    }

    /// Inverts the chain: `x` holds the output and becomes the input; log_det\[s\] += Σ log|det| of the chain there.
    ///
    /// Each layer needs one root per draw, of a + w·û tanh(a + b) = w·y, which is increasing in a.
    pub fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64]) {
        let draws_len = x.draws_len();
        for l in (0..self.layers_len).rev() {
            let (u, w, b) = self.layer(parameters, l);
            let bend = layers::bends(*self, parameters, l..l + 1)[0];
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

/// The root a of a + c tanh(a + b) = y, c > −1: Newton steps, kept inside a shrinking bracket.
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

//! Mixtures with a normal factor for each continuous latent: N(y; λ_i, e^2s_i).

use super::{row, total};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{V, exp, load, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};

/// (y − λ_i) e^−s_i and e^−s_i.
#[inline(always)]
fn standard<S: Simd>(s: S, y: V<S>, lambda: &Tile, log_scale: &Tile, i: usize) -> (V<S>, V<S>) {
    let inverse = exp(s, -row(s, log_scale, i));
    ((y - row(s, lambda, i)) * inverse, inverse)
}

#[inline(always)]
fn densities_kernel<S: Simd>(
    s: S,
    points: usize,
    lambda: &[Tile],
    log_scale: &[Tile],
    mask: &[Lanes],
    y: &[Tile],
    draws: usize,
    log_q: &mut [[f32; DRAWS]; DRAWS],
) {
    for i in 0..points {
        for q in 0..draws {
            let mut sum = splat(s, 0.0);
            for j in 0..y.len() {
                let (away, _) = standard(s, row(s, &y[j], q), &lambda[j], &log_scale[j], i);
                let miss = (away * away).mul_add(splat(s, 0.5), row(s, &log_scale[j], i));
                sum = miss.mul_add(load(s, &mask[j].0), sum);
            }
            log_q[i][q] -= total(sum);
        }
    }
}

simd_fn!(
    /// Adds ln q(y | λ_i, s_i) of each point and draw, up to terms that all points share.
    pub(crate) fn densities(
        points: usize,
        lambda: &[Tile],
        log_scale: &[Tile],
        mask: &[Lanes],
        y: &[Tile],
        draws: usize,
        log_q: &mut [[f32; DRAWS]; DRAWS],
    ) = densities_kernel
);

#[inline(always)]
fn slopes_kernel<S: Simd>(
    s: S,
    points: usize,
    [lambda, log_scale, y]: [&[Tile]; 3],
    mask: &[Lanes],
    responsibility: &[[f32; DRAWS]; DRAWS],
    draws: usize,
    signal: &mut [Tile],
) {
    for j in 0..y.len() {
        for q in 0..draws {
            let y = row(s, &y[j], q);
            let mut change = splat(s, 0.0);
            for i in 0..points {
                let (away, inverse) = standard(s, y, &lambda[j], &log_scale[j], i);
                // Draw q is from point q modulo their number.
                let own = if i == q % points { 1.0 } else { 0.0 };
                change = (away * inverse).mul_add(splat(s, responsibility[i][q] - own), change);
            }
            change.mul_add(load(s, &mask[j].0), row(s, &signal[j], q)).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds the derivative along y of ln q(y | λ_i, s_i) − ln Σ_j w_j q(y | λ_j, s_j) for each draw, where i is its point; given λ,
    /// s and y.
    pub(crate) fn slopes(
        points: usize,
        known: [&[Tile]; 3],
        mask: &[Lanes],
        responsibility: &[[f32; DRAWS]; DRAWS],
        draws: usize,
        signal: &mut [Tile],
    ) = slopes_kernel
);

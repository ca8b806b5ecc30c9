//! λ = μ + U ε with few noises ε, and the differences of ln r(ε | z).

use super::{row, total};
use crate::shape::Family;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{load, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};

#[inline(always)]
fn transform_kernel<S: Simd>(
    s: S,
    mu: &[Lanes],
    rows: &[Lanes],
    eps: &[[f32; DRAWS]],
    draws: usize,
    lambda: &mut [Tile],
) {
    let n = lambda.len();
    for j in 0..n {
        let mu = load(s, &mu[j].0);
        for q in 0..draws {
            let mut x = mu;
            for (r, eps) in eps.iter().enumerate() {
                x = load(s, &rows[r * n + j].0).mul_add(splat(s, eps[q]), x);
            }
            x.store_slice(&mut lambda[j].0[q]);
        }
    }
}

simd_fn!(
    /// λ = μ + U ε of each draw.
    pub(crate) fn transform(
        mu: &[Lanes],
        rows: &[Lanes],
        eps: &[[f32; DRAWS]],
        draws: usize,
        lambda: &mut [Tile],
    ) = transform_kernel
);

#[inline(always)]
fn weighted_kernel<S: Simd>(s: S, a: &[Lanes], b: &[Lanes], weight: &[Lanes]) -> f32 {
    let mut sum = splat(s, 0.0);
    for ((a, b), w) in a.iter().zip(b).zip(weight) {
        sum = (load(s, &a.0) * load(s, &b.0)).mul_add(load(s, &w.0), sum);
    }
    total(sum)
}

simd_fn!(
    /// Σ a b w over all lanes.
    pub(crate) fn weighted(a: &[Lanes], b: &[Lanes], weight: &[Lanes]) -> f32 = weighted_kernel
);

#[inline(always)]
fn gather_kernel<S: Simd>(
    s: S,
    rows: &[Lanes],
    pull: &[Lanes],
    mean: &[Tile],
    z: &[Tile],
    draws: usize,
    out: &mut [[f32; DRAWS]],
) {
    let n = z.len();
    for (r, out) in out.iter_mut().enumerate() {
        for q in 0..draws {
            let mut sum = splat(s, 0.0);
            for j in 0..n {
                let away = (row(s, &z[j], q) - row(s, &mean[j], 0)) * load(s, &pull[j].0);
                sum = load(s, &rows[r * n + j].0).mul_add(away, sum);
            }
            out[q] = total(sum);
        }
    }
}

simd_fn!(
    /// Uᵀ of the pulls times z less the means, noise by noise and draw by draw.
    pub(crate) fn gather(
        rows: &[Lanes],
        pull: &[Lanes],
        mean: &[Tile],
        z: &[Tile],
        draws: usize,
        out: &mut [[f32; DRAWS]],
    ) = gather_kernel
);

#[inline(always)]
fn differences_kernel<S: Simd>(
    s: S,
    rows: &[Lanes],
    n: usize,
    pull: &[Lanes],
    off: &[[f32; DRAWS]],
    root: &[f32],
    tiles: std::ops::Range<usize>,
    family: Family,
    z: &[Tile],
    draws: usize,
    signal: &mut [Tile],
) {
    let rank = off.len();
    for j in tiles {
        let pull = load(s, &pull[j].0);
        let mut square = splat(s, 0.0);
        for t in 0..rank {
            let mut x = splat(s, 0.0);
            for r in 0..rank {
                x = load(s, &rows[r * n + j].0).mul_add(splat(s, root[r * rank + t]), x);
            }
            square = x.mul_add(x, square);
        }
        // Part of a difference, not of a derivative.
        let half = if family.is_continuous() { splat(s, 0.0) } else { square * pull * pull * 0.5 };
        for q in 0..draws {
            let mut along = splat(s, 0.0);
            for r in 0..rank {
                along = load(s, &rows[r * n + j].0).mul_add(splat(s, off[r][q]), along);
            }
            let half = match family {
                Family::Bernoulli => row(s, &z[j], q).simd_gt(splat(s, 0.5)).select(-half, half),
                _ => half,
            };
            let change = along.mul_add(pull, -half);
            (row(s, &signal[j], q) + change).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds to the signals of a layer the change of ln r as a latent goes up by one, or from 0 to 1; for continuous latents the
    /// derivative.
    pub(crate) fn differences(
        rows: &[Lanes],
        n: usize,
        pull: &[Lanes],
        off: &[[f32; DRAWS]],
        root: &[f32],
        tiles: std::ops::Range<usize>,
        family: Family,
        z: &[Tile],
        draws: usize,
        signal: &mut [Tile],
    ) = differences_kernel
);

#[inline(always)]
fn pullback_kernel<S: Simd>(
    s: S,
    eps: &[[f32; DRAWS]],
    n: usize,
    d_lambda: &[Tile],
    draws: usize,
    d_mu: &mut [Lanes],
    d_rows: &mut [Lanes],
) {
    let share = 1.0 / draws as f32;
    for j in 0..d_lambda.len() {
        let mut sum = load(s, &d_mu[j].0);
        for q in 0..draws {
            sum = row(s, &d_lambda[j], q).mul_add(splat(s, share), sum);
        }
        sum.store_slice(&mut d_mu[j].0);
        if j >= n {
            continue;
        }
        for (r, eps) in eps.iter().enumerate() {
            let mut sum = load(s, &d_rows[r * n + j].0);
            for q in 0..draws {
                sum = row(s, &d_lambda[j], q).mul_add(splat(s, share * eps[q]), sum);
            }
            sum.store_slice(&mut d_rows[r * n + j].0);
        }
    }
}

simd_fn!(
    /// Adds the derivatives along μ and U to `d_mu` and `d_rows`, given those along λ, averaged over the draws.
    pub(crate) fn pullback(
        eps: &[[f32; DRAWS]],
        n: usize,
        d_lambda: &[Tile],
        draws: usize,
        d_mu: &mut [Lanes],
        d_rows: &mut [Lanes],
    ) = pullback_kernel
);

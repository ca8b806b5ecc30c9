//! Layers of continuous latents: under q a gamma latent has ln z = λ + e^s ε, a Gaussian one z = λ + e^s ε.
//!
//! y is ln z or z, the scale on which q is normal. Terms that need a draw are differentiated along y, since ∂y/∂λ = 1 and
//! ∂y/∂s = y − λ. A latent's −KL from its prior given its parents is exact, with its derivatives along λ and s:
//!
//! ```text
//! gamma      −KL = α (ln α + λ − ln m) − ln Γ(α) − α E z / m + s + ½ ln 2πe    E z = e^(λ + e^2s / 2), m = softplus(a)
//! Gaussian   −KL = ½ − ½ (e^2s + (λ − a)²) + s
//! ```

use super::layer::{Link, RATE_MIN};
use super::{row, total};
use crate::shape::Family;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, ln, ln_normal, load, softplus_sigmoid, splat, sums};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use hyperprior_math::special::{HALF_LN_2_PI, ln_gamma};

/// The largest logarithm of the value and the mean of a gamma latent, and the smallest of its value: far from anything that occurs,
/// and the squares of gradients there are still finite.
const LOG_MAX: f32 = 20.0;
const LOG_MIN: f32 = -60.0;

/// z at noise `eps`.
pub(crate) fn point(family: Family, lambda: f32, log_scale: f32, eps: f32) -> f32 {
    let y = log_scale.exp().mul_add(eps, lambda);
    if family == Family::Gamma { y.clamp(LOG_MIN, LOG_MAX).exp() } else { y }
}

#[inline(always)]
fn means_kernel<S: Simd>(
    s: S,
    family: Family,
    lambda: &[Tile],
    log_scale: &[Tile],
    draws: usize,
    mean: &mut [Tile],
    slope: &mut [Tile],
) {
    for j in 0..lambda.len() {
        for q in 0..draws {
            let mut m = row(s, &lambda[j], q);
            if family == Family::Gamma {
                let variance = exp(s, row(s, &log_scale[j], q) * 2.0);
                m = exp(s, variance.mul_add(splat(s, 0.5), m).min(splat(s, LOG_MAX)));
            }
            m.store_slice(&mut mean[j].0[q]);
            slope[j].0[q] = [1.0; LANES];
        }
    }
}

simd_fn!(
    /// The means of z, and the derivatives of y along λ, which are 1.
    pub(crate) fn means(
        family: Family,
        lambda: &[Tile],
        log_scale: &[Tile],
        draws: usize,
        mean: &mut [Tile],
        slope: &mut [Tile],
    ) = means_kernel
);

#[inline(always)]
fn coordinates_kernel<S: Simd>(s: S, family: Family, mask: &[Lanes], z: &[Tile], draws: usize, y: &mut [Tile]) {
    for j in 0..z.len() {
        let mask = load(s, &mask[j].0);
        for q in 0..draws {
            let z = row(s, &z[j], q);
            let y_now =
                if family == Family::Gamma { ln_normal(s, z.max(splat(s, f32::MIN_POSITIVE))) * mask } else { z };
            y_now.store_slice(&mut y[j].0[q]);
        }
    }
}

simd_fn!(
    /// y of each draw; z for discrete latents.
    pub(crate) fn coordinates(family: Family, mask: &[Lanes], z: &[Tile], draws: usize, y: &mut [Tile]) = coordinates_kernel
);

#[inline(always)]
fn own_kernel<S: Simd>(
    s: S,
    link: &Link,
    [lambda, log_scale, mean, a]: [&[Tile]; 4],
    less: &[Lanes],
    draws: usize,
    d_lambda: &mut [Tile],
    d_scale: &mut [Tile],
    d_a: &mut [Tile],
    value: &mut [f32; DRAWS],
) {
    let shape = f64::from(link.gamma_shape);
    let constant = match link.family {
        Family::Gamma => shape * shape.ln() - ln_gamma(shape) + HALF_LN_2_PI + 0.5,
        _ => 0.5,
    };
    let (constant, shape) = (splat(s, constant as f32), splat(s, link.gamma_shape));
    let one = splat(s, 1.0);
    for j in 0..a.len() {
        let mask = load(s, &link.mask[j].0);
        let less = match less.get(j) {
            Some(less) => load(s, &less.0),
            None => splat(s, 0.0),
        };
        for q in 0..draws {
            let (l, t, a) = (row(s, &lambda[j], q), row(s, &log_scale[j], q), row(s, &a[j], q));
            let variance = exp(s, t * 2.0);
            let [divergence, along_l, along_t, along_a] = if link.family == Family::Gamma {
                let (soft, slope) = softplus_sigmoid(s, a);
                let centre = soft + RATE_MIN;
                let mean = row(s, &mean[j], q);
                let share = shape * mean / centre;
                let pressed = less.mul_add(mean, share);
                let divergence = shape * (l - ln(s, centre)) - share;
                [divergence, shape - pressed, -pressed * variance, slope * (share - shape) / centre]
            } else {
                let off = a - l;
                [(off * off + variance) * -0.5, off, -variance, -off]
            };
            value[q] += total((divergence + t + constant) * mask);
            (along_l * mask).store_slice(&mut d_lambda[j].0[q]);
            ((along_t + one) * mask).store_slice(&mut d_scale[j].0[q]);
            (along_a * mask).store_slice(&mut d_a[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds −KL(q(z | λ, s) ‖ p(z | a)) of each draw to `value`; sets `d_lambda`, `d_scale` and `d_a` to its derivatives. The first
    /// two include those of −Σ_k `less`_k E z_k, for the layer next to the words.
    pub(crate) fn own(
        link: &Link,
        described: [&[Tile]; 4],
        less: &[Lanes],
        draws: usize,
        d_lambda: &mut [Tile],
        d_scale: &mut [Tile],
        d_a: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) = own_kernel
);

#[inline(always)]
fn parents_kernel<S: Simd>(
    s: S,
    rows: &[Lanes],
    d_a: &[Tile],
    parents: &[Tile],
    parents_len: usize,
    family: Family,
    draws: usize,
    signal: &mut [Tile],
) {
    let n = d_a.len();
    for k in 0..parents_len {
        let mut sum = [splat(s, 0.0); DRAWS];
        for j in 0..n {
            let w = load(s, &rows[k * n + j].0);
            for q in 0..draws {
                sum[q] = w.mul_add(row(s, &d_a[j], q), sum[q]);
            }
        }
        let along = sums(s, sum);
        let (tile, lane) = (k / LANES, k % LANES);
        for q in 0..draws {
            let slope = if family == Family::Gamma { parents[tile].0[q][lane] } else { 1.0 };
            signal[tile].0[q][lane] += slope * along[q];
        }
    }
}

simd_fn!(
    /// Adds to each continuous parent's signal the derivative of its children's log density along y.
    pub(crate) fn parents(
        rows: &[Lanes],
        d_a: &[Tile],
        parents: &[Tile],
        parents_len: usize,
        family: Family,
        draws: usize,
        signal: &mut [Tile],
    ) = parents_kernel
);

#[inline(always)]
fn combine_kernel<S: Simd>(
    s: S,
    [lambda, y, exact]: [&[Tile]; 3],
    draws: usize,
    signal: &mut [Tile],
    d_scale: &mut [Tile],
) {
    for j in 0..lambda.len() {
        for q in 0..draws {
            let along = row(s, &signal[j], q);
            let away = row(s, &y[j], q) - row(s, &lambda[j], q);
            along.mul_add(away, row(s, &d_scale[j], q)).store_slice(&mut d_scale[j].0[q]);
            (along + row(s, &exact[j], q)).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    /// Given λ, y and the exact derivatives along λ, replaces the derivatives along y by those along λ, and adds those along s to
    /// `d_scale`.
    pub(crate) fn combine(known: [&[Tile]; 3], draws: usize, signal: &mut [Tile], d_scale: &mut [Tile]) = combine_kernel
);

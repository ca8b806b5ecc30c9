//! A layer of latents given the one above: a = b + Σ_k W_k z_k, with the children in lanes.
//!
//! Given λ the children are independent of the parents in q, and the layer's log density is linear in them, or in z, ln z and z² if
//! they are continuous. So they can be replaced by their means, and these kernels are exact over the children's draws. Only the
//! mean of z itself occurs together with a.

use super::{row, total};
use crate::shape::Family;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{V, exp, ln, ln_normal, load, softplus_sigmoid, splat};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};

/// The least rate of a Poisson, and the least mean of a gamma.
pub(crate) const RATE_MIN: f32 = 1e-4;

/// A layer's weights: for each parent a row over the children, and their intercepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'a> {
    pub(crate) rows: &'a [Lanes],
    pub(crate) bias: &'a [Lanes],
    pub(crate) family: Family,
    /// The shape of gamma children.
    pub(crate) gamma_shape: f32,
    /// One where there is a child.
    pub(crate) mask: &'a [Lanes],
}

#[inline(always)]
fn activations_kernel<S: Simd>(
    s: S,
    link: &Link,
    parents: &[Tile],
    parents_len: usize,
    draws: usize,
    out: &mut [Tile],
) {
    let n = link.bias.len();
    for j in 0..n {
        let mut a = [load(s, &link.bias[j].0); DRAWS];
        for k in 0..parents_len {
            let w = load(s, &link.rows[k * n + j].0);
            for q in 0..draws {
                a[q] = w.mul_add(splat(s, parents[k / LANES].0[q][k % LANES]), a[q]);
            }
        }
        for q in 0..draws {
            a[q].store_slice(&mut out[j].0[q]);
        }
    }
}

simd_fn!(
    /// The activation of each child.
    pub(crate) fn activations(
        link: &Link,
        parents: &[Tile],
        parents_len: usize,
        draws: usize,
        out: &mut [Tile],
    ) = activations_kernel
);

/// ln(1 + e^a).
#[inline(always)]
fn soft<S: Simd>(s: S, a: V<S>) -> V<S> {
    let e = exp(s, -a.abs());
    let u = e + 1.0;
    // The rounding error of 1 + e; where it matters, u is nearly 1.
    a.max(splat(s, 0.0)) + (ln_normal(s, u) + (e - (u - 1.0)))
}

/// E ln p(z | a) over z with mean m, up to terms without a.
#[inline(always)]
fn log_density<S: Simd>(s: S, link: &Link, mean: V<S>, a: V<S>) -> V<S> {
    match link.family {
        Family::Poisson => {
            let rate = soft(s, a) + RATE_MIN;
            mean.mul_add(ln_normal(s, rate), -rate)
        }
        Family::Bernoulli => mean.mul_add(a, -soft(s, a)),
        Family::Gamma => {
            let centre = soft(s, a) + RATE_MIN;
            (ln_normal(s, centre) + mean / centre) * -link.gamma_shape
        }
        Family::Gaussian => a.mul_add(splat(s, -0.5), mean) * a,
    }
}

/// The same for discrete children, and its derivative along a.
#[inline(always)]
fn expected<S: Simd>(s: S, is_binary: bool, mean: V<S>, a: V<S>) -> (V<S>, V<S>) {
    let (soft, slope) = softplus_sigmoid(s, a);
    if is_binary {
        return (mean.mul_add(a, -soft), mean - slope);
    }
    let rate = soft + RATE_MIN;
    (mean.mul_add(ln(s, rate), -rate), slope * (mean / rate - 1.0))
}

#[inline(always)]
fn own_kernel<S: Simd>(
    s: S,
    link: &Link,
    lambda: &[Tile],
    mean: &[Tile],
    a: &[Tile],
    draws: usize,
    signal: &mut [Tile],
    d_a: &mut [Tile],
    value: &mut [f32; DRAWS],
) {
    let is_binary = link.family == Family::Bernoulli;
    for j in 0..a.len() {
        let mask = load(s, &link.mask[j].0);
        for q in 0..draws {
            let (m, a) = (row(s, &mean[j], q), row(s, &a[j], q));
            let (expected, slope) = expected(s, is_binary, m, a);
            let (entropy, ratio) = if is_binary {
                let l = row(s, &lambda[j], q);
                let (soft, _) = softplus_sigmoid(s, l);
                (soft - m * l, a - l)
            } else {
                let ln_m = ln(s, m.max(splat(s, 1e-30)));
                let (soft, _) = softplus_sigmoid(s, a);
                (m - m * ln_m, ln(s, soft + RATE_MIN) - ln_m)
            };
            value[q] += total((expected + entropy) * mask);
            (row(s, &signal[j], q) + ratio * mask).store_slice(&mut signal[j].0[q]);
            (slope * mask).store_slice(&mut d_a[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds −KL(q(z | λ) ‖ p(z | a)) of a discrete layer in each draw to `value`, and to `signal` the change of ln p − ln q as a
    /// latent goes up by one; sets `d_a` to the derivative along a.
    pub(crate) fn own(
        link: &Link,
        lambda: &[Tile],
        mean: &[Tile],
        a: &[Tile],
        draws: usize,
        signal: &mut [Tile],
        d_a: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) = own_kernel
);

#[inline(always)]
fn parents_kernel<S: Simd>(
    s: S,
    link: &Link,
    mean: &[Tile],
    a: &[Tile],
    parents: &[Tile],
    parents_len: usize,
    is_binary: bool,
    draws: usize,
    signal: &mut [Tile],
) {
    let n = a.len();
    for q in 0..draws {
        let mut now = splat(s, 0.0);
        for j in 0..n {
            let (m, mask) = (row(s, &mean[j], q), load(s, &link.mask[j].0));
            now = log_density(s, link, m, row(s, &a[j], q)).mul_add(mask, now);
        }
        for k in 0..parents_len {
            let is_on = is_binary && parents[k / LANES].0[q][k % LANES] > 0.5;
            let sign = if is_on { -1.0 } else { 1.0 };
            let mut then = -now;
            for j in 0..n {
                let (m, mask) = (row(s, &mean[j], q), load(s, &link.mask[j].0));
                let a = load(s, &link.rows[k * n + j].0).mul_add(splat(s, sign), row(s, &a[j], q));
                then = log_density(s, link, m, a).mul_add(mask, then);
            }
            signal[k / LANES].0[q][k % LANES] += sign * total(then);
        }
    }
}

simd_fn!(
    /// Adds to each discrete parent's signal the change of its children's log density as it goes up by one, or from 0 to 1.
    pub(crate) fn parents(
        link: &Link,
        mean: &[Tile],
        a: &[Tile],
        parents: &[Tile],
        parents_len: usize,
        is_binary: bool,
        draws: usize,
        signal: &mut [Tile],
    ) = parents_kernel
);

#[inline(always)]
fn gradient_kernel<S: Simd>(
    s: S,
    parents: &[Tile],
    parents_len: usize,
    d_a: &[Tile],
    draws: usize,
    shares: &[f32; DRAWS],
    d_rows: &mut [Lanes],
    d_bias: &mut [Lanes],
) {
    let n = d_a.len();
    for j in 0..n {
        let mut sum = load(s, &d_bias[j].0);
        for q in 0..draws {
            sum = row(s, &d_a[j], q).mul_add(splat(s, shares[q]), sum);
        }
        sum.store_slice(&mut d_bias[j].0);
        for k in 0..parents_len {
            let mut sum = load(s, &d_rows[k * n + j].0);
            for q in 0..draws {
                let z = parents[k / LANES].0[q][k % LANES] * shares[q];
                sum = row(s, &d_a[j], q).mul_add(splat(s, z), sum);
            }
            sum.store_slice(&mut d_rows[k * n + j].0);
        }
    }
}

simd_fn!(
    /// Adds the derivatives along the weights, averaged over the draws with their weights.
    pub(crate) fn gradient(
        parents: &[Tile],
        parents_len: usize,
        d_a: &[Tile],
        draws: usize,
        shares: &[f32; DRAWS],
        d_rows: &mut [Lanes],
        d_bias: &mut [Lanes],
    ) = gradient_kernel
);

#[inline(always)]
fn means_kernel<S: Simd>(s: S, is_binary: bool, lambda: &[Tile], draws: usize, mean: &mut [Tile], slope: &mut [Tile]) {
    for j in 0..lambda.len() {
        for q in 0..draws {
            let (soft, sigmoid) = softplus_sigmoid(s, row(s, &lambda[j], q));
            let (m, d) =
                if is_binary { (sigmoid, sigmoid * (splat(s, 1.0) - sigmoid)) } else { (soft + RATE_MIN, sigmoid) };
            m.store_slice(&mut mean[j].0[q]);
            d.store_slice(&mut slope[j].0[q]);
        }
    }
}

simd_fn!(
    /// The means of q(z | λ) of discrete latents, and their derivatives along λ.
    pub(crate) fn means(is_binary: bool, lambda: &[Tile], draws: usize, mean: &mut [Tile], slope: &mut [Tile]) = means_kernel
);

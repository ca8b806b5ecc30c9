//! Mixtures with a Conway–Maxwell factor for each count.

use super::{Counts, limited};
use crate::kernel::{row, total};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, ln, load, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};

#[inline(always)]
fn densities_kernel<S: Simd>(
    s: S,
    points: usize,
    [eta, log_nu]: [&[Tile]; 2],
    counts: &Counts,
    first: usize,
    mask: &[Lanes],
    z: &[Tile],
    draws: usize,
    log_q: &mut [[f32; DRAWS]; DRAWS],
) {
    for i in 0..points {
        let mut sum = [splat(s, 0.0); DRAWS];
        for j in 0..z.len() {
            let (eta, nu) = limited(s, row(s, &eta[j], i), row(s, &log_nu[j], i));
            let (mask, all) = (load(s, &mask[j].0), row(s, &counts.log_all[first + j], i));
            for q in 0..draws {
                let h = eta * row(s, &z[j], q) - row(s, &counts.ln_drawn[first + j], q);
                sum[q] = nu.mul_add(h, -all).mul_add(mask, sum[q]);
            }
        }
        for q in 0..draws {
            log_q[i][q] += total(sum[q]);
        }
    }
}

simd_fn!(
    /// Adds ln q(z | λ_i) of each point of a mixture and each draw.
    pub(crate) fn densities(
        points: usize,
        lambda: [&[Tile]; 2],
        counts: &Counts,
        first: usize,
        mask: &[Lanes],
        z: &[Tile],
        draws: usize,
        log_q: &mut [[f32; DRAWS]; DRAWS],
    ) = densities_kernel
);

#[inline(always)]
fn changes_kernel<S: Simd>(
    s: S,
    points: usize,
    [eta, log_nu, z]: [&[Tile]; 3],
    mask: &[Lanes],
    responsibility: &[[f32; DRAWS]; DRAWS],
    draws: usize,
    signal: &mut [Tile],
) {
    let zero = splat(s, 0.0);
    for j in 0..z.len() {
        for q in 0..draws {
            let next = ln(s, row(s, &z[j], q) + 1.0);
            let mut up = [zero; DRAWS];
            let mut joint = [zero; DRAWS];
            let mut most = splat(s, f32::MIN);
            for i in 0..points {
                let (eta, nu) = limited(s, row(s, &eta[j], i), row(s, &log_nu[j], i));
                up[i] = nu * (eta - next);
                joint[i] = up[i] + responsibility[i][q].max(f32::MIN_POSITIVE).ln();
                most = most.max(joint[i]);
            }
            let mut sum = zero;
            for i in 0..points {
                sum += exp(s, joint[i] - most);
            }
            let change = (up[q % points] - most - ln(s, sum)) * load(s, &mask[j].0);
            (row(s, &signal[j], q) + change).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds to `signal` the change of the log responsibility of a draw's point as a latent goes up by one.
    pub(crate) fn changes(
        points: usize,
        known: [&[Tile]; 3],
        mask: &[Lanes],
        responsibility: &[[f32; DRAWS]; DRAWS],
        draws: usize,
        signal: &mut [Tile],
    ) = changes_kernel
);

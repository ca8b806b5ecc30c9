//! Counts that spread less than a Poisson's, or more: q(z) ∝ exp(ν (η z − ln z!)), after Conway and Maxwell.
//!
//! The mode is near e^η, and ν says how closely counts keep to it: 1 is a Poisson's, and what a document says of its latents is
//! often much closer. The expectation of any f changes with a parameter θ by E[t(z) (f(z + 1) − f(z))], with t = −∂F/∂θ / q for the
//! distribution function F; so what one draw needs is the same as for a Poisson, where t along ln of the mean is the mean.

use super::row;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, ln, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};
use hyperprior_math::special::ln_factorial;

/// The largest η and ln ν, and the least ln ν.
pub(crate) const ETA_MAX: f32 = 5.0;
pub(crate) const LOG_NU: [f32; 2] = [-0.7, 3.5];
/// Values from here on are left out.
const VALUES: usize = 320;
/// So are those with less than this share of the mode's probability.
const SHARE_MIN: f32 = 1e-9;

/// ln z!, and the probabilities of the values of sixteen latents.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    ln_factorial: Vec<f32>,
    probability: Vec<Lanes>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            ln_factorial: (0..VALUES).map(|z| ln_factorial(z as f64) as f32).collect(),
            probability: vec![Lanes::default(); VALUES],
        }
    }
}

/// What is known of a layer's latents, draw by draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// ∂ E z along η is kept as the slope; this is that along ln ν.
    pub(crate) slope_nu: Vec<Tile>,
    /// −E ln q − E ln z!, and its derivatives along η and ln ν.
    pub(crate) rest: Vec<Tile>,
    pub(crate) rest_eta: Vec<Tile>,
    pub(crate) rest_nu: Vec<Tile>,
    /// t along η and ln ν at the draw.
    pub(crate) t_eta: Vec<Tile>,
    pub(crate) t_nu: Vec<Tile>,
}

impl Known {
    pub(crate) fn new(len: usize) -> Self {
        let tiles = || vec![Tile::default(); len];
        Self { slope_nu: tiles(), rest: tiles(), rest_eta: tiles(), rest_nu: tiles(), t_eta: tiles(), t_nu: tiles() }
    }
}

#[inline(always)]
fn counts_kernel<S: Simd>(
    s: S,
    table: &mut Table,
    [eta, log_nu]: [&[Tile]; 2],
    first: usize,
    draws: usize,
    distinct: usize,
    mean: &mut [Tile],
    slope: &mut [Tile],
    z: &mut [Tile],
    known: &mut Known,
) {
    let zero = splat(s, 0.0);
    let one = splat(s, 1.0);
    for j in 0..eta.len() {
        let at = first + j;
        for q in 0..distinct {
            let eta = row(s, &eta[j], q).min(splat(s, ETA_MAX));
            let log_nu = row(s, &log_nu[j], q).max(splat(s, LOG_NU[0])).min(splat(s, LOG_NU[1]));
            let nu = exp(s, log_nu);
            let mode = exp(s, eta);
            // Stirling's, near the logarithm of the largest: only to stay within what can be written.
            let offset = mode - ln(s, mode.mul_add(splat(s, std::f32::consts::TAU), one)) * 0.5;
            let (mut all, mut len) = (zero, 0);
            while len < VALUES {
                let h = eta * (len as f32) - table.ln_factorial[len] - offset;
                let w = exp(s, nu * h);
                w.store_slice(&mut table.probability[len].0);
                all += w;
                len += 1;
                // Beyond the mode of every latent, and negligible for every one.
                let is_over = mode.simd_lt(splat(s, len as f32)) & w.simd_lt(all * SHARE_MIN);
                if is_over.all_true() {
                    break;
                }
            }
            let share = one / all;
            let (mut m, mut l, mut h) = (zero, zero, zero);
            for value in 0..len {
                let p = row_of(s, &table.probability[value]) * share;
                p.store_slice(&mut table.probability[value].0);
                let own = eta * (value as f32) - table.ln_factorial[value] - offset;
                m = p.mul_add(splat(s, value as f32), m);
                l = p.mul_add(splat(s, table.ln_factorial[value]), l);
                h = p.mul_add(own, h);
            }
            // Along η and ln ν what counts is how things vary with z and with h = η z − ln z!.
            let (mut zz, mut zh, mut hh, mut lz, mut lh) = (zero, zero, zero, zero, zero);
            for value in 0..len {
                let p = row_of(s, &table.probability[value]);
                let dz = splat(s, value as f32) - m;
                let dl = splat(s, table.ln_factorial[value]) - l;
                let dh = eta * (value as f32) - table.ln_factorial[value] - offset - h;
                zz = (p * dz).mul_add(dz, zz);
                zh = (p * dz).mul_add(dh, zh);
                hh = (p * dh).mul_add(dh, hh);
                lz = (p * dl).mul_add(dz, lz);
                lh = (p * dl).mul_add(dh, lh);
            }
            m.store_slice(&mut mean[j].0[q]);
            (nu * zz).store_slice(&mut slope[j].0[q]);
            (nu * zh).store_slice(&mut known.slope_nu[at].0[q]);
            (ln(s, all) - nu * h - l).store_slice(&mut known.rest[at].0[q]);
            (-(nu * nu * zh) - nu * lz).store_slice(&mut known.rest_eta[at].0[q]);
            (-(nu * nu * hh) - nu * lh).store_slice(&mut known.rest_nu[at].0[q]);
            // All draws of this λ at once: the first value at which F is above the uniform number that stands in z.
            let mut below = zero;
            let (mut f_z, mut f_h) = (zero, zero);
            let mut drawn = [zero; DRAWS];
            let mut t = [[zero; 2]; DRAWS];
            let u: [_; DRAWS] = std::array::from_fn(
                #[inline(always)]
                |i| row(s, &z[j], i),
            );
            for value in 0..len {
                let p = row_of(s, &table.probability[value]);
                let above = if value + 1 == len { splat(s, 2.0) } else { below + p };
                let own = eta * (value as f32) - table.ln_factorial[value] - offset;
                f_z = p.mul_add(splat(s, value as f32) - m, f_z);
                f_h = p.mul_add(own - h, f_h);
                let inverse = -nu / p.max(splat(s, 1e-30));
                for i in (q..draws).step_by(distinct) {
                    let is_here = u[i].simd_ge(below) & u[i].simd_lt(above);
                    drawn[i] = is_here.select(splat(s, value as f32), drawn[i]);
                    t[i][0] = is_here.select(f_z * inverse, t[i][0]);
                    t[i][1] = is_here.select(f_h * inverse, t[i][1]);
                }
                below = above;
            }
            for i in (q..draws).step_by(distinct) {
                drawn[i].store_slice(&mut z[j].0[i]);
                t[i][0].store_slice(&mut known.t_eta[at].0[i]);
                t[i][1].store_slice(&mut known.t_nu[at].0[i]);
            }
        }
        for q in distinct..draws {
            let from = q % distinct;
            mean[j].0[q] = mean[j].0[from];
            slope[j].0[q] = slope[j].0[from];
            for tiles in [&mut known.slope_nu, &mut known.rest, &mut known.rest_eta, &mut known.rest_nu] {
                tiles[at].0[q] = tiles[at].0[from];
            }
        }
    }
}

#[inline(always)]
fn row_of<S: Simd>(s: S, lanes: &Lanes) -> hyperprior_math::single::simd::V<S> {
    hyperprior_math::single::simd::load(s, &lanes.0)
}

simd_fn!(
    /// Everything about a layer's latents given η and ln ν, of which draw q has that of draw q modulo `distinct`; and draws of them
    /// from the uniform numbers that `z` holds. `first` is the layer's place in `known`.
    pub(crate) fn counts(
        table: &mut Table,
        lambda: [&[Tile]; 2],
        first: usize,
        draws: usize,
        distinct: usize,
        mean: &mut [Tile],
        slope: &mut [Tile],
        z: &mut [Tile],
        known: &mut Known,
    ) = counts_kernel
);

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::single::LANES;

    fn probabilities(eta: f64, log_nu: f64) -> Vec<f64> {
        let nu = log_nu.exp();
        let logs: Vec<f64> = (0..VALUES).map(|z| nu * (eta * z as f64 - ln_factorial(z as f64))).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let all: f64 = logs.iter().map(|x| (x - most).exp()).sum();
        logs.iter().map(|x| (x - most).exp() / all).collect()
    }

    fn expected(eta: f64, log_nu: f64, f: impl Fn(f64) -> f64) -> f64 {
        probabilities(eta, log_nu).iter().enumerate().map(|(z, p)| if *p > 0.0 { p * f(z as f64) } else { 0.0 }).sum()
    }

    /// −E ln q − E ln z!.
    fn rest(eta: f64, log_nu: f64) -> f64 {
        let entropy: f64 = probabilities(eta, log_nu).iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        entropy - expected(eta, log_nu, ln_factorial)
    }

    fn slope(f: impl Fn(f64) -> f64, at: f64) -> f64 {
        (f(at + 1e-4) - f(at - 1e-4)) / 2e-4
    }

    const ETAS: [f32; 8] = [-6.0, -2.0, -0.3, 0.0, 0.7, 1.9, 3.1, 4.6];

    /// Moments and derivatives against sums in double precision; E[t (f(z + 1) − f(z))] over a fine grid of uniform numbers against
    /// the derivative of E f.
    #[test]
    fn counts_are_what_they_say() {
        for log_nu in [-0.5_f32, 0.0, 1.0, 2.5] {
            let mut eta = Tile::default();
            (0..LANES).for_each(|lane| eta.0[0][lane] = ETAS[lane % 8]);
            let mut nu = Tile::default();
            nu.0[0].fill(log_nu);
            let (mut mean, mut slopes) = ([Tile::default()], [Tile::default()]);
            let mut known = Known::new(1);
            let mut table = Table::default();
            let grid = 4000;
            let f = |z: f64| (1.0 + z).ln().powi(2);
            let mut sums = [[0.0_f64; 3]; 8];
            for g in (0..grid).step_by(8) {
                let mut z = [Tile::default()];
                for i in 0..8 {
                    z[0].0[i] = [(g as f32 + i as f32 + 0.5) / grid as f32; LANES];
                }
                counts(&mut table, [&[eta], &[nu]], 0, 8, 1, &mut mean, &mut slopes, &mut z, &mut known);
                for (lane, sums) in sums.iter_mut().enumerate() {
                    for i in 0..8 {
                        let z = f64::from(z[0].0[i][lane]);
                        let step = f(z + 1.0) - f(z);
                        sums[0] += z / f64::from(grid);
                        sums[1] += f64::from(known.t_eta[0].0[i][lane]) * step / f64::from(grid);
                        sums[2] += f64::from(known.t_nu[0].0[i][lane]) * step / f64::from(grid);
                    }
                }
            }
            for (lane, eta) in ETAS.iter().enumerate() {
                let (eta, nu) = (f64::from(*eta), f64::from(log_nu));
                let near = |name: &str, found: f64, exact: f64, share: f64| {
                    let far = (found - exact).abs();
                    assert!(far < share * exact.abs().max(0.02), "{name} at {eta}, {nu}: {found}, not {exact}");
                };
                let m = |eta: f64, nu: f64| expected(eta, nu, |z| z);
                let of = |tile: &Tile| f64::from(tile.0[7][lane]);
                near("mean", of(&mean[0]), m(eta, nu), 2e-4);
                near("slope", of(&slopes[0]), slope(|eta| m(eta, nu), eta), 2e-3);
                near("slope_nu", of(&known.slope_nu[0]), slope(|nu| m(eta, nu), nu), 5e-3);
                near("rest", of(&known.rest[0]), rest(eta, nu), 5e-4);
                near("rest_eta", of(&known.rest_eta[0]), slope(|eta| rest(eta, nu), eta), 5e-3);
                near("rest_nu", of(&known.rest_nu[0]), slope(|nu| rest(eta, nu), nu), 1e-2);
                near("drawn", sums[lane][0], m(eta, nu), 1e-2);
                near("t_eta", sums[lane][1], slope(|eta| expected(eta, nu, f), eta), 2e-2);
                near("t_nu", sums[lane][2], slope(|nu| expected(eta, nu, f), nu), 2e-2);
            }
        }
    }
}

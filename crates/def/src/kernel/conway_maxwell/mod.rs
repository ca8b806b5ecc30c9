//! Counts that spread less than a Poisson's, or more: q(z) ∝ exp(ν (η z − ln z!)), the Conway–Maxwell–Poisson distribution.
//!
//! The mode is near e^η, and ν controls the spread around it: ν = 1 is a Poisson, and the posterior of a document's latents is
//! often much narrower. The derivative of the expectation of any f along a parameter θ is E[t(z) (f(z + 1) − f(z))], with
//! t = −∂F/∂θ / q for the distribution function F. So one draw needs the same differences as for a Poisson, where t along the log
//! mean is the mean.

pub(crate) mod mixture;

use super::layer::{Link, RATE_MIN};
use super::{row, total};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{V, exp, ln, load, softplus_sigmoid, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};
use hyperprior_math::special::ln_factorial;

/// The largest η, and the least and largest ln ν.
pub(crate) const ETA_MAX: f32 = 5.0;
pub(crate) const LOG_NU: [f32; 2] = [-0.7, 3.5];
/// Values from here on are ignored.
const VALUES: usize = 320;
/// So are values with less than this share of the total probability.
const SHARE_MIN: f32 = 1e-9;

/// The moments of the latents of a document, draw by draw.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// ∂ E z along η and along ln ν.
    pub(crate) slope_eta: Vec<Tile>,
    slope_nu: Vec<Tile>,
    /// −E ln q − E ln z!, and its derivatives along η and ln ν.
    rest: Vec<Tile>,
    rest_eta: Vec<Tile>,
    rest_nu: Vec<Tile>,
    /// ln Σ exp(ν (η z − ln z!)).
    log_all: Vec<Tile>,
    /// t along η and ln ν, and ln z!, at the draw.
    pub(crate) t_eta: Vec<Tile>,
    t_nu: Vec<Tile>,
    ln_drawn: Vec<Tile>,
    /// ln z! of all values, and the probabilities of those of sixteen latents.
    ln_factorial: Vec<f32>,
    probability: Vec<Lanes>,
}

impl Counts {
    /// Memory for so many vectors of latents.
    pub(crate) fn new(len: usize) -> Self {
        let tiles = || vec![Tile::default(); len];
        Self {
            slope_eta: tiles(),
            slope_nu: tiles(),
            rest: tiles(),
            rest_eta: tiles(),
            rest_nu: tiles(),
            log_all: tiles(),
            t_eta: tiles(),
            t_nu: tiles(),
            ln_drawn: tiles(),
            ln_factorial: (0..VALUES).map(|z| ln_factorial(z as f64) as f32).collect(),
            probability: vec![Lanes::default(); VALUES],
        }
    }
}

/// ν, clamped to its limits.
pub(crate) fn nu(log_nu: f32) -> f32 {
    log_nu.clamp(LOG_NU[0], LOG_NU[1]).exp()
}

/// η and ν, clamped to their limits.
#[inline(always)]
fn limited<S: Simd>(s: S, eta: V<S>, log_nu: V<S>) -> (V<S>, V<S>) {
    let log_nu = log_nu.max(splat(s, LOG_NU[0])).min(splat(s, LOG_NU[1]));
    (eta.min(splat(s, ETA_MAX)), exp(s, log_nu))
}

/// η and ν of sixteen latents, with an offset that keeps the exponents of the probabilities in range.
struct Factor<S: Simd> {
    eta: V<S>,
    nu: V<S>,
    offset: V<S>,
}

impl<S: Simd> Factor<S> {
    #[inline(always)]
    fn new(s: S, eta: V<S>, log_nu: V<S>) -> Self {
        let (eta, nu) = limited(s, eta, log_nu);
        let mode = exp(s, eta);
        // Stirling's approximation of the exponent at the mode.
        let offset = mode - ln(s, mode.mul_add(splat(s, std::f32::consts::TAU), splat(s, 1.0))) * 0.5;
        Self { eta, nu, offset }
    }

    /// h = η z − ln z! less the offset.
    #[inline(always)]
    fn h(&self, counts: &Counts, value: usize) -> V<S> {
        self.eta * (value as f32) - counts.ln_factorial[value] - self.offset
    }

    /// Tabulates the probabilities up to a factor. Returns their sum and the number of values.
    #[inline(always)]
    fn tabulate(&self, s: S, counts: &mut Counts) -> (V<S>, usize) {
        let mode = exp(s, self.eta);
        let (mut all, mut len) = (splat(s, 0.0), 0);
        while len < VALUES {
            let w = exp(s, self.nu * self.h(counts, len));
            w.store_slice(&mut counts.probability[len].0);
            all += w;
            len += 1;
            // Beyond the mode of every latent, and negligible for every one.
            let is_over = mode.simd_lt(splat(s, len as f32)) & w.simd_lt(all * SHARE_MIN);
            if is_over.all_true() {
                break;
            }
        }
        (all, len)
    }

    /// Normalises the probabilities. Returns E z, E ln z! and E h.
    #[inline(always)]
    fn normalise(&self, s: S, counts: &mut Counts, all: V<S>, len: usize) -> [V<S>; 3] {
        let zero = splat(s, 0.0);
        let share = splat(s, 1.0) / all;
        let (mut m, mut l, mut h) = (zero, zero, zero);
        for value in 0..len {
            let p = load(s, &counts.probability[value].0) * share;
            p.store_slice(&mut counts.probability[value].0);
            m = p.mul_add(splat(s, value as f32), m);
            l = p.mul_add(splat(s, counts.ln_factorial[value]), l);
            h = p.mul_add(self.h(counts, value), h);
        }
        [m, l, h]
    }

    /// Stores the moments of latents `at` in draw `q`, with their derivatives: along η and ln ν these are covariances with z and h.
    #[inline(always)]
    fn moments(
        &self,
        s: S,
        counts: &mut Counts,
        (all, len): (V<S>, usize),
        [m, l, h]: [V<S>; 3],
        (at, q): (usize, usize),
    ) {
        let zero = splat(s, 0.0);
        let nu = self.nu;
        let (mut zz, mut zh, mut hh, mut lz, mut lh) = (zero, zero, zero, zero, zero);
        for value in 0..len {
            let p = load(s, &counts.probability[value].0);
            let dz = splat(s, value as f32) - m;
            let dl = splat(s, counts.ln_factorial[value]) - l;
            let dh = self.h(counts, value) - h;
            zz = (p * dz).mul_add(dz, zz);
            zh = (p * dz).mul_add(dh, zh);
            hh = (p * dh).mul_add(dh, hh);
            lz = (p * dl).mul_add(dz, lz);
            lh = (p * dl).mul_add(dh, lh);
        }
        (nu * zz).store_slice(&mut counts.slope_eta[at].0[q]);
        (nu * zh).store_slice(&mut counts.slope_nu[at].0[q]);
        (nu.mul_add(self.offset, ln(s, all))).store_slice(&mut counts.log_all[at].0[q]);
        (ln(s, all) - nu * h - l).store_slice(&mut counts.rest[at].0[q]);
        (-(nu * nu * zh) - nu * lz).store_slice(&mut counts.rest_eta[at].0[q]);
        (-(nu * nu * hh) - nu * lh).store_slice(&mut counts.rest_nu[at].0[q]);
    }

    /// Makes all draws `q`, `q + distinct`, … of latents `at` at once: each is the first value at which F exceeds the uniform
    /// number in `z`, or z itself if it is given.
    #[inline(always)]
    fn draw(
        &self,
        s: S,
        counts: &mut Counts,
        len: usize,
        [m, _, h]: [V<S>; 3],
        (at, q): (usize, usize),
        (draws, distinct): (usize, usize),
        is_given: bool,
        z: &mut Tile,
    ) {
        let zero = splat(s, 0.0);
        let mut below = zero;
        let (mut f_z, mut f_h) = (zero, zero);
        let mut drawn = [zero; DRAWS];
        let mut t = [[zero; 3]; DRAWS];
        let u: [_; DRAWS] = std::array::from_fn(
            #[inline(always)]
            |i| row(s, z, i),
        );
        for value in 0..len {
            let p = load(s, &counts.probability[value].0);
            let above = if value + 1 == len { splat(s, 2.0) } else { below + p };
            f_z = p.mul_add(splat(s, value as f32) - m, f_z);
            f_h = p.mul_add(self.h(counts, value) - h, f_h);
            let inverse = -self.nu / p.max(splat(s, 1e-30));
            for i in (q..draws).step_by(distinct) {
                let is_here = if is_given {
                    u[i].simd_eq(splat(s, value as f32))
                } else {
                    u[i].simd_ge(below) & u[i].simd_lt(above)
                };
                drawn[i] = is_here.select(splat(s, value as f32), drawn[i]);
                t[i][0] = is_here.select(f_z * inverse, t[i][0]);
                t[i][1] = is_here.select(f_h * inverse, t[i][1]);
                t[i][2] = is_here.select(splat(s, counts.ln_factorial[value]), t[i][2]);
            }
            below = above;
        }
        for i in (q..draws).step_by(distinct) {
            drawn[i].store_slice(&mut z.0[i]);
            t[i][0].store_slice(&mut counts.t_eta[at].0[i]);
            t[i][1].store_slice(&mut counts.t_nu[at].0[i]);
            t[i][2].store_slice(&mut counts.ln_drawn[at].0[i]);
        }
    }
}

#[inline(always)]
fn counts_kernel<S: Simd>(
    s: S,
    counts: &mut Counts,
    [eta, log_nu]: [&[Tile]; 2],
    first: usize,
    draws: usize,
    distinct: usize,
    is_given: bool,
    mean: &mut [Tile],
    z: &mut [Tile],
) {
    for j in 0..eta.len() {
        let at = first + j;
        for q in 0..distinct {
            let factor = Factor::new(s, row(s, &eta[j], q), row(s, &log_nu[j], q));
            let (all, len) = factor.tabulate(s, counts);
            let means = factor.normalise(s, counts, all, len);
            means[0].store_slice(&mut mean[j].0[q]);
            factor.moments(s, counts, (all, len), means, (at, q));
            factor.draw(s, counts, len, means, (at, q), (draws, distinct), is_given, &mut z[j]);
        }
        for q in distinct..draws {
            let from = q % distinct;
            mean[j].0[q] = mean[j].0[from];
            let Counts { slope_eta, slope_nu, rest, rest_eta, rest_nu, log_all, .. } = &mut *counts;
            for tiles in [slope_eta, slope_nu, rest, rest_eta, rest_nu, log_all] {
                tiles[at].0[q] = tiles[at].0[from];
            }
        }
    }
}

simd_fn!(
    /// The moments of a layer's latents given η and ln ν, where draw q has those of draw q modulo `distinct`; and draws of them
    /// from the uniform numbers in `z`, or at z itself if it is given. `first` is the layer's position in `counts`.
    pub(crate) fn counts(
        counts: &mut Counts,
        lambda: [&[Tile]; 2],
        first: usize,
        draws: usize,
        distinct: usize,
        is_given: bool,
        mean: &mut [Tile],
        z: &mut [Tile],
    ) = counts_kernel
);

#[inline(always)]
fn own_kernel<S: Simd>(
    s: S,
    link: &Link,
    counts: &Counts,
    first: usize,
    mean: &[Tile],
    a: &[Tile],
    draws: usize,
    exact: &mut [Tile],
    d_nu: &mut [Tile],
    d_a: &mut [Tile],
    value: &mut [f32; DRAWS],
) {
    for j in 0..a.len() {
        let (at, mask) = (first + j, load(s, &link.mask[j].0));
        for q in 0..draws {
            let m = row(s, &mean[j], q);
            let (soft, slope) = softplus_sigmoid(s, row(s, &a[j], q));
            let rate = soft + RATE_MIN;
            let ln_rate = ln(s, rate);
            let own = m.mul_add(ln_rate, row(s, &counts.rest[at], q)) - rate;
            value[q] += total(own * mask);
            let along =
                |slope: &[Tile], rest: &[Tile]| row(s, &slope[at], q).mul_add(ln_rate, row(s, &rest[at], q)) * mask;
            along(&counts.slope_eta, &counts.rest_eta).store_slice(&mut exact[j].0[q]);
            along(&counts.slope_nu, &counts.rest_nu).store_slice(&mut d_nu[j].0[q]);
            (slope * (m / rate - 1.0) * mask).store_slice(&mut d_a[j].0[q]);
        }
    }
}

simd_fn!(
    /// Adds E ln p(z | a) − E ln q(z) of each draw to `value`; sets `exact` and `d_nu` to its derivatives along η and ln ν, and
    /// `d_a` to that along a.
    pub(crate) fn own(
        link: &Link,
        counts: &Counts,
        first: usize,
        mean: &[Tile],
        a: &[Tile],
        draws: usize,
        exact: &mut [Tile],
        d_nu: &mut [Tile],
        d_a: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) = own_kernel
);

#[inline(always)]
fn combine_kernel<S: Simd>(
    s: S,
    counts: &Counts,
    first: usize,
    draws: usize,
    exact: &[Tile],
    signal: &mut [Tile],
    d_nu: &mut [Tile],
) {
    for j in 0..signal.len() {
        let at = first + j;
        for q in 0..draws {
            let change = row(s, &signal[j], q);
            change.mul_add(row(s, &counts.t_nu[at], q), row(s, &d_nu[j], q)).store_slice(&mut d_nu[j].0[q]);
            change.mul_add(row(s, &counts.t_eta[at], q), row(s, &exact[j], q)).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    /// The derivatives along η and ln ν: the exact ones, plus t times the change of everything else as a latent goes up by one.
    pub(crate) fn combine(
        counts: &Counts,
        first: usize,
        draws: usize,
        exact: &[Tile],
        signal: &mut [Tile],
        d_nu: &mut [Tile],
    ) = combine_kernel
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

    /// Compares moments and derivatives with sums in double precision, and E[t (f(z + 1) − f(z))] over a fine grid of uniform
    /// numbers with the derivative of E f.
    #[test]
    fn counts_have_the_right_moments_and_derivatives() {
        for log_nu in [-0.5_f32, 0.0, 1.0, 2.5] {
            let mut eta = Tile::default();
            (0..LANES).for_each(|lane| eta.0[0][lane] = ETAS[lane % 8]);
            let mut nu = Tile::default();
            nu.0[0].fill(log_nu);
            let mut mean = [Tile::default()];
            let mut known = Counts::new(1);
            let grid = 4000;
            let f = |z: f64| (1.0 + z).ln().powi(2);
            let mut sums = [[0.0_f64; 3]; 8];
            for g in (0..grid).step_by(8) {
                let mut z = [Tile::default()];
                for i in 0..8 {
                    z[0].0[i] = [(g as f32 + i as f32 + 0.5) / grid as f32; LANES];
                }
                counts(&mut known, [&[eta], &[nu]], 0, 8, 1, false, &mut mean, &mut z);
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
                near("slope", of(&known.slope_eta[0]), slope(|eta| m(eta, nu), eta), 2e-3);
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

//! A Gaussian of low rank: λ = μ + U ε with few noises ε. Continuous latents have scales, which stay where they are, and are what the
//! rows of U are measured in: a step that is small for a latent of which little is known would be large for others.
//!
//! r guesses the noise: ε given z is nearly Gaussian, with the mode and the curvature that follow from μ and U by one Newton step at
//! ε = 0. It has no parameters of its own and is held fixed while μ and U climb.

use crate::kernel::between::means;
use crate::kernel::conway::{self, Counts};
use crate::kernel::{row, total};
use crate::shape::{Family, Shape};
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::Stream;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{load, splat};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use rand_distr::{Distribution, StandardNormal};

/// The noise of one document's draws and what r says of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LowRank {
    /// ε, and ε less what r expects, noise by noise.
    eps: Vec<[f32; DRAWS]>,
    off: Vec<[f32; DRAWS]>,
    /// μ as a draw, and the means and slopes there.
    centre: Vec<Tile>,
    mean: Vec<Tile>,
    slope: Vec<Tile>,
    /// c_k = ∂ ln q(z)/∂λ_k over z_k − E z_k, and the curvature. Of a continuous latent z is what is normal in q.
    pull: Vec<Lanes>,
    bend: Vec<Lanes>,
    /// L with L Lᵀ = P⁻¹, row by row.
    root: Vec<f32>,
    mask: Vec<Lanes>,
    /// Of counts that have a scale.
    counts: Option<Box<Counts>>,
    /// U itself, where some latents are continuous.
    rows: Vec<Lanes>,
}

impl LowRank {
    pub(super) fn new(rank: usize, shape: &Shape) -> Self {
        let n = shape.tiles_len();
        let tiles = || vec![Tile::default(); if rank > 0 { n } else { 0 }];
        let lanes = || vec![Lanes::default(); if rank > 0 { n } else { 0 }];
        Self {
            eps: vec![[0.0; DRAWS]; rank],
            off: vec![[0.0; DRAWS]; rank],
            centre: tiles(),
            mean: tiles(),
            slope: tiles(),
            pull: lanes(),
            bend: lanes(),
            root: vec![0.0; rank * rank],
            mask: shape.mask(),
            counts: None,
            rows: vec![Lanes::default(); if shape.is_continuous() { rank * n } else { 0 }],
        }
    }

    #[cfg(test)]
    pub(super) fn eps(&self) -> &[[f32; DRAWS]] {
        &self.eps
    }

    /// Draws the noise and λ.
    pub(super) fn draw(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        draws: usize,
        rng: &mut Stream,
        lambda: &mut [Tile],
    ) {
        // In pairs of opposite noise.
        for eps in &mut self.eps {
            for q in 0..draws {
                eps[q] = if q % 2 == 0 { StandardNormal.sample(rng) } else { -eps[q - 1] };
            }
        }
        let (own, rows) = parameters.split_at(shape.lambda_len());
        let (locations, scales) = lambda.split_at_mut(shape.tiles_len());
        if shape.is_continuous() {
            self.rows.copy_from_slice(rows);
            for (row, scale) in scaled_rows(shape, self.eps.len()) {
                self.rows[row].0.iter_mut().zip(own[scale].0).for_each(|(u, log_scale)| *u *= log_scale.exp());
            }
        }
        let rows = if shape.is_continuous() { &self.rows } else { rows };
        transform(own, rows, &self.eps, draws, locations);
        for (lambda, log_scale) in scales.iter_mut().zip(&own[locations.len()..]) {
            lambda.0[..draws].fill(log_scale.0);
        }
    }

    /// Adds ln r(ε | z) − ln q(ε) of each draw to `value`, and to `signal` by how much ln r changes as a latent goes up by one, or
    /// from 0 to 1.
    pub(super) fn recursive(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        z: &[Tile],
        draws: usize,
        signal: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) {
        let rank = self.eps.len();
        if rank == 0 {
            return;
        }
        let n = shape.tiles_len();
        for (centre, mu) in self.centre.iter_mut().zip(parameters) {
            centre.0[0] = mu.0;
        }
        for (l, layer) in shape.layers().iter().enumerate() {
            let tiles = shape.tiles(l);
            if layer.family.is_continuous() {
                for (j, scale) in tiles.zip(shape.scales(l)) {
                    self.mean[j].0[0] = self.centre[j].0[0];
                    let precision = |lane: usize| (-2.0 * parameters[scale].0[lane]).exp() * self.mask[j].0[lane];
                    self.pull[j].0 = std::array::from_fn(precision);
                    self.bend[j] = self.pull[j];
                }
                continue;
            }
            if shape.is_tight(l) {
                let (first, scales) = (tiles.start, shape.scales(l));
                let log_nu: Vec<Tile> = parameters[scales].iter().map(|lanes| Tile([lanes.0; DRAWS])).collect();
                let counts = self.counts.get_or_insert_with(|| Box::new(Counts::new(n)));
                // Draws are of no use here.
                let mut drawn = vec![Tile::default(); tiles.len()];
                let lambda = [&self.centre[tiles.clone()], log_nu.as_slice()];
                let mean = &mut self.mean[tiles.clone()];
                conway::counts(counts, lambda, first, 1, 1, false, mean, &mut drawn);
                for j in tiles {
                    for lane in 0..LANES {
                        let nu = conway::nu(log_nu[j - first].0[0][lane]) * self.mask[j].0[lane];
                        self.pull[j].0[lane] = nu;
                        self.bend[j].0[lane] = nu * counts.slope_eta[j].0[0][lane];
                    }
                }
                continue;
            }
            means(
                layer.family == Family::Bernoulli,
                &self.centre[tiles.clone()],
                1,
                &mut self.mean[tiles.clone()],
                &mut self.slope[tiles.clone()],
            );
            for j in tiles {
                for lane in 0..LANES {
                    let (mean, slope) = (self.mean[j].0[0][lane], self.slope[j].0[0][lane]);
                    let is_binary = layer.family == Family::Bernoulli;
                    let (pull, bend) = if is_binary { (1.0, slope) } else { (slope / mean, slope * slope / mean) };
                    let is_latent = self.mask[j].0[lane];
                    self.pull[j].0[lane] = is_latent * pull;
                    self.bend[j].0[lane] = is_latent * bend;
                }
            }
        }
        // P = I + Uᵀ diag(bend) U.
        let rows = if shape.is_continuous() { &self.rows } else { &parameters[shape.lambda_len()..] };
        let mut precision = vec![0.0; rank * rank];
        for r in 0..rank {
            for t in 0..=r {
                let both = weighted(&rows[r * n..][..n], &rows[t * n..][..n], &self.bend);
                let entry = f64::from(both) + if r == t { 1.0 } else { 0.0 };
                (precision[r * rank + t], precision[t * rank + r]) = (entry, entry);
            }
        }
        let Some(factor) = cholesky(&precision, rank) else { return };
        // P⁻¹ = L Lᵀ with L the transpose of the inverse of P's own factor.
        let mut log_volume = 0.0;
        for c in 0..rank {
            log_volume += factor[packed(c, c)].ln();
            let mut column = vec![0.0; rank];
            for r in c..rank {
                let unit = if r == c { 1.0 } else { 0.0 };
                let taken: f64 = (c..r).map(|t| factor[packed(r, t)] * column[t]).sum();
                column[r] = (unit - taken) / factor[packed(r, r)];
            }
            for r in 0..rank {
                self.root[c * rank + r] = column[r] as f32;
            }
        }
        let mut pulled = vec![[0.0_f32; DRAWS]; rank];
        gather(rows, &self.pull, &self.mean, z, draws, &mut pulled);
        for q in 0..draws {
            // m = L (Lᵀ g).
            let inner: Vec<f32> =
                (0..rank).map(|r| (0..rank).map(|c| self.root[c * rank + r] * pulled[c][q]).sum()).collect();
            let (mut squares, mut distance) = (0.0, 0.0);
            for r in 0..rank {
                let expected: f32 = (0..rank).map(|t| self.root[r * rank + t] * inner[t]).sum();
                self.off[r][q] = self.eps[r][q] - expected;
                squares += self.eps[r][q] * self.eps[r][q];
            }
            for r in 0..rank {
                for t in 0..rank {
                    distance += precision[r * rank + t] as f32 * self.off[r][q] * self.off[t][q];
                }
            }
            value[q] += log_volume as f32 - 0.5 * distance + 0.5 * squares;
        }
        for (l, layer) in shape.layers().iter().enumerate() {
            differences(rows, n, &self.pull, &self.off, &self.root, shape.tiles(l), layer.family, z, draws, signal);
        }
    }

    /// Adds the derivatives along μ and U to `gradient`, given those along λ, averaged over the draws.
    pub(super) fn pullback(
        &self,
        shape: &Shape,
        parameters: &[Lanes],
        d_lambda: &[Tile],
        draws: usize,
        gradient: &mut [Lanes],
    ) {
        let (d_mu, d_rows) = gradient.split_at_mut(shape.lambda_len());
        pullback(&self.eps, shape.tiles_len(), d_lambda, draws, d_mu, d_rows);
        for (row, scale) in scaled_rows(shape, self.eps.len()) {
            for lane in 0..LANES {
                let d_row = &mut d_rows[row].0[lane];
                d_mu[scale].0[lane] += *d_row * self.rows[row].0[lane];
                *d_row *= parameters[scale].0[lane].exp();
            }
        }
    }
}

/// The vectors of U that are measured in scales, and where these are in λ.
fn scaled_rows(shape: &Shape, rank: usize) -> impl Iterator<Item = (usize, usize)> {
    shape.scaled().flat_map(move |(tile, scale)| (0..rank).map(move |r| (r * shape.tiles_len() + tile, scale)))
}

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
    fn transform(
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
    fn weighted(a: &[Lanes], b: &[Lanes], weight: &[Lanes]) -> f32 = weighted_kernel
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
    fn gather(
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
        // Of a difference, not of a derivative.
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
    fn differences(
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
    fn pullback(
        eps: &[[f32; DRAWS]],
        n: usize,
        d_lambda: &[Tile],
        draws: usize,
        d_mu: &mut [Lanes],
        d_rows: &mut [Lanes],
    ) = pullback_kernel
);

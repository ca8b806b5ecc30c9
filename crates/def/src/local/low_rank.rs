//! A Gaussian of low rank: λ = μ + U ε with few noises ε. Continuous latents also have scales, which do not depend on ε; the rows
//! of U are in units of these, because a step that is small for a latent with a wide posterior would be large for others.
//!
//! r approximates the distribution of the noise given z, which is nearly Gaussian: its mode and curvature follow from μ and U by
//! one Newton step at ε = 0. It has no parameters of its own and is held fixed in the gradient along μ and U.

use crate::kernel::conway_maxwell::{self, Counts};
use crate::kernel::layer::means;
use crate::kernel::low_rank::{differences, gather, pullback, transform, weighted};
use crate::shape::{Family, Shape};
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use rand_distr::{Distribution, StandardNormal};

/// The noise of one document's draws and its distribution under r.
#[derive(Clone, Debug, Default)]
pub(crate) struct LowRank {
    /// ε, and ε less its mean under r, noise by noise.
    eps: Vec<[f32; DRAWS]>,
    off: Vec<[f32; DRAWS]>,
    /// μ as a draw, and the means and slopes there.
    centre: Vec<Tile>,
    mean: Vec<Tile>,
    slope: Vec<Tile>,
    /// c_k = ∂ ln q(z)/∂λ_k over z_k − E z_k, and the curvature. For a continuous latent z is on the scale on which q is normal.
    pull: Vec<Lanes>,
    bend: Vec<Lanes>,
    /// P, and L with L Lᵀ = P⁻¹, row by row.
    precision: Vec<f64>,
    root: Vec<f32>,
    mask: Vec<Lanes>,
    /// The moments of Conway–Maxwell counts.
    counts: Option<Box<Counts>>,
    /// U itself, if some latents are continuous.
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
            precision: vec![0.0; rank * rank],
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
        // Antithetic pairs.
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

    /// Adds ln r(ε | z) − ln q(ε) of each draw to `value`, and to `signal` the change of ln r as a latent goes up by one, or from 0
    /// to 1.
    pub(super) fn recursive(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        z: &[Tile],
        draws: usize,
        signal: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) {
        let (rank, n) = (self.eps.len(), shape.tiles_len());
        if rank == 0 {
            return;
        }
        for (centre, mu) in self.centre.iter_mut().zip(parameters) {
            centre.0[0] = mu.0;
        }
        for l in 0..shape.layers().len() {
            self.expand_layer(shape, parameters, l);
        }
        let Some(log_volume) = self.factorise(shape, parameters) else { return };
        let rows = if shape.is_continuous() { &self.rows } else { &parameters[shape.lambda_len()..] };
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
                    distance += self.precision[r * rank + t] as f32 * self.off[r][q] * self.off[t][q];
                }
            }
            value[q] += log_volume as f32 - 0.5 * distance + 0.5 * squares;
        }
        for (l, layer) in shape.layers().iter().enumerate() {
            differences(rows, n, &self.pull, &self.off, &self.root, shape.tiles(l), layer.family, z, draws, signal);
        }
    }

    /// The means of a layer's latents at μ, and the first two derivatives of ln q(z | λ) there.
    fn expand_layer(&mut self, shape: &Shape, parameters: &[Lanes], l: usize) {
        let (layer, tiles) = (shape.layers()[l], shape.tiles(l));
        if layer.family.is_continuous() {
            for (j, scale) in tiles.zip(shape.scales(l)) {
                self.mean[j].0[0] = self.centre[j].0[0];
                let precision = |lane: usize| (-2.0 * parameters[scale].0[lane]).exp() * self.mask[j].0[lane];
                self.pull[j].0 = std::array::from_fn(precision);
                self.bend[j] = self.pull[j];
            }
            return;
        }
        if shape.is_conway_maxwell(l) {
            let (first, scales) = (tiles.start, shape.scales(l));
            let log_nu: Vec<Tile> = parameters[scales].iter().map(|lanes| Tile([lanes.0; DRAWS])).collect();
            let counts = self.counts.get_or_insert_with(|| Box::new(Counts::new(shape.tiles_len())));
            // The draws are not needed.
            let mut drawn = vec![Tile::default(); tiles.len()];
            let lambda = [&self.centre[tiles.clone()], log_nu.as_slice()];
            let mean = &mut self.mean[tiles.clone()];
            conway_maxwell::counts(counts, lambda, first, 1, 1, false, mean, &mut drawn);
            for j in tiles {
                for lane in 0..LANES {
                    let nu = conway_maxwell::nu(log_nu[j - first].0[0][lane]) * self.mask[j].0[lane];
                    self.pull[j].0[lane] = nu;
                    self.bend[j].0[lane] = nu * counts.slope_eta[j].0[0][lane];
                }
            }
            return;
        }
        let is_binary = layer.family == Family::Bernoulli;
        let (mean, slope) = (&mut self.mean[tiles.clone()], &mut self.slope[tiles.clone()]);
        means(is_binary, &self.centre[tiles.clone()], 1, mean, slope);
        for j in tiles {
            for lane in 0..LANES {
                let (mean, slope) = (self.mean[j].0[0][lane], self.slope[j].0[0][lane]);
                let (pull, bend) = if is_binary { (1.0, slope) } else { (slope / mean, slope * slope / mean) };
                let is_latent = self.mask[j].0[lane];
                self.pull[j].0[lane] = is_latent * pull;
                self.bend[j].0[lane] = is_latent * bend;
            }
        }
    }

    /// Computes P = I + Uᵀ diag(bend) U and the root of its inverse; returns ½ ln det P, or `None` if P is not positive definite.
    fn factorise(&mut self, shape: &Shape, parameters: &[Lanes]) -> Option<f64> {
        let (rank, n) = (self.eps.len(), shape.tiles_len());
        let rows = if shape.is_continuous() { &self.rows } else { &parameters[shape.lambda_len()..] };
        for r in 0..rank {
            for t in 0..=r {
                let both = weighted(&rows[r * n..][..n], &rows[t * n..][..n], &self.bend);
                let entry = f64::from(both) + if r == t { 1.0 } else { 0.0 };
                (self.precision[r * rank + t], self.precision[t * rank + r]) = (entry, entry);
            }
        }
        let factor = cholesky(&self.precision, rank)?;
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
        Some(log_volume)
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

/// The vectors of U in units of scales, and the positions of these in λ.
fn scaled_rows(shape: &Shape, rank: usize) -> impl Iterator<Item = (usize, usize)> {
    shape.scaled().flat_map(move |(tile, scale)| (0..rank).map(move |r| (r * shape.tiles_len() + tile, scale)))
}

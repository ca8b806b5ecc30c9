//! A mixture: λ is one of a few points, with weights.
//!
//! r is exact: given z, the probability of each point is its responsibility for z. So the bound is that of the mixture
//! Σ w_i q(z | λ_i) itself and is at least that of its best component: if a document has several explanations, several are kept.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use crate::kernel::conway_maxwell::{self, Counts};
use crate::kernel::{normal, row, total};
use crate::shape::{Family, Shape};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, ln, load, softplus_sigmoid, splat};
use hyperprior_math::single::{DRAWS, Lanes, Tile};
use std::ops::Range;

/// The points of one document, and their statistics over its draws. Draw q is from point q modulo their number.
#[derive(Clone, Debug)]
pub(crate) struct Mixture {
    points: usize,
    /// ln w.
    log_weights: [f32; DRAWS],
    /// The natural parameters of each point's factors, and e^±λ of binary ones or the means of counts.
    natural: Vec<Tile>,
    up: Vec<Tile>,
    down: Vec<Tile>,
    /// The responsibility of each point for each draw.
    responsibility: [[f32; DRAWS]; DRAWS],
    /// The estimate of each optimal ln w, up to a constant.
    level: [f32; DRAWS],
    mask: Vec<Lanes>,
}

impl Mixture {
    pub(super) fn new(points: usize, shape: &Shape) -> Self {
        let tiles = || vec![Tile::default(); shape.tiles_len()];
        Self {
            points,
            log_weights: [0.0; DRAWS],
            natural: tiles(),
            up: tiles(),
            down: tiles(),
            responsibility: [[0.0; DRAWS]; DRAWS],
            level: [0.0; DRAWS],
            mask: shape.mask(),
        }
    }

    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// Draws each point equally often, and sets the weight of each draw.
    pub(super) fn draw(&mut self, parameters: &[Lanes], draws: usize, lambda: &mut [Tile], shares: &mut [f32; DRAWS]) {
        let n = lambda.len();
        let wanted = &parameters[self.points * n].0[..self.points];
        let most = wanted.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let all = wanted.iter().map(|a| (a - most).exp()).sum::<f32>().ln() + most;
        for q in 0..draws {
            let i = q % self.points;
            self.log_weights[i] = wanted[i] - all;
            shares[q] = self.log_weights[i].exp() * self.points as f32 / draws as f32;
            for (lambda, point) in lambda.iter_mut().zip(&parameters[i * n..]) {
                lambda.0[q] = point.0;
            }
        }
    }

    /// Adds ln r(i | z) − ln w_i of each draw to `value`, and to `signal` the change of ln r as a latent goes up by one, or from 0
    /// to 1; for a continuous latent the derivative on the scale on which q is normal.
    pub(super) fn recursive(
        &mut self,
        shape: &Shape,
        [lambda, mean, z]: [&[Tile]; 3],
        counts: Option<&Counts>,
        draws: usize,
        signal: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) {
        let points = self.points;
        let log_q = self.log_densities(shape, [lambda, mean, z], counts, draws);
        for q in 0..draws {
            let joint = |i: usize| self.log_weights[i] + log_q[i][q];
            let most = (0..points).map(joint).fold(f32::NEG_INFINITY, f32::max);
            let all = (0..points).map(|i| (joint(i) - most).exp()).sum::<f32>().ln() + most;
            value[q] += log_q[q % points][q] - all;
            for i in 0..points {
                self.responsibility[i][q] = (joint(i) - all).exp();
            }
        }
        for (l, layer) in shape.layers().iter().enumerate() {
            if layer.family.is_continuous() {
                let tiles = shape.tiles(l);
                let known = [&lambda[tiles.clone()], &lambda[shape.scales(l)], &z[tiles.clone()]];
                let mask = &self.mask[tiles.clone()];
                normal::slopes(points, known, mask, &self.responsibility, draws, &mut signal[tiles]);
                continue;
            }
            if shape.is_conway_maxwell(l) {
                let tiles = shape.tiles(l);
                let known = [&lambda[tiles.clone()], &lambda[shape.scales(l)], &z[tiles.clone()]];
                let mask = &self.mask[tiles.clone()];
                conway_maxwell::mixture::changes(points, known, mask, &self.responsibility, draws, &mut signal[tiles]);
                continue;
            }
            differences(
                layer.family == Family::Bernoulli,
                points,
                shape.tiles(l),
                [&self.natural, &self.up, &self.down],
                &self.mask,
                &self.responsibility,
                z,
                draws,
                signal,
            );
        }
    }

    /// ln q(z | λ_i) of each point and draw, up to terms that all points share.
    fn log_densities(
        &mut self,
        shape: &Shape,
        [lambda, mean, z]: [&[Tile]; 3],
        counts: Option<&Counts>,
        draws: usize,
    ) -> [[f32; DRAWS]; DRAWS] {
        let points = self.points;
        let mut log_q = [[0.0; DRAWS]; DRAWS];
        for (l, layer) in shape.layers().iter().enumerate() {
            let tiles = shape.tiles(l);
            if layer.family.is_continuous() {
                let (lambda, log_scale) = (&lambda[tiles.clone()], &lambda[shape.scales(l)]);
                normal::densities(points, lambda, log_scale, &self.mask[tiles.clone()], &z[tiles], draws, &mut log_q);
                continue;
            }
            if let Some(counts) = counts.filter(|_| shape.is_conway_maxwell(l)) {
                let lambda = [&lambda[tiles.clone()], &lambda[shape.scales(l)]];
                let mask = &self.mask[tiles.clone()];
                let first = tiles.start;
                conway_maxwell::mixture::densities(points, lambda, counts, first, mask, &z[tiles], draws, &mut log_q);
                continue;
            }
            describe(
                layer.family == Family::Bernoulli,
                points,
                &lambda[tiles.clone()],
                &mean[tiles.clone()],
                &self.mask[tiles.clone()],
                &mut self.natural[tiles.clone()],
                &mut self.up[tiles.clone()],
                &mut self.down[tiles],
                &mut log_q,
            );
        }
        // The natural parameters of latents that have scales stay at zero here.
        densities(points, &self.natural, z, draws, &mut log_q);
        log_q
    }

    /// Records the values of the last draws.
    pub(super) fn record(&mut self, value: &[f32; DRAWS], draws: usize) {
        let share = self.points as f32 / draws as f32;
        self.level = self.log_weights;
        for q in 0..draws {
            self.level[q % self.points] += share * value[q];
        }
    }

    /// The optimal ln w of each point, estimated from the last draws, up to a constant.
    pub(super) fn level(&self) -> &[f32] {
        &self.level[..self.points]
    }

    pub(super) fn log_weight(&self, point: usize) -> f32 {
        self.log_weights[point]
    }

    /// The derivatives along each point's parameters divided by its weight, given those along λ.
    pub(super) fn pullback(&self, d_lambda: &[Tile], draws: usize, gradient: &mut [Lanes]) {
        let (n, share) = (d_lambda.len(), self.points as f32 / draws as f32);
        for q in 0..draws {
            for (to, from) in gradient[q % self.points * n..].iter_mut().zip(d_lambda) {
                to.0.iter_mut().zip(from.0[q]).for_each(|(to, d)| *to += share * d);
            }
        }
    }
}

/// Logits are clamped to this.
const LOGIT_MAX: f32 = 40.0;

#[inline(always)]
fn describe_kernel<S: Simd>(
    s: S,
    is_binary: bool,
    points: usize,
    lambda: &[Tile],
    mean: &[Tile],
    mask: &[Lanes],
    natural: &mut [Tile],
    up: &mut [Tile],
    down: &mut [Tile],
    log_q: &mut [[f32; DRAWS]; DRAWS],
) {
    for i in 0..points {
        let mut base = splat(s, 0.0);
        for j in 0..lambda.len() {
            let mask = load(s, &mask[j].0);
            if is_binary {
                let logit = row(s, &lambda[j], i).max(splat(s, -LOGIT_MAX)).min(splat(s, LOGIT_MAX));
                (logit * mask).store_slice(&mut natural[j].0[i]);
                exp(s, logit).store_slice(&mut up[j].0[i]);
                exp(s, -logit).store_slice(&mut down[j].0[i]);
                base = softplus_sigmoid(s, logit).0.mul_add(mask, base);
            } else {
                let m = row(s, &mean[j], i);
                (ln(s, m.max(splat(s, f32::MIN_POSITIVE))) * mask).store_slice(&mut natural[j].0[i]);
                m.store_slice(&mut up[j].0[i]);
                base = m.mul_add(mask, base);
            }
        }
        let base = total(base);
        log_q[i].iter_mut().for_each(|log_q| *log_q -= base);
    }
}

simd_fn!(
    /// Computes the natural parameters of a discrete layer's factors and their exponentials; subtracts the log normalising
    /// constants.
    fn describe(
        is_binary: bool,
        points: usize,
        lambda: &[Tile],
        mean: &[Tile],
        mask: &[Lanes],
        natural: &mut [Tile],
        up: &mut [Tile],
        down: &mut [Tile],
        log_q: &mut [[f32; DRAWS]; DRAWS],
    ) = describe_kernel
);

#[inline(always)]
fn densities_kernel<S: Simd>(
    s: S,
    points: usize,
    natural: &[Tile],
    z: &[Tile],
    draws: usize,
    log_q: &mut [[f32; DRAWS]; DRAWS],
) {
    for i in 0..points {
        let mut sum = [splat(s, 0.0); DRAWS];
        for (natural, z) in natural.iter().zip(z) {
            let natural = row(s, natural, i);
            for q in 0..draws {
                sum[q] = natural.mul_add(row(s, z, q), sum[q]);
            }
        }
        for q in 0..draws {
            log_q[i][q] += total(sum[q]);
        }
    }
}

simd_fn!(
    /// Adds ln q(z | λ_i) of each point and draw, up to terms that all points share.
    fn densities(points: usize, natural: &[Tile], z: &[Tile], draws: usize, log_q: &mut [[f32; DRAWS]; DRAWS]) = densities_kernel
);

#[inline(always)]
fn differences_kernel<S: Simd>(
    s: S,
    is_binary: bool,
    points: usize,
    tiles: Range<usize>,
    [natural, up, down]: [&[Tile]; 3],
    mask: &[Lanes],
    responsibility: &[[f32; DRAWS]; DRAWS],
    z: &[Tile],
    draws: usize,
    signal: &mut [Tile],
) {
    let tiny = splat(s, f32::MIN_POSITIVE);
    for j in tiles {
        for q in 0..draws {
            let (mut more, mut less) = (splat(s, 0.0), splat(s, 0.0));
            for i in 0..points {
                let share = splat(s, responsibility[i][q]);
                more = row(s, &up[j], i).mul_add(share, more);
                if is_binary {
                    less = row(s, &down[j], i).mul_add(share, less);
                }
            }
            // The change of the mixture's log density as the latent goes up.
            let mixed = if is_binary {
                let is_on = row(s, &z[j], q).simd_gt(splat(s, 0.5));
                is_on.select(-ln(s, less.max(tiny)), ln(s, more.max(tiny)))
            } else {
                ln(s, more.max(tiny))
            };
            let change = (row(s, &natural[j], q % points) - mixed) * load(s, &mask[j].0);
            (row(s, &signal[j], q) + change).store_slice(&mut signal[j].0[q]);
        }
    }
}

simd_fn!(
    fn differences(
        is_binary: bool,
        points: usize,
        tiles: Range<usize>,
        described: [&[Tile]; 3],
        mask: &[Lanes],
        responsibility: &[[f32; DRAWS]; DRAWS],
        z: &[Tile],
        draws: usize,
        signal: &mut [Tile],
    ) = differences_kernel
);

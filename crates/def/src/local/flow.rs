//! The paper's model of a document: a planar flow for λ, and for r an inverse planar flow on λ whose base depends on each latent.
//!
//! Continuous latents also have scales s, which do not flow. The flow x starts at μ, and its distance from there is in units of
//! these: λ = μ + e^s (x − μ), and r is a density of x. A document's parameters are μ, s, the rest of the flow's, and r's.

use crate::shape::{Family, Shape};
use hyperprior::many::{Cotangents, FlowPair, Work, count_features};
use hyperprior_math::random::Stream;
use hyperprior_math::single::planar::Into;
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use rand_distr::{Distribution, StandardNormal};

/// The initial scale of λ, and of r around it.
const SCALE: f32 = 0.1;
/// The initial spread of the layers' parameters.
const SPREAD: f32 = 0.05;
/// The row of r's base with the logarithms of its scales.
const LOG_SCALES: usize = 3;

/// The flows of one document's draws.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pair: FlowPair,
    work: Work,
    mask: Vec<Lanes>,
    eps: Vec<Tile>,
    log_q: [f32; DRAWS],
    features: Vec<Tile>,
    from: Vec<Tile>,
    to: Vec<Tile>,
    moved: Vec<Tile>,
    /// If there are scales: the flow's parameters without them, and the gradient along these.
    theta: Vec<Lanes>,
    d_theta: Vec<Lanes>,
}

impl Flow {
    pub(super) fn pair(lengths: (usize, usize), shape: &Shape) -> FlowPair {
        // Empty lanes between layers are latents that stay at zero: their terms in log q and log r cancel.
        FlowPair::new(shape.tiles_len() * LANES, lengths.0, lengths.1)
    }

    pub(super) fn new(lengths: (usize, usize), shape: &Shape) -> Self {
        let pair = Self::pair(lengths, shape);
        let tiles = |count: usize| vec![Tile::default(); count * shape.tiles_len()];
        let theta = || vec![Lanes::default(); if shape.is_continuous() { pair.theta_len() } else { 0 }];
        Self {
            theta: theta(),
            d_theta: theta(),
            work: pair.work(),
            pair,
            mask: shape.mask(),
            eps: tiles(1),
            log_q: [0.0; DRAWS],
            features: tiles(2),
            from: tiles(2),
            to: tiles(2),
            moved: tiles(1),
        }
    }

    /// The rows after the means: a narrow λ, an equally narrow r around it, and layers that are nearly the identity.
    pub(super) fn start(lengths: (usize, usize), shape: &Shape, rng: &mut Stream, out: &mut [Lanes]) {
        let pair = Self::pair(lengths, shape);
        let (n, mask) = (shape.tiles_len(), shape.mask());
        let (means, rest) = out.split_at_mut(shape.lambda_len());
        let (theta, phi) = rest.split_at_mut(pair.theta_len() - n);
        let (log_scales, layers) = theta.split_at_mut(n);
        let (r_base, r_layers) = phi.split_at_mut(phi_base_len(n));
        for j in 0..n {
            for lane in 0..LANES {
                let at = SCALE.ln() * mask[j].0[lane];
                log_scales[j].0[lane] = at;
                r_base[j].0[lane] = means[j].0[lane];
                r_base[LOG_SCALES * n + j].0[lane] = at;
            }
        }
        for layers in [layers, r_layers] {
            let mut rows = layers.chunks_exact_mut(n);
            // Rows over latents come first in each layer; the remaining numbers start at zero.
            for row in &mut rows {
                for (lanes, mask) in row.iter_mut().zip(&mask) {
                    for (x, mask) in lanes.0.iter_mut().zip(mask.0) {
                        let normal: f32 = StandardNormal.sample(rng);
                        *x = SPREAD * normal * mask;
                    }
                }
            }
        }
    }

    /// Moves r to the current μ.
    pub(super) fn begin(lengths: (usize, usize), shape: &Shape, out: &mut [Lanes]) {
        let (n, first) =
            (shape.tiles_len(), shape.lambda_len() + Self::pair(lengths, shape).theta_len() - shape.tiles_len());
        let (means, rest) = out.split_at_mut(first);
        rest[..n].copy_from_slice(&means[..n]);
    }

    pub(super) fn draw(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        draws: usize,
        rng: &mut Stream,
        lambda: &mut [Tile],
    ) {
        for (tile, mask) in self.eps.iter_mut().zip(&self.mask) {
            *tile = Tile::default();
            for eps in &mut tile.0[..draws] {
                for (eps, mask) in eps.iter_mut().zip(mask.0) {
                    if mask > 0.0 {
                        *eps = StandardNormal.sample(rng);
                    }
                }
            }
        }
        let (n, len) = (shape.tiles_len(), shape.lambda_len());
        if shape.is_continuous() {
            self.theta[..n].copy_from_slice(&parameters[..n]);
            self.theta[n..].copy_from_slice(&parameters[len..][..self.pair.theta_len() - n]);
        }
        let theta = if shape.is_continuous() { &self.theta } else { &parameters[..self.pair.theta_len()] };
        self.log_q = self.pair.transform(theta, &self.eps, &mut self.work);
        lambda[..n].copy_from_slice(self.work.lambda());
        for (j, scale) in shape.scaled() {
            for lane in 0..LANES {
                let (mu, log_scale) = (parameters[j].0[lane], parameters[scale].0[lane]);
                for q in 0..draws {
                    lambda[scale].0[q][lane] = log_scale;
                    lambda[j].0[q][lane] = log_scale.exp().mul_add(lambda[j].0[q][lane] - mu, mu);
                }
            }
        }
    }

    /// r's parameters.
    fn phi<'a>(&self, shape: &Shape, parameters: &'a [Lanes]) -> &'a [Lanes] {
        &parameters[self.pair.theta_len() + shape.lambda_len() - shape.tiles_len()..]
    }

    pub(super) fn recursive(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        z: &[Tile],
        draws: usize,
        signal: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) {
        let phi = self.phi(shape, parameters);
        let n = shape.tiles_len();
        count_features(z, &mut self.features);
        for (j, _) in shape.scaled() {
            self.features[j].0 = z[j].0.map(|y| y.map(|y| features(y)[0]));
            self.features[n + j].0 = z[j].0.map(|y| y.map(|y| features(y)[1]));
        }
        let log_r = self.pair.log_r(phi, &self.features, &mut self.work);
        for q in 0..draws {
            value[q] += log_r[q] - self.log_q[q];
        }
        for up in [false, true] {
            for (l, layer) in shape.layers().iter().enumerate() {
                if layer.family.is_continuous() {
                    self.moved[shape.tiles(l)].fill(Tile::default());
                    continue;
                }
                let is_binary = layer.family == Family::Bernoulli;
                for j in shape.tiles(l) {
                    for q in 0..DRAWS {
                        for lane in 0..LANES {
                            let z = if is_binary { 0.0 } else { z[j].0[q][lane] };
                            let more = if up { self.mask[j].0[lane] } else { 0.0 };
                            self.moved[j].0[q][lane] = z + more;
                        }
                    }
                }
            }
            count_features(&self.moved, if up { &mut self.to } else { &mut self.from });
        }
        self.pair.log_r_changes(phi, (&self.from, &self.to), &self.work, signal);
        for (j, _) in shape.scaled() {
            let base = std::array::from_fn(|row| &phi[row * n + j]);
            slopes(base, &self.work.lambda()[j], &z[j], draws, &mut signal[j]);
        }
    }

    /// The gradient of the mean of the bound over the draws; `d_lambda` is its derivative along λ without log q and log r.
    pub(super) fn pullback(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        [lambda, d_lambda]: [&[Tile]; 2],
        draws: usize,
        gradient: &mut [Lanes],
    ) {
        let share = 1.0 / draws as f32;
        let (mut log_q, mut log_r) = ([0.0; DRAWS], [0.0; DRAWS]);
        log_q[..draws].fill(-share);
        log_r[..draws].fill(share);
        for (to, from) in self.moved.iter_mut().zip(d_lambda) {
            *to = Tile::default();
            for q in 0..draws {
                to.0[q] = from.0[q].map(|d| d * share);
            }
        }
        let (n, len, theta_len) = (shape.tiles_len(), shape.lambda_len(), self.pair.theta_len());
        // From λ to x, and along s.
        let mut straight = Vec::new();
        for (j, scale) in shape.scaled() {
            let mut d_mu = Lanes::default();
            for lane in 0..LANES {
                let (mu, unit) = (parameters[j].0[lane], parameters[scale].0[lane].exp());
                for q in 0..draws {
                    let d = &mut self.moved[j].0[q][lane];
                    gradient[scale].0[lane] += share * d_lambda[scale].0[q][lane] + *d * (lambda[j].0[q][lane] - mu);
                    d_mu.0[lane] += *d * (1.0 - unit);
                    *d *= unit;
                }
            }
            straight.push((j, d_mu));
        }
        let cotangents = Cotangents { lambda: &self.moved, log_q: &log_q, log_r: &log_r };
        let phi = self.phi(shape, parameters);
        let (d_all, d_phi) = gradient.split_at_mut(theta_len + len - n);
        let theta = if shape.is_continuous() { &self.theta } else { &parameters[..theta_len] };
        let d_theta = if shape.is_continuous() { self.d_theta.as_mut_slice() } else { &mut *d_all };
        let known = (self.eps.as_slice(), self.features.as_slice());
        self.pair.pullback((theta, phi), known, cotangents, &mut self.work, Into::Replace, (d_theta, d_phi));
        for (j, mask) in self.mask.iter().enumerate() {
            for lane in 0..LANES {
                d_theta[n + j].0[lane] *= mask.0[lane];
                d_phi[LOG_SCALES * n + j].0[lane] *= mask.0[lane];
            }
        }
        if shape.is_continuous() {
            d_all[..n].copy_from_slice(&self.d_theta[..n]);
            d_all[len..].copy_from_slice(&self.d_theta[n..]);
        }
        for (j, d_mu) in straight {
            d_all[j].0.iter_mut().zip(d_mu.0).for_each(|(to, d)| *to += d);
        }
    }
}

/// The features of a continuous latent that r depends on.
fn features(y: f32) -> [f32; 2] {
    [0.5 * y, 0.5 * (y * y).ln_1p()]
}

/// Adds the derivative of log r along y of sixteen continuous latents: r's base at λ₀ is N(a + b·t, e^(2 (e + f·t))) with t the
/// features.
fn slopes([a, b1, b2, e, f1, f2]: [&Lanes; 6], lambda: &Tile, y: &Tile, draws: usize, signal: &mut Tile) {
    for q in 0..draws {
        for lane in 0..LANES {
            let y = y.0[q][lane];
            let [t1, t2] = features(y);
            let (d_1, d_2) = (0.5, y / (1.0 + y * y));
            let log_scale = e.0[lane] + f1.0[lane] * t1 + f2.0[lane] * t2;
            let inverse = (-log_scale).exp();
            let standard = (lambda.0[q][lane] - a.0[lane] - b1.0[lane] * t1 - b2.0[lane] * t2) * inverse;
            let location = b1.0[lane] * d_1 + b2.0[lane] * d_2;
            let widening = f1.0[lane] * d_1 + f2.0[lane] * d_2;
            signal.0[q][lane] += standard * inverse * location + (standard * standard - 1.0) * widening;
        }
    }
}

/// The number of vectors of r's base: a location and a log scale, each with two features.
fn phi_base_len(tiles_len: usize) -> usize {
    6 * tiles_len
}

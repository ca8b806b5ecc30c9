//! Draws of λ and of the latents.

use super::Estimator;
use crate::kernel::layer::means;
use crate::kernel::{continuous, conway_maxwell, draw};
use crate::shape::{Family, Layer, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{LANES, Lanes};
use rand_distr::{Distribution, StandardNormal};

impl Estimator {
    /// Draws λ, the means given λ, and z.
    pub(crate) fn draw(&mut self, shape: &Shape, parameters: &[Lanes], draws: usize, rng: &mut Stream) {
        self.noise.draw(shape, parameters, draws, rng, &mut self.lambda, &mut self.shares);
        for (l, layer) in shape.layers().iter().enumerate() {
            let tiles = shape.tiles(l);
            if layer.family.is_continuous() {
                self.draw_continuous(shape, l, draws, rng);
                continue;
            }
            if shape.is_conway_maxwell(l) {
                self.draw_counts(shape, l, draws, rng);
                continue;
            }
            let is_binary = layer.family == Family::Bernoulli;
            let (mean, z) = (&mut self.mean[tiles.clone()], &mut self.z[tiles.clone()]);
            means(is_binary, &self.lambda[tiles.clone()], draws, mean, &mut self.slope[tiles]);
            draw::uniform(layer.width, draws, self.noise.is_paired(), rng, z);
            if is_binary {
                draw::bits(mean, draws, z);
            } else {
                draw::counts(mean, draws, rng, z);
            }
        }
    }

    /// Draws a layer of Conway–Maxwell counts given λ.
    fn draw_counts(&mut self, shape: &Shape, l: usize, draws: usize, rng: &mut Stream) {
        let width = shape.layers()[l].width;
        draw::uniform(width, draws, self.noise.is_paired(), rng, &mut self.z[shape.tiles(l)]);
        self.count(shape, l, draws, false);
    }

    fn count(&mut self, shape: &Shape, l: usize, draws: usize, is_given: bool) {
        let (tiles, distinct) = (shape.tiles(l), self.noise.distinct(draws));
        if let Some(counts) = &mut self.counts {
            let lambda = [&self.lambda[tiles.clone()], &self.lambda[shape.scales(l)]];
            let (mean, z) = (&mut self.mean[tiles.clone()], &mut self.z[tiles.clone()]);
            conway_maxwell::counts(counts, lambda, tiles.start, draws, distinct, is_given, mean, z);
        }
    }

    /// Updates what depends on z after a test has set it.
    #[cfg(test)]
    pub(crate) fn follow(&mut self, shape: &Shape, draws: usize) {
        for l in (0..shape.layers().len()).filter(|l| shape.is_conway_maxwell(*l)) {
            self.count(shape, l, draws, true);
        }
    }

    /// Draws a continuous layer given λ.
    fn draw_continuous(&mut self, shape: &Shape, l: usize, draws: usize, rng: &mut Stream) {
        let (Layer { family, width }, tiles, scales) = (shape.layers()[l], shape.tiles(l), shape.scales(l));
        let (lambda, log_scale) = (&self.lambda[tiles.clone()], &self.lambda[scales]);
        let (mean, slope) = (&mut self.mean[tiles.clone()], &mut self.slope[tiles.clone()]);
        continuous::means(family, lambda, log_scale, draws, mean, slope);
        let is_paired = self.noise.is_paired();
        for k in 0..width {
            let (tile, lane) = (k / LANES, k % LANES);
            let mut eps = 0.0;
            for q in 0..draws {
                if !is_paired || q % 2 == 0 {
                    eps = StandardNormal.sample(rng);
                }
                let z = continuous::point(family, lambda[tile].0[q][lane], log_scale[tile].0[q][lane], eps);
                self.z[tiles.start + tile].0[q][lane] = z;
            }
        }
    }
}

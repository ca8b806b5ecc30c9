//! The bound and its gradient at the current draws.

use super::{Estimator, Given, Wanted};
use crate::kernel::layer::{Link, activations, own, parents};
use crate::kernel::words::{differences, rates, slopes};
use crate::kernel::{continuous, conway_maxwell};
use crate::shape::{Family, Shape};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};

impl Estimator {
    /// The estimate at the current draws.
    pub(crate) fn evaluate(&mut self, given: &Given, parameters: &[Lanes], draws: usize, wanted: Wanted) -> f32 {
        let Given { shape, links, .. } = given;
        let mut value = self.words(given, draws, wanted);
        for tile in &mut self.signal[shape.tiles(0).end..] {
            *tile = Tile::default();
        }
        for (l, link) in links.iter().enumerate() {
            self.layer(given, l, link, draws, &mut value);
            if wanted == Wanted::Gradient {
                self.parents(shape, l, link, draws);
            }
        }
        for (l, link) in links.iter().enumerate().filter(|_| shape.is_continuous()) {
            let tiles = shape.tiles(l);
            continuous::coordinates(link.family, link.mask, &self.z[tiles.clone()], draws, &mut self.y[tiles]);
        }
        let seen_of_z = if shape.is_continuous() { &self.y } else { &self.z };
        let drawn = [self.lambda.as_slice(), &self.mean, seen_of_z];
        self.noise.recursive(shape, parameters, drawn, self.counts.as_deref(), draws, &mut self.signal, &mut value);
        self.noise.record(&value, draws);
        if wanted == Wanted::Gradient {
            self.along_lambda(shape, draws);
            self.noise.pullback(shape, parameters, [&self.lambda, &self.signal], draws, &mut self.gradient);
        }
        value[..draws].iter().zip(self.shares).map(|(value, share)| value * share).sum()
    }

    /// The bound's terms of the words, draw by draw, and the lowest layer's signal from them.
    fn words(&mut self, given: &Given, draws: usize, wanted: Wanted) -> [f32; DRAWS] {
        let Given { shape, words, seen, .. } = given;
        let lowest = shape.tiles(0);
        self.inverse.resize(words.terms.len(), [0.0; DRAWS]);
        let z = &self.z[lowest.clone()];
        let value = rates(words, seen, [z, &self.mean[lowest.clone()]], draws, &mut self.inverse);
        if wanted == Wanted::Gradient {
            let (family, signal) = (shape.layers()[0].family, &mut self.signal[lowest]);
            if family.is_continuous() {
                slopes(words, seen, z, draws, &self.inverse, signal);
            } else {
                differences(words, seen, z, family == Family::Bernoulli, draws, &self.inverse, signal);
            }
        }
        value
    }

    /// Adds a layer's −KL from its prior given the layer above, with the derivatives along its own λ and its activations.
    fn layer(&mut self, given: &Given, l: usize, link: &Link, draws: usize, value: &mut [f32; DRAWS]) {
        let Given { shape, seen, .. } = given;
        let tiles = shape.tiles(l);
        let (up, up_len) = shape.above(l);
        activations(link, &self.z[up], up_len, draws, &mut self.above[tiles.clone()]);
        let (mean, above) = (&self.mean[tiles.clone()], &self.above[tiles.clone()]);
        let d_above = &mut self.d_above[tiles.clone()];
        if shape.layers()[l].family.is_continuous() {
            let scales = shape.scales(l);
            continuous::own(
                link,
                [&self.lambda[tiles.clone()], &self.lambda[scales.clone()], mean, above],
                if l == 0 { seen.sums } else { &[] },
                draws,
                &mut self.exact[tiles],
                &mut self.signal[scales],
                d_above,
                value,
            );
        } else if let Some(counts) = self.counts.as_ref().filter(|_| shape.is_conway_maxwell(l)) {
            conway_maxwell::own(
                link,
                counts,
                tiles.start,
                mean,
                above,
                draws,
                &mut self.exact[tiles],
                &mut self.signal[shape.scales(l)],
                d_above,
                value,
            );
        } else {
            let (lambda, signal) = (&self.lambda[tiles.clone()], &mut self.signal[tiles]);
            own(link, lambda, mean, above, draws, signal, d_above, value);
        }
    }

    /// Adds to the signals of the layer above what its children contribute.
    fn parents(&mut self, shape: &Shape, l: usize, link: &Link, draws: usize) {
        let tiles = shape.tiles(l);
        let (up, up_len) = shape.above(l);
        if up_len == 0 {
            return;
        }
        let family = shape.layers()[l + 1].family;
        let (z, signal) = (&self.z[up.clone()], &mut self.signal[up]);
        if family.is_continuous() {
            continuous::parents(link.rows, &self.d_above[tiles], z, up_len, family, draws, signal);
        } else {
            let (mean, above) = (&self.mean[tiles.clone()], &self.above[tiles]);
            parents(link, mean, above, z, up_len, family == Family::Bernoulli, draws, signal);
        }
    }

    /// Turns the signals into derivatives along λ.
    fn along_lambda(&mut self, shape: &Shape, draws: usize) {
        for (signal, slope) in self.signal.iter_mut().zip(&self.slope) {
            for q in 0..draws {
                for lane in 0..LANES {
                    signal.0[q][lane] *= slope.0[q][lane];
                }
            }
        }
        for (l, layer) in shape.layers().iter().enumerate() {
            let (tiles, scales) = (shape.tiles(l), shape.scales(l));
            if let Some(counts) = self.counts.as_ref().filter(|_| shape.is_conway_maxwell(l)) {
                let (signal, d_nu) = self.signal.split_at_mut(scales.start);
                let (exact, d_nu) = (&self.exact[tiles.clone()], &mut d_nu[..scales.len()]);
                conway_maxwell::combine(counts, tiles.start, draws, exact, &mut signal[tiles], d_nu);
            } else if layer.family.is_continuous() {
                let (signal, d_scale) = self.signal.split_at_mut(scales.start);
                let known = [&self.lambda, &self.y, &self.exact].map(|all| &all[tiles.clone()]);
                continuous::combine(known, draws, &mut signal[tiles], &mut d_scale[..scales.len()]);
            }
        }
    }
}

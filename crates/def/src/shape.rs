//! The layers of a deep exponential family, and the layout of its latents in lanes.

use crate::error::{Error, Result};
use hyperprior_math::single::{LANES, Lanes, lanes_len};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The distribution of a layer's latents given the layer above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// z ~ Poisson(softplus(a)).
    #[default]
    Poisson,
    /// z ~ Bernoulli(sigmoid(a)).
    Bernoulli,
    /// z ~ Gamma with mean softplus(a) and a fixed shape.
    Gamma,
    /// z ~ N(a, 1). Not next to the words, whose rates cannot be negative.
    Gaussian,
}

impl Family {
    /// Whether z is continuous. Then q(z | λ) has a scale as well as a location.
    pub(crate) fn is_continuous(self) -> bool {
        matches!(self, Self::Gamma | Self::Gaussian)
    }

    /// The intercept a at which a latent has about this mean, or the nearest possible one.
    pub(crate) fn intercept(self, mean: f32) -> f32 {
        match self {
            Self::Poisson | Self::Gamma => mean.exp_m1().ln(),
            Self::Bernoulli => {
                let p = self.possible(mean);
                (p / (1.0 - p)).ln()
            }
            Self::Gaussian => self.possible(mean),
        }
    }

    /// The λ at which q(z | λ) has this mean.
    pub(crate) fn parameter(self, mean: f32) -> f32 {
        match self {
            Self::Poisson | Self::Bernoulli | Self::Gaussian => self.intercept(mean),
            Self::Gamma => mean.ln() - 0.5 * SCALE * SCALE,
        }
    }

    /// The logarithm of the initial scale of q(z | λ).
    pub(crate) fn log_scale(self) -> f32 {
        if self.is_continuous() { SCALE.ln() } else { 0.0 }
    }

    /// The nearest initial mean that a latent of this family can have.
    pub(crate) fn possible(self, mean: f32) -> f32 {
        match self {
            Self::Poisson | Self::Gamma => mean,
            Self::Bernoulli => mean.clamp(0.05, 0.5),
            // Both signs are equally good.
            Self::Gaussian => 0.0,
        }
    }
}

/// The initial scale of a continuous latent.
const SCALE: f32 = 0.5;

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Poisson => "poisson",
            Self::Bernoulli => "bernoulli",
            Self::Gamma => "gamma",
            Self::Gaussian => "gaussian",
        })
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "poisson" => Ok(Self::Poisson),
            "bernoulli" => Ok(Self::Bernoulli),
            "gamma" => Ok(Self::Gamma),
            "gaussian" => Ok(Self::Gaussian),
            _ => Err(Error::BadSetting {
                field: "family",
                value: text.to_owned(),
                reason: "use poisson, bernoulli, gamma or gaussian",
            }),
        }
    }
}

/// One layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The distribution of its latents.
    pub family: Family,
    /// The number of latents.
    pub width: usize,
}

/// The layers, the one next to the words first. Each starts at a new vector of lanes; the lanes after its last latent are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    layers: Vec<Layer>,
    /// Where the tiles of each layer begin; one more number than there are layers.
    firsts: Vec<usize>,
    /// The same for the scales, which come after all latents; layers whose factors have no scale take no space.
    scales: Vec<usize>,
    /// Whether counts have Conway–Maxwell factors in q, which have a scale.
    is_conway_maxwell: bool,
}

/// The widest layer that is allowed.
const WIDTH_MAX: usize = 4096;

impl Shape {
    /// The layout of these layers.
    ///
    /// # Errors
    /// [`Error::BadSetting`] if there is no layer, an empty one, one that is too wide, or a Gaussian one next to the words.
    pub fn new(layers: &[Layer]) -> Result<Self> {
        Self::with(layers, false)
    }

    /// The same, with Conway–Maxwell factors for counts in q if asked for.
    pub(crate) fn with(layers: &[Layer], is_conway_maxwell: bool) -> Result<Self> {
        let bad = |value: String, reason| Err(Error::BadSetting { field: "layers", value, reason });
        if layers.is_empty() {
            return bad(String::new(), "a model has at least one layer; write its width, such as 50");
        }
        if let Some(layer) = layers.iter().find(|layer| !(1..=WIDTH_MAX).contains(&layer.width)) {
            return bad(layer.width.to_string(), "a layer has from 1 to 4096 latents");
        }
        if layers[0].family == Family::Gaussian {
            return bad(
                format!("gaussian:{}", layers[0].width),
                "the layer next to the words adds to their rates, so its latents cannot be negative; make it poisson, bernoulli or \
                 gamma, and put gaussian layers above it",
            );
        }
        let mut firsts = vec![0];
        for layer in layers {
            firsts.push(firsts[firsts.len() - 1] + lanes_len(layer.width));
        }
        let mut scales = vec![firsts[layers.len()]];
        for layer in layers {
            let has_scale = layer.family.is_continuous() || is_conway_maxwell && layer.family == Family::Poisson;
            let len = if has_scale { lanes_len(layer.width) } else { 0 };
            scales.push(scales[scales.len() - 1] + len);
        }
        Ok(Self { layers: layers.to_vec(), firsts, scales, is_conway_maxwell })
    }

    /// The layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The number of latents of a document.
    pub fn latents_len(&self) -> usize {
        self.layers.iter().map(|layer| layer.width).sum()
    }

    /// The number of vectors of lanes of its latents.
    pub fn tiles_len(&self) -> usize {
        self.firsts[self.layers.len()]
    }

    /// The vectors of one layer.
    pub fn tiles(&self, layer: usize) -> Range<usize> {
        self.firsts[layer]..self.firsts[layer + 1]
    }

    /// Whether a layer's latents are counts with Conway–Maxwell factors in q.
    pub(crate) fn is_conway_maxwell(&self, layer: usize) -> bool {
        self.is_conway_maxwell && self.layers[layer].family == Family::Poisson
    }

    /// The λ at which latents of a layer have about this mean.
    pub(crate) fn parameter(&self, layer: usize, mean: f32) -> f32 {
        if self.is_conway_maxwell(layer) { mean.ln() } else { self.layers[layer].family.parameter(mean) }
    }

    /// The vectors of λ with the logarithms of a layer's scales; empty if its factors have no scale.
    pub(crate) fn scales(&self, layer: usize) -> Range<usize> {
        self.scales[layer]..self.scales[layer + 1]
    }

    /// The number of vectors of lanes of λ: those of the latents, and those of the scales.
    pub(crate) fn lambda_len(&self) -> usize {
        self.scales[self.layers.len()]
    }

    /// The vectors of continuous latents, each with the vector of its scales.
    pub(crate) fn scaled(&self) -> impl Iterator<Item = (usize, usize)> {
        let continuous = (0..self.layers.len()).filter(|l| self.layers[*l].family.is_continuous());
        continuous.flat_map(|l| self.tiles(l).zip(self.scales(l)))
    }

    /// Whether some latents are continuous.
    pub(crate) fn is_continuous(&self) -> bool {
        self.layers.iter().any(|layer| layer.family.is_continuous())
    }

    /// The vectors of the layer above and its number of latents; empty above the top.
    pub fn above(&self, layer: usize) -> (Range<usize>, usize) {
        match self.layers.get(layer + 1) {
            Some(above) => (self.tiles(layer + 1), above.width),
            None => (self.tiles_len()..self.tiles_len(), 0),
        }
    }

    /// The vector and lane of latent `k` of a layer.
    pub fn place(&self, layer: usize, k: usize) -> (usize, usize) {
        (self.firsts[layer] + k / LANES, k % LANES)
    }

    /// One in every lane that holds a latent, zero in the others.
    pub fn mask(&self) -> Vec<Lanes> {
        let mut mask = vec![Lanes::default(); self.tiles_len()];
        for (l, layer) in self.layers.iter().enumerate() {
            for k in 0..layer.width {
                let (tile, lane) = self.place(l, k);
                mask[tile].0[lane] = 1.0;
            }
        }
        mask
    }

    /// The same for λ.
    pub(crate) fn lambda_mask(&self) -> Vec<Lanes> {
        let mut mask = self.mask();
        for l in 0..self.layers.len() {
            if !self.scales(l).is_empty() {
                mask.extend_from_within(self.tiles(l));
            }
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_start_at_new_lanes() {
        let layer = |width| Layer { family: Family::Poisson, width };
        let shape = Shape::new(&[layer(100), layer(30), layer(16)]).expect("a shape");
        assert_eq!((shape.latents_len(), shape.tiles_len()), (146, 7 + 2 + 1));
        assert_eq!((shape.tiles(1), shape.place(1, 17)), (7..9, (8, 1)));
        let ones: f32 = shape.mask().iter().flat_map(|lanes| lanes.0).sum();
        assert_eq!(ones, 146.0);
        assert!(Shape::new(&[]).is_err() && Shape::new(&[layer(0)]).is_err());
    }

    /// Catches scales that overlap latents or each other, and a mask in the wrong order.
    #[test]
    fn scales_come_after_all_latents() {
        let layer = |family, width| Layer { family, width };
        let layers = [layer(Family::Gamma, 20), layer(Family::Poisson, 30), layer(Family::Gaussian, 3)];
        let shape = Shape::new(&layers).expect("a shape");
        assert_eq!((shape.tiles_len(), shape.lambda_len(), shape.is_continuous()), (5, 8, true));
        assert_eq!([0, 1, 2].map(|l| shape.scales(l)), [5..7, 7..7, 7..8]);
        let ones: Vec<f32> = shape.lambda_mask().iter().map(|lanes| lanes.0.iter().sum()).collect();
        assert_eq!(ones, [16.0, 4.0, 16.0, 14.0, 3.0, 16.0, 4.0, 3.0]);
        let said = Shape::new(&layers[2..]).expect_err("negative rates").to_string();
        assert!(said.contains("gaussian:3") && said.contains("poisson, bernoulli or gamma"), "{said}");
    }
}

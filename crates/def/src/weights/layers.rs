//! The weights between layers.

use super::posterior::WeightPosterior;
use crate::adam::Adam;
use crate::kernel::layer::Link;
use crate::shape::{Family, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{LANES, Lanes};
use rand_distr::{Distribution, StandardNormal};

/// The standard deviation of the initial means of the weights, and the initial standard deviation of q.
const SPREAD: f32 = 0.3;
const SD: f32 = 0.1;

/// The weights from one layer to the one below it, or the natural parameters of the top layer, which has no parents.
#[derive(Clone, Debug)]
pub struct LayerWeights {
    family: Family,
    gamma_shape: f32,
    parents_len: usize,
    /// Means of the rows, one a parent, and then of the intercepts; and the logarithms of their standard deviations.
    mean: Vec<Lanes>,
    log_sd: Vec<Lanes>,
    /// A draw of them, and its noise.
    drawn: Vec<Lanes>,
    noise: Vec<Lanes>,
    mask: Vec<Lanes>,
    is_point: bool,
    adam: [Adam; 2],
}

impl LayerWeights {
    /// The weights above each layer, the lowest first.
    pub(crate) fn all(
        shape: &Shape,
        posterior: WeightPosterior,
        prior_mean: f32,
        gamma_shape: f32,
        rng: &mut Stream,
    ) -> Vec<Self> {
        let mask = shape.mask();
        let layers = shape.layers();
        (0..layers.len())
            .map(|l| {
                let mask = mask[shape.tiles(l)].to_vec();
                let (n, parents_len) = (mask.len(), layers.get(l + 1).map_or(0, |above| above.width));
                let mut mean = vec![Lanes::default(); (parents_len + 1) * n];
                for (row, lanes) in mean.chunks_exact_mut(n).enumerate() {
                    for (lanes, mask) in lanes.iter_mut().zip(&mask) {
                        for (x, mask) in lanes.0.iter_mut().zip(mask.0) {
                            let normal: f32 = StandardNormal.sample(rng);
                            let at = if row < parents_len {
                                SPREAD * normal
                            } else {
                                layers[l].family.intercept(prior_mean)
                            };
                            *x = at * mask;
                        }
                    }
                }
                Self {
                    family: layers[l].family,
                    gamma_shape,
                    parents_len,
                    log_sd: vec![Lanes([SD.ln(); LANES]); mean.len()],
                    drawn: mean.clone(),
                    noise: vec![Lanes::default(); mean.len()],
                    adam: [Adam::new(mean.len()), Adam::new(mean.len())],
                    mean,
                    mask,
                    is_point: posterior == WeightPosterior::Point,
                }
            })
            .collect()
    }

    pub(crate) fn link(&self) -> Link<'_> {
        let (rows, bias) = self.drawn.split_at(self.parents_len * self.mask.len());
        Link { rows, bias, family: self.family, gamma_shape: self.gamma_shape, mask: &self.mask }
    }

    /// The shape of the layer's latents, if they are gamma distributed.
    pub fn gamma_shape(&self) -> f32 {
        self.gamma_shape
    }

    /// The number of parents.
    pub fn parents_len(&self) -> usize {
        self.parents_len
    }

    /// The last draw of the rows and the intercepts.
    #[cfg(feature = "cuda")]
    pub(crate) fn drawn(&self) -> &[Lanes] {
        &self.drawn
    }

    pub(crate) fn means(&self) -> &[Lanes] {
        &self.mean
    }

    pub(crate) fn means_mut(&mut self) -> &mut [Lanes] {
        &mut self.mean
    }

    pub(crate) fn adam(&self) -> &[Adam; 2] {
        &self.adam
    }

    pub(crate) fn adam_mut(&mut self) -> &mut [Adam; 2] {
        &mut self.adam
    }

    pub(crate) fn arrays(&self) -> Vec<&[Lanes]> {
        let moments = self.adam.iter().flat_map(Adam::arrays);
        [self.mean.as_slice(), self.log_sd.as_slice()].into_iter().chain(moments).collect()
    }

    pub(crate) fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let moments = self.adam.iter_mut().flat_map(Adam::arrays_mut);
        [self.mean.as_mut_slice(), self.log_sd.as_mut_slice()].into_iter().chain(moments).collect()
    }

    /// The number of vectors of lanes of the rows and the intercepts.
    pub(crate) fn len(&self) -> usize {
        self.mean.len()
    }

    /// The mean weight from a parent to a child.
    pub fn mean(&self, parent: usize, child: usize) -> f32 {
        self.mean[parent * self.mask.len() + child / LANES].0[child % LANES]
    }

    /// The mean intercept of a child.
    pub fn intercept(&self, child: usize) -> f32 {
        self.mean(self.parents_len, child)
    }

    /// Draws the weights for a step; the intercepts stay at their means.
    pub(crate) fn draw(&mut self, rng: &mut Stream) {
        let n = self.mask.len();
        for i in 0..self.mean.len() {
            let is_fixed = self.is_point || i >= self.parents_len * n;
            for lane in 0..LANES {
                let noise: f32 = if is_fixed { 0.0 } else { StandardNormal.sample(rng) };
                let noise = noise * self.mask[i % n].0[lane];
                self.noise[i].0[lane] = noise;
                self.drawn[i].0[lane] = self.mean[i].0[lane] + self.log_sd[i].0[lane].exp() * noise;
            }
        }
    }

    /// Replaces the draw by the means.
    pub(crate) fn use_means(&mut self) {
        self.drawn.clone_from(&self.mean);
    }

    /// A step along the gradient of the whole corpus at the draw; this adds the N(0, 1) prior of the weights.
    pub(crate) fn ascend(&mut self, gradient: &[Lanes], size: f32) {
        let n = self.mask.len();
        let rows_len = self.parents_len * n;
        let (mut d_mean, mut d_log_sd) = (gradient.to_vec(), vec![Lanes::default(); gradient.len()]);
        for i in 0..rows_len {
            for lane in 0..LANES {
                let mask = self.mask[i % n].0[lane];
                let d = mask * (gradient[i].0[lane] - self.drawn[i].0[lane]);
                d_mean[i].0[lane] = d;
                let sd = self.log_sd[i].0[lane].exp();
                d_log_sd[i].0[lane] = mask * (d * self.noise[i].0[lane] * sd + 1.0);
            }
        }
        let [means, sds] = &mut self.adam;
        means.ascend(&mut self.mean, &d_mean, size);
        if !self.is_point {
            sds.ascend(&mut self.log_sd[..], &d_log_sd, size);
        }
    }

    /// E ln p − E ln q of the weights; for point estimates ln p.
    pub fn value(&self) -> f64 {
        let n = self.mask.len();
        let mut value = 0.0;
        for i in 0..self.parents_len * n {
            for lane in 0..LANES {
                let (m, log_sd) = (f64::from(self.mean[i].0[lane]), f64::from(self.log_sd[i].0[lane]));
                let mask = f64::from(self.mask[i % n].0[lane]);
                value += mask
                    * if self.is_point {
                        -0.5 * (m * m + (2.0 * std::f64::consts::PI).ln())
                    } else {
                        0.5 + log_sd - 0.5 * (m * m + (2.0 * log_sd).exp())
                    };
            }
        }
        value
    }
}

//! Steps up the gradient, and the weights of mixtures.

use super::{ADAM_SIZE, Estimator, Given};
use crate::adam;
use crate::local::{Method, StepKind};
use crate::natural;
use crate::shape::Family;
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, Lanes};

/// The optimal weights of a mixture are estimated from this many times eight draws.
const WEIGHTS_ROUNDS: usize = 64;
/// How often they are estimated again, because r depends on them.
const WEIGHTS_PASSES: usize = 3;
/// The least share by which a step moves a log weight to its estimate.
const WEIGHT_STEP_MIN: f32 = 0.01;

impl Estimator {
    /// A step of this size up the last gradient. `number` counts the steps from 1; the moments of earlier gradients are used where
    /// the method takes Adam steps.
    pub(crate) fn ascend(
        &self,
        method: Method,
        given: &Given,
        [at, first, second]: [&mut [Lanes]; 3],
        number: u32,
        size: f32,
    ) {
        let shape = given.shape;
        let kind = method.step_kind(shape);
        if kind != StepKind::Natural {
            let size = size * ADAM_SIZE;
            let units = method.units(shape, if kind == StepKind::Both { 0.0 } else { size }, size);
            adam::ascend(at, &self.gradient, [first, second], number, units);
        }
        if kind != StepKind::Adam {
            let n = shape.tiles_len();
            for point in 0..method.points_len() {
                for (l, layer) in shape.layers().iter().enumerate() {
                    let tiles = shape.tiles(l);
                    let tiles = point * n + tiles.start..point * n + tiles.end;
                    let (at, gradient) = (&mut at[tiles.clone()], &self.gradient[tiles]);
                    if layer.family == Family::Bernoulli {
                        natural::ascend_bits(at, gradient, size);
                    } else if shape.is_conway_maxwell(l) {
                        natural::ascend_log_counts(at, gradient, if l == 0 { given.seen.sums } else { &[] }, size);
                    } else {
                        natural::ascend_counts(at, gradient, if l == 0 { given.seen.sums } else { &[] }, size);
                    }
                }
            }
        }
        if let (Some(level), Some(weights)) = (self.noise.level(), at.last_mut()) {
            let rate = (1.0 / number as f32).max(WEIGHT_STEP_MIN);
            for (weight, level) in weights.0.iter_mut().zip(level) {
                if level.is_finite() {
                    *weight += rate * (level - *weight);
                }
            }
        }
    }

    /// For a mixture, given the last value: writes the derivatives along the log weights after those along its points, and
    /// multiplies the derivatives along each point by its weight.
    pub(crate) fn weights_gradient(&self, value: f32, gradient: &mut [Lanes]) {
        let Some(level) = self.noise.level() else { return };
        let points = level.len();
        let Some((last, rest)) = gradient.split_last_mut() else { return };
        let n = rest.len() / points;
        *last = Lanes::default();
        for i in 0..points {
            let log_weight = self.noise.log_weight(i);
            let weight = log_weight.exp();
            last.0[i] = weight * (level[i] - log_weight - value);
            rest[i * n..(i + 1) * n].iter_mut().for_each(|lanes| lanes.0 = lanes.0.map(|x| weight * x));
        }
    }

    /// Sets the weights of a mixture to those that maximise its bound.
    pub(crate) fn fit_mixture_weights(&mut self, given: &Given, parameters: &mut [Lanes], rng: &Stream) {
        if self.noise.level().is_none() {
            return;
        }
        for _ in 0..WEIGHTS_PASSES {
            let mut rng = rng.clone();
            let mut sums = [0.0; DRAWS];
            for _ in 0..WEIGHTS_ROUNDS {
                self.value(given, parameters, &mut rng);
                for (sum, level) in sums.iter_mut().zip(self.noise.level().unwrap_or_default()) {
                    *sum += level / WEIGHTS_ROUNDS as f32;
                }
            }
            if let Some(weights) = parameters.last_mut() {
                weights.0[..DRAWS].copy_from_slice(&sums);
            }
        }
    }
}

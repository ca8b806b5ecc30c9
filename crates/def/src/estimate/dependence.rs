//! Dependence between the latents, added to a mean-field fit.

use super::{Estimator, Given};
use crate::adam;
use crate::local::Method;
use crate::settings::FitSettings;
use hyperprior_math::random::Stream;
use hyperprior_math::single::Lanes;

/// The candidate shares of the dependence, each compared on `TRIED` times eight draws; the chosen one is confirmed on `CONFIRMED`
/// times eight.
const SCALES: [f32; 2] = [0.5, 1.0];
const TRIED: usize = 32;
const CONFIRMED: usize = 128;
/// The gain must exceed this many standard errors.
const SURE: f64 = 2.0;

impl Estimator {
    /// Adds dependence to a converged mean-field fit, in half as many steps, and keeps the share of it that improves the document's
    /// bound most: near mean-field a gradient is mostly noise, and the noise it leaves in the parameters can cost more than
    /// dependence gains.
    pub(crate) fn add_dependence(
        &mut self,
        method: Method,
        given: &Given,
        parameters: &mut [Lanes],
        fit: FitSettings,
        rng: &Stream,
    ) {
        let shape = given.shape;
        self.set_method(method, shape);
        let Some(range) = method.dependence(shape) else { return };
        let before = parameters[..range.start].to_vec();
        let [mut first, mut second] = [0, 1].map(|_| vec![Lanes::default(); parameters.len()]);
        let (steps, draws) = (fit.steps.div_ceil(2), method.draws(fit.draws));
        let mut own = rng.clone();
        for step in 0..steps {
            self.step(given, parameters, draws, &mut own);
            let size = fit.size * adam::falling(step as f32 / steps as f32);
            self.ascend(method, given, [&mut *parameters, &mut first, &mut second], step + 1, size);
        }
        let after = parameters.to_vec();
        let mut values = |location: &[Lanes], scale: f32, rounds: usize, rng: &Stream| -> Vec<f64> {
            write(location, &after[range.start..], scale, parameters);
            let mut rng = rng.clone();
            (0..rounds).map(|_| f64::from(self.value(given, parameters, &mut rng))).collect()
        };
        // All candidates use the same random numbers. The location has moved too, and may be better or worse than before; dependence
        // has to be better than both locations without it.
        let new = &after[..range.start];
        let mut least_gain = |scale: f32, rounds: usize, rng: &Stream| -> (f64, f64) {
            let with = values(new, scale, rounds, rng);
            let gains = [&before, new].map(|location| gain(&with, &values(location, 0.0, rounds, rng)));
            if gains[0].0 < gains[1].0 { gains[0] } else { gains[1] }
        };
        let mut best = (0.0, 0.0);
        for scale in SCALES {
            let (mean, error) = least_gain(scale, TRIED, &own);
            if mean > best.0 && mean > SURE * error {
                best = (mean, scale);
            }
        }
        // The best of several is partly the luckiest, so it is confirmed on new random numbers.
        if best.1 > 0.0 {
            own.set_stream(own.get_stream() + 1);
            let (mean, error) = least_gain(best.1, CONFIRMED, &own);
            if mean <= SURE * error {
                best.1 = 0.0;
            }
        }
        write(if best.1 > 0.0 { new } else { &before }, &after[range.start..], best.1, parameters);
    }
}

/// Writes a location and a share of some dependence.
fn write(location: &[Lanes], dependence: &[Lanes], share: f32, to: &mut [Lanes]) {
    let (own, rest) = to.split_at_mut(location.len());
    own.copy_from_slice(location);
    for (to, from) in rest.iter_mut().zip(dependence) {
        to.0 = from.0.map(|x| share * x);
    }
}

/// The mean difference of values from the same random numbers, and its standard error.
fn gain(with: &[f64], without: &[f64]) -> (f64, f64) {
    let gains: Vec<f64> = with.iter().zip(without).map(|(with, without)| with - without).collect();
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

//! Annealed importance sampling (Neal, 2001) of many latents given the few that describe them, from their Gaussian at the mode to their
//! density.
//!
//! Of thousands of latents each of which is not quite Gaussian, hardly any draw of the Gaussian has a weight that counts. So each draw goes
//! through rising powers of what the density differs by, with a move at each, and its weight is a product of many small steps. The
//! weights are unbiased however well the moves mix.

use super::conditional_laplace::{Conditional, Parts};
use super::hmc::{Integrator, Phase, hamiltonian};
use crate::error::Result;
use crate::model::Gradient;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::special::HALF_LN_2_PI;
use std::sync::{Mutex, PoisonError};

/// The number of powers, at equal distances, and the length of the steps of the moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Annealing {
    pub(super) powers: usize,
    pub(super) step: f64,
}

/// The density of x given θ to a power, times its Gaussian to the rest of 1, in the coordinates in which that is standard normal.
struct Powered<'a> {
    parts: &'a Parts<'a>,
    gradient: &'a dyn Gradient,
    one: &'a Conditional,
    power: f64,
    /// All latents, the gradient along them, and x.
    memory: Mutex<[Batch; 3]>,
}

impl Powered<'_> {
    /// Writes the latents for these coordinates into `z`.
    fn restore(&self, v: &Batch, z: &mut Batch, x: &mut Batch) {
        x.copy_from(v);
        self.one.factor.solve_transpose(x.as_mut_slice(), v.draws_len());
        self.one.point.iter().enumerate().for_each(|(i, at)| z.column_mut(i).fill(*at));
        for (k, i) in self.parts.others.iter().enumerate() {
            z.column_mut(*i).iter_mut().zip(x.column(k)).for_each(|(z, x)| *z += x);
        }
    }

    /// The log density, with its gradient, to the power.
    fn raise(&self, v: &Batch, log_p: &mut [f64], d_v: &mut Batch) {
        let (power, rest) = (self.power, 1.0 - self.power);
        log_p.iter_mut().for_each(|log_p| *log_p *= power);
        for k in 0..v.columns_len() {
            for ((d, v), log_p) in d_v.column_mut(k).iter_mut().zip(v.column(k)).zip(log_p.iter_mut()) {
                *log_p -= 0.5 * rest * v * v;
                *d = power * *d - rest * v;
            }
        }
    }

    /// The inverse of [`Powered::raise`].
    fn lower(&self, v: &Batch, log_p: &mut [f64], d_v: &mut Batch) {
        let (power, rest) = (self.power, 1.0 - self.power);
        for k in 0..v.columns_len() {
            for ((d, v), log_p) in d_v.column_mut(k).iter_mut().zip(v.column(k)).zip(log_p.iter_mut()) {
                *log_p += 0.5 * rest * v * v;
                *d = (*d + rest * v) / power;
            }
        }
        log_p.iter_mut().for_each(|log_p| *log_p /= power);
    }
}

impl Gradient for Powered<'_> {
    fn log_joint_gradient(&self, v: &Batch, log_p: &mut [f64], d_v: &mut Batch) -> Result<()> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let [z, d_z, x] = &mut *memory;
        self.restore(v, z, x);
        self.gradient.log_joint_gradient(z, log_p, d_z)?;
        for (k, i) in self.parts.others.iter().enumerate() {
            d_v.column_mut(k).copy_from_slice(d_z.column(*i));
        }
        self.one.factor.solve(d_v.as_mut_slice(), v.draws_len());
        self.raise(v, log_p, d_v);
        Ok(())
    }
}

impl Parts<'_> {
    /// Replaces draws of the Gaussian of x given θ in `z` by annealed ones, one for each stream, and writes their log weights, which are of
    /// x alone. Returns the share of the moves that were accepted.
    pub(super) fn anneal(
        &self,
        one: &Conditional,
        Annealing { powers, step }: Annealing,
        streams: &mut [Stream],
        (z, log_weights): (&mut Batch, &mut [f64]),
    ) -> Result<f64> {
        let Some(gradient) = self.model.gradient() else { return Ok(0.0) };
        let (n, len, all) = (one.point.len(), streams.len(), (0..self.others.len()).collect::<Vec<usize>>());
        let mut v = Batch::zeros(all.len(), len);
        let mut away = vec![0.0; all.len()];
        for s in 0..len {
            away.iter_mut().zip(&self.others).for_each(|(away, i)| *away = z.get(*i, s) - one.point[*i]);
            one.factor.transpose_multiply(&mut away);
            away.iter().enumerate().for_each(|(k, x)| v.set(k, s, *x));
        }
        let memory = Mutex::new([Batch::zeros(n, len), Batch::zeros(n, len), v.clone()]);
        let mut powered = Powered { parts: self, gradient, one, power: 1.0, memory };
        let (mut log_p, mut d_v) = (vec![0.0; len], Batch::zeros(all.len(), len));
        powered.log_joint_gradient(&v, &mut log_p, &mut d_v)?;
        log_weights.fill(all.len() as f64 * HALF_LN_2_PI - one.factor.log_diagonal());
        let mut accepted = 0.0;
        for number in 1..=powers {
            for (s, (weight, log_p)) in log_weights.iter_mut().zip(&log_p).enumerate() {
                let square: f64 = all.iter().map(|k| v.get(*k, s).powi(2)).sum();
                *weight += (log_p + 0.5 * square) / powers as f64;
            }
            powered.power = number as f64 / powers as f64;
            powered.raise(&v, &mut log_p, &mut d_v);
            let state = Phase { u: &mut v, log_p: &mut log_p, d_u: &mut d_v, streams };
            accepted += hamiltonian(&powered, &all, (Integrator::Split, step), state)?.accepted;
            powered.lower(&v, &mut log_p, &mut d_v);
        }
        let mut x = v.clone();
        powered.restore(&v, z, &mut x);
        Ok(accepted / (powers * len) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::conditional_laplace::FLAT;
    use crate::infer::stages::sparse_curvature::SparseCurvature;
    use crate::infer::stages::test_models::Coupled;
    use crate::infer::stages::whitening::Whitening;
    use crate::model::Model;
    use hyperprior_math::random::stream;
    use hyperprior_math::special::log_sum_exp;
    use rayon::prelude::*;

    /// The log density of the effects of four trials each with one success, as [`Coupled::effects`] has it, integrated on a grid.
    fn on_grid(model: &dyn Model, point: &[f64], latent: usize) -> (f64, f64) {
        let step = 0.01;
        let at: Vec<f64> = (0..2400).map(|k| -12.0 + step * f64::from(k)).collect();
        let mut z = Batch::zeros(point.len(), at.len());
        (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
        z.column_mut(latent).copy_from_slice(&at);
        let mut log_p = vec![0.0; at.len()];
        model.log_joint(&z, &mut log_p).expect("no fault");
        let top = log_sum_exp(&log_p);
        let mean = log_p.iter().zip(&at).map(|(p, x)| (p - top).exp() * x).sum();
        (top + step.ln(), mean)
    }

    /// Catches weights that are not those of the path, moves that do not leave a power invariant, and a wrong change between powers: the
    /// mean of the weights is the integral over independent effects, and the weighted means are theirs, even with two powers.
    #[test]
    fn the_weights_are_unbiased() {
        let effects = Coupled::effects(60);
        let n = effects.latents().len();
        let sparse = SparseCurvature::new(&effects, &(0..n).collect::<Vec<_>>()).expect("a sparse curvature");
        let origin = vec![0.0; n];
        let entries = sparse.mean(&effects, &(0..n).collect::<Vec<_>>(), &Batch::from_columns(origin.clone(), 1));
        let (_, factor) = sparse.definite(entries.expect("no fault").expect("finite"), FLAT).expect("a factor");
        let parts = Parts::new(&effects, &origin, &Whitening::Sparse(factor)).expect("a model of this kind");
        let one = parts.conditionals(&[vec![0.3]]).expect("no fault").remove(0).expect("a mode");
        let exact: Vec<(f64, f64)> = parts.others.iter().map(|i| on_grid(&effects, &one.point, *i)).collect();
        // The effects are independent: with all others at their modes, each integral has their density in it.
        let log_integral = exact.iter().map(|(log_m, _)| log_m).sum::<f64>() - (exact.len() - 1) as f64 * one.log_p;
        let mut before = f64::INFINITY;
        for powers in [2, 12] {
            let (groups, each) = (128_u64, 16);
            let found: Vec<(Batch, Vec<f64>)> = (0..groups)
                .into_par_iter()
                .map(|group| {
                    let mut z = Batch::zeros(n, each);
                    (0..n).for_each(|i| z.column_mut(i).fill(one.point[i]));
                    let mut log_weights = vec![0.0; each];
                    parts.draw(&one, &mut stream(1, 0, 0, group), &mut z, &mut log_weights);
                    let mut streams: Vec<Stream> =
                        (0..each as u64).map(|s| stream(1, 0, 1, group * each as u64 + s)).collect();
                    let how = Annealing { powers, step: 0.6 };
                    parts.anneal(&one, how, &mut streams, (&mut z, &mut log_weights)).expect("no fault");
                    (z, log_weights)
                })
                .collect();
            let all: Vec<f64> = found.iter().flat_map(|(_, w)| w.iter().copied()).collect();
            let log_mean = log_sum_exp(&all) - (all.len() as f64).ln();
            let variance = all.iter().map(|w| (w - log_mean).powi(2)).sum::<f64>() / all.len() as f64;
            let error = (variance.exp_m1() / all.len() as f64).sqrt();
            assert!(
                (log_mean - log_integral).abs() < 4.0 * error + 1e-3,
                "{powers}: {log_mean} {log_integral} ± {error}"
            );
            // The variance of the weights falls with the number of powers.
            assert!(variance < 0.6 * before, "{powers}: {variance} after {before}");
            before = variance;
            let weight_of = |w: &f64| (w - log_sum_exp(&all)).exp();
            let off = parts.others.iter().zip(&exact).map(|(i, (_, mean))| {
                let own: f64 = found
                    .iter()
                    .map(|(z, w)| z.column(*i).iter().zip(w).map(|(x, w)| weight_of(w) * x).sum::<f64>())
                    .sum();
                own - mean
            });
            // Of sixty means.
            let root = (off.map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
            assert!(root < 0.06, "{powers}: {root}");
        }
    }
}

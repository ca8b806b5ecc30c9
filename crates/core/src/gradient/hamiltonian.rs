//! The gradient of uncorrected Hamiltonian annealing along θ and ψ, back through every step of its paths.
//!
//! A step depends on ∇g(ε; θ), so its derivative along v needs those of ∇g(ε)·v along ε and θ: the derivatives of ∇g and of ∂g/∂θ along v at ε.
//! A model has no second derivatives, so these two are central differences, whose errors are about 1e-10 of the whole.

use crate::error::Result;
use crate::model::Model;
use crate::objective::hamiltonian::{Memory, Path, Steps, Target, push};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;

/// The length of a central difference, relative to ε or to one.
const DIFFERENCE: f64 = 6e-6;

/// Gradients along θ and ψ.
pub(crate) struct Gradients<'a> {
    pub(crate) d_theta: &'a mut [f64],
    pub(crate) d_psi: &'a mut [f64],
}

/// Adds the gradient of Σ_s log w_s / `draws` over the valid paths of a block, and returns the sum of their log w with their number.
pub(crate) fn annealing_block(
    model: &dyn Model,
    q: &Variational,
    (theta, psi): (&[f64], &[f64]),
    draws: usize,
    streams: &mut [Stream],
    gradients: &mut Gradients,
) -> Result<(f64, usize)> {
    let (target, mut path) = (Target::new(model, q, theta)?, Path::default());
    path.run(&target, Steps::new(psi), None, streams)?;
    let is_valid = |s: usize| {
        let end = path.gradient.last().map_or(0.0, |d| (0..d.columns_len()).map(|i| d.get(i, s)).sum());
        path.log_w[s].is_finite() && end.is_finite()
    };
    let weight: Vec<f64> = (0..streams.len()).map(|s| if is_valid(s) { 1.0 / draws as f64 } else { 0.0 }).collect();
    let valid = || (0..streams.len()).filter(|s| weight[*s] > 0.0);
    let sum = valid().map(|s| path.log_w[s]).sum();
    pull_back(&target, &path, psi, &weight, gradients)?;
    Ok((sum, valid().count()))
}

/// Adds the gradient of Σ_s weight\[s\] log w_s.
pub(crate) fn pull_back(
    target: &Target,
    path: &Path,
    psi: &[f64],
    weight: &[f64],
    Gradients { d_theta, d_psi }: &mut Gradients,
) -> Result<()> {
    let steps = Steps::new(psi);
    let (last, mut memory) = (steps.temperatures() - 1, Memory::default());
    let (n, len) = (path.eps[0].columns_len(), weight.len());
    // An invalid draw may have numbers that are not finite.
    let weighted = |s: usize, x: f64| if weight[s] == 0.0 { 0.0 } else { weight[s] * x };
    let mut d_eps = Batch::zeros(n, len);
    for i in 0..n {
        for s in 0..len {
            d_eps.set(i, s, weighted(s, path.gradient[last].get(i, s)));
        }
    }
    let (mut d_rho, mut along) = (Batch::zeros(n, len), Batch::zeros(n, len));
    let (mut d_size, mut d_kept, mut d_temperature) = (0.0, 0.0, vec![0.0; last + 1]);
    target.pull_back(&path.eps[last], weight, d_theta, &mut memory)?;
    let (delta, eta) = (steps.size, steps.kept);
    let slope = eta / (1.0 - eta * eta).sqrt();
    for k in (1..=last).rev() {
        let t = steps.temperature(k);
        // One half of the step's change of momentum at a node, given the cotangent of the momentum.
        let mut kick = |node: usize, (d_rho, d_eps, along): (&Batch, &mut Batch, &mut Batch), d_size: &mut f64| {
            for i in 0..n {
                for s in (0..len).filter(|s| weight[*s] > 0.0) {
                    let (eps, d, rho) = (path.eps[node].get(i, s), path.gradient[node].get(i, s), d_rho.get(i, s));
                    *d_size += 0.5 * rho * push(t, eps, d);
                    d_temperature[k] += 0.5 * delta * rho * (eps + d);
                    d_eps.set(i, s, d_eps.get(i, s) - 0.5 * delta * (1.0 - t) * rho);
                    along.set(i, s, along.get(i, s) + 0.5 * delta * t * rho);
                }
            }
        };
        for i in 0..n {
            for s in 0..len {
                d_rho.set(i, s, d_rho.get(i, s) - weighted(s, path.momentum[k].get(i, s)));
            }
        }
        kick(k, (&d_rho, &mut d_eps, &mut along), &mut d_size);
        second_order(target, &path.eps[k], &along, weight, (Some(&mut d_eps), d_theta), &mut memory)?;
        along.as_mut_slice().fill(0.0);
        for i in 0..n {
            for s in (0..len).filter(|s| weight[*s] > 0.0) {
                d_size += path.half[k].get(i, s) * d_eps.get(i, s);
                d_rho.set(i, s, d_rho.get(i, s) + delta * d_eps.get(i, s));
            }
        }
        kick(k - 1, (&d_rho, &mut d_eps, &mut along), &mut d_size);
        for i in 0..n {
            for s in (0..len).filter(|s| weight[*s] > 0.0) {
                let refreshed = d_rho.get(i, s) + weight[s] * path.refreshed[k].get(i, s);
                d_kept += refreshed * (path.momentum[k - 1].get(i, s) - slope * path.fresh[k].get(i, s));
                d_rho.set(i, s, eta * refreshed);
            }
        }
    }
    second_order(target, &path.eps[0], &along, weight, (None, d_theta), &mut memory)?;
    d_psi[0] += delta * d_size;
    d_psi[1] += eta * (1.0 - eta) * d_kept;
    // t_k is the sum of the first k rises.
    let mut d_rises = vec![0.0; last + 1];
    for j in (0..last).rev() {
        d_rises[j] = d_rises[j + 1] + d_temperature[j + 1];
    }
    let mean: f64 = steps.rises.iter().zip(&d_rises).map(|(rise, d)| rise * d).sum();
    for ((d_psi, rise), d) in d_psi[2..].iter_mut().zip(&steps.rises).zip(&d_rises) {
        *d_psi += rise * (d - mean);
    }
    Ok(())
}

/// Adds the derivatives of ∇g(ε; θ)·v along ε and θ, for every draw with a v of its own.
fn second_order(
    target: &Target,
    eps: &Batch,
    along: &Batch,
    weight: &[f64],
    (d_eps, d_theta): (Option<&mut Batch>, &mut [f64]),
    memory: &mut Memory,
) -> Result<()> {
    let (n, len) = (eps.columns_len(), eps.draws_len());
    let length = |batch: &Batch, s: usize| (0..n).map(|i| batch.get(i, s).powi(2)).sum::<f64>().sqrt();
    let mut step = vec![0.0; len];
    for (s, step) in step.iter_mut().enumerate().filter(|(s, _)| weight[*s] > 0.0) {
        let v = length(along, s);
        *step = if v > 0.0 && v.is_finite() { DIFFERENCE * length(eps, s).max(1.0) / v } else { 0.0 };
    }
    let (mut log_g, mut d, mut total) = (vec![0.0; len], Batch::default(), Batch::zeros(n, len));
    for sign in [1.0, -1.0] {
        let mut moved = eps.clone();
        for i in 0..n {
            for s in 0..len {
                moved.set(i, s, eps.get(i, s) + sign * step[s] * along.get(i, s));
            }
        }
        let share: Vec<f64> = step.iter().map(|h| if *h > 0.0 { sign * 0.5 / h } else { 0.0 }).collect();
        target.pull_back(&moved, &share, d_theta, memory)?;
        if d_eps.is_some() {
            target.evaluate(&moved, &mut log_g, &mut d, memory)?;
            for i in 0..n {
                for s in (0..len).filter(|s| step[*s] > 0.0) {
                    total.set(i, s, total.get(i, s) + share[s] * d.get(i, s));
                }
            }
        }
    }
    if let Some(d_eps) = d_eps {
        d_eps.as_mut_slice().iter_mut().zip(total.as_slice()).for_each(|(d_eps, d)| *d_eps += d);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::MeanField;
    use crate::model::{Gradient, Latents, Support};
    use crate::prior::{Covariance, Gaussian};
    use crate::recursive::SameAsPrior;
    use crate::targets::{Banana, Funnel};
    use hyperprior_math::random::stream;
    use hyperprior_testkit::finite_difference;

    /// A mean and a standard deviation, of five numbers.
    struct Measured(Latents);

    impl Model for Measured {
        fn latents(&self) -> &Latents {
            &self.0
        }

        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            self.log_joint_gradient(z, out, &mut z.clone())
        }

        fn gradient(&self) -> Option<&dyn Gradient> {
            Some(self)
        }
    }

    impl Gradient for Measured {
        fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
            for (s, out) in out.iter_mut().enumerate() {
                let (mu, sigma) = (z.get(0, s), z.get(1, s));
                let (sum, squares) = [1.8, 2.4, 2.1, 1.6, 2.6]
                    .iter()
                    .fold((0.0, 0.0), |(sum, squares), y: &f64| (sum + y - mu, squares + (y - mu).powi(2)));
                *out = -0.5 * mu * mu - sigma - 5.0 * sigma.ln() - squares / (2.0 * sigma * sigma);
                d_z.set(0, s, -mu + sum / (sigma * sigma));
                d_z.set(1, s, -1.0 - 5.0 / sigma + squares / (sigma * sigma * sigma));
            }
            Ok(())
        }
    }

    /// The mean of log w over paths with fixed noise, and its gradient.
    fn value(model: &dyn Model, q: &Variational, at: (&[f64], &[f64])) -> (f64, Vec<f64>, Vec<f64>) {
        let mut streams: Vec<Stream> = (0..3).map(|s| stream(4, 0, 0, s)).collect();
        let (mut d_theta, mut d_psi) = (vec![0.0; at.0.len()], vec![0.0; at.1.len()]);
        let mut gradients = Gradients { d_theta: &mut d_theta, d_psi: &mut d_psi };
        let (sum, valid) = annealing_block(model, q, at, 3, &mut streams, &mut gradients).expect("no fault");
        assert_eq!(valid, 3);
        (sum / 3.0, d_theta, d_psi)
    }

    /// Catches, with the noise fixed: a step, refreshment or temperature that is left out of the way back, the energies' own derivatives,
    /// second derivatives along θ or ε, and a Jacobian of z or of λ that is missing. With three temperatures each of them matters.
    #[test]
    fn the_gradient_is_the_central_difference() {
        let measured = Latents::new().scalar("mu", Support::Real).and_then(|l| l.scalar("sigma", Support::Positive));
        let funnel = Funnel::new(3).expect("a funnel");
        let models: [&dyn Model; 3] = [&Banana::new(), &Measured(measured.expect("two latents")), &funnel];
        for (number, model) in models.into_iter().enumerate() {
            for covariance in [Covariance::Diagonal, Covariance::Full] {
                let n = model.latents().len();
                let likelihood = MeanField::for_latents(model.latents()).expect("factors");
                let prior = Gaussian::new(n, covariance).expect("a prior");
                let q = Variational::new(likelihood, prior, SameAsPrior).expect("parts that fit");
                let theta: Vec<f64> = (0..q.theta_len()).map(|i| 0.3 * (1.7 * i as f64 + 0.4).sin() - 0.2).collect();
                for temperatures in [1, 2, 4] {
                    let mut psi = vec![-1.4, 0.6, 0.2, -0.5, 0.4, 0.1];
                    psi.truncate(2 + temperatures);
                    let (_, d_theta, d_psi) = value(model, &q, (&theta, &psi));
                    let along_theta =
                        finite_difference::gradient(|theta| value(model, &q, (theta, &psi)).0, &theta, 2e-3);
                    let along_psi = finite_difference::gradient(|psi| value(model, &q, (&theta, psi)).0, &psi, 2e-3);
                    for (found, exact) in [(d_theta, along_theta), (d_psi, along_psi)] {
                        for (i, (a, b)) in found.iter().zip(&exact).enumerate() {
                            let is_near = (a - b).abs() < 1e-7 * b.abs().max(1.0);
                            assert!(
                                is_near,
                                "model {number}, {covariance:?}, K = {temperatures}, {i}: {a} against {b}"
                            );
                        }
                        assert!(found.iter().any(|d| d.abs() > 1e-3) || temperatures == 1, "{found:?}");
                    }
                }
            }
        }
    }
}

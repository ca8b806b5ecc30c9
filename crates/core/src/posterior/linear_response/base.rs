//! The draws over which every gradient is averaged, and how they move with the parameters.

use super::settings::LinearResponseSettings;
use crate::error::{Error, Result};
use crate::gradient::{Backward, Estimator, GradientSettings, Plan, plan};
use crate::likelihood::Kind;
use crate::model::{Model, Support};
use crate::objective::Pass;
use crate::prior::Density;
use crate::prior::PriorPass;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, quasi_normals, stream};
use hyperprior_math::scratch::Scratch;

/// Up to this many configurations of discrete latents are enumerated instead of drawn.
const CONFIGURATIONS_MAX: usize = 4096;

/// Draws with fixed noise, and what a gradient needs.
pub(super) struct Base<'a> {
    pub(super) theta: &'a [f64],
    /// The latents at θ.
    pub(super) z: Batch,
    /// λ as a batch of one draw, if the prior is a point.
    pub(super) lambda: Batch,
    pub(super) plans: Vec<Plan>,
    /// The weight of each draw; they sum to one.
    pub(super) weights: Vec<f64>,
    /// The noise of the prior, and that of normal factors.
    eps: Batch,
    noise: Batch,
    settings: GradientSettings,
}

impl<'a> Base<'a> {
    pub(super) fn new(
        model: &dyn Model,
        q: &Variational,
        theta: &'a [f64],
        settings: &LinearResponseSettings,
    ) -> Result<Self> {
        let has_discrete = (0..model.latents().len()).any(|i| q.likelihood().kind(i) == Kind::Sampled);
        let estimator = if has_discrete { Estimator::LocalExpectation } else { Estimator::Automatic };
        let gradient = GradientSettings { draws: 1, replicates: 1, estimator, ..GradientSettings::default() };
        let plans = plan(model, q, &gradient)?;
        let latents_len = model.latents().len();
        let mut lambda = Batch::zeros(if q.prior().columns_len() == 0 { theta.len() } else { 0 }, 1);
        for p in 0..lambda.columns_len() {
            lambda.set(p, 0, theta[p]);
        }
        let enumerated = enumerated(model, q, &lambda);
        let len = enumerated.as_ref().map_or(settings.draws.next_multiple_of(2), |(z, _)| z.draws_len());
        // Noise in pairs ±ε: every odd moment is exactly 0, and the curvature of a Gaussian is exact.
        let seed = settings.seed as u32;
        let mirrored = |columns: usize, seed: u32| {
            let mut half = Batch::zeros(columns, len.div_ceil(2));
            quasi_normals(seed, 0, &mut half);
            let mut all = Batch::zeros(columns, len);
            for i in 0..columns {
                for s in 0..len {
                    all.set(i, s, if s % 2 == 0 { half.get(i, s / 2) } else { -half.get(i, s / 2) });
                }
            }
            all
        };
        let eps = mirrored(q.prior().columns_len(), seed);
        let noise = mirrored(latents_len, seed.wrapping_add(1));
        let (weights, given) = match enumerated {
            Some((z, weights)) => (weights, Some(z)),
            None => (vec![1.0 / len as f64; len], None),
        };
        let mut base =
            Self { theta, z: Batch::zeros(latents_len, len), lambda, plans, weights, eps, noise, settings: gradient };
        let one = |s: usize| stream(settings.seed, Purpose::LinearResponse.step(), 0, s as u64);
        let mut streams: Vec<Stream> = (0..len).map(one).collect();
        base.z = match given {
            Some(z) => z,
            None => base.sampled(q, theta, &mut streams),
        };
        Ok(base)
    }

    /// λ(ε; θ) for the fixed noise.
    fn lambda_at(&self, q: &Variational, theta: &[f64], scratch: &mut Scratch) -> Batch {
        let len = self.eps.draws_len();
        let mut lambda = Batch::zeros(q.prior().lambda_len(), len);
        let mut log_q = vec![0.0; len];
        q.prior().transform(
            PriorPass { theta, component: 0, eps: &self.eps, density: Density::Unneeded },
            &mut lambda,
            &mut log_q,
            scratch,
        );
        lambda
    }

    fn sampled(&self, q: &Variational, theta: &[f64], streams: &mut [Stream]) -> Batch {
        let mut scratch = Scratch::default();
        let lambda = self.lambda_at(q, theta, &mut scratch);
        let mut z = Batch::zeros(q.likelihood().latents_len(), lambda.draws_len());
        q.likelihood().sample(&lambda, streams, &mut z, &mut scratch);
        for i in (0..z.columns_len()).filter(|i| q.likelihood().kind(*i) == Kind::Pathwise) {
            // A normal: mean and log standard deviation.
            let at = q.likelihood().lambda_range(i).start;
            for s in 0..z.draws_len() {
                z.set(i, s, lambda.get(at, s) + lambda.get(at + 1, s).exp() * self.noise.get(i, s));
            }
        }
        z
    }

    /// The draws at another θ: the continuous latents move with it, the discrete ones do not.
    pub(super) fn moved(&self, q: &Variational, theta: &[f64]) -> Batch {
        let one = |s: usize| stream(0, Purpose::LinearResponse.step(), 1, s as u64);
        let mut streams: Vec<Stream> = (0..self.z.draws_len()).map(one).collect();
        let mut z = self.sampled(q, theta, &mut streams);
        for i in (0..z.columns_len()).filter(|i| q.likelihood().kind(*i) == Kind::Sampled) {
            z.column_mut(i).copy_from_slice(self.z.column(i));
        }
        z
    }

    /// The gradient of the bound along θ, at these latents.
    pub(super) fn gradient(&self, model: &dyn Model, q: &Variational, theta: &[f64], z: &Batch) -> Result<Vec<f64>> {
        let mut pass = Pass::default();
        let phi = vec![0.0; q.phi_len()];
        pass.set(q, theta, 0, &self.eps, z);
        pass.forward(model, q, theta, &phi)?;
        let mut weights = self.weights.clone();
        for (w, f) in weights.iter_mut().zip(&pass.integrand) {
            if !f.is_finite() {
                *w = 0.0;
            }
        }
        let total: f64 = weights.iter().sum();
        if !(total > 0.0) {
            let dropped = weights.len();
            let example = crate::model::describe(model, z, 0, pass.log_p[0]);
            return Err(Error::NotFinite { step: 0, dropped, drawn: dropped, example });
        }
        weights.iter_mut().for_each(|w| *w /= total);
        let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], phi.clone());
        let (plans, settings) = (&self.plans, &self.settings);
        let backward = Backward { model, q, theta, phi: &phi, plans, settings, weight: &weights };
        pass.backward(backward, &mut d_theta, &mut d_phi)?;
        Ok(d_theta)
    }
}

/// Every configuration with its probability, if all latents are discrete and there are few: then there is no Monte Carlo error.
fn enumerated(model: &dyn Model, q: &Variational, lambda: &Batch) -> Option<(Batch, Vec<f64>)> {
    let latents_len = model.latents().len();
    if lambda.columns_len() == 0 {
        return None;
    }
    let mut configurations = 1_usize;
    let mut sizes = Vec::with_capacity(latents_len);
    for i in 0..latents_len {
        let Support::Integers { lower, upper } = q.likelihood().support(i) else { return None };
        let size = (upper - lower) as usize + 1;
        configurations = configurations.saturating_mul(size);
        if configurations > CONFIGURATIONS_MAX {
            return None;
        }
        sizes.push((lower, size));
    }
    let mut z = Batch::zeros(latents_len, configurations);
    let mut log_q = vec![0.0; configurations];
    let mut inner = configurations;
    for (i, (lower, size)) in sizes.into_iter().enumerate() {
        inner /= size;
        let values: Vec<f64> = (0..size).map(|v| lower + v as f64).collect();
        let mut table = Batch::zeros(size, 1);
        q.likelihood().log_densities_of(i, lambda, &values, &mut [0.0], &mut table);
        for c in 0..configurations {
            let v = c / inner % size;
            z.set(i, c, values[v]);
            log_q[c] += table.get(v, 0);
        }
    }
    Some((z, log_q.into_iter().map(f64::exp).collect()))
}

//! Fresh λ's behind a given z: draws of r(λ | z) with their importance weights, which tighten the bound on log q(z).
//!
//! a_j = log q(z | λ_j) + log q(λ_j) − log r(λ_j | z); on the noise, λ_j = λ(ε_j; θ) with (k_j, ε_j) ~ r(k, ε | z) and
//! log π_k + log s(ε) in place of log q(λ).

use super::pass::{Draws, covered_by};
use crate::prior::{Density, log_noise};
use crate::recursive::{Cache, Space, Surroundings};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;

/// One fresh λ per draw of z.
#[derive(Debug, Default)]
pub struct Inner {
    x: Batch,
    lambda: Batch,
    components: Vec<usize>,
    /// a_j for every draw.
    pub log_weight: Vec<f64>,
    log_q: Batch,
    cache: Cache,
}

impl Inner {
    /// Draws λ_j ~ r(λ | z) for every draw, and weighs it.
    pub fn draw(
        &mut self,
        q: &Variational,
        (theta, phi): (&[f64], &[f64]),
        draws: &Draws,
        prepared: &Cache,
        streams: &mut [Stream],
        scratch: &mut Scratch,
    ) {
        let draws_len = draws.z.draws_len();
        let (prior, recursive) = (q.prior(), q.recursive());
        self.x.copy_from(covered_by(q, draws));
        self.components.clear();
        self.components.resize(draws_len, draws.component);
        self.log_weight.resize(draws_len, 0.0);
        self.lambda.reshape(prior.lambda_len(), draws_len);
        let at = q.surroundings(theta, phi, draws.component);
        recursive.sample(at, prepared, streams, &mut self.x, &mut self.components, scratch);
        if recursive.space() == Space::Lambda {
            self.lambda.copy_from(&self.x);
            let mut log_prior = scratch.take(draws_len);
            prior.log_density(theta, &self.lambda, &mut log_prior, scratch);
            self.weigh(q, at, &draws.z, prepared, &log_prior, scratch, |_| true);
            scratch.give(log_prior);
            return;
        }
        let mut log_pi = scratch.take(prior.components_len());
        prior.log_weights(theta, &mut log_pi);
        let given = q.likelihood().point_mass_len();
        let components = std::mem::take(&mut self.components);
        let mut placed = scratch.take_batch(prior.lambda_len(), draws_len);
        for k in (0..prior.components_len()).filter(|k| components.contains(k)) {
            // The whole batch is taken through each component that occurs; the draws of the others are not read.
            if given > 0 && k != draws.component {
                self.renoise(q, theta, k, &draws.lambda, given, &components);
            }
            let mut log_prior = scratch.take(draws_len);
            prior.transform(theta, k, &self.x, q.density(), &mut placed, &mut log_prior, scratch);
            if q.density() == Density::Unneeded {
                log_prior.fill(0.0);
            }
            let mut noise = scratch.take(draws_len);
            log_noise(prior, theta, &self.x, given, &mut noise, scratch);
            for (p, n) in log_prior.iter_mut().zip(&noise) {
                *p += n + log_pi[k];
            }
            for i in 0..prior.lambda_len() {
                for s in (0..draws_len).filter(|&s| components[s] == k) {
                    self.lambda.set(i, s, placed.get(i, s));
                }
            }
            let at = q.surroundings(theta, phi, k);
            self.weigh(q, at, &draws.z, prepared, &log_prior, scratch, |s| components[s] == k);
            scratch.give(noise);
            scratch.give(log_prior);
        }
        self.components = components;
        scratch.give_batch(placed);
        scratch.give(log_pi);
    }

    /// a_j of the chosen draws, all from one component.
    fn weigh(
        &mut self,
        q: &Variational,
        at: Surroundings,
        z: &Batch,
        prepared: &Cache,
        log_prior: &[f64],
        scratch: &mut Scratch,
        chosen: impl Fn(usize) -> bool,
    ) {
        let draws_len = z.draws_len();
        let mut log_r = scratch.take(draws_len);
        self.log_q.reshape(q.likelihood().latents_len(), draws_len);
        q.recursive().forward(at, &self.x, prepared, &mut log_r, &mut self.cache, scratch);
        q.likelihood().log_density(&self.lambda, z, &mut self.log_q, scratch);
        for s in (0..draws_len).filter(|&s| chosen(s)) {
            let log_q: f64 = (0..self.log_q.columns_len()).map(|i| self.log_q.get(i, s)).sum();
            self.log_weight[s] = log_q + log_prior[s] - log_r[s];
        }
        scratch.give(log_r);
    }

    /// The noise that component `k` would have needed for the given point masses' λ.
    fn renoise(
        &mut self,
        q: &Variational,
        theta: &[f64],
        k: usize,
        lambda: &Batch,
        given: usize,
        components: &[usize],
    ) {
        let Some(gaussians) = q.prior().gaussians() else { return };
        let n = q.prior().lambda_len();
        let (mut mean, mut scale) = (vec![0.0; n], vec![0.0; packed_len(n)]);
        gaussians.component(theta, k, &mut mean, &mut scale);
        let draws_len = lambda.draws_len();
        let mut noise = vec![0.0; given * draws_len];
        for c in 0..given {
            for (x, l) in noise[c * draws_len..].iter_mut().zip(lambda.column(c)) {
                *x = l - mean[c];
            }
        }
        linalg::lower_solve(&scale[..packed_len(given)], &mut noise, draws_len);
        for c in 0..given {
            for s in (0..draws_len).filter(|&s| components[s] == k) {
                self.x.set(c, s, noise[c * draws_len + s]);
            }
        }
    }
}

//! Fresh draws of λ ~ r(λ | z) for a given z, with their importance weights, which tighten the bound on log q(z).
//!
//! a_j = log q(z | λ_j) + log q(λ_j) − log r(λ_j | z); on the noise, λ_j = λ(ε_j; θ) with (k_j, ε_j) ~ r(k, ε | z) and
//! log π_k + log s(ε) in place of log q(λ).

use super::draws::{Draws, covered_by};
use crate::prior::PriorPass;
use crate::prior::{Density, log_noise};
use crate::recursive::{Cache, Space, Surroundings};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_add_exp;

/// One fresh λ per draw of z.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// The noise or λ, whichever r is a density of.
    pub(super) x: Batch,
    pub(super) lambda: Batch,
    pub(super) components: Vec<usize>,
    /// log q(λ), or log π_k + log s(ε).
    pub(super) log_prior: Vec<f64>,
    /// a_j for every draw.
    pub(super) log_weight: Vec<f64>,
    log_q: Batch,
    cache: Cache,
}

impl Inner {
    /// Draws λ_j ~ r(λ | z) for every draw, and computes its weight a_j.
    pub(super) fn draw(
        &mut self,
        q: &Variational,
        (theta, phi): (&[f64], &[f64]),
        draws: &Draws,
        prepared: &Cache,
        streams: &mut [Stream],
        scratch: &mut Scratch,
    ) {
        self.x.copy_from(covered_by(q, draws));
        self.components.clear();
        self.components.resize(draws.z.draws_len(), draws.component);
        let at = q.surroundings(theta, phi, draws.component);
        q.recursive().sample(at, prepared, streams, &mut self.x, &mut self.components, scratch);
        self.place(q, (theta, phi), draws, prepared, scratch);
    }

    /// As [`draw`](Self::draw), with given numbers instead of draws: for exact checks, in which they are enumerated.
    pub(super) fn set(
        &mut self,
        q: &Variational,
        at: (&[f64], &[f64]),
        draws: &Draws,
        prepared: &Cache,
        (x, components): (&Batch, &[usize]),
        scratch: &mut Scratch,
    ) {
        self.x.copy_from(x);
        self.components.clear();
        self.components.extend_from_slice(components);
        self.place(q, at, draws, prepared, scratch);
    }

    /// λ_j and its weight a_j, from x and the components.
    fn place(
        &mut self,
        q: &Variational,
        (theta, phi): (&[f64], &[f64]),
        draws: &Draws,
        prepared: &Cache,
        scratch: &mut Scratch,
    ) {
        let draws_len = draws.z.draws_len();
        let (prior, recursive) = (q.prior(), q.recursive());
        self.log_weight.resize(draws_len, 0.0);
        self.log_prior.resize(draws_len, 0.0);
        self.lambda.reshape(prior.lambda_len(), draws_len);
        let at = q.surroundings(theta, phi, draws.component);
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
            // The whole batch is transformed by each component that occurs; the draws of other components are not used.
            if given > 0 && k != draws.component {
                self.renoise(q, theta, k, &draws.lambda, given, &components);
            }
            let mut log_prior = scratch.take(draws_len);
            prior.transform(
                PriorPass { theta, component: k, eps: &self.x, density: q.density() },
                &mut placed,
                &mut log_prior,
                scratch,
            );
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

    /// Replaces one draw by that of `other`.
    pub(super) fn take(&mut self, other: &Self, s: usize) {
        for (own, other) in [(&mut self.x, &other.x), (&mut self.lambda, &other.lambda)] {
            (0..other.columns_len()).for_each(|i| own.set(i, s, other.get(i, s)));
        }
        self.components[s] = other.components[s];
        self.log_prior[s] = other.log_prior[s];
        self.log_weight[s] = other.log_weight[s];
    }

    /// a_j of all draws at other values of z.
    pub(super) fn reweigh(
        &mut self,
        q: &Variational,
        (theta, phi): (&[f64], &[f64]),
        z: &Batch,
        prepared: &Cache,
        scratch: &mut Scratch,
    ) {
        let (log_prior, components) = (self.log_prior.clone(), std::mem::take(&mut self.components));
        for k in (0..q.prior().components_len()).filter(|k| components.contains(k)) {
            let at = q.surroundings(theta, phi, k);
            self.weigh(q, at, z, prepared, &log_prior, scratch, |s| components[s] == k);
        }
        self.components = components;
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
            self.log_prior[s] = log_prior[s];
            self.log_weight[s] = log_q + log_prior[s] - log_r[s];
        }
        scratch.give(log_r);
    }

    /// The noise with which component `k` gives the point masses' λ.
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

/// log mean(e^a_0 … e^a_J) and log mean(e^a_1 … e^a_J) for every draw, where a_0 = `own` is that of the draw's own λ.
///
/// Without a recursive approximation log q(z) is known, and both are `own`.
pub(super) fn pair(
    q: &Variational,
    at: (&[f64], &[f64]),
    (draws, prepared): (&Draws, &Cache),
    own: &[f64],
    streams: &mut [Stream],
    samples: usize,
) -> (Vec<f64>, Vec<f64>) {
    if !q.has_recursion() || samples == 0 {
        return (own.to_vec(), own.to_vec());
    }
    let (mut scratch, mut inner) = (Scratch::default(), Inner::default());
    let mut others = vec![f64::NEG_INFINITY; own.len()];
    for _ in 0..samples {
        inner.draw(q, at, draws, prepared, streams, &mut scratch);
        for (o, a) in others.iter_mut().zip(&inner.log_weight) {
            *o = log_add_exp(*o, *a);
        }
    }
    let j = samples as f64;
    let lower = others.iter().zip(own).map(|(o, a)| log_add_exp(*o, *a) - (j + 1.0).ln()).collect();
    let upper = others.iter().map(|o| o - j.ln()).collect();
    (lower, upper)
}

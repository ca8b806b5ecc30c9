//! Chains in (z, λ) between q(z, λ) and p(x, z) r(λ | z), and the moves that leave a density between them invariant.
//!
//! π_t(λ | z) ∝ r(λ | z) e^((1−t) a(λ)) with a = log q(z, λ) − log r(λ | z). So λ is drawn from r and accepted with probability
//! min(1, e^((1−t)(a′ − a))) (Metropolis and Hastings, independence sampler), which is 1 if r is exact. Then every z_i is drawn from its
//! conditional, in order (Gibbs). Each step is reversible, so that the same steps in the reverse order are the reversal of the move.

use super::super::draws::{Draws, covered_by};
use super::super::importance::Inner;
use super::super::integrand::Pass;
use super::tempered::Tempered;
use crate::error::Result;
use crate::gibbs;
use crate::model::{Model, describe};
use crate::recursive::Cache;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use rand::RngExt;

/// A block of chains.
pub(super) struct Chains<'a> {
    model: &'a dyn Model,
    q: &'a Variational,
    /// θ and φ.
    at: (&'a [f64], &'a [f64]),
    /// z now; the noise and λ are those of the start.
    draws: Draws,
    log_p: Vec<f64>,
    /// The λ now, and those that are proposed.
    now: Inner,
    proposed: Inner,
    /// What r computed from z.
    prepared: Cache,
    scratch: Scratch,
}

impl<'a> Chains<'a> {
    /// Draws of q, from component `k` of its prior.
    pub(super) fn from_approximation(
        model: &'a dyn Model,
        q: &'a Variational,
        (theta, phi): (&'a [f64], &'a [f64]),
        k: usize,
        streams: &mut [Stream],
    ) -> Result<Self> {
        let mut pass = Pass::default();
        pass.draw(q, theta, k, streams, 1, false);
        pass.forward(model, q, theta, phi)?;
        let log_weight = pass.log_p.iter().zip(&pass.integrand).map(|(p, f)| p - f).collect();
        let mut now = Inner::default();
        now.x.copy_from(covered_by(q, &pass.draws));
        now.lambda.copy_from(&pass.draws.lambda);
        now.components = vec![k; streams.len()];
        (now.log_prior, now.log_weight) = (pass.log_prior, log_weight);
        let (draws, log_p, prepared) = (pass.draws, pass.log_p, pass.prepared);
        let (proposed, scratch) = (Inner::default(), Scratch::default());
        Ok(Self { model, q, at: (theta, phi), draws, log_p, now, proposed, prepared, scratch })
    }

    /// These draws of z with λ ~ r(λ | z).
    pub(super) fn from_posterior(
        model: &'a dyn Model,
        q: &'a Variational,
        at: (&'a [f64], &'a [f64]),
        z: Batch,
        streams: &mut [Stream],
    ) -> Result<Self> {
        let (len, prior) = (streams.len(), q.prior());
        let (eps, lambda) = (Batch::zeros(prior.columns_len(), len), Batch::zeros(prior.lambda_len(), len));
        let draws = Draws { component: 0, eps, lambda, z };
        let (now, proposed, prepared) = (Inner::default(), Inner::default(), Cache::default());
        let (log_p, scratch) = (vec![0.0; len], Scratch::default());
        let mut chains = Self { model, q, at, draws, log_p, now, proposed, prepared, scratch };
        model.log_joint(&chains.draws.z, &mut chains.log_p)?;
        chains.prepare();
        let Self { draws, now, prepared, scratch, .. } = &mut chains;
        now.draw(q, at, draws, prepared, streams, scratch);
        Ok(chains)
    }

    /// log p + log r − log q of one draw.
    pub(super) fn log_ratio(&self, s: usize) -> f64 {
        self.log_p[s] - self.now.log_weight[s]
    }

    /// One draw in words.
    pub(super) fn describe(&self, s: usize) -> String {
        describe(self.model, &self.draws.z, s, self.log_p[s])
    }

    /// A move that leaves π_t invariant.
    pub(super) fn forward(&mut self, t: f64, streams: &mut [Stream]) -> Result<()> {
        self.refresh(t, streams);
        let order: Vec<usize> = (0..self.draws.z.columns_len()).collect();
        self.scan(t, &order, streams)
    }

    /// The reversal of the same move.
    pub(super) fn backward(&mut self, t: f64, streams: &mut [Stream]) -> Result<()> {
        let order: Vec<usize> = (0..self.draws.z.columns_len()).rev().collect();
        self.scan(t, &order, streams)?;
        self.refresh(t, streams);
        Ok(())
    }

    fn prepare(&mut self) {
        let at = self.q.surroundings(self.at.0, self.at.1, self.draws.component);
        let x = covered_by(self.q, &self.draws);
        self.q.recursive().prepare(at, x, &self.draws.z, &mut self.prepared, &mut self.scratch);
    }

    /// Proposes λ ~ r(λ | z) for every draw.
    fn refresh(&mut self, t: f64, streams: &mut [Stream]) {
        let Self { q, at, draws, now, proposed, prepared, scratch, .. } = self;
        proposed.draw(q, *at, draws, prepared, streams, scratch);
        for (s, rng) in streams.iter_mut().enumerate() {
            let log_ratio = (1.0 - t) * (proposed.log_weight[s] - now.log_weight[s]);
            if rng.random::<f64>().ln() < log_ratio {
                now.take(proposed, s);
            }
        }
    }

    /// Draws every latent in this order, given λ and the others.
    fn scan(&mut self, t: f64, order: &[usize], streams: &mut [Stream]) -> Result<()> {
        let tempered = Tempered::new(self.model, self.q, self.at, t);
        let mut state = tempered.join(&self.draws.z, &self.now);
        gibbs::scan(self.model.latents(), &tempered, order, &mut state, streams)?;
        let n = self.draws.z.columns_len();
        self.draws.z.as_mut_slice().copy_from_slice(state.columns(0..n));
        self.model.log_joint(&self.draws.z, &mut self.log_p)?;
        self.prepare();
        self.now.reweigh(self.q, self.at, &self.draws.z, &self.prepared, &mut self.scratch);
        Ok(())
    }
}

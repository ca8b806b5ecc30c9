//! The forward pass of a batch of draws: the hierarchical integrand log p + log r − log q(z | λ) − log q(λ).

use super::average::Average;
use super::draws::{Draws, covered_by};
use super::importance::Inner;
use crate::error::Result;
use crate::likelihood::Kind;
use crate::model::Model;
use crate::prior::PriorPass;
use crate::prior::{Density, log_noise, throw_switches};
use crate::recursive::Cache;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, standard_normals};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;

/// The working memory of a batch for the forward and backward pass, reused between steps. For exact checks of the bound and its
/// gradient.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Pass {
    /// The draws.
    pub draws: Draws,
    /// log p(x, z).
    pub log_p: Vec<f64>,
    /// log q(z_i | λ_i), a column per latent.
    pub log_q: Batch,
    /// log r(λ | z), or log r(k, ε | z).
    pub log_r: Vec<f64>,
    /// log q(λ), or log π_k + log s(ε).
    pub log_prior: Vec<f64>,
    /// The hierarchical integrand, log p + log r − log q(z | λ) − log q(λ).
    pub integrand: Vec<f64>,
    inner: Inner,
    /// The streams before z was drawn.
    pub(crate) before_z: Vec<Stream>,
    /// Streams shared by pairs of draws.
    pub(crate) coupled: Vec<Stream>,
    pub(crate) locals: Batch,
    pub(crate) d_lambda: Batch,
    pub(crate) d_z: Batch,
    pub(crate) d_x: Batch,
    /// The terms that local expectation summed for each latent.
    pub(crate) summed: Vec<Summed>,
    pub(crate) prepared: Cache,
    pub(crate) cache: Cache,
    pub(crate) scratch: Scratch,
}

impl Pass {
    /// Draws (ε, λ, z) from component `k`; `replicates` neighbouring draws share ε, and with `antithetic` every second such group
    /// has the negative noise of the one before it.
    pub fn draw(
        &mut self,
        q: &Variational,
        theta: &[f64],
        k: usize,
        streams: &mut [Stream],
        replicates: usize,
        antithetic: bool,
    ) {
        let draws_len = streams.len();
        self.draws.eps.reshape(q.prior().columns_len(), draws_len);
        standard_normals(streams, &mut self.draws.eps);
        self.before_z.clear();
        self.before_z.extend_from_slice(streams);
        for column in self.draws.eps.as_mut_slice().chunks_exact_mut(draws_len) {
            for s in 0..draws_len {
                let group = s / replicates;
                let sign = if antithetic && group % 2 == 1 { -1.0 } else { 1.0 };
                let leader = if antithetic { (group - group % 2) * replicates } else { group * replicates };
                column[s] = if s == leader { column[s] } else { sign * column[leader] };
            }
        }
        throw_switches(q.prior(), theta, &mut self.draws.eps, &mut self.scratch);
        self.place(q, theta, k);
        self.draws.z.reshape(q.likelihood().latents_len(), draws_len);
        q.likelihood().sample(&self.draws.lambda, streams, &mut self.draws.z, &mut self.scratch);
    }

    /// The draws of `other` with one switch flipped, and λ and z accordingly; `streams` are those of `other` before z was drawn.
    pub(crate) fn flip(
        &mut self,
        q: &Variational,
        theta: &[f64],
        other: &Draws,
        column: usize,
        streams: &mut [Stream],
    ) {
        self.draws.eps.copy_from(&other.eps);
        for b in self.draws.eps.column_mut(column) {
            *b = 1.0 - *b;
        }
        self.place(q, theta, other.component);
        self.draws.z.reshape(q.likelihood().latents_len(), streams.len());
        q.likelihood().sample(&self.draws.lambda, streams, &mut self.draws.z, &mut self.scratch);
    }

    /// Sets the noise and the latents instead of drawing them: for exact checks, in which they are enumerated.
    pub fn set(&mut self, q: &Variational, theta: &[f64], k: usize, eps: &Batch, z: &Batch) {
        self.draws.eps.copy_from(eps);
        self.draws.z.copy_from(z);
        self.place(q, theta, k);
    }

    /// Computes λ from ε, and the prior's density.
    fn place(&mut self, q: &Variational, theta: &[f64], k: usize) {
        let draws_len = self.draws.eps.draws_len();
        self.draws.component = k;
        self.draws.lambda.reshape(q.prior().lambda_len(), draws_len);
        self.log_prior.resize(draws_len, 0.0);
        self.log_prior.fill(0.0);
        let (eps, lambda) = (&self.draws.eps, &mut self.draws.lambda);
        q.prior().transform(
            PriorPass { theta, component: k, eps, density: q.density() },
            lambda,
            &mut self.log_prior,
            &mut self.scratch,
        );
        if q.density() != Density::Whole {
            let mut noise = self.scratch.take(draws_len);
            let given = q.likelihood().point_mass_len();
            log_noise(q.prior(), theta, eps, given, &mut noise, &mut self.scratch);
            add_scaled(1.0, &noise, &mut self.log_prior);
            self.scratch.give(noise);
            let mut log_pi = self.scratch.take(q.prior().components_len());
            q.prior().log_weights(theta, &mut log_pi);
            for p in &mut self.log_prior {
                *p += log_pi[k];
            }
            self.scratch.give(log_pi);
        }
    }

    /// Computes everything up to the integrand (`eq:full-objective`). For an impossible or undefined draw it is not finite.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    pub fn forward(&mut self, model: &dyn Model, q: &Variational, theta: &[f64], phi: &[f64]) -> Result<()> {
        let draws_len = self.draws.z.draws_len();
        self.log_p.resize(draws_len, 0.0);
        self.log_r.resize(draws_len, 0.0);
        self.integrand.resize(draws_len, 0.0);
        self.log_q.reshape(q.likelihood().latents_len(), draws_len);
        if needs_gradient(q)
            && let Some(gradient) = model.gradient()
        {
            self.d_z.reset(q.likelihood().latents_len(), draws_len);
            gradient.log_joint_gradient(&self.draws.z, &mut self.log_p, &mut self.d_z)?;
        } else {
            model.log_joint(&self.draws.z, &mut self.log_p)?;
        }
        let scratch = &mut self.scratch;
        q.likelihood().log_density(&self.draws.lambda, &self.draws.z, &mut self.log_q, scratch);
        if q.has_recursion() {
            let at = q.surroundings(theta, phi, self.draws.component);
            let x = covered_by(q, &self.draws);
            q.recursive().prepare(at, x, &self.draws.z, &mut self.prepared, &mut self.scratch);
            q.recursive().forward(at, x, &self.prepared, &mut self.log_r, &mut self.cache, &mut self.scratch);
        } else {
            self.log_r.fill(0.0);
        }
        for (s, f) in self.integrand.iter_mut().enumerate() {
            *f = self.log_p[s] + self.log_r[s] - self.log_prior[s];
        }
        for i in 0..self.log_q.columns_len() {
            add_scaled(-1.0, self.log_q.column(i), &mut self.integrand);
        }
        for f in &mut self.integrand {
            // +∞ counts as undefined, like NaN: the model is improper there.
            if *f == f64::INFINITY {
                *f = f64::NAN;
            }
        }
        Ok(())
    }

    /// What r computed from z alone.
    pub fn prepared(&self) -> &Cache {
        &self.prepared
    }

    /// Draws `samples` fresh λ's per z and replaces the hierarchical integrand by the importance-weighted one, log p − log q̂(z).
    /// Call after [`forward`](Self::forward).
    pub fn tighten(&mut self, q: &Variational, at: (&[f64], &[f64]), streams: &mut [Stream], samples: usize) {
        self.tighten_by(q, samples, |inner, pass, _| {
            inner.draw(q, at, &pass.draws, &pass.prepared, streams, &mut pass.scratch);
        });
    }

    /// As [`tighten`](Self::tighten), with given fresh noise and components instead of draws of r: for exact checks, in which they
    /// are enumerated.
    pub fn tighten_at(&mut self, q: &Variational, at: (&[f64], &[f64]), fresh: &[(Batch, Vec<usize>)]) {
        self.tighten_by(q, fresh.len(), |inner, pass, j| {
            let (x, components) = &fresh[j];
            inner.set(q, at, &pass.draws, &pass.prepared, (x, components), &mut pass.scratch);
        });
    }

    fn tighten_by(&mut self, q: &Variational, samples: usize, mut fresh: impl FnMut(&mut Inner, &mut Self, usize)) {
        let mut inner = std::mem::take(&mut self.inner);
        let own = self.log_p.iter().zip(&self.integrand).map(|(p, f)| p - f);
        let mut average = Average::begin(q, &self.draws, own, &mut self.d_z, &mut self.scratch);
        for j in 0..samples {
            fresh(&mut inner, self, j);
            average.add(q, &self.draws, &inner);
        }
        let count = ((samples + 1) as f64).ln();
        for (s, sum) in average.log_sum.iter().enumerate() {
            // An invalid draw stays invalid.
            let is_valid = self.integrand[s].is_finite();
            self.integrand[s] = if is_valid { self.log_p[s] - (sum - count) } else { f64::NAN };
        }
        average.end(q, &mut self.d_z, &mut self.scratch);
        self.inner = inner;
    }
}

pub(crate) fn needs_gradient(q: &Variational) -> bool {
    (0..q.likelihood().latents_len()).any(|i| q.likelihood().kind(i) != Kind::Sampled)
}

/// The terms that local expectation summed for a latent; the others are estimated by the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summed {
    /// None.
    Nothing,
    /// log p_i − log q_i, but not the recursive approximation.
    WithoutRecursion,
    /// All.
    All,
}

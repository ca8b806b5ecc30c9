//! The conditionals of π_t(z, λ) ∝ q(z, λ)^(1−t) (p(x, z) r(λ | z))^t along z, for Gibbs scans.
//!
//! log π_t(z_i | λ, z_−i) = (1−t) log q(z_i | λ) + t (log p_i + log r_i) + constant.

use super::super::importance::Inner;
use crate::error::Result;
use crate::model::{Conditionals, Model};
use crate::recursive::{Cache, Known, RecursivePass};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;

/// π_t. A draw of it has z, λ, the number of its component and the noise or λ that r covers, as columns: a scan may pass on some of the
/// draws only, and each needs its own λ.
pub(super) struct Tempered<'a> {
    model: &'a dyn Model,
    q: &'a Variational,
    theta: &'a [f64],
    phi: &'a [f64],
    t: f64,
}

/// The columns of a draw.
struct Parts {
    z: Batch,
    lambda: Batch,
    components: Vec<usize>,
    x: Batch,
}

impl<'a> Tempered<'a> {
    pub(super) fn new(model: &'a dyn Model, q: &'a Variational, (theta, phi): (&'a [f64], &'a [f64]), t: f64) -> Self {
        Self { model, q, theta, phi, t }
    }

    /// The columns of these draws.
    pub(super) fn join(&self, z: &Batch, now: &Inner) -> Batch {
        let components: Vec<f64> = now.components.iter().map(|k| *k as f64).collect();
        let columns = [z.as_slice(), now.lambda.as_slice(), &components, now.x.as_slice()].concat();
        Batch::from_columns(columns, z.draws_len())
    }

    fn split(&self, state: &Batch) -> Parts {
        let (n, lambda_len, len) = (self.model.latents().len(), self.q.prior().lambda_len(), state.draws_len());
        let at = n + lambda_len;
        let batch = |range| Batch::from_columns(state.columns(range).to_vec(), len);
        Parts {
            z: batch(0..n),
            lambda: batch(n..at),
            components: state.column(at).iter().map(|k| *k as usize).collect(),
            x: batch(at + 1..state.columns_len()),
        }
    }

    /// log p_i, by the log joint if the model has no conditionals.
    fn of_model(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        if let Some(conditionals) = self.model.conditionals() {
            return conditionals.log_conditional(i, z, values, out);
        }
        let mut moved = z.clone();
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            self.model.log_joint(&moved, out.column_mut(v))?;
        }
        Ok(())
    }

    /// log q(z_i | λ), or log q(z | λ) if the likelihood is not a product.
    fn of_likelihood(&self, i: usize, Parts { z, lambda, .. }: &Parts, values: &[f64], out: &mut Batch) {
        let (likelihood, len) = (self.q.likelihood(), z.draws_len());
        if likelihood.is_factorised() {
            likelihood.log_densities_of(i, lambda, values, &mut vec![0.0; len], out);
            return;
        }
        let (mut moved, mut log_q) = (z.clone(), Batch::zeros(z.columns_len(), len));
        let mut scratch = Scratch::default();
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            likelihood.log_density(lambda, &moved, &mut log_q, &mut scratch);
            let out = out.column_mut(v);
            out.fill(0.0);
            (0..log_q.columns_len()).for_each(|j| add_scaled(1.0, log_q.column(j), out));
        }
    }

    /// log r_i of every draw. What r computes from z serves draws of all components.
    fn of_recursive(&self, i: usize, Parts { z, x, components, .. }: &Parts, values: &[f64], out: &mut Batch) {
        let (recursive, mut scratch) = (self.q.recursive(), Scratch::default());
        let (mut prepared, mut cache) = (Cache::default(), Cache::default());
        let at = |k| self.q.surroundings(self.theta, self.phi, k);
        let occurring = || (0..self.q.prior().components_len()).filter(|k| components.contains(k));
        let mut log_r = vec![0.0; z.draws_len()];
        if recursive.is_local() {
            recursive.prepare(at(0), x, z, &mut prepared, &mut scratch);
            let mut of_component = out.clone();
            for k in occurring() {
                recursive.forward(at(k), x, &prepared, &mut log_r, &mut cache, &mut scratch);
                let known = Known { prepared: &prepared, cache: &cache };
                recursive.conditional(
                    RecursivePass { at: at(k), x, z, known },
                    i,
                    values,
                    &mut of_component,
                    &mut scratch,
                );
                for s in (0..components.len()).filter(|s| components[*s] == k) {
                    (0..values.len()).for_each(|v| out.set(v, s, of_component.get(v, s)));
                }
            }
            return;
        }
        let mut moved = z.clone();
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            recursive.prepare(at(0), x, &moved, &mut prepared, &mut scratch);
            for k in occurring() {
                recursive.forward(at(k), x, &prepared, &mut log_r, &mut cache, &mut scratch);
                for s in (0..components.len()).filter(|s| components[*s] == k) {
                    out.set(v, s, log_r[s]);
                }
            }
        }
    }
}

impl Conditionals for Tempered<'_> {
    fn log_conditional(&self, i: usize, state: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let parts = self.split(state);
        self.of_model(i, &parts.z, values, out)?;
        let mut term = Batch::zeros(values.len(), state.draws_len());
        self.of_recursive(i, &parts, values, &mut term);
        out.as_mut_slice().iter_mut().zip(term.as_slice()).for_each(|(out, r)| *out = self.t * (*out + r));
        self.of_likelihood(i, &parts, values, &mut term);
        add_scaled(1.0 - self.t, term.as_slice(), out.as_mut_slice());
        Ok(())
    }
}

//! The gradient of a batch's integrand along θ and φ: the three terms combined.

use super::{GradientSettings, Plan, disarm, local_expectation, score};
use crate::error::Result;
use crate::likelihood::PathwisePass;
use crate::model::Model;
use crate::objective::{Pass, covered_by, needs_gradient};
use crate::prior::PriorPass;
use crate::recursive::RecursivePass;
use crate::recursive::{Known, Space};
use crate::variational::Variational;
use hyperprior_math::vector::add_scaled;

/// What the gradient of a batch depends on, beside the batch itself.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Backward<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The variational model.
    pub q: &'a Variational,
    /// θ.
    pub theta: &'a [f64],
    /// φ.
    pub phi: &'a [f64],
    /// What is done for each latent.
    pub plans: &'a [Plan],
    /// How gradients are estimated.
    pub settings: &'a GradientSettings,
    /// The weight of each draw.
    pub weight: &'a [f64],
}

impl Pass {
    /// d_theta and d_phi += the gradient of Σ_s weight\[s\] · integrand\[s\], in expectation over z. A draw of weight 0 is left
    /// out.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    pub fn backward(&mut self, backward: Backward, d_theta: &mut [f64], d_phi: &mut [f64]) -> Result<()> {
        let Backward { model, q, theta, phi, plans, settings, weight } = backward;
        let draws_len = self.draws.z.draws_len();
        let lambda_len = q.prior().lambda_len();
        self.d_lambda.reset(lambda_len, draws_len);
        if !needs_gradient(q) {
            self.d_z.reset(q.likelihood().latents_len(), draws_len);
        }
        for i in 0..self.d_z.columns_len() {
            for (d, w) in self.d_z.column_mut(i).iter_mut().zip(weight) {
                *d = if *w == 0.0 { 0.0 } else { *d * w };
            }
        }
        let at = q.surroundings(theta, phi, self.draws.component);
        if q.has_recursion() {
            let x = covered_by(q, &self.draws);
            self.d_x.reset(x.columns_len(), draws_len);
            let (z, d_x, d_z) = (&self.draws.z, &mut self.d_x, &mut self.d_z);
            let known = Known { prepared: &self.prepared, cache: &self.cache };
            q.recursive().pullback(RecursivePass { at, x, z, known }, weight, d_x, d_z, d_phi, &mut self.scratch);
            // On the noise, x does not depend on θ.
            if q.recursive().space() == Space::Lambda && settings.terms.densities {
                add_scaled(1.0, self.d_x.as_slice(), self.d_lambda.as_mut_slice());
            }
        }
        for (i, plan) in plans.iter().enumerate() {
            if *plan == Plan::Path && settings.terms.likelihood {
                let (lambda, z) = (&self.draws.lambda, self.draws.z.column(i));
                let (d_z, d_lambda) = (self.d_z.column(i), &mut self.d_lambda);
                q.likelihood().pathwise(i, lambda, PathwisePass { z, d_z, weight }, d_lambda, &mut self.scratch);
            }
        }
        local_expectation::add(self, model, q, at, plans, settings, weight)?;
        disarm::add(self, model, q, at, plans, settings, weight)?;
        score::add(self, model, q, at, plans, settings, weight)?;
        let mut d_log_q = self.scratch.take(draws_len);
        if settings.terms.densities {
            add_scaled(-1.0, weight, &mut d_log_q);
        }
        let (eps, lambda, k) = (&self.draws.eps, &self.draws.lambda, self.draws.component);
        let (d_lambda, density) = (&self.d_lambda, q.density());
        q.prior().pullback(
            PriorPass { theta, component: k, eps, density },
            lambda,
            d_lambda,
            &d_log_q,
            d_theta,
            &mut self.scratch,
        );
        self.scratch.give(d_log_q);
        Ok(())
    }
}

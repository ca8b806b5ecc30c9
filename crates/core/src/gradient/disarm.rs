//! DisARM (Dong, Mnih and Tucker, 2020) for Bernoulli factors: two draws made from u and 1 − u, and the difference between their
//! signals.
//!
//! For b and b̃ coupled in this way, ∂E[f]/∂λ_i = E[½ (f(b) − f(b̃)) (b_i − b̃_i) σ(|λ_i|)], with f the terms that contain z_i.
//! If the two have the same z_i, nothing is added.

use super::{GradientSettings, Plan};
use crate::error::Result;
use crate::model::Model;
use crate::objective::Pass;
use crate::recursive::{Known, Surroundings};
use crate::variational::Variational;
use hyperprior_math::special::sigmoid;

impl Pass {
    /// Makes every second draw of the latents that use DisARM antithetic to the draw before it, which has the same λ.
    pub(super) fn couple(&mut self, q: &Variational, plans: &[Plan]) {
        let draws_len = self.draws.z.draws_len();
        let coins = || (0..plans.len()).filter(|&i| plans[i] == Plan::DisArm);
        let mut lambda = self.scratch.take_batch(self.draws.lambda.columns_len(), draws_len);
        lambda.copy_from(&self.draws.lambda);
        // 1 − u < σ(λ) is 1 − (u < σ(−λ)), up to a tie.
        for column in coins().flat_map(|i| q.likelihood().lambda_range(i)) {
            lambda.column_mut(column).iter_mut().skip(1).step_by(2).for_each(|l| *l = -*l);
        }
        self.coupled.clear();
        for pair in self.before_z.chunks(2) {
            self.coupled.extend(pair.iter().map(|_| pair[0].clone()));
        }
        q.likelihood().sample(&lambda, &mut self.coupled, &mut self.draws.z, &mut self.scratch);
        for i in coins() {
            self.draws.z.column_mut(i).iter_mut().skip(1).step_by(2).for_each(|z| *z = 1.0 - *z);
        }
        self.scratch.give_batch(lambda);
    }
}

/// Adds the estimate for every latent that uses DisARM.
pub(super) fn add(
    pass: &mut Pass,
    model: &dyn Model,
    q: &Variational,
    at: Surroundings,
    plans: &[Plan],
    settings: &GradientSettings,
    weight: &[f64],
) -> Result<()> {
    if !plans.contains(&Plan::DisArm) {
        return Ok(());
    }
    let draws_len = weight.len();
    let has_locals = model.locals().is_some();
    if let Some(locals) = model.locals() {
        pass.locals.reshape(plans.len(), draws_len);
        locals.log_local(&pass.draws.z, &mut pass.locals)?;
    }
    let mut signal = pass.scratch.take(draws_len);
    let mut r = pass.scratch.take(draws_len);
    for i in (0..plans.len()).filter(|&i| plans[i] == Plan::DisArm) {
        signal.fill(0.0);
        if settings.terms.likelihood {
            let log_p = if has_locals { pass.locals.column(i) } else { &pass.log_p };
            for s in 0..draws_len {
                signal[s] = log_p[s] - pass.log_q.get(i, s);
            }
        }
        if settings.terms.recursion && q.has_recursion() {
            q.recursive().local(at, i, Known { prepared: &pass.prepared, cache: &pass.cache }, &mut r);
            signal.iter_mut().zip(&r).for_each(|(f, r)| *f += r);
        }
        let column = q.likelihood().lambda_range(i).start;
        for s in (1..draws_len).step_by(2) {
            let (b, other) = (pass.draws.z.get(i, s - 1), pass.draws.z.get(i, s));
            if weight[s - 1] == 0.0 || weight[s] == 0.0 || b == other {
                continue;
            }
            let size = sigmoid(pass.draws.lambda.get(column, s).abs());
            let estimate = 0.5 * (signal[s - 1] - signal[s]) * (b - other) * size;
            pass.d_lambda.column_mut(column)[s] += (weight[s - 1] + weight[s]) * estimate;
        }
    }
    pass.scratch.give(r);
    pass.scratch.give(signal);
    Ok(())
}

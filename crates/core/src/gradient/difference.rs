//! The difference estimator for Poisson factors: ∂E[f]/∂λ_i = rate · E[f_i(z_i + 1) − f_i(z_i)], λ_i the log rate.
//!
//! Two values per draw, however wide the distribution: local expectation falls back to it when its sum would be long.

use super::GradientSettings;
use super::impossible::possible;
use crate::error::Result;
use crate::model::Conditionals;
use crate::objective::{Pass, Summed, covered_by};
use crate::recursive::RecursivePass;
use crate::recursive::{Known, Surroundings};
use crate::variational::Variational;
use hyperprior_math::vector::add_scaled;

/// Adds the estimate for latent `i`; returns false if its factor has no such rate.
pub(super) fn add(
    pass: &mut Pass,
    conditionals: &dyn Conditionals,
    q: &Variational,
    at: Surroundings,
    i: usize,
    settings: &GradientSettings,
    weight: &[f64],
) -> Result<bool> {
    let draws_len = weight.len();
    let mut rate = pass.scratch.take(draws_len);
    if !q.likelihood().difference_rate(i, &pass.draws.lambda, &mut rate) {
        pass.scratch.give(rate);
        return Ok(false);
    }
    // The distinct values that the draws need.
    let mut values = pass.scratch.take(2 * draws_len);
    for (pair, z) in values.chunks_exact_mut(2).zip(pass.draws.z.column(i)) {
        pair.copy_from_slice(&[*z, z + 1.0]);
    }
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let mut signal = pass.scratch.take_batch(values.len(), draws_len);
    if settings.terms.likelihood {
        conditionals.log_conditional(i, &pass.draws.z, &values, &mut signal)?;
        let mut z_i = pass.scratch.take(draws_len);
        let mut log_q = pass.scratch.take(draws_len);
        for (v, value) in values.iter().enumerate() {
            z_i.fill(*value);
            q.likelihood().log_density_of(i, &pass.draws.lambda, &z_i, &mut log_q);
            add_scaled(-1.0, &log_q, signal.column_mut(v));
        }
        pass.scratch.give(log_q);
        pass.scratch.give(z_i);
    }
    if settings.terms.recursion && q.has_recursion() {
        let mut r = pass.scratch.take_batch(values.len(), draws_len);
        let known = Known { prepared: &pass.prepared, cache: &pass.cache };
        let (x, z) = (covered_by(q, &pass.draws), &pass.draws.z);
        q.recursive().conditional(RecursivePass { at, x, z, known }, i, &values, &mut r, &mut pass.scratch);
        add_scaled(1.0, r.as_slice(), signal.as_mut_slice());
        pass.scratch.give_batch(r);
    }
    let at_value = |z: f64| values.partition_point(|v| *v < z);
    let column = q.likelihood().lambda_range(i).start;
    for s in 0..draws_len {
        let z = pass.draws.z.get(i, s);
        let difference = signal.get(at_value(z + 1.0), s) - signal.get(at_value(z), s);
        if weight[s] != 0.0 && !difference.is_nan() {
            pass.d_lambda.column_mut(column)[s] += weight[s] * rate[s] * possible(difference);
        }
    }
    pass.summed[i] = Summed::All;
    pass.scratch.give_batch(signal);
    pass.scratch.give(values);
    pass.scratch.give(rate);
    Ok(true)
}

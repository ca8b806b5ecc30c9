//! Local expectation: ∇_λi E[f] = E_{z_−i}[Σ_v q(v | λ_i) V_i(v) f_i(v, z_−i)], the sum over z_i's own values taken exactly.
//!
//! f_i = log p_i + r_i − log q_i. A countable support is truncated so that less than 1e-14 of the probability is left out. Since
//! Σ_v q(v) V_i(v) = 0, the signal is centred first, which makes the truncation error smaller still.

use super::impossible::IMPOSSIBLE;
use super::{GradientSettings, Plan, difference};
use crate::error::Result;
use crate::model::Model;
use crate::objective::{Pass, Summed, covered_by};
use crate::recursive::RecursivePass;
use crate::recursive::{Known, Surroundings};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector;

/// Adds the local expectation of every latent that uses it, and records in `pass.summed` what was summed.
pub(super) fn add(
    pass: &mut Pass,
    model: &dyn Model,
    q: &Variational,
    at: Surroundings,
    plans: &[Plan],
    settings: &GradientSettings,
    weight: &[f64],
) -> Result<()> {
    pass.summed.clear();
    pass.summed.resize(plans.len(), Summed::Nothing);
    let Some(conditionals) = model.conditionals() else { return Ok(()) };
    let draws_len = weight.len();
    let with_recursion = q.recursive().is_local() || settings.sum_joint_recursion;
    for i in 0..plans.len() {
        if plans[i] == Plan::Difference {
            difference::add(pass, conditionals, q, at, i, settings, weight)?;
            continue;
        }
        if plans[i] != Plan::LocalExpectation {
            continue;
        }
        let Some((low, high)) = q.likelihood().window(i, &pass.draws.lambda) else { continue };
        let values_len = (high - low) + 1.0;
        if !(values_len <= settings.window_max as f64) {
            if with_recursion {
                difference::add(pass, conditionals, q, at, i, settings, weight)?;
            }
            continue;
        }
        let values_len = values_len as usize;
        let mut values = pass.scratch.take(values_len);
        for (v, value) in values.iter_mut().enumerate() {
            *value = low + v as f64;
        }
        let mut signal = pass.scratch.take_batch(values_len, draws_len);
        if settings.terms.likelihood {
            conditionals.log_conditional(i, &pass.draws.z, &values, &mut signal)?;
        }
        if with_recursion && settings.terms.recursion {
            let mut r = pass.scratch.take_batch(values_len, draws_len);
            let x = covered_by(q, &pass.draws);
            let known = Known { prepared: &pass.prepared, cache: &pass.cache };
            q.recursive().conditional(
                RecursivePass { at, x, z: &pass.draws.z, known },
                i,
                &values,
                &mut r,
                &mut pass.scratch,
            );
            vector::add_scaled(1.0, r.as_slice(), signal.as_mut_slice());
            pass.scratch.give_batch(r);
        }
        add_one(pass, q, i, &values, &mut signal, settings.terms.likelihood, weight);
        pass.scratch.give_batch(signal);
        pass.scratch.give(values);
        pass.summed[i] = if with_recursion { Summed::All } else { Summed::WithoutRecursion };
    }
    Ok(())
}

/// d_lambda += weight · Σ_v q(v) V(v) (signal(v) − log q(v)).
fn add_one(
    pass: &mut Pass,
    q: &Variational,
    i: usize,
    values: &[f64],
    signal: &mut Batch,
    with_log_q: bool,
    weight: &[f64],
) {
    let draws_len = weight.len();
    let mut z_i = pass.scratch.take(draws_len);
    let mut probability = pass.scratch.take_batch(values.len(), draws_len);
    // If the prior is a point, every draw has the same λ: one table and one score serve them all.
    let alike = q.prior().columns_len() == 0;
    let lambda_len = if alike { pass.draws.lambda.columns_len() } else { 0 };
    let mut lambda = pass.scratch.take_batch(lambda_len, 1);
    let mut one = pass.scratch.take_batch(if alike { values.len() } else { 0 }, 1);
    if alike {
        for j in 0..lambda_len {
            lambda.set(j, 0, pass.draws.lambda.get(j, 0));
        }
        q.likelihood().log_densities_of(i, &lambda, values, &mut z_i[..1], &mut one);
        for v in 0..values.len() {
            probability.column_mut(v).fill(one.get(v, 0));
        }
    } else {
        q.likelihood().log_densities_of(i, &pass.draws.lambda, values, &mut z_i, &mut probability);
    }
    weigh(signal, &mut probability, with_log_q, weight, &mut pass.scratch);
    if alike {
        let mut d_lambda = pass.scratch.take_batch(lambda_len, 1);
        for v in 0..values.len() {
            one.set(v, 0, signal.column(v).iter().sum());
        }
        q.likelihood().scores(i, &lambda, values, &mut z_i[..1], &one, &mut d_lambda);
        for j in q.likelihood().lambda_range(i) {
            pass.d_lambda.column_mut(j)[0] += d_lambda.get(j, 0);
        }
        pass.scratch.give_batch(d_lambda);
    } else {
        q.likelihood().scores(i, &pass.draws.lambda, values, &mut z_i, signal, &mut pass.d_lambda);
    }
    for batch in [one, lambda, probability] {
        pass.scratch.give_batch(batch);
    }
    pass.scratch.give(z_i);
}

/// signal ← weight · q(v) (signal − its mean), with log q(v) subtracted first if asked; `probability` holds log q(v) and
/// becomes q(v).
fn weigh(signal: &mut Batch, probability: &mut Batch, with_log_q: bool, weight: &[f64], scratch: &mut Scratch) {
    let draws_len = weight.len();
    let mut best = scratch.take(draws_len);
    let mut mean = scratch.take(draws_len);
    let mut worst = scratch.take(draws_len);
    best.fill(f64::NEG_INFINITY);
    worst.fill(f64::INFINITY);
    for v in 0..signal.columns_len() {
        let log_q = probability.column(v);
        let column = signal.column_mut(v);
        for s in 0..draws_len {
            if with_log_q {
                column[s] -= log_q[s];
            }
            // A value outside the family's support has no probability and is ignored.
            if column[s].is_finite() && log_q[s] > f64::NEG_INFINITY {
                best[s] = best[s].max(column[s]);
                worst[s] = worst[s].min(column[s]);
            }
        }
    }
    for v in 0..signal.columns_len() {
        let log_q = probability.column_mut(v);
        for s in 0..draws_len {
            log_q[s] = log_q[s].exp();
        }
        let column = signal.column_mut(v);
        for s in 0..draws_len {
            // An impossible value counts as worse than any possible one; +∞ is as undefined as NaN.
            if !column[s].is_finite() {
                column[s] = worst[s].min(best[s] - IMPOSSIBLE);
            }
            if probability.get(v, s) > 0.0 {
                mean[s] += probability.get(v, s) * column[s];
            }
        }
    }
    for v in 0..signal.columns_len() {
        let column = signal.column_mut(v);
        for s in 0..draws_len {
            let p = probability.get(v, s);
            column[s] = if weight[s] == 0.0 || p == 0.0 { 0.0 } else { weight[s] * p * (column[s] - mean[s]) };
        }
    }
    for buffer in [worst, mean, best] {
        scratch.give(buffer);
    }
}

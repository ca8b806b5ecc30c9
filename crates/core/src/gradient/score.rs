//! The score estimator with Rao-Blackwellised signals: E[V_i (log p_i + r_i − log q_i)] (`eq:grad-mf` and term three of
//! `eq:first-gradient`), with the mean signal of the other draws as baseline (leave-one-out).

use super::{GradientSettings, Plan, Terms};
use crate::error::Result;
use crate::model::Model;
use crate::objective::{Pass, Summed};
use crate::recursive::{Known, Surroundings};
use crate::variational::Variational;

/// Adds the score estimate for every latent that uses it or that local expectation left over.
pub(super) fn add(
    pass: &mut Pass,
    model: &dyn Model,
    q: &Variational,
    at: Surroundings,
    plans: &[Plan],
    settings: &GradientSettings,
    weight: &[f64],
) -> Result<()> {
    let left = |pass: &Pass, i: usize| !matches!(plans[i], Plan::Path | Plan::DisArm) && pass.summed[i] != Summed::All;
    let full = |pass: &Pass, i: usize| left(pass, i) && pass.summed[i] == Summed::Nothing;
    if !(0..plans.len()).any(|i| left(pass, i)) {
        return Ok(());
    }
    let draws_len = weight.len();
    let has_locals = match model.locals() {
        Some(locals) if (0..plans.len()).any(|i| full(pass, i)) => {
            pass.locals.reshape(plans.len(), draws_len);
            locals.log_local(&pass.draws.z, &mut pass.locals)?;
            true
        }
        _ => false,
    };
    // If r does not split, everything is in one signal: as r tightens, log p + log r − log q(z | λ) approaches a constant and
    // the variance of the estimator vanishes, which is not true of its parts. The same holds if the likelihood is not a
    // product, since a latent's draw changes those that depend on it.
    let whole = settings.importance > 0 || !q.recursive().is_local() || !q.likelihood().is_factorised();
    let mut signal = pass.scratch.take(draws_len);
    let mut r = pass.scratch.take(draws_len);
    for i in 0..plans.len() {
        if !left(pass, i) {
            continue;
        }
        signal.fill(0.0);
        if full(pass, i) && whole && settings.terms == Terms::default() {
            signal.copy_from_slice(&pass.integrand);
        } else {
            if full(pass, i) && settings.terms.likelihood {
                let log_p = if has_locals { pass.locals.column(i) } else { &pass.log_p };
                let log_q = pass.log_q.column(i);
                for s in 0..draws_len {
                    signal[s] = log_p[s] - log_q[s];
                }
            }
            if settings.terms.recursion && q.has_recursion() {
                q.recursive().local(at, i, Known { prepared: &pass.prepared, cache: &pass.cache }, &mut r);
                for s in 0..draws_len {
                    signal[s] += r[s];
                }
            }
        }
        compare(&mut signal, weight, settings);
        let (lambda, z) = (&pass.draws.lambda, &pass.draws.z);
        q.likelihood().score_drawn(i, lambda, z, &signal, &mut pass.d_lambda, &mut pass.scratch);
    }
    pass.scratch.give(r);
    pass.scratch.give(signal);
    Ok(())
}

/// signal ← weight · (signal − the mean signal of the other draws of its group): the mean is independent of the draw, so the
/// expectation does not change. Draws of weight 0 are left out on both sides; a draw left alone in its group is compared with
/// the rest of the batch, or not counted, since its raw signal would depend on the constant in log p.
fn compare(signal: &mut [f64], weight: &[f64], settings: &GradientSettings) {
    // Draws that share λ give the best baseline; if each draw has its own λ, the whole batch is used.
    let group_len = if settings.replicates > 1 { settings.replicates } else { signal.len() };
    let kept = || signal.iter().zip(weight).filter(|(_, w)| **w != 0.0);
    let (all, all_count) = (kept().map(|(f, _)| f).sum::<f64>(), kept().count() as f64);
    for (signal, weight) in signal.chunks_mut(group_len).zip(weight.chunks(group_len)) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (f, w) in signal.iter().zip(weight) {
            if *w != 0.0 {
                sum += f;
                count += 1.0;
            }
        }
        for (f, w) in signal.iter_mut().zip(weight) {
            let is_alone = count == 1.0 && weight.len() > 1;
            *f = match (*w != 0.0, settings.baseline && weight.len() > 1) {
                (false, _) => 0.0,
                (true, false) => w * *f,
                (true, true) if is_alone && all_count > 1.0 => w * (*f - (all - *f) / (all_count - 1.0)),
                (true, true) if is_alone => 0.0,
                (true, true) => w * (*f - (sum - *f) / (count - 1.0)),
            };
        }
    }
}

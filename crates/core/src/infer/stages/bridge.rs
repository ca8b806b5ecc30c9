//! The evidence by bridge sampling between an approximation and draws of the posterior (Meng and Wong, 1996).

use crate::error::Result;
use crate::fit::Fitted;
use crate::model::Model;
use crate::objective::Estimate;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::scratch::Scratch;

/// The most iterations, and the change of the log evidence at which they end.
const ITERATIONS: usize = 1000;
const CHANGE: f64 = 1e-10;

/// log p(x) from draws of q with their log weights log p − log q, and from draws `u` of the posterior with this effective sample size.
/// Nothing if the density of q is not available or the two have nothing in common.
pub(in crate::infer) fn bridge(
    model: &dyn Model,
    (q, fitted): (&Variational, &Fitted),
    log_weights: &[f64],
    (u, ess): (&Batch, f64),
) -> Result<Option<Estimate>> {
    let latents = model.latents();
    if !q.prior().has_density() || (0..latents.len()).any(|i| latents.support(i).is_discrete()) {
        return Ok(None);
    }
    let (mut log_p, mut log_q) = (vec![0.0; u.draws_len()], vec![0.0; u.draws_len()]);
    model.log_joint(u, &mut log_p)?;
    q.prior().log_density(&fitted.theta, u, &mut log_q, &mut Scratch::default());
    let own: Vec<f64> = log_p.iter().zip(&log_q).map(|(p, q)| p - q).collect();
    Ok(estimate(log_weights, &own, ess))
}

/// The optimal bridge. With l = log p − log q and the shares s of the two samples, p(x) is the fixed point of
/// r = mean over q of e^l / (s₁ e^l + s₂ r), divided by the mean over p of 1 / (s₁ e^l + s₂ r). The standard error is that of
/// Frühwirth-Schnatter (2004), with the effective sample size in place of the number of draws.
pub(super) fn estimate(of_q: &[f64], of_p: &[f64], ess: f64) -> Option<Estimate> {
    let of_q: Vec<f64> = of_q.iter().copied().filter(|l| !l.is_nan()).collect();
    if of_q.is_empty() || of_p.iter().any(|l| !l.is_finite()) {
        return None;
    }
    let mut sorted = of_p.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len() / 2)?;
    let (n, m) = (ess.min(of_p.len() as f64), of_q.len() as f64);
    let (s_p, s_q) = (n / (n + m), m / (n + m));
    // Both are divided by e^l if that is large.
    let from_q = |l: f64, r: f64| 1.0 / (s_p + s_q * r * (middle - l).exp());
    let from_p = |l: f64, r: f64| 1.0 / (s_p * (l - middle).exp() + s_q * r);
    let mean = |of: &[f64], f: &dyn Fn(f64) -> f64| of.iter().map(|l| f(*l)).sum::<f64>() / of.len() as f64;
    let mut r = 1.0_f64;
    for _ in 0..ITERATIONS {
        let next = mean(&of_q, &|l| from_q(l, r)) / mean(of_p, &|l| from_p(l, r));
        if !(next > 0.0 && next.is_finite()) {
            return None;
        }
        let change = (next / r).ln().abs();
        r = next;
        if change < CHANGE {
            break;
        }
    }
    let relative = |of: &[f64], f: &dyn Fn(f64) -> f64| {
        let mean_f = mean(of, f);
        mean(of, &|l| (f(l) / mean_f - 1.0).powi(2))
    };
    let variance = relative(&of_q, &|l| from_q(l, r)) / m + relative(of_p, &|l| from_p(l, r)) / n;
    Some(Estimate { value: middle + r.ln(), standard_error: variance.sqrt() }).filter(|e| e.standard_error.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Verdict;
    use crate::diagnostics::psis::VARIANCE_KHAT_MAX;
    use crate::infer::stages::test_models::Coupled;
    use crate::infer::{InferSettings, Starts, infer};
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    /// p = 5 · N(0, 1) and q = N(shift, scale²), in `d` dimensions: the error in standard errors, and the standard error.
    fn error(d: usize, shift: f64, scale: f64, seed: u64) -> (f64, f64) {
        let mut rng = stream(seed, 0, 0, 0);
        let normals = |rng: &mut _| -> Vec<f64> { (0..d).map(|_| StandardNormal.sample(rng)).collect() };
        let log_ratio = |x: &[f64]| {
            let of = |x: &f64| -0.5 * x * x + 0.5 * ((x - shift) / scale).powi(2) + scale.ln();
            5.0_f64.ln() + x.iter().map(of).sum::<f64>()
        };
        let of_p: Vec<f64> = (0..4000).map(|_| log_ratio(&normals(&mut rng))).collect();
        let of_q: Vec<f64> = (0..8000)
            .map(|_| log_ratio(&normals(&mut rng).iter().map(|x| shift + scale * x).collect::<Vec<_>>()))
            .collect();
        let found = estimate(&of_q, &of_p, 4000.0).unwrap();
        ((found.value - 5.0_f64.ln()) / found.standard_error, found.standard_error)
    }

    #[test]
    fn the_error_is_as_large_as_the_standard_error_says() {
        // Narrow approximations, whose importance weights have no variance, and shifted ones.
        for (d, shift, scale, most) in
            [(1, 0.0, 0.5, 0.02), (8, 0.0, 0.6, 0.08), (2, 1.5, 0.7, 0.05), (3, 0.0, 3.0, 0.05)]
        {
            let found: Vec<(f64, f64)> = (0..40).map(|seed| error(d, shift, scale, seed)).collect();
            let rms = (found.iter().map(|(z, _)| z * z).sum::<f64>() / 40.0).sqrt();
            assert!((0.7..1.4).contains(&rms), "{d} {shift} {scale}: {rms}");
            assert!(found.iter().all(|(_, error)| *error < most), "{d} {shift} {scale}: {found:?}");
        }
    }

    /// Catches an evidence by importance weights that have no variance, which is too low by more than its error says. It is 1.
    #[test]
    fn weights_without_a_variance_do_not_estimate_the_evidence() {
        let mut uneven = 0;
        for seed in 1..5 {
            let settings = InferSettings { seed, ..InferSettings::default() };
            let found = infer(&Coupled::contaminated(16), &Starts::default(), &settings, &mut crate::Quiet).unwrap();
            let Estimate { value, standard_error } = found.log_evidence();
            if found.verdict() == Verdict::Trust && found.psis.is_good() && found.psis.khat > VARIANCE_KHAT_MAX {
                uneven += 1;
                assert!(found.bridge.is_some());
            }
            assert!(value.abs() < 4.0 * standard_error && standard_error < 0.009, "{value} ± {standard_error}");
        }
        assert!(uneven > 0);
    }

    #[test]
    fn nothing_in_common_gives_no_estimate_or_a_large_error() {
        let found = estimate(&[-2000.0; 100], &[2000.0; 100], 100.0);
        assert!(found.is_none_or(|found| found.standard_error > 1.0), "{found:?}");
    }
}

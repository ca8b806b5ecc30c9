//! The noise behind λ: standard normals, and switches made by thresholding normals.

use super::Prior;
use hyperprior_math::batch::Batch;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::{HALF_LN_2_PI, normal_quantile, sigmoid, softplus};
use std::ops::Range;

/// Turns the last columns of a batch of standard normals into the prior's switches: one where the normal lies below the
/// quantile of the switch's probability. A normal with its sign changed makes an antithetic switch.
pub(crate) fn throw_switches(prior: &dyn Prior, theta: &[f64], eps: &mut Batch, scratch: &mut Scratch) {
    if prior.switches_len() == 0 {
        return;
    }
    let mut logits = scratch.take(prior.switches_len());
    prior.switch_logits(theta, &mut logits);
    for (m, logit) in logits.iter().enumerate() {
        let threshold = normal_quantile(sigmoid(*logit));
        for x in eps.column_mut(prior.noise_len() + m) {
            *x = f64::from(*x < threshold);
        }
    }
    scratch.give(logits);
}

/// out\[s\] = log s(ε) of the normals from `first` on, plus the log probability of the switches.
pub(crate) fn log_noise(
    prior: &dyn Prior,
    theta: &[f64],
    eps: &Batch,
    first: usize,
    out: &mut [f64],
    scratch: &mut Scratch,
) {
    log_standard_normal(eps, first..prior.noise_len(), out);
    if prior.switches_len() == 0 {
        return;
    }
    let mut logits = scratch.take(prior.switches_len());
    prior.switch_logits(theta, &mut logits);
    for (m, logit) in logits.iter().enumerate() {
        for (o, b) in out.iter_mut().zip(eps.column(prior.noise_len() + m)) {
            *o += log_bernoulli(*logit, *b);
        }
    }
    scratch.give(logits);
}

/// log Bernoulli(b; logit).
pub(crate) fn log_bernoulli(logit: f64, b: f64) -> f64 {
    b * logit - softplus(logit)
}

/// out\[s\] = Σ over the columns in `range` of log N(x; 0, 1).
pub(crate) fn log_standard_normal(x: &Batch, range: Range<usize>, out: &mut [f64]) {
    out.fill(-HALF_LN_2_PI * range.len() as f64);
    for i in range {
        for (o, x) in out.iter_mut().zip(x.column(i)) {
            *o -= 0.5 * x * x;
        }
    }
}

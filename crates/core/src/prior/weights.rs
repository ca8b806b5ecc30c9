//! The weights of a mixture, π = softmax of K logits at the beginning of θ.

use hyperprior_math::special::log_sum_exp;

/// out\[k\] = log π_k.
pub(super) fn log_weights(logits: &[f64], out: &mut [f64]) {
    let total = log_sum_exp(logits);
    for (o, l) in out.iter_mut().zip(logits) {
        *o = l - total;
    }
}

/// d_logits += the gradient of Σ_k π_k values\[k\]: π_k (values\[k\] − Σ_j π_j values\[j\]).
pub(super) fn weights_pullback(logits: &[f64], values: &[f64], d_logits: &mut [f64]) {
    let total = log_sum_exp(logits);
    let mean: f64 = logits.iter().zip(values).map(|(l, v)| (l - total).exp() * v).sum();
    for ((d, l), v) in d_logits.iter_mut().zip(logits).zip(values) {
        *d += (l - total).exp() * (v - mean);
    }
}

/// d_logits += the gradient of Σ_k counts\[k\] log π_k.
pub(super) fn log_weights_pullback(logits: &[f64], counts: &[f64], d_logits: &mut [f64]) {
    let total = log_sum_exp(logits);
    let all: f64 = counts.iter().sum();
    for ((d, l), c) in d_logits.iter_mut().zip(logits).zip(counts) {
        *d += c - (l - total).exp() * all;
    }
}

//! If all latents are counts in one layer, no mixture of Poissons gives a better bound on ln p(x) than Poissons with the same mean.
//! This is why dependence between topics gains nothing there, whatever the hierarchical variational model.
//!
//! The bound is E[g(z)] − KL(q ‖ q̄) with q̄ the Poissons of the same mean and g = ln p(x, z) − ln q̄(z) = Σ_v x_v ln(b_v + W_v·z) plus
//! a linear function. Along a mean, E over Poissons has the expected difference of g as its derivative, and the matrix of second
//! differences of ln(b + w·z) = ∫ (e^−s − e^−s(b + w·z)) ds/s is −∫ (1 − e^−s w_i)(1 − e^−s w_j) e^−s(b + w·z) ds/s, which is
//! negative semidefinite. So E g is concave in the means, and mixing can only lower it; the KL lowers it further.

use hyperprior_math::special::ln_factorial;
use proptest::prelude::*;

/// Counts beyond this have negligible probability for means of up to 6.
const VALUES: usize = 40;

fn log_poisson(z: usize, mean: f64) -> f64 {
    z as f64 * mean.ln() - mean - ln_factorial(z as f64)
}

/// The exact bound of Σ_i w_i Poisson(m_i1) Poisson(m_i2) on ln p(x) of a document with two latents.
fn bound(parts: &[(f64, [f64; 2])], prior: [f64; 2], words: &[(f64, f64, [f64; 2])]) -> f64 {
    let mut sum = 0.0;
    for a in 0..VALUES {
        for b in 0..VALUES {
            let q: f64 = parts.iter().map(|(w, m)| w * (log_poisson(a, m[0]) + log_poisson(b, m[1])).exp()).sum();
            let mut log_p = log_poisson(a, prior[0]) + log_poisson(b, prior[1]);
            for (x, background, weights) in words {
                let rate = background + weights[0] * a as f64 + weights[1] * b as f64;
                log_p += x * rate.ln() - rate - ln_factorial(*x);
            }
            if q > 0.0 {
                sum += q * (log_p - q.ln());
            }
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn poissons_of_the_same_mean_are_no_worse(
        first in (0.05_f64..0.95, 0.01_f64..6.0, 0.01_f64..6.0),
        second in (0.01_f64..6.0, 0.01_f64..6.0),
        prior in (0.1_f64..3.0, 0.1_f64..3.0),
        words in prop::collection::vec((1_u32..9, 0.01_f64..1.0, 0.0_f64..3.0, 0.0_f64..3.0), 1..5),
    ) {
        let words: Vec<_> = words.into_iter().map(|(x, b, w, v)| (f64::from(x), b, [w, v])).collect();
        let (weight, one, two) = (first.0, [first.1, first.2], [second.0, second.1]);
        let prior = [prior.0, prior.1];
        let mean = [0, 1].map(|k| weight * one[k] + (1.0 - weight) * two[k]);
        let mixed = bound(&[(weight, one), (1.0 - weight, two)], prior, &words);
        let alone = bound(&[(1.0, mean)], prior, &words);
        prop_assert!(mixed <= alone + 1e-9, "{mixed} with two points, {alone} with their mean");
    }
}

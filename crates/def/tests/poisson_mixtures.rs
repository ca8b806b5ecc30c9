//! If all latents are counts in one layer, no mixture of Poissons gives a better bound on ln p(x) than Poissons with the same mean.
//! This is why dependence between topics gains nothing there, whatever the hierarchical variational model. The documents are those of a
//! trained model, and every bound is a sum over all states.
//!
//! The bound is E[g(z)] − KL(q ‖ q̄) with q̄ the Poissons of the same mean and g = ln p(x, z) − ln q̄(z) = Σ_v x_v ln(b_v + W_v·z) plus
//! a linear function. Along a mean, E over Poissons has the expected difference of g as its derivative, and the matrix of second
//! differences of ln(b + w·z) = ∫ (e^−s − e^−s(b + w·z)) ds/s is −∫ (1 − e^−s w_i)(1 − e^−s w_j) e^−s(b + w·z) ds/s, which is
//! negative semidefinite. So E g is concave in the means, and mixing can only lower it; the KL lowers it further.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::{Batch, Model};
use hyperprior_def::corpus::bible;
use hyperprior_def::{Corpus, DocumentModel, Family, Layer, Settings, Training};
use hyperprior_math::special::ln_factorial;
use proptest::prelude::*;
use std::sync::OnceLock;

/// Counts from here on have negligible probability for means of up to 20.
const VALUES: usize = 70;

/// A model of the Bible with one layer of two counts.
fn trained() -> (&'static Corpus, &'static Training<'static>) {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    static TRAINED: OnceLock<Training> = OnceLock::new();
    let corpus = CORPUS.get_or_init(bible);
    let training = TRAINED.get_or_init(|| {
        let settings = Settings::default().layers(vec![Layer { family: Family::Poisson, width: 2 }]).epochs(5);
        let mut training = Training::new(corpus, &settings).unwrap();
        (0..settings.epochs).for_each(|_| {
            training.run_epoch().unwrap();
        });
        training
    });
    (corpus, training)
}

/// All states of two counts, and ln p(x, z) of a document at each.
fn joint(document: usize) -> (Batch, Vec<f64>) {
    let (corpus, training) = trained();
    let document = corpus.document(document % corpus.documents_len());
    let model = DocumentModel::new(training.shape(), training.terms(), training.layer_weights(), document);
    let (n, states) = (VALUES * VALUES, (0..VALUES * VALUES).map(|s| [s / VALUES, s % VALUES]));
    let mut z = Batch::zeros(2, n);
    for (s, state) in states.enumerate() {
        (0..2).for_each(|i| z.set(i, s, state[i] as f64));
    }
    let mut log_joint = vec![0.0; n];
    model.log_joint(&z, &mut log_joint).unwrap();
    (z, log_joint)
}

fn log_poisson(z: f64, mean: f64) -> f64 {
    z * mean.ln() - mean - ln_factorial(z)
}

/// The bound of Σ_i w_i Poisson(m_i1) Poisson(m_i2) on ln p(x).
fn bound(parts: &[(f64, [f64; 2])], (z, log_joint): &(Batch, Vec<f64>)) -> f64 {
    let mut sum = 0.0;
    for (s, log_p) in log_joint.iter().enumerate() {
        let of = |m: &[f64; 2]| (0..2).map(|i| log_poisson(z.get(i, s), m[i])).sum::<f64>().exp();
        let q: f64 = parts.iter().map(|(w, m)| w * of(m)).sum();
        if q > 0.0 {
            sum += q * (log_p - q.ln());
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn poissons_of_the_same_mean_are_no_worse(
        document in 0_usize..1000,
        weight in 0.05_f64..0.95,
        one in (0.01_f64..20.0, 0.01_f64..20.0),
        two in (0.01_f64..20.0, 0.01_f64..20.0),
    ) {
        let joint = joint(document);
        let (one, two) = ([one.0, one.1], [two.0, two.1]);
        let mean = [0, 1].map(|k| weight * one[k] + (1.0 - weight) * two[k]);
        let mixed = bound(&[(weight, one), (1.0 - weight, two)], &joint);
        let alone = bound(&[(1.0, mean)], &joint);
        prop_assert!(mixed <= alone + 1e-9, "{mixed} with two points, {alone} with their mean");
    }
}

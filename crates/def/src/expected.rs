//! The expected activity of a document's latents.

use crate::estimate::Estimator;
use crate::local::Method;
use crate::shape::Shape;
use hyperprior_math::random::{TextPurpose, stream};
use hyperprior_math::single::{DRAWS, Lanes};

/// The random streams of documents whose weights are given.
pub(crate) const STEP: u64 = TextPurpose::HeldOut.step();
/// Means over λ are taken over this many times eight draws.
pub(crate) const ROUNDS: usize = 64;

/// E z, layer by layer, from draws of λ.
pub(crate) fn expected(shape: &Shape, method: Method, own: &[Lanes], seed: u64, document: u64) -> Vec<Vec<f32>> {
    let method = method.of(shape, own);
    let mut estimator = Estimator::new(shape, method);
    let mut rng = stream(seed, STEP, document, 1);
    let mut sums: Vec<Vec<f32>> = shape.layers().iter().map(|layer| vec![0.0; layer.width]).collect();
    let rounds = if method == Method::MeanField { 1 } else { ROUNDS };
    for _ in 0..rounds {
        estimator.draw(shape, own, DRAWS, &mut rng);
        for (l, sum) in sums.iter_mut().enumerate() {
            for (k, sum) in sum.iter_mut().enumerate() {
                let (tile, lane) = shape.place(l, k);
                let one = |q: usize| estimator.shares[q] * estimator.mean[tile].0[q][lane];
                *sum += (0..DRAWS).map(one).sum::<f32>() / rounds as f32;
            }
        }
    }
    sums
}

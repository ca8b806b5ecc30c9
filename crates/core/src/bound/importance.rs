//! The importance-weighted pair: λ's drawn from r tighten both sides of log q(z).

use crate::gradient::{Inner, Pass};
use crate::variational::Variational;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_add_exp;

/// log mean(e^a_0 … e^a_J) and log mean(e^a_1 … e^a_J) for every draw, a_0 = `own` being the draw's own λ.
///
/// Where nothing is to be integrated out (no recursion), log q(z) is known and both are `own`.
pub(super) fn pair(
    q: &Variational,
    at: (&[f64], &[f64]),
    pass: &Pass,
    own: &[f64],
    streams: &mut [Stream],
    samples: usize,
) -> (Vec<f64>, Vec<f64>) {
    if !q.has_recursion() || samples == 0 {
        return (own.to_vec(), own.to_vec());
    }
    let (mut scratch, mut inner) = (Scratch::default(), Inner::default());
    let mut others = vec![f64::NEG_INFINITY; own.len()];
    for _ in 0..samples {
        inner.draw(q, at, &pass.draws, pass.prepared(), streams, &mut scratch);
        for (o, a) in others.iter_mut().zip(&inner.log_weight) {
            *o = log_add_exp(*o, *a);
        }
    }
    let j = samples as f64;
    let lower = others.iter().zip(own).map(|(o, a)| log_add_exp(*o, *a) - (j + 1.0).ln()).collect();
    let upper = others.iter().map(|o| o - j.ln()).collect();
    (lower, upper)
}

//! The importance-weighted pair: λ's drawn from r tighten both sides of log q(z).

use crate::gradient::Draws;
use crate::prior::Density;
use crate::recursive::{Cache, Space, log_standard_normal};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_add_exp;

/// log mean(e^a_0 … e^a_J) and log mean(e^a_1 … e^a_J) for every draw, a_0 = `own` being the draw's own λ.
///
/// Where nothing is to be integrated out (no recursion), log q(z) is known and both are `own`.
pub(super) fn pair(
    q: &Variational,
    (theta, phi): (&[f64], &[f64]),
    draws: &Draws,
    own: &[f64],
    streams: &mut [Stream],
    samples: usize,
) -> (Vec<f64>, Vec<f64>) {
    if !q.has_recursion() || samples == 0 {
        return (own.to_vec(), own.to_vec());
    }
    let mut scratch = Scratch::default();
    let mut others = vec![f64::NEG_INFINITY; own.len()];
    for _ in 0..samples {
        let a = one(q, (theta, phi), draws, streams, &mut scratch);
        for (o, a) in others.iter_mut().zip(a) {
            *o = log_add_exp(*o, a);
        }
    }
    let j = samples as f64;
    let lower = others.iter().zip(own).map(|(o, a)| log_add_exp(*o, *a) - (j + 1.0).ln()).collect();
    let upper = others.iter().map(|o| o - j.ln()).collect();
    (lower, upper)
}

/// a_j for one fresh λ ~ r(λ | z) per draw.
fn one(
    q: &Variational,
    (theta, phi): (&[f64], &[f64]),
    draws: &Draws,
    streams: &mut [Stream],
    scratch: &mut Scratch,
) -> Vec<f64> {
    let draws_len = draws.z.draws_len();
    let (prior, likelihood, recursive) = (q.prior(), q.likelihood(), q.recursive());
    let own = match recursive.space() {
        Space::Noise => &draws.eps,
        Space::Lambda => &draws.lambda,
    };
    let mut x = own.clone();
    let mut components = vec![draws.component; draws_len];
    let at = q.surroundings(theta, phi, draws.component);
    recursive.sample(at, &draws.z, streams, &mut x, &mut components, scratch);
    let mut result = vec![0.0; draws_len];
    let mut log_pi = vec![0.0; prior.components_len()];
    prior.log_weights(theta, &mut log_pi);
    for k in 0..prior.components_len() {
        if !components.contains(&k) {
            continue;
        }
        // The whole batch is taken through each component that occurs; the draws of the others are not read.
        let at = q.surroundings(theta, phi, k);
        let mut log_prior = vec![0.0; draws_len];
        let mut lambda = Batch::zeros(prior.lambda_len(), draws_len);
        match recursive.space() {
            Space::Lambda => {
                lambda.copy_from(&x);
                prior.log_density(theta, &lambda, &mut log_prior, scratch);
            }
            Space::Noise => {
                let given = likelihood.point_mass_len();
                if given > 0 && k != draws.component {
                    renoise(q, theta, k, &draws.lambda, given, &mut x);
                }
                prior.transform(theta, k, &x, q.density(), &mut lambda, &mut log_prior, scratch);
                if q.density() == Density::Unneeded {
                    log_prior.fill(0.0);
                }
                let mut noise = vec![0.0; draws_len];
                log_standard_normal(&x, given, &mut noise);
                for (p, n) in log_prior.iter_mut().zip(&noise) {
                    *p += n + log_pi[k];
                }
            }
        }
        let mut log_r = vec![0.0; draws_len];
        let mut log_q = Batch::zeros(likelihood.latents_len(), draws_len);
        recursive.forward(at, &x, &draws.z, &mut log_r, &mut Cache::default(), scratch);
        likelihood.log_density(&lambda, &draws.z, &mut log_q);
        for s in (0..draws_len).filter(|&s| components[s] == k || recursive.space() == Space::Lambda) {
            let log_q: f64 = (0..log_q.columns_len()).map(|i| log_q.get(i, s)).sum();
            result[s] = log_q + log_prior[s] - log_r[s];
        }
        if recursive.space() == Space::Lambda {
            break;
        }
    }
    result
}

/// The noise that component `k` would have needed for the given point masses' λ.
fn renoise(q: &Variational, theta: &[f64], k: usize, lambda: &Batch, given: usize, x: &mut Batch) {
    let Some(gaussians) = q.prior().gaussians() else { return };
    let n = q.prior().lambda_len();
    let (mut mean, mut scale) = (vec![0.0; n], vec![0.0; packed_len(n)]);
    gaussians.component(theta, k, &mut mean, &mut scale);
    let draws_len = lambda.draws_len();
    for c in 0..given {
        for (x, l) in x.column_mut(c).iter_mut().zip(lambda.column(c)) {
            *x = l - mean[c];
        }
    }
    linalg::lower_solve(&scale[..packed_len(given)], x.columns_mut(0..given), draws_len);
}

//! T8: a hierarchical model without variance. With the exact prior and the exact r, the hierarchical integrand is log Z of an Ising
//! ring at every (λ, s), which checks every density of `eq:full-objective` with its constant.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{GivenPrior, GivenRecursive, batch, numbers};
use hyperprior::likelihood::MeanField;
use hyperprior::math::family::Bernoulli;
use hyperprior::math::linalg::{cholesky, lower_solve, packed};
use hyperprior::math::special::softplus;
use hyperprior::objective::Pass;
use hyperprior::targets::Ising;
use hyperprior::{Variational, exact};
use hyperprior_testkit::enumerate::{counts, product};

const SPINS: usize = 8;
const J: f64 = 0.5;
const LOG_Z: f64 = 6.508171117;
const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_8;

/// A = 1.2 I + J · adjacency, row by row.
fn a() -> Vec<f64> {
    let neighbours = |i: usize, j: usize| (i + 1) % SPINS == j || (j + 1) % SPINS == i;
    let entry = |i: usize, j: usize| if i == j { 1.2 } else { J * f64::from(neighbours(i, j)) };
    (0..SPINS * SPINS).map(|e| entry(e / SPINS, e % SPINS)).collect()
}

/// log N(x; mean, A).
fn log_normal(x: &[f64], mean: &[f64]) -> f64 {
    let factor = cholesky(&a(), SPINS).expect("A is positive definite");
    let mut white: Vec<f64> = x.iter().zip(mean).map(|(x, m)| x - m).collect();
    lower_solve(&factor, &mut white, 1);
    (0..SPINS).map(|i| -0.5 * white[i] * white[i] - factor[packed(i, i)].ln() - HALF_LN_2_PI).sum()
}

/// A Bernoulli's λ is its logit, here 2λ of the documented model, so both log densities of λ are smaller by 8 ln 2.
const LOG_JACOBIAN: f64 = SPINS as f64 * std::f64::consts::LN_2;

fn halved(logits: &[f64]) -> Vec<f64> {
    logits.iter().map(|l| 0.5 * l).collect()
}

/// log q(λ) = log N(λ; 0, A) + Σ ln 2cosh λ_i − log Z′, with log Z′ = log Z + 8 · 1.2 / 2.
fn log_prior(logits: &[f64]) -> f64 {
    let lambda = halved(logits);
    let tilt: f64 = lambda.iter().map(|l| l.abs() + softplus(-2.0 * l.abs())).sum();
    log_normal(&lambda, &[0.0; SPINS]) + tilt - (LOG_Z + 0.5 * 1.2 * SPINS as f64) - LOG_JACOBIAN
}

/// log r(λ | s) = log N(λ; A s, A).
fn log_recursive(logits: &[f64], z: &[f64]) -> f64 {
    let mean: Vec<f64> =
        a().chunks(SPINS).map(|row| row.iter().zip(z).map(|(a, z)| a * (2.0 * z - 1.0)).sum()).collect();
    log_normal(&halved(logits), &mean) - LOG_JACOBIAN
}

/// Catches a normalising constant that is missing anywhere in the integrand, which no average can hide: the value is log Z at
/// each of the 256 states, and at λ's from the centre to 20 standard deviations out.
#[test]
fn the_integrand_is_log_z_at_every_lambda_and_every_state() {
    let model = Ising::ring(SPINS, J).unwrap();
    let posterior = exact::posterior(&model, 1).unwrap();
    assert!((posterior.log_evidence - LOG_Z).abs() < 1e-9, "{}", posterior.log_evidence);

    let prior = GivenPrior { lambda_len: SPINS, log_density: Box::new(log_prior) };
    let recursive = GivenRecursive(Box::new(log_recursive));
    let q = Variational::new(MeanField::of(Bernoulli, SPINS).unwrap(), prior, recursive).unwrap();
    let states = product(&vec![counts(1); SPINS]);
    for (seed, scale) in [(1, 0.1), (2, 1.0), (3, 4.0), (4, 20.0)] {
        let lambda = vec![numbers(SPINS, scale, seed); states.len()];
        let mut pass = Pass::default();
        pass.set(&q, &[], 0, &batch(&lambda), &batch(&states));
        pass.forward(&model, &q, &[], &[]).unwrap();
        for (f, state) in pass.integrand.iter().zip(&states) {
            // log Z is documented to ten digits; terms of size λ² lose a few digits to rounding.
            assert!((f - LOG_Z).abs() < 1e-9, "{f} at scale {scale}, {state:?}");
        }
    }
}

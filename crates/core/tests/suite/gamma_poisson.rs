//! T1: a gamma prior over a Poisson's rate, whose marginal, posterior and entropies are known, and the bounds on the entropy.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{GivenPrior, GivenRecursive, Law, Small, assert_gradient, every};
use hyperprior::likelihood::MeanField;
use hyperprior::math::family::Poisson;
use hyperprior::math::special::{ln_choose, ln_gamma};
use hyperprior::model::Support;
use hyperprior::recursive::{Recursive, SameAsPrior};
use hyperprior::{Model, Variational};
use hyperprior_testkit::enumerate::counts;
use hyperprior_testkit::finite_difference::assert_close;
use hyperprior_testkit::quadrature::Rule;

/// The documented numbers have six digits.
const SIX_DIGITS: f64 = 6e-7;

const SHAPE: f64 = 3.0;
const RATE: f64 = 0.5;

/// The log density of x = log λ where λ ~ Gamma(shape, rate).
fn log_gamma(shape: f64, rate: f64, x: f64) -> f64 {
    shape * rate.ln() - ln_gamma(shape) + shape * x - rate * x.exp()
}

/// log q(z): negative binomial.
fn log_marginal(z: f64) -> f64 {
    ln_choose(SHAPE + z - 1.0, z) + SHAPE * (RATE / (1.0 + RATE)).ln() - z * (1.0 + RATE).ln()
}

/// With p constant the ELBO is the entropy.
fn flat() -> Small {
    Small::new(&[Support::Counts], |_| 0.0)
}

fn variational(recursive: impl Recursive + 'static) -> Variational {
    let log_density = Box::new(|x: &[f64]| log_gamma(SHAPE, RATE, x[0]));
    Variational::new(MeanField::of(Poisson, 1).unwrap(), GivenPrior { lambda_len: 1, log_density }, recursive).unwrap()
}

fn gamma(rate: f64) -> GivenRecursive {
    GivenRecursive(Box::new(move |x, z| log_gamma(SHAPE + z[0], rate, x[0])))
}

/// Even steps in log λ: the density falls like λ³ on the left and like e^(−λ/2) on the right, so the mass outside is below 1e-15,
/// and so is the probability of a count above 400.
fn law<'a>(model: &'a Small, q: &'a Variational) -> Law<'a> {
    let mut noise = Rule::line(-12.0, 4.6, 0.05);
    for (weight, x) in noise.weights.iter_mut().zip(&noise.points) {
        *weight *= log_gamma(SHAPE, RATE, x[0]).exp();
    }
    Law { model, q, noise, latents: every(&[counts(400)]) }
}

/// Catches a Poisson whose λ is not its log rate: the mixture is negative binomial, with the documented entropy.
#[test]
fn the_marginal_is_negative_binomial() {
    let (model, q) = (flat(), variational(SameAsPrior));
    let probability = law(&model, &q).marginal(&[], &[]);
    let exact: Vec<f64> = counts(400).iter().map(|z| log_marginal(*z).exp()).collect();
    assert_gradient("q(z)", &probability, &exact, 1e-12);
    assert_close(&[exact[4].ln()], &[-2.209647], 0.0, SIX_DIGITS);
    let entropy: f64 = -exact.iter().map(|p| p * p.max(1e-300).ln()).sum::<f64>();
    assert_close(&[entropy], &[2.730098], 0.0, SIX_DIGITS);
}

/// Catches a bound on the entropy with a wrong term: r = prior, the exact r, and one that is too sharp.
#[test]
fn the_lower_bounds_on_the_entropy_have_the_documented_values() {
    let model = flat();
    let bound = |q: Variational| law(&model, &q).value(&[], &[]);
    let found = [bound(variational(SameAsPrior)), bound(variational(gamma(1.5))), bound(variational(gamma(2.0)))];
    assert_close(&found, &[2.201088, 2.730098, 2.319237], 0.0, SIX_DIGITS);
}

/// Catches an integrand that varies with λ: with the exact posterior as r it is −log q(z) at every λ.
#[test]
fn with_the_exact_posterior_the_integrand_is_minus_log_q_at_every_lambda() {
    let (model, q) = (flat(), variational(gamma(1.5)));
    let law = law(&model, &q);
    let (pass, _) = law.pass(&[], &[], 0);
    for s in 0..pass.integrand.len() {
        let (x, z) = (pass.draws.lambda.get(0, s), pass.draws.z.get(0, s));
        // The terms are as large as z log z and λ, with a relative rounding error of 1e-15.
        let size = 1.0 + z * (z.max(1.0).ln() + x.abs()) + x.exp();
        assert!((pass.integrand[s] + log_marginal(z)).abs() < 1e-14 * size, "{} at {x}, {z}", pass.integrand[s]);
    }
}

/// Catches an upper bound that samples the wrong λ: z ~ q, then a fresh λ ~ r(λ | z).
#[test]
fn the_upper_bound_on_the_entropy_has_the_documented_value() {
    let (model, q) = (flat(), variational(gamma(2.0)));
    let mut law = law(&model, &q);
    law.noise = Rule::line(-12.0, 6.0, 0.02);
    let (pass, _) = law.pass(&[], &[], 0);
    // E_q(z) E_r(λ|z) of the same integrand, log r − log q(z | λ) − log q(λ).
    let upper: f64 = (0..pass.integrand.len())
        .map(|s| 0.02 * (log_marginal(pass.draws.z.get(0, s)) + pass.log_r[s]).exp() * pass.integrand[s])
        .sum();
    assert_close(&[upper], &[3.069237], 0.0, SIX_DIGITS);
    assert_eq!(model.latents().len(), 1);
}

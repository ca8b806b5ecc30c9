//! T2: two Bernoullis whose logits are a correlated Gaussian; every number of `eq:first-gradient` and `eq:r-grad`, exact.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Joint, Law, Small, every};
use hyperprior::gradient::{Estimator, GradientSettings, Terms};
use hyperprior::likelihood::MeanField;
use hyperprior::math::family::Bernoulli;
use hyperprior::model::Support;
use hyperprior::prior::{Covariance, Gaussian};
use hyperprior::recursive::{InverseFlow, Recursive, Space};
use hyperprior::{Variational, exact};
use hyperprior_testkit::finite_difference::assert_close;
use hyperprior_testkit::quadrature::Rule;

/// The documented numbers have six digits.
const SIX_DIGITS: f64 = 6e-7;

const MU: [f64; 2] = [0.5, -1.0];
/// L11, L21, L22.
const L: [f64; 3] = [1.0, 0.8, 0.6];
/// a, b and s of r_i = N(a + b z_i, s²).
const A: [f64; 2] = [-0.3, -1.2];
const B: [f64; 2] = [1.2, 0.9];
const S: [f64; 2] = [0.9, 0.8];

fn target() -> Small {
    const P: [[f64; 2]; 2] = [[0.1, 0.2], [0.05, 0.65]];
    Small::new(&[Support::BINARY; 2], |z| P[z[0] as usize][z[1] as usize].ln())
}

fn likelihood() -> MeanField {
    MeanField::of(Bernoulli, 2).unwrap()
}

fn variational(recursive: impl Recursive + 'static) -> Variational {
    Variational::new(likelihood(), Gaussian::new(2, Covariance::Full).unwrap(), recursive).unwrap()
}

fn factorised() -> InverseFlow {
    InverseFlow::factorised(&likelihood(), 1, Space::Lambda)
}

/// μ, then ℓ_1, c_21, ℓ_2 with L_ii = e^ℓ_i and L_21 = e^ℓ_2 c_21.
fn theta() -> Vec<f64> {
    vec![MU[0], MU[1], L[0].ln(), L[1] / L[2], L[2].ln()]
}

/// a, b, the log scale and its slope in z, for each latent.
fn phi() -> Vec<f64> {
    (0..2).flat_map(|i| [A[i], B[i], S[i].ln(), 0.0]).collect()
}

/// The gradient over (μ1, μ2, L11, L21, L22) as the gradient over θ.
fn over_theta(d: [f64; 5]) -> Vec<f64> {
    vec![d[0], d[1], L[0] * d[2], L[2] * d[3], L[1] * d[3] + L[2] * d[4]]
}

/// The integrand is analytic within π of the real line in λ, so steps of ¼ leave an error below 1e-15.
fn law<'a>(model: &'a Small, q: &'a Variational) -> Law<'a> {
    Law { model, q, noise: Rule::normal(2, 0.25), latents: every(&[vec![0.0, 1.0], vec![0.0, 1.0]]) }
}

fn settings(estimator: Estimator, terms: Terms) -> GradientSettings {
    GradientSettings::default().replicates(1).antithetic(false).baseline(false).estimator(estimator).terms(terms)
}

const NOTHING: Terms = Terms { likelihood: false, densities: false, recursion: false };

/// Catches a prior whose draws are not μ + Lε, or a likelihood that is not a logit's.
#[test]
fn the_marginal_and_its_entropies_have_the_documented_values() {
    let (model, q) = (target(), variational(factorised()));
    let probability = law(&model, &q).marginal(&theta(), &phi());
    assert_close(&probability, &[0.305244, 0.092729, 0.391490, 0.210537], 0.0, SIX_DIGITS);
    let entropy: f64 = -probability.iter().map(|p| p * p.ln()).sum::<f64>();
    assert_close(&[entropy], &[1.277905], 0.0, SIX_DIGITS);

    let flat = Small::new(&[Support::BINARY; 2], |_| 0.0);
    let same = variational(hyperprior::recursive::SameAsPrior);
    assert_close(&[law(&flat, &same).value(&theta(), &[])], &[1.113904], 0.0, SIX_DIGITS);
}

/// Catches a sign or a missing density in `eq:full-objective`: −log q(λ), +log r, −log q(z | λ).
#[test]
fn the_elbo_and_the_hierarchical_elbo_have_the_documented_values() {
    let (model, q) = (target(), variational(factorised()));
    let law = law(&model, &q);
    let probability = law.marginal(&theta(), &phi());
    let posterior = exact::posterior(&model, 1).unwrap();
    let elbo: f64 = probability.iter().zip(&posterior.log_joint).map(|(q, p)| q * (p - q.ln())).sum();
    assert_close(&[elbo], &[-0.837682], 0.0, SIX_DIGITS);
    assert_close(&[law.value(&theta(), &phi())], &[-1.392062], 0.0, SIX_DIGITS);

    // The library's integral uses at least 4,096 Sobol nodes; for an integrand this smooth its error is below 1e-4.
    let marginal = exact::marginal(&q, &theta(), &posterior, 3);
    assert_close(&[marginal.elbo, marginal.mass], &[elbo, 1.0], 0.0, 1e-4);
}

/// Catches a term of `eq:first-gradient` that is missing, counted twice, or added to the wrong parameter: each is checked alone.
#[test]
fn each_term_of_the_gradient_has_the_documented_value() {
    let terms = [
        (Terms { likelihood: true, ..NOTHING }, [-0.104512, 0.465929, -0.087579, 0.061399, -0.002584]),
        (Terms { densities: true, ..NOTHING }, [-0.095762, 0.113967, 0.060227, -1.049814, 0.879306]),
        (Terms { recursion: true, ..NOTHING }, [0.014680, 0.011441, 0.204960, 0.146174, 0.109631]),
        (Terms::default(), [-0.185595, 0.591336, 0.177608, -0.842240, 0.986353]),
    ];
    let (model, q) = (target(), variational(factorised()));
    let law = law(&model, &q);
    for estimator in [Estimator::Score, Estimator::LocalExpectation] {
        for (terms, expected) in terms {
            let (d_theta, _) = law.gradient(&theta(), &phi(), &settings(estimator, terms));
            // Two six-digit numbers enter each entry of the chain rule.
            assert_close(&d_theta, &over_theta(expected), 0.0, 2.0 * SIX_DIGITS);
        }
    }
}

/// Catches a local term r_i that omits a part of log r that depends on z_i.
#[test]
fn term_three_is_the_same_with_all_of_log_r_as_the_signal() {
    let model = target();
    let (split, whole) = (variational(factorised()), variational(Joint(Box::new(factorised()))));
    for terms in [Terms { recursion: true, ..NOTHING }, Terms::default()] {
        let settings = settings(Estimator::Score, terms);
        let (local, _) = law(&model, &split).gradient(&theta(), &phi(), &settings);
        let (joint, _) = law(&model, &whole).gradient(&theta(), &phi(), &settings);
        // Both are exact up to rounding.
        assert_close(&local, &joint, 0.0, 1e-12);
    }
}

/// Catches a wrong `eq:r-grad`.
#[test]
fn the_gradient_along_phi_has_the_documented_value() {
    let expected = [0.095762, -0.113967, -0.051635, -0.053660, 0.087050, 0.422210];
    let (model, q) = (target(), variational(factorised()));
    for estimator in [Estimator::Score, Estimator::LocalExpectation] {
        let (_, d_phi) = law(&model, &q).gradient(&theta(), &phi(), &settings(estimator, Terms::default()));
        let found = [d_phi[0], d_phi[4], d_phi[1], d_phi[5], d_phi[2] / S[0], d_phi[6] / S[1]];
        assert_close(&found, &expected, 0.0, SIX_DIGITS);
    }
}

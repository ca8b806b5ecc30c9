//! The parts of the paper's appendix that no other file tests: both bounds on the entropy, r = prior on λ, the vanishing term of
//! the gradient, and the equality of the two gradients.
//!
//! | paragraph | also in |
//! | --- | --- |
//! | tractable bound on the entropy | `gamma_poisson.rs` (both bounds and the exact posterior, T1), `bounds.rs` (every r) |
//! | r = prior is the conditional entropy | `bounds.rs` (on the noise, draw by draw, T10) |
//! | gradient derivation, and r_i | `two_bernoullis.rs` (term by term, T2), `exact_law.rs` |
//! | equality of two gradients | `estimators.rs` (the normal's numbers, T4, and U(0, λ), where it fails) |

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, batch, coins, every, fixed_noise, numbers, priors};
use hyperprior::likelihood::PathwisePass;
use hyperprior::likelihood::{Likelihood, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::{Bernoulli, Beta, Family, Gamma, LogNormal, Normal};
use hyperprior::math::scratch::Scratch;
use hyperprior::math::special::{HALF_LN_2_PI, sigmoid};
use hyperprior::model::Support;
use hyperprior::objective::{BoundSettings, evaluate};
use hyperprior::prior::{Covariance, Gaussian, Prior};
use hyperprior::recursive::{InverseFlow, Space};
use hyperprior::{Batch, Variational};
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use hyperprior_testkit::mean::MeanTest;
use hyperprior_testkit::quadrature::Rule;

/// T2's prior λ = μ + Lε, and r_i = N(a_i + b_i z_i, s_i²).
const MU: [f64; 2] = [0.5, -1.0];
const L: [[f64; 2]; 2] = [[1.0, 0.0], [0.8, 0.6]];
const A: [f64; 2] = [-0.3, -1.2];
const B: [f64; 2] = [1.2, 0.9];
const S: [f64; 2] = [0.9, 0.8];

fn log_normal_density(x: f64, mean: f64, scale: f64) -> f64 {
    -0.5 * ((x - mean) / scale).powi(2) - scale.ln() - HALF_LN_2_PI
}

fn two_bernoullis(covariance: Covariance) -> Variational {
    let likelihood = MeanField::of(Bernoulli, 2).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, 1, Space::Lambda);
    Variational::new(likelihood, Gaussian::new(2, covariance).unwrap(), recursive).unwrap()
}

/// The bounds on T2's entropy computed independently, on a grid of λ: the lower bound, the upper bound and the entropy.
fn entropy_by_hand() -> [f64; 3] {
    const STEP: f64 = 0.1;
    let axis: Vec<f64> = Rule::line(-9.0, 9.0, STEP).points.concat();
    let states = every(&[vec![0.0, 1.0], vec![0.0, 1.0]]).points;
    let log_prior = |x: &[f64]| {
        let first = (x[0] - MU[0]) / L[0][0];
        log_normal_density(first, 0.0, 1.0) + log_normal_density(x[1], MU[1] + L[1][0] * first, L[1][1])
    };
    let log_likelihood = |x: &[f64], z: &[f64]| (0..2).map(|i| sigmoid((2.0 * z[i] - 1.0) * x[i]).ln()).sum::<f64>();
    let log_r =
        |x: &[f64], z: &[f64]| -> f64 { (0..2).map(|i| log_normal_density(x[i], A[i] + B[i] * z[i], S[i])).sum() };
    let (mut lower, mut upper, mut entropy) = (0.0, 0.0, 0.0);
    for z in &states {
        let (mut probability, mut above) = (0.0, 0.0);
        for x in hyperprior_testkit::enumerate::product(&[axis.clone(), axis.clone()]) {
            let log_joint = log_prior(&x) + log_likelihood(&x, z);
            let gap = log_r(&x, z) - log_joint;
            probability += STEP * STEP * log_joint.exp();
            lower += STEP * STEP * log_joint.exp() * gap;
            above += STEP * STEP * log_r(&x, z).exp() * gap;
        }
        upper += probability * above;
        entropy -= probability * probability.ln();
    }
    [lower, upper, entropy]
}

/// Tractable bound on the entropy, on T2. Catches an upper bound with λ drawn from the prior, an r with the wrong sign, and an
/// upper bound that with a single λ is not that of the appendix.
#[test]
fn both_bounds_enclose_the_entropy_of_two_bernoullis() {
    let [lower, upper, entropy] = entropy_by_hand();
    assert_close(&[entropy], &[1.277905], 0.0, 6e-7);
    assert!(lower < entropy - 0.05 && entropy + 0.05 < upper, "{lower} {entropy} {upper}");

    let q = two_bernoullis(Covariance::Full);
    let theta = [MU[0], MU[1], L[0][0].ln(), L[1][0] / L[1][1], L[1][1].ln()];
    let phi: Vec<f64> = (0..2).flat_map(|i| [A[i], B[i], S[i].ln(), 0.0]).collect();
    let flat = Small::new(&[Support::BINARY; 2], |_| 0.0);
    let latents = every(&[vec![0.0, 1.0], vec![0.0, 1.0]]);
    let law = Law { model: &flat, q: &q, noise: Rule::normal(2, 0.25), latents };
    assert_close(&[law.value(&theta, &phi)], &[lower], 0.0, 1e-9);

    // With p constant the library's bounds on the ELBO are bounds on the entropy.
    let settings = BoundSettings::default().draws(100_000).samples(1).seed(5);
    let found = evaluate(&flat, &q, (&theta, &phi), &settings).unwrap();
    let fresh = found.upper.unwrap();
    let test = |value, standard_error| MeanTest { mean: value, standard_error };
    test(found.elbo.value, found.elbo.standard_error).assert(lower, entropy - lower);
    test(fresh.value, fresh.standard_error).assert(upper, upper - entropy);
}

/// r = prior is the conditional entropy, for an r on λ that equals the prior. Catches a density of λ under r that differs from that
/// of the prior.
#[test]
fn an_r_on_lambda_that_equals_the_prior_gives_the_conditional_entropy_at_every_draw() {
    let model = coins();
    let q = two_bernoullis(Covariance::Diagonal);
    let theta = [0.4, -0.7, 0.3, -0.5];
    let phi: Vec<f64> = (0..2).flat_map(|i| [theta[i], 0.0, theta[2 + i], 0.0]).collect();
    let noise = fixed_noise(2, 20, 4);
    let law = Law { model: &model, q: &q, noise, latents: every(&[vec![0.0, 1.0], vec![0.0, 1.0]]) };
    let (pass, _) = law.pass(&theta, &phi, 0);
    for s in 0..pass.integrand.len() {
        let without = pass.log_p[s] - pass.log_q.get(0, s) - pass.log_q.get(1, s);
        assert!((pass.integrand[s] - without).abs() < 1e-13, "{} against {without}", pass.integrand[s]);
    }
}

/// Gradient derivation: E_q(λ) ∇_θ log q(λ; θ) = 0 at fixed λ, which is why that part of the third term is omitted. Catches a prior
/// whose density is not normalised at every θ.
#[test]
fn the_score_of_every_prior_has_mean_zero() {
    let lambda = Rule::line(-16.0, 16.0, 0.0625);
    let places = batch(&lambda.points);
    // The rule is exact for smooth densities; a spline's has kinks.
    let is_smooth = |prior: &dyn Prior| prior.has_density() && !prior.name().contains("spline");
    for prior in priors(1).iter().filter(|prior| prior.noise_len() > 0 && is_smooth(&***prior)) {
        // The heavy tails of a marginal would extend beyond the grid.
        let size = if prior.name().contains("copula") { 0.1 } else { 0.5 };
        let theta = numbers(prior.parameters_len(), size, 12);
        let log_density = |theta: &[f64]| {
            let mut out = vec![0.0; lambda.points.len()];
            prior.log_density(theta, &places, &mut out, &mut Scratch::default());
            out
        };
        let density: Vec<f64> = log_density(&theta).iter().map(|l| l.exp()).collect();
        let mean_of = |values: &[f64]| -> f64 {
            values.iter().zip(&density).zip(&lambda.weights).map(|((v, q), w)| w * q * v).sum()
        };
        assert_close(&[mean_of(&vec![1.0; density.len()])], &[1.0], 1e-7, 0.0);
        let score = gradient(|theta| mean_of(&log_density(theta)), &theta, 2e-3);
        assert_close(&score, &vec![0.0; theta.len()], 0.0, 1e-6);
    }
}

/// log p and its derivative on each support; no family here is conjugate to it.
fn log_p(support: Support, z: f64) -> (f64, f64) {
    match support {
        Support::Positive => (1.4 * z.ln() - 0.8 * z, 1.4 / z - 0.8),
        Support::UnitInterval => (1.2 * z.ln() + 0.5 * z * z, 1.2 / z + z),
        _ => (0.7 * z - 0.4 * z * z + 0.3 * z.sin(), 0.7 - 0.8 * z + 0.3 * z.cos()),
    }
}

/// Equality of two gradients, for every family that has both. Catches a path derivative that is not −∇_λ Q / q, or that counts the
/// dependence of the entropy on z twice: the score, the path and the derivative of the ELBO agree.
#[test]
fn the_score_and_the_path_have_the_same_mean_for_every_pathwise_family() {
    check_two_gradients(Normal, [0.3, -0.2]);
    check_two_gradients(LogNormal, [0.2, -0.6]);
    check_two_gradients(Gamma, [0.9, 0.3]);
    check_two_gradients(Beta, [0.8, 0.5]);
}

fn check_two_gradients(family: impl Family + Clone + 'static, at: [f64; 2]) {
    let support = family.support();
    let line = Rule::line(-20.0, 20.0, 0.1);
    let (x, draws_len) = (line.points.concat(), line.points.len());
    let bijector = Bijector::for_support(support).unwrap();
    let (mut z, mut log_slope) = (x.clone(), x.clone());
    bijector.forward(&x, &mut z);
    bijector.log_derivative(&x, &mut log_slope);

    let likelihood = MeanField::of(family, 1).unwrap();
    let columns =
        |at: &[f64]| Batch::from_columns([vec![at[0]; draws_len], vec![at[1]; draws_len]].concat(), draws_len);
    let log_q = |at: &[f64]| {
        let mut out = vec![0.0; draws_len];
        likelihood.log_density_of(0, &columns(at), &z, &mut out);
        out
    };
    // q(z) dz, with negligible values set to zero.
    let masses = |log_q: &[f64]| -> Vec<f64> {
        let mass = |s: usize| line.weights[s] * (log_q[s] + log_slope[s]).exp();
        (0..draws_len).map(mass).map(|mass| if mass > 1e-30 { mass } else { 0.0 }).collect()
    };
    let elbo = |at: &[f64]| -> f64 {
        let log_q = log_q(at);
        let masses = masses(&log_q);
        (0..draws_len).filter(|&s| masses[s] > 0.0).map(|s| masses[s] * (log_p(support, z[s]).0 - log_q[s])).sum()
    };

    let at_this = log_q(&at);
    let masses = masses(&at_this);
    let mass_of = |s: usize, value: f64| if masses[s] > 0.0 { masses[s] * value } else { 0.0 };
    let signal: Vec<f64> = (0..draws_len).map(|s| mass_of(s, log_p(support, z[s]).0 - at_this[s])).collect();
    let d_z: Vec<f64> = (0..draws_len).map(|s| mass_of(s, log_p(support, z[s]).1)).collect();
    let (mut score, mut path) = (Batch::zeros(2, draws_len), Batch::zeros(2, draws_len));
    likelihood.score(0, &columns(&at), &z, &signal, &mut score);
    likelihood.pathwise(
        0,
        &columns(&at),
        PathwisePass { z: &z, d_z: &d_z, weight: &masses },
        &mut path,
        &mut Scratch::default(),
    );

    let truth = gradient(elbo, &at, 1e-2);
    let total = |gradients: &Batch| [0, 1].map(|p| gradients.column(p).iter().sum::<f64>());
    assert_close(&total(&score), &truth, 1e-8, 1e-8);
    assert_close(&total(&path), &truth, 1e-8, 1e-8);
}

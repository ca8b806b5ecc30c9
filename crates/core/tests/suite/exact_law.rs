//! The exact law: with ε fixed and z enumerated, the bound is an ordinary function of θ and φ, and the mean of the engine's
//! gradient estimate is the gradient of that function, for every prior and every recursive approximation.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{
    Law, Small, assert_gradient, coin_and_die, coins, count, every, fixed_noise, numbers, priors, recursives,
    variational,
};
use hyperprior::gradient::{Estimator, GradientSettings};
use hyperprior::likelihood::MeanField;
use hyperprior::math::random::stream;
use hyperprior::model::Support;
use hyperprior::prior::{Mixture, Prior, Start};
use hyperprior::{Model, Variational};
use hyperprior_testkit::enumerate::counts;
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::quadrature::Rule;

/// Differences with steps of 1e-2, extrapolated twice, have an error of 1e-12 times a seventh derivative, which for these bounds
/// is at most a few thousand.
const STEP: f64 = 1e-2;
const TOLERANCE: f64 = 1e-8;

fn settings(estimator: Estimator) -> GradientSettings {
    GradientSettings::default().replicates(1).antithetic(false).baseline(false).estimator(estimator)
}

/// Discrete models with all their values; the rates of the counts are below 40, so the mass above 120 is less than 1e-20.
fn models() -> Vec<(Small, Rule)> {
    vec![
        (coins(), every(&[counts(1), counts(1)])),
        (coin_and_die(), every(&[counts(1), counts(2)])),
        (count(), every(&[counts(120)])),
    ]
}

/// Runs `check` on every compatible model × prior × recursive approximation.
fn for_all(check: impl Fn(&str, &Law, &[f64], &[f64])) {
    let mut combinations = 0;
    for (model, latents) in models() {
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let n = priors_len(&likelihood);
        for (p, prior) in priors(n).iter().enumerate() {
            let theta = somewhere(&**prior, 7 + p as u64);
            let fitting = recursives(&likelihood, &**prior, &theta).len();
            for r in 0..fitting {
                // Boxes cannot be cloned, so each combination is built separately.
                let prior = priors(n).swap_remove(p);
                let recursive = recursives(&likelihood, &*prior, &theta).swap_remove(r);
                let q = variational(model.latents(), prior, recursive);
                let phi = away_from_zero(numbers(q.phi_len(), 0.4, 100 + r as u64));
                let label = format!("{} × {} × {}", model.latents().len(), q.prior().name(), q.recursive().name());
                let noise = fixed_noise(q.prior().noise_len(), 3, 1);
                let law = Law { model: &model, q: &q, noise, latents: latents.clone() };
                check(&label, &law, &theta, &phi);
                combinations += 1;
            }
        }
    }
    // 3 models; delta with r = prior alone, atoms and two hierarchical priors with 2 approximations, the network with the 4 that
    // are not on λ, three flows, the low-rank Gaussian and the copula with 6, four Gaussians with 9 or, if a factor has two
    // parameters, 7, and the two that are not mixtures with one more.
    assert_eq!(combinations, 3 * (1 + 3 * 2 + 4 + 5 * 6) + 4 * (9 + 7 + 9) + 2 * 3);
}

/// Parameters near a start, but not at it.
fn somewhere(prior: &dyn Prior, seed: u64) -> Vec<f64> {
    let mut theta = vec![0.0; prior.parameters_len()];
    let start = Start::at(vec![0.6; prior.lambda_len()], 0.4);
    prior.initialize(&start, &mut stream(seed, 0, 0, 0), &mut theta);
    theta.iter().zip(numbers(theta.len(), 0.25, seed)).map(|(a, b)| a + b).collect()
}

/// û of a planar layer grows like 1/|w|: near w = 0 differences would need shorter steps.
fn away_from_zero(numbers: Vec<f64>) -> Vec<f64> {
    numbers.into_iter().map(|x| x + 0.3 * x.signum()).collect()
}

fn priors_len(likelihood: &MeanField) -> usize {
    hyperprior::likelihood::Likelihood::lambda_len(likelihood)
}

/// Catches any wrong derivative from the integrand to θ and φ, a term that is missing for one kind of prior or approximation, and
/// mixture weights without a gradient.
#[test]
fn the_mean_score_estimate_is_the_derivative_of_the_bound() {
    for_all(|label, law, theta, phi| {
        let (d_theta, d_phi) = law.gradient(theta, phi, &settings(Estimator::Score));
        // A kernel falls off within its length scale, so the map needs shorter steps.
        let step = if label.contains("gaussian process") { 0.3 * STEP } else { STEP };
        let numeric = finite_difference::gradient(|theta| law.value(theta, phi), theta, step);
        assert_gradient(&format!("{label}: θ"), &d_theta, &numeric, TOLERANCE);
        let numeric = finite_difference::gradient(|phi| law.value(theta, phi), phi, STEP);
        assert_gradient(&format!("{label}: φ"), &d_phi, &numeric, TOLERANCE);
    });
}

/// Catches a conditional of r or of the model that is wrong by more than a constant per draw, a window that is too narrow, and a
/// recursion that is both summed and scored, or neither.
#[test]
fn local_expectation_has_the_same_mean_as_the_score() {
    for_all(|label, law, theta, phi| {
        let (by_score, _) = law.gradient(theta, phi, &settings(Estimator::Score));
        for sum_joint_recursion in [false, true] {
            let settings = settings(Estimator::LocalExpectation).sum_joint_recursion(sum_joint_recursion);
            let (by_sum, _) = law.gradient(theta, phi, &settings);
            // Both are exact up to rounding and the 1e-14 outside the window.
            assert_gradient(&format!("{label}, {sum_joint_recursion}"), &by_sum, &by_score, 1e-10);
        }
    });
}

/// Catches a gradient along the weights other than π_k (F_k − Σ_j π_j F_j).
#[test]
fn the_gradient_along_the_weights_of_a_mixture_is_exact() {
    let prior = Mixture::new(2, 3, hyperprior::prior::Covariance::Diagonal).unwrap();
    let theta = numbers(prior.parameters_len(), 0.7, 3);
    let values = [1.5, -0.3, 0.4];
    let total = |theta: &[f64]| {
        let mut log_pi = [0.0; 3];
        prior.log_weights(theta, &mut log_pi);
        log_pi.iter().zip(values).map(|(p, v)| p.exp() * v).sum()
    };
    let mut d_theta = vec![0.0; theta.len()];
    prior.weights_pullback(&theta, &values, &mut d_theta);
    assert_gradient("weights", &d_theta, &finite_difference::gradient(total, &theta, STEP), 1e-10);
    // Also the log weights, for bounds in which they appear.
    let logs = |theta: &[f64]| {
        let mut log_pi = [0.0; 3];
        prior.log_weights(theta, &mut log_pi);
        log_pi.iter().zip(values).map(|(p, v)| p * v).sum()
    };
    d_theta.fill(0.0);
    prior.log_weights_pullback(&theta, &values, &mut d_theta);
    assert_gradient("log weights", &d_theta, &finite_difference::gradient(logs, &theta, STEP), 1e-10);
}

/// Catches locals of a model that change the mean: the score has the same mean with and without them.
#[test]
fn locals_do_not_change_the_mean() {
    let with = hyperprior::targets::Ising::ring(3, 0.7).unwrap();
    let spin = |z: f64| 2.0 * z - 1.0;
    let without = Small::new(&[Support::BINARY; 3], move |z| {
        0.7 * (0..3).map(|i| spin(z[i]) * spin(z[(i + 1) % 3])).sum::<f64>()
    });
    let latents = every(&[counts(1), counts(1), counts(1)]);
    let gradient = |model: &dyn Model| {
        let prior = priors(3).swap_remove(2);
        let theta = somewhere(&*prior, 4);
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let recursive = recursives(&likelihood, &*prior, &theta).swap_remove(2);
        let q: Variational = variational(model.latents(), prior, recursive);
        let phi = numbers(q.phi_len(), 0.4, 5);
        let law = Law { model, q: &q, noise: fixed_noise(3, 3, 2), latents: latents.clone() };
        law.gradient(&theta, &phi, &settings(Estimator::Score)).0
    };
    assert_gradient("locals", &gradient(&with), &gradient(&without), 1e-12);
}

//! Gradient estimators: score and reparameterisation (T4), and the variance that a baseline removes.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, every, numbers};
use hyperprior::gradient::{Estimator, GradientEngine, GradientSettings};
use hyperprior::likelihood::PathwisePass;
use hyperprior::likelihood::{Likelihood, MeanField};
use hyperprior::math::family::Normal;
use hyperprior::math::scratch::Scratch;
use hyperprior::model::Support;
use hyperprior::prior::{Covariance, Gaussian};
use hyperprior::recursive::{InverseFlow, Space};
use hyperprior::{Batch, Model, Variational};
use hyperprior_testkit::enumerate::counts;
use hyperprior_testkit::finite_difference::assert_close;
use hyperprior_testkit::mean::{MeanTest, assert_mean};
use hyperprior_testkit::quadrature::Rule;

/// T4. Catches a score or a path derivative of the normal that is off, in mean or in spread: q = N(.3, .8²), p = N(1, 1).
#[test]
fn the_score_and_the_path_have_the_documented_means_and_variances() {
    let rule = Rule::normal(1, 0.125);
    let (mean, sd, draws_len) = (0.3, 0.8_f64, rule.points.len());
    let likelihood = MeanField::of(Normal, 1).unwrap();
    let lambda = Batch::from_columns([vec![mean; draws_len], vec![sd.ln(); draws_len]].concat(), draws_len);
    let z = Batch::from_columns(rule.points.iter().map(|x| mean + sd * x[0]).collect(), draws_len);
    let mut log_q = Batch::zeros(1, draws_len);
    likelihood.log_density(&lambda, &z, &mut log_q, &mut Scratch::default());
    let log_p = |z: f64| -0.5 * (z - 1.0).powi(2) - 0.918_938_533_204_672_8;
    let signal: Vec<f64> = z.column(0).iter().zip(log_q.column(0)).map(|(z, q)| log_p(*z) - q).collect();
    let mut score = Batch::zeros(2, draws_len);
    likelihood.score(0, &lambda, z.column(0), &signal, &mut score);
    let d_z: Vec<f64> = z.column(0).iter().map(|z| 1.0 - z).collect();
    let mut path = Batch::zeros(2, draws_len);
    let ones = vec![1.0; draws_len];
    likelihood.pathwise(
        0,
        &lambda,
        PathwisePass { z: z.column(0), d_z: &d_z, weight: &ones },
        &mut path,
        &mut Scratch::default(),
    );

    let moments = |samples: &[f64], scale: f64| {
        let mean: f64 = samples.iter().zip(&rule.weights).map(|(x, w)| w * x * scale).sum();
        let square: f64 = samples.iter().zip(&rule.weights).map(|(x, w)| w * (x * scale).powi(2)).sum();
        [mean, square - mean * mean]
    };
    // The family's second parameter is log σ.
    let to_sigma = 1.0 / sd;
    assert_close(&moments(score.column(0), 1.0), &[0.7, 1.2918], 0.0, 6e-5);
    assert_close(&moments(path.column(0), 1.0), &[0.7, 0.2025], 0.0, 6e-5);
    assert_close(&moments(score.column(1), to_sigma), &[0.45, 6.698], 0.0, 6e-4);
    assert_close(&moments(path.column(1), to_sigma), &[0.45, 0.895], 0.0, 6e-4);
}

/// A ring of coupled spins with nothing but a log joint, which is far from zero as usual, with a correlated prior and a rough r.
fn ring() -> (Small, Variational, Vec<f64>, Vec<f64>) {
    let spin = |z: f64| 2.0 * z - 1.0;
    let model = Small::new(&[Support::BINARY; 3], move |z| {
        (0..3).map(|i| 0.6 * spin(z[i]) * spin(z[(i + 1) % 3])).sum::<f64>() - 3.0
    });
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, 1, Space::Noise);
    let q = Variational::new(likelihood, Gaussian::new(3, Covariance::Full).unwrap(), recursive).unwrap();
    let (theta, phi) = (numbers(q.theta_len(), 0.4, 1), numbers(q.phi_len(), 0.3, 2));
    (model, q, theta, phi)
}

/// The gradient along μ_1 over many steps: independent estimates.
fn estimates(settings: &GradientSettings, steps: u64) -> Vec<f64> {
    let (model, q, theta, phi) = ring();
    let mut engine = GradientEngine::new(&model, &q, settings).unwrap();
    let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
    let mut one = |step: u64| {
        engine.step(&model, &q, (9, step), (&theta, &phi), (&mut d_theta, &mut d_phi)).unwrap();
        d_theta[0]
    };
    (0..steps).map(&mut one).collect()
}

/// Catches a baseline that depends on the draw it is compared with, and estimators with too much variance: all have the same exact
/// mean, and each refinement reduces the variance.
#[test]
fn every_estimator_has_the_same_mean_and_the_better_ones_less_variance() {
    let (model, q, theta, phi) = ring();
    // Steps of ¾: for logits with standard deviations near one the error is below 1e-10.
    let law = Law { model: &model, q: &q, noise: Rule::normal(3, 0.75), latents: every(&vec![counts(1); 3]) };
    let plain = GradientSettings::default()
        .draws(16)
        .replicates(1)
        .antithetic(false)
        .baseline(false)
        .estimator(Estimator::Score);
    let exact = law.gradient(&theta, &phi, &plain).0[0];
    let replicated = plain.clone().replicates(4).baseline(true);
    let summed = plain.clone().estimator(Estimator::LocalExpectation);
    let antithetic = summed.clone().antithetic(true);
    let baseline = plain.clone().baseline(true);
    let pairs = plain.clone().baseline(true).replicates(2);
    let disarm = pairs.clone().estimator(Estimator::DisArm);
    let mut variances = Vec::new();
    for settings in [&plain, &baseline, &replicated, &summed, &antithetic, &pairs, &disarm] {
        let sample = estimates(settings, 20_000);
        assert_mean(&sample, exact, 0.05);
        variances.push(MeanTest::new(&sample).standard_error.powi(2) * sample.len() as f64);
    }
    // A ratio of variances of 20,000 draws has an error of a few per cent.
    let [plain, baseline, replicated, summed, antithetic, pairs, disarm] = variances[..] else { unreachable!() };
    assert!(baseline < 0.5 * plain, "leave-one-out: {variances:?}");
    assert!(replicated < 0.5 * plain, "leave-one-out within a λ: {variances:?}");
    assert!(summed < 0.5 * baseline, "local expectation: {variances:?}");
    assert!(antithetic < 0.9 * summed, "pairs of noises: {variances:?}");
    assert!(disarm < 0.9 * pairs, "DisARM against two draws compared: {variances:?}");
}

/// A count observed with noise: the difference f(z + 1) − f(z) is not constant.
fn counted() -> (Small, Variational, Vec<f64>, Vec<f64>) {
    let model = Small::new(&[Support::Counts], |z| -0.02 * (z[0] - 9.0).powi(2) - 0.3 * (z[0] + 1.0).ln());
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, 1, Space::Noise);
    let q = Variational::new(likelihood, Gaussian::new(1, Covariance::Full).unwrap(), recursive).unwrap();
    (model, q, vec![1.6, -1.0], vec![0.1, 0.3, -0.1, -0.2, 0.1, 0.05])
}

/// Catches a rate of another factor, a difference with the wrong sign, and a fall-back that omits a term.
#[test]
fn the_difference_has_the_mean_of_the_score() {
    let (model, q, theta, phi) = counted();
    let latents = every(&[counts(150)]);
    let law = Law { model: &model, q: &q, noise: crate::support::fixed_noise(1, 5, 3), latents };
    let plain = GradientSettings::default().replicates(1).antithetic(false).baseline(false);
    let by_score = law.gradient(&theta, &phi, &plain.clone().estimator(Estimator::Score)).0;
    let by_difference = plain.clone().estimator(Estimator::Difference);
    // A window of one value is too narrow for any sum.
    let fallen_back = plain.estimator(Estimator::LocalExpectation).window_max(1);
    for settings in [by_difference, fallen_back] {
        crate::support::assert_gradient("difference", &law.gradient(&theta, &phi, &settings).0, &by_score, 1e-10);
    }
}

/// Catches an estimator that is used where it does not apply.
#[test]
fn estimators_that_do_not_apply_are_refused() {
    let (model, q, ..) = counted();
    let said = |estimator, replicates| {
        let settings = GradientSettings::default().estimator(estimator).replicates(replicates);
        GradientEngine::new(&model, &q, &settings).unwrap_err().to_string()
    };
    assert!(said(Estimator::DisArm, 4).contains("Bernoulli factors only"));
    let (model, q, ..) = ring();
    let settings = GradientSettings::default().estimator(Estimator::DisArm).replicates(1);
    let refused = GradientEngine::new(&model, &q, &settings).unwrap_err().to_string();
    assert!(refused.contains("an even number of replicates"), "{refused}");
}

/// Catches DisARM's pairs that affect other latents: the draws of a real latent stay the same.
#[test]
fn disarm_does_not_affect_other_latents() {
    let model =
        Small::new(&[Support::BINARY, Support::Real], |z| 0.8 * z[0] * z[1] - 0.5 * (z[1] - 1.0).powi(2) - 0.3 * z[0])
            .with_gradient(|z, d| d[1] = 0.8 * z[0] - (z[1] - 1.0));
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, 1, Space::Noise);
    let q = Variational::new(likelihood, Gaussian::new(2, Covariance::Full).unwrap(), recursive).unwrap();
    let (theta, phi) = (numbers(q.theta_len(), 0.4, 1), numbers(q.phi_len(), 0.3, 2));
    let gradients = |estimator: Estimator| {
        let settings = GradientSettings::default().draws(16).replicates(2).estimator(estimator);
        let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
        let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
        let mut samples = vec![Vec::new(); theta.len()];
        for step in 0..10_000 {
            engine.step(&model, &q, (3, step), (&theta, &phi), (&mut d_theta, &mut d_phi)).unwrap();
            samples.iter_mut().zip(&d_theta).for_each(|(sample, d)| sample.push(*d));
        }
        samples
    };
    let (by_score, by_pairs) = (gradients(Estimator::Score), gradients(Estimator::DisArm));
    for (score, pairs) in by_score.iter().zip(&by_pairs) {
        let difference: Vec<f64> = score.iter().zip(pairs).map(|(a, b)| a - b).collect();
        assert_mean(&difference, 0.0, 0.05);
    }
}

/// Catches a single valid draw without a baseline: if the model forbids a state, adding a constant to log p must not reverse the
/// gradient.
#[test]
fn a_constant_in_log_p_does_not_matter_with_invalid_draws() {
    let direction = |constant: f64| {
        let model = Small::new(&[Support::BINARY], move |z| if z[0] == 1.0 { constant } else { f64::NEG_INFINITY });
        let q = Variational::mean_field(MeanField::for_latents(model.latents()).unwrap());
        let settings = GradientSettings::default().estimator(Estimator::Score).draws(64);
        let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
        let mut d_theta = [0.0];
        engine.step(&model, &q, (1, 1), (&[0.0], &[]), (&mut d_theta, &mut [])).unwrap();
        d_theta[0]
    };
    assert!((direction(-3000.0) - direction(3000.0)).abs() < 1e-9, "{} {}", direction(-3000.0), direction(3000.0));
}

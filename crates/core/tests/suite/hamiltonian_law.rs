//! Uncorrected Hamiltonian annealing: its weights are unbiased, its bounds lie on their sides, and training closes them in.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::Small;
use hyperprior::fit::{FitSettings, Quiet, fit_annealing};
use hyperprior::gradient::GradientSettings;
use hyperprior::likelihood::MeanField;
use hyperprior::math::random::stream;
use hyperprior::model::Support;
use hyperprior::objective::{AnnealedSettings, BoundSettings, Estimate, HamiltonianAnnealing, evaluate};
use hyperprior::prior::{Covariance, Gaussian, PlanarFlow};
use hyperprior::recursive::SameAsPrior;
use hyperprior::targets::{Banana, ExactDraws, Funnel, GaussianMixture};
use hyperprior::{Model, Variational};
use hyperprior_testkit::mean::{MeanTest, assert_mean};
use hyperprior_testkit::quadrature::Rule;

fn gaussian(model: &dyn Model) -> Variational {
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let prior = Gaussian::new(model.latents().len(), Covariance::Full).unwrap();
    Variational::new(likelihood, prior, SameAsPrior).unwrap()
}

fn close(found: Estimate, exact: f64, detectable: f64) {
    MeanTest { mean: found.value, standard_error: found.standard_error }.assert(exact, detectable);
}

/// One positive latent.
fn positive() -> Small {
    Small::new(&[Support::Positive], |z| 1.4 * z[0].ln() - 0.8 * z[0] - 0.05 * z[0] * z[0])
        .with_gradient(|z, d| d[0] = 1.4 / z[0] - 0.8 - 0.1 * z[0])
}

/// Catches a weight without one of its terms, or with a wrong sign: the mean of w is the evidence for any q, step size, share of momentum and
/// temperatures. An energy or a Jacobian left out moves it by 0.1 or more here.
#[test]
fn the_mean_weight_is_the_evidence() {
    let line = Rule::line(-12.0, 5.0, 0.01);
    let log_joint = |x: f64| 1.4 * x - 0.8 * x.exp() - 0.05 * (2.0 * x).exp() + x;
    let total: f64 = line.points.iter().zip(&line.weights).map(|(x, w)| w * log_joint(x[0]).exp()).sum();
    let cases: [(Box<dyn Model>, Vec<f64>, f64); 2] = [
        // Wide: a narrow q would have weights without a variance.
        (Box::new(Banana::new()), vec![0.1, 0.3, 0.3, 0.2, 1.2], 0.0),
        (Box::new(positive()), vec![0.6, -0.3], total.ln()),
    ];
    for (model, theta, log_evidence) in &cases {
        let q = gaussian(&**model);
        for temperatures in [2, 5] {
            let annealing = HamiltonianAnnealing::new(temperatures).unwrap();
            let mut psi = annealing.initial();
            (psi[0], psi[1], psi[2]) = (-2.3, 0.4, -0.5);
            let settings = AnnealedSettings::default().draws(60_000).seed(6);
            let found = annealing.lower(&**model, &q, (theta, &psi), &settings).unwrap();
            close(found.log_evidence, *log_evidence, 0.1);
            assert!(found.lower.value < *log_evidence, "{found:?}");
        }
    }
}

/// Catches reversed steps that are not the reversal: the mean of log w from exact draws is above the evidence and comes down as K grows, and a q
/// that is the posterior has weights of p(x) at any K, from both sides, up to the energy error of the steps.
#[test]
fn from_exact_draws_the_bound_is_an_upper_one() {
    // Linear gradients far out, where steps through a banana would not be stable.
    let (corners, draws) = (GaussianMixture::new(), 20_000);
    let (q, theta) = (gaussian(&corners), [0.6, 0.3, 1.1, 0.2, 1.0]);
    let z = corners.exact_draws(draws, &mut stream(3, 0, 0, 0));
    let mut gaps = [f64::INFINITY; 2];
    for temperatures in [1, 4, 16] {
        let annealing = HamiltonianAnnealing::new(temperatures).unwrap();
        let psi = annealing.initial();
        let settings = AnnealedSettings::default().draws(draws);
        let lower = annealing.lower(&corners, &q, (&theta, &psi), &settings).unwrap().lower;
        let upper = annealing.upper(&corners, &q, (&theta, &psi), &z, 4).unwrap();
        assert!(lower.value < 0.0 && 0.0 < upper.value, "{lower:?} {upper:?}");
        assert!(-lower.value < gaps[0] && upper.value < gaps[1], "K = {temperatures}: {lower:?} {upper:?} {gaps:?}");
        gaps = [-lower.value, upper.value];
    }

    let normal = Small::new(&[Support::Real], |z| -0.5 * (z[0] - 1.0).powi(2)).with_gradient(|z, d| d[0] = 1.0 - z[0]);
    let log_evidence = 0.5 * std::f64::consts::TAU.ln();
    let q = gaussian(&normal);
    let annealing = HamiltonianAnnealing::new(6).unwrap();
    let mut psi = annealing.initial();
    psi[0] = -3.0;
    let at = (&[1.0, 0.0][..], &*psi);
    let mut rng = stream(5, 0, 0, 0);
    let mut z = hyperprior::Batch::zeros(1, 500);
    z.column_mut(0).iter_mut().for_each(|z| {
        let x: f64 = rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng);
        *z = 1.0 + x;
    });
    let lower = annealing.lower(&normal, &q, at, &AnnealedSettings::default()).unwrap().lower.value;
    let upper = annealing.upper(&normal, &q, at, &z, 4).unwrap().value;
    assert!((lower - log_evidence).abs() < 1e-3 && (upper - log_evidence).abs() < 1e-3, "{lower} {upper}");
}

/// Catches a K = 1 that is not the ELBO.
#[test]
fn with_one_temperature_the_bound_is_the_elbo() {
    let (banana, annealing) = (Banana::new(), HamiltonianAnnealing::new(1).unwrap());
    let (q, theta) = (gaussian(&banana), [0.1, -0.2, -0.5, 0.2, -0.4]);
    let settings = AnnealedSettings::default().draws(200_000);
    let found = annealing.lower(&banana, &q, (&theta, &annealing.initial()), &settings).unwrap().lower;
    let elbo = evaluate(&banana, &q, (&theta, &[]), &BoundSettings::default().draws(200_000)).unwrap().elbo;
    let standard_error = found.standard_error.hypot(elbo.standard_error);
    MeanTest { mean: found.value - elbo.value, standard_error }.assert(0.0, 0.05);
}

/// Catches training that ignores θ or ψ: from the same start, the trained bound is above that of the same steps untrained, and far above the
/// ELBO trained for as long, which is the bound with K = 1.
#[test]
fn training_closes_the_gap() {
    let banana = Banana::new();
    let (q, theta) = (gaussian(&banana), [0.0, 0.0, -0.4, 0.0, -0.4]);
    let settings = FitSettings::default().steps(400).gradient(GradientSettings::default().draws(32));
    let of_bound = AnnealedSettings::default().draws(8192);
    let trained = |temperatures: usize| {
        let annealing = HamiltonianAnnealing::new(temperatures).unwrap();
        let before = annealing.lower(&banana, &q, (&theta, &annealing.initial()), &of_bound).unwrap().lower.value;
        let fitted = fit_annealing(&banana, &q, &annealing, &theta, &settings, &mut Quiet).unwrap();
        assert_eq!(fitted.history.len(), 400);
        let after = annealing.lower(&banana, &q, (&fitted.theta, &fitted.psi), &of_bound).unwrap().lower.value;
        (before, after)
    };
    let (one, eight) = (trained(1), trained(8));
    assert!(one.1 < -0.5, "no Gaussian is closer to the banana: {one:?}");
    assert!(eight.1 > eight.0 + 0.02 && eight.1 > one.1 + 0.2 && eight.1 < 0.0, "{one:?} {eight:?}");
}

/// Catches a sampler of another distribution: expectations of the targets' coordinates and of a product.
#[test]
fn exact_draws_have_the_expectations_of_their_targets() {
    let z = Banana::new().exact_draws(40_000, &mut stream(1, 0, 0, 0));
    let product =
        |i: usize, j: usize| -> Vec<f64> { z.column(i).iter().zip(z.column(j)).map(|(a, b)| a * b).collect() };
    // z_2 has the variance 2 + ½².
    assert_mean(&product(1, 1), 2.25, 0.2);
    let bend: Vec<f64> = z.column(0).iter().zip(z.column(1)).map(|(a, b)| a * a * b).collect();
    assert_mean(&bend, 2.0, 0.3);

    let z = GaussianMixture::new().exact_draws(40_000, &mut stream(2, 0, 0, 0));
    assert_mean(z.column(0), 3.0 * (0.7 - 0.3), 0.1);
    assert_mean(z.column(1), 3.0 * (0.6 - 0.4), 0.1);
    let corners: Vec<f64> = z.column(0).iter().zip(z.column(1)).map(|(a, b)| a * b).collect();
    assert_mean(&corners, 9.0 * (0.1 + 0.4 - 0.2 - 0.3), 0.4);

    let z = Funnel::default().exact_draws(40_000, &mut stream(3, 0, 0, 0));
    let squares: Vec<f64> = z.column(0).iter().map(|v| v * v).collect();
    assert_mean(&squares, 9.0, 0.5);
    let standard: Vec<f64> = z.column(4).iter().zip(z.column(0)).map(|(x, v)| x * x * (-v).exp()).collect();
    assert_mean(&standard, 1.0, 0.05);
}

/// Parts that it does not work with are refused, with what to use.
#[test]
fn errors_say_what_to_do() {
    let (banana, annealing) = (Banana::new(), HamiltonianAnnealing::new(4).unwrap());
    let likelihood = MeanField::for_latents(banana.latents()).unwrap();
    let flow = Variational::new(likelihood, PlanarFlow::new(2, 1).unwrap(), SameAsPrior).unwrap();
    let theta = vec![0.0; flow.theta_len()];
    let error = annealing.check(&banana, &flow, &theta, &annealing.initial()).unwrap_err().to_string();
    assert!(error.contains("planar flow") && error.contains("use a Gaussian prior"), "{error}");
    let coins = crate::support::coins();
    let q = Variational::mean_field(MeanField::for_latents(coins.latents()).unwrap());
    let error = annealing.check(&coins, &q, &[0.0; 2], &annealing.initial()).unwrap_err().to_string();
    assert!(error.contains("the annealed bound for discrete latents"), "{error}");
    let error = annealing.check(&banana, &gaussian(&banana), &[0.0; 5], &[0.0]).unwrap_err().to_string();
    assert!(error.contains("ψ") && error.contains("needs 6"), "{error}");
    assert!(HamiltonianAnnealing::new(0).is_err());
}

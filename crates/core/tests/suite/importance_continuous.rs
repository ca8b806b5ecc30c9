//! Importance-weighted training with continuous latents: noise, latents and fresh draws enumerated, the mean of the engine's gradient is
//! the derivative of the bound with J fresh λ's.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::continuous_law::{alone, coin_and, nodes, unread, with_coin};
use crate::support::{Frozen, Law, Small, assert_gradient, every, numbers};
use hyperprior::gradient::{Backward, Estimator, GradientEngine, GradientSettings, plan};
use hyperprior::likelihood::{Factor, Likelihood, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::{Bernoulli, Family, LogNormal, Normal};
use hyperprior::model::Support;
use hyperprior::objective::Pass;
use hyperprior::prior::{Covariance, Gaussian, Mixture};
use hyperprior::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use hyperprior::{Batch, Model, Variational};
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::mean::assert_mean;
use hyperprior_testkit::quadrature::Rule;
use std::sync::Arc;

/// Shorter than this the differences lose digits to rounding; their error is 1e-12 times a seventh derivative.
const STEP: f64 = 2e-3;
const TOLERANCE: f64 = 1e-7;

fn settings(importance: usize) -> GradientSettings {
    let estimator = Estimator::Score;
    GradientSettings::default()
        .replicates(1)
        .antithetic(false)
        .baseline(false)
        .estimator(estimator)
        .importance(importance)
}

/// The fresh draws of a law: nodes of the covered noise.
enum Fresh {
    /// Of r = prior, with the prior's weights.
    Prior(Rule),
    /// Nodes with their dε, which r weighs by its density.
    Density(Rule),
}

impl Fresh {
    fn rule(&self) -> &Rule {
        match self {
            Self::Prior(rule) | Self::Density(rule) => rule,
        }
    }

    /// The noise of these draws with its covered part at one node, and r's weight of the node for each draw.
    fn at(&self, law: &Law, (theta, phi): (&[f64], &[f64]), pass: &Pass, node: usize) -> (Batch, Vec<f64>) {
        let given = law.q.likelihood().point_mass_len();
        let mut x = pass.draws.eps.clone();
        for (i, value) in self.rule().points[node].iter().enumerate() {
            x.column_mut(given + i).fill(*value);
        }
        let weight = self.rule().weights[node];
        let weights = match self {
            Self::Prior(_) => vec![weight; x.draws_len()],
            Self::Density(_) => {
                let mut other = Pass::default();
                other.set(law.q, theta, 0, &x, &pass.draws.z);
                other.forward(law.model, law.q, theta, phi).unwrap();
                other.log_r.iter().map(|log_r| weight * log_r.exp()).collect()
            }
        };
        (x, weights)
    }
}

/// Calls `each` with every combination of J fresh draws: the tightened pass, and the weight of every draw in it.
fn tightened(
    law: &Law,
    (theta, phi): (&[f64], &[f64]),
    (fresh, samples): (&Fresh, usize),
    mut each: impl FnMut(&mut Pass, &[f64]),
) {
    let nodes = fresh.rule().points.len();
    for combination in 0..nodes.pow(samples as u32) {
        let (mut pass, mut weight) = law.pass(theta, phi, 0);
        let mut drawn = Vec::new();
        for j in 0..samples {
            let node = combination / nodes.pow(j as u32) % nodes;
            let (x, own) = fresh.at(law, (theta, phi), &pass, node);
            weight.iter_mut().zip(&own).for_each(|(weight, own)| *weight *= own);
            let len = x.draws_len();
            drawn.push((x, vec![0; len]));
        }
        pass.tighten_at(law.q, (theta, phi), &drawn);
        each(&mut pass, &weight);
    }
}

fn value(law: &Law, at: (&[f64], &[f64]), fresh: (&Fresh, usize)) -> f64 {
    let mut total = 0.0;
    tightened(law, at, fresh, |pass, weight| {
        total += weight.iter().zip(&pass.integrand).filter(|(w, _)| **w > 0.0).map(|(w, f)| w * f).sum::<f64>();
    });
    total
}

fn gradient(law: &Law, (theta, phi): (&[f64], &[f64]), (fresh, samples): (&Fresh, usize)) -> Vec<f64> {
    let settings = settings(samples);
    // Also checks that the engine accepts the combination.
    GradientEngine::new(law.model, law.q, &settings).unwrap();
    let plans = plan(law.model, law.q, &settings).unwrap();
    let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
    tightened(law, (theta, phi), (fresh, samples), |pass, weight| {
        let backward = Backward { model: law.model, q: law.q, theta, phi, plans: &plans, settings: &settings, weight };
        pass.backward(backward, &mut d_theta, &mut d_phi).unwrap();
    });
    d_theta
}

fn check(label: &str, law: &Law, at: (&[f64], &[f64]), fresh: (&Fresh, usize)) {
    let (theta, phi) = at;
    let found = gradient(law, at, fresh);
    let numeric = finite_difference::gradient(|theta| value(law, (theta, phi), fresh), theta, STEP);
    assert_gradient(label, &found, &numeric, TOLERANCE);
    // Without fresh λ's the gradient is different, so the test is not vacuous; with moments matched it is already close.
    let (plain, _) = law.gradient(theta, phi, &settings(0));
    assert!(plain.iter().zip(&found).any(|(a, b)| (a - b).abs() > 1e-5), "{label}: {plain:?} against {found:?}");
}

/// Every combination of two rules: first the coordinates of `a`.
fn product(a: &Rule, b: &Rule) -> Rule {
    let pairs = || (0..a.points.len()).flat_map(|i| (0..b.points.len()).map(move |j| (i, j)));
    let points = pairs().map(|(i, j)| [a.points[i].clone(), b.points[j].clone()].concat()).collect();
    Rule { points, weights: pairs().map(|(i, j)| a.weights[i] * b.weights[j]).collect() }
}

/// A law of the noise with a few points, near enough that no factor is too narrow for the nodes of z. The derivation holds for any law, as long as the fresh draws of r = prior follow it too.
fn few(n: usize, points: usize, seed: u64) -> Rule {
    let weights = [0.5, 0.3, 0.2];
    Rule {
        points: (0..points).map(|k| numbers(n, 0.7, seed + k as u64)).collect(),
        weights: if points == 1 { vec![1.0] } else { weights.to_vec() },
    }
}

fn factors(factors: Vec<Factor>) -> MeanField {
    MeanField::new(factors).unwrap()
}

fn family(family: impl Family + 'static) -> Factor {
    Factor::Family(Box::new(family))
}

fn gaussian(n: usize) -> Gaussian {
    Gaussian::new(n, Covariance::Full).unwrap()
}

/// Means and log scales near these, and numbers below the diagonal.
fn theta(means: &[f64]) -> Vec<f64> {
    let n = means.len();
    means.iter().copied().chain(numbers(n * (n + 1) / 2, 0.4, 8).iter().map(|x| x - 0.5)).collect()
}

/// A coin and a point mass, with noise ε_c at two values and ε_d integrated: catches a signal without the fresh draws, an ε_c that is
/// drawn again, and a leading density that is counted twice or not at all, for an r that is learned, one that matches moments, and
/// r = prior.
#[test]
fn the_gradient_with_point_masses_is_the_derivative_of_the_bound() {
    let model = coin_and(Support::Positive);
    let likelihood = || factors(vec![family(Bernoulli), Factor::PointMass(Bijector::Exp)]);
    let theta = theta(&[0.3, -0.2]);
    let given = Rule { points: vec![vec![-0.8], vec![0.5]], weights: vec![0.4, 0.6] };
    let line = Rule::normal(1, 0.3);
    let even = Rule::line(-9.0, 9.0, 0.3);
    let matched = MixtureGaussian::new(&likelihood(), &gaussian(2), GaussianFit::ExpectationPropagation, Space::Noise);
    let matched = Frozen { inner: Box::new(matched.unwrap()), theta: theta.clone() };
    let flow = InverseFlow::factorised(&likelihood(), 1, Space::Noise);
    let cases: Vec<(Box<dyn Recursive>, Rule, Fresh, usize)> = vec![
        (Box::new(SameAsPrior), few(1, 3, 3), Fresh::Prior(few(1, 3, 3)), 1),
        (Box::new(SameAsPrior), few(1, 3, 3), Fresh::Prior(few(1, 3, 3)), 2),
        (Box::new(flow), line.clone(), Fresh::Density(even.clone()), 1),
        (Box::new(matched), line, Fresh::Density(even), 1),
    ];
    for (recursive, covered, fresh, samples) in cases {
        let q = Variational::from_parts(Arc::new(likelihood()), Box::new(gaussian(2)), recursive).unwrap();
        let phi = numbers(q.phi_len(), 0.3, 5);
        let law = Law { model: &model, q: &q, noise: product(&given, &covered), latents: with_coin(&unread()) };
        check(&format!("{}, J = {samples}", q.recursive().name()), &law, (&theta, &phi), (&fresh, samples));
    }
}

/// Semi-implicit inference: catches an entropy that is differentiated along the draw at its own λ alone, shares that do not sum to one,
/// and a discrete neighbour whose signal is not tightened.
#[test]
fn the_gradient_with_continuous_factors_is_the_derivative_of_the_bound() {
    let support = Support::Real;
    let normal = || factors(vec![family(Normal)]);
    let log_normal = || factors(vec![family(LogNormal)]);
    let both = || factors(vec![family(Bernoulli), family(Normal)]);
    let cases: [(&str, Small, MeanField, Vec<f64>, Rule); 3] = [
        ("normal", alone(support), normal(), vec![0.4, -0.4], nodes(support)),
        ("log-normal", alone(Support::Positive), log_normal(), vec![0.3, -0.4], nodes(Support::Positive)),
        ("coin and normal", coin_and(support), both(), vec![0.2, 0.4, -0.4], with_coin(&nodes(support))),
    ];
    for (name, model, likelihood, means, latents) in cases {
        let n = likelihood.lambda_len();
        let q = Variational::new(likelihood, gaussian(n), SameAsPrior).unwrap();
        let theta = theta(&means);
        let law = Law { model: &model, q: &q, noise: few(n, 3, 11), latents };
        for samples in [1, 2] {
            let fresh = Fresh::Prior(few(n, 3, 11));
            check(&format!("{name}, J = {samples}"), &law, (&theta, &[]), (&fresh, samples));
        }
    }
}

/// A coin, a point mass and a normal factor, with several λ's beside the given one.
#[test]
fn the_gradient_with_all_kinds_of_factors_is_the_derivative_of_the_bound() {
    let model = Small::new(&[Support::BINARY, Support::Real, Support::Real], |z| {
        let both = z[1] - 0.6 * z[2] - z[0];
        0.4 * z[0] - 0.5 * both * both - 0.3 * z[2] * z[2]
    })
    .with_gradient(|z, d| {
        let both = z[1] - 0.6 * z[2] - z[0];
        (d[1], d[2]) = (-both, 0.6 * both - 0.6 * z[2]);
    });
    let likelihood = factors(vec![family(Bernoulli), Factor::PointMass(Bijector::Identity), family(Normal)]);
    let q = Variational::new(likelihood, gaussian(4), SameAsPrior).unwrap();
    let theta = theta(&[0.1, 0.3, -0.2, -0.3]);
    let given = Rule { points: vec![vec![-0.8], vec![0.5]], weights: vec![0.4, 0.6] };
    let line = nodes(Support::Real);
    let latents = product(&product(&every(&[vec![0.0, 1.0]]), &unread()), &line);
    let law = Law { model: &model, q: &q, noise: product(&given, &few(3, 3, 17)), latents };
    check("all kinds", &law, (&theta, &[]), (&Fresh::Prior(few(3, 3, 17)), 1));
}

/// Catches fresh draws in the engine that are not of r given the point masses: the mean of its gradient over seeded steps is the exact
/// one. Without fresh draws it is off by more than 0.02.
#[test]
fn the_engines_gradient_has_the_exact_mean() {
    let model = coin_and(Support::Real);
    let likelihood = factors(vec![family(Bernoulli), Factor::PointMass(Bijector::Identity)]);
    let theta = vec![0.3, -0.2, -0.5, 0.6, 0.8];
    let matched = MixtureGaussian::new(&likelihood, &gaussian(2), GaussianFit::Laplace, Space::Noise).unwrap();
    let q = Variational::new(likelihood, gaussian(2), matched).unwrap();
    let fresh = Fresh::Density(Rule::line(-9.0, 9.0, 0.3));
    let noise = product(&Rule::normal(1, 0.5), &Rule::normal(1, 0.3));
    let law = Law { model: &model, q: &q, noise, latents: with_coin(&unread()) };
    let exact = gradient(&law, (&theta, &[]), (&fresh, 1));
    let settings = GradientSettings::default().draws(64).importance(1);
    let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
    let mut d_theta = vec![0.0; theta.len()];
    let mut found = vec![Vec::new(); theta.len()];
    for step in 0..3000 {
        engine.step(&model, &q, (5, step), (&theta, &[]), (&mut d_theta, &mut [])).unwrap();
        found.iter_mut().zip(&d_theta).for_each(|(found, d)| found.push(*d));
    }
    for (found, exact) in found.iter().zip(&exact) {
        assert_mean(found, *exact, 0.015);
    }
}

/// Catches a combination whose gradient is not known and is not refused.
#[test]
fn other_combinations_are_refused() {
    let model = coin_and(Support::Real);
    let refused = |q: Variational, reason: &str| {
        let error = GradientEngine::new(&model as &dyn Model, &q, &settings(1)).unwrap_err().to_string();
        assert!(error.contains("importance-weighted training") && error.contains(reason), "{error}");
    };
    let points = || factors(vec![family(Bernoulli), Factor::PointMass(Bijector::Identity)]);
    let mixture = Mixture::new(2, 2, Covariance::Full).unwrap();
    refused(Variational::new(points(), mixture, SameAsPrior).unwrap(), "a prior of one component");
    let draws = || factors(vec![family(Bernoulli), family(Normal)]);
    let flow = InverseFlow::factorised(&draws(), 1, Space::Noise);
    refused(Variational::new(draws(), gaussian(3), flow).unwrap(), "use r = prior");
    let on_lambda = InverseFlow::factorised(&points(), 1, Space::Lambda);
    refused(Variational::new(points(), gaussian(2), on_lambda).unwrap(), "needs an approximation on the noise");
}

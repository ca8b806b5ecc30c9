//! The exact law for continuous latents: pathwise factors, whose z is integrated over, and point masses, whose z follows λ, alone
//! and combined with discrete latents.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, assert_gradient, fixed_noise, moves, numbers, priors, recursives};
use hyperprior::gradient::{Estimator, GradientSettings};
use hyperprior::likelihood::{Factor, Likelihood, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::{Bernoulli, Beta, Family, Gamma, LogNormal, Normal};
use hyperprior::math::random::stream;
use hyperprior::model::Support;
use hyperprior::prior::{Prior, Start};
use hyperprior::recursive::Recursive;
use hyperprior::{Model, Variational};
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::quadrature::Rule;
use std::sync::Arc;

/// Shorter than for discrete latents, because a planar layer over one number with a small w is sharp.
const STEP: f64 = 2e-3;
const TOLERANCE: f64 = 1e-8;

fn settings() -> GradientSettings {
    let estimator = Estimator::Score;
    GradientSettings::default().replicates(1).antithetic(false).baseline(false).estimator(estimator)
}

/// log p of a continuous latent on its support, and the derivative; no family here is conjugate to it.
fn one(support: Support, z: f64) -> (f64, f64) {
    match support {
        Support::Positive => (1.4 * z.ln() - 0.8 * z - 0.05 * z * z, 1.4 / z - 0.8 - 0.1 * z),
        Support::UnitInterval => (1.2 * z.ln() + 0.4 * (-z).ln_1p() + 0.5 * z * z, 1.2 / z - 0.4 / (1.0 - z) + z),
        _ => (0.7 * z - 0.4 * z * z + 0.3 * z.sin(), 0.7 - 0.8 * z + 0.3 * z.cos()),
    }
}

/// A coin and a continuous latent whose slope depends on the coin.
pub(crate) fn coin_and(support: Support) -> Small {
    let tilt = |coin: f64| 0.4 + 0.5 * coin;
    Small::new(&[Support::BINARY, support], move |z| 0.3 * z[0] + tilt(z[0]) * one(support, z[1]).0).with_gradient(
        move |z, d| {
            d[1] = tilt(z[0]) * one(support, z[1]).1;
        },
    )
}

pub(crate) fn alone(support: Support) -> Small {
    Small::new(&[support], move |z| one(support, z[0]).0).with_gradient(move |z, d| d[0] = one(support, z[0]).1)
}

/// Nodes of z with their dz: even steps on the unconstrained real line, where every density here decays like a normal or an
/// exponential.
pub(crate) fn nodes(support: Support) -> Rule {
    let bijector = Bijector::for_support(support).expect("a continuous support");
    let line = Rule::line(-18.0, 18.0, 0.1875);
    let x: Vec<f64> = line.points.iter().map(|x| x[0]).collect();
    let (mut z, mut log_slope) = (x.clone(), x.clone());
    bijector.forward(&x, &mut z);
    bijector.log_derivative(&x, &mut log_slope);
    let weights = log_slope.iter().zip(&line.weights).map(|(l, w)| l.exp() * w).collect();
    Rule { points: z.into_iter().map(|z| vec![z]).collect(), weights }
}

/// Every value of a coin, times the given nodes.
pub(crate) fn with_coin(nodes: &Rule) -> Rule {
    let points = [0.0, 1.0].iter().flat_map(|c| nodes.points.iter().map(move |z| vec![*c, z[0]])).collect();
    Rule { points, weights: [nodes.weights.clone(), nodes.weights.clone()].concat() }
}

/// Parameters near a start, but not where a family is too sharp or too flat for the nodes.
fn somewhere(prior: &dyn Prior, location: &[f64], seed: u64) -> Vec<f64> {
    let mut theta = vec![0.0; prior.parameters_len()];
    prior.initialize(&Start::at(location.to_vec(), 0.3), &mut stream(seed, 0, 0, 0), &mut theta);
    // In a hierarchical prior the effects of two levels multiply.
    let size = if prior.name().contains("hierarchical") { 0.1 } else { 0.2 };
    theta.iter().zip(moves(theta.len(), size, seed)).map(|(a, b)| a + b).collect()
}

/// Checks θ and φ for every prior and approximation that fit this likelihood; returns their number.
fn check(name: &str, model: &Small, likelihood: impl Fn() -> MeanField, location: &[f64], latents: &Rule) -> usize {
    let n = likelihood().lambda_len();
    let mut combinations = 0;
    for (p, prior) in priors(n).iter().enumerate() {
        let theta = somewhere(&**prior, location, 20 + p as u64);
        for r in 0..recursives(&likelihood(), &**prior, &theta).len() {
            let prior: Box<dyn Prior> = priors(n).swap_remove(p);
            let recursive: Box<dyn Recursive> = recursives(&likelihood(), &*prior, &theta).swap_remove(r);
            // A flow has no density of its leading numbers, so with point masses r must be on λ.
            let Ok(q) = Variational::from_parts(Arc::new(likelihood()), prior, recursive) else { continue };
            // Near a start: if the scale of r fell quickly towards the edge of z's support, the bound would not exist.
            let start = Start::at(location.to_vec(), 0.5);
            let mut phi = vec![0.0; q.phi_len()];
            q.recursive().initialize(&start, &mut stream(r as u64, 1, 0, 0), &mut phi);
            phi.iter_mut().zip(numbers(q.phi_len(), 0.03, 40 + r as u64)).for_each(|(phi, x)| *phi += x);
            let noise = fixed_noise(q.prior().noise_len(), 2, 5);
            let law = Law { model, q: &q, noise, latents: latents.clone() };
            let (d_theta, d_phi) = law.gradient(&theta, &phi, &settings());
            let label = format!("{name} × {} × {}", q.prior().name(), q.recursive().name());
            let numeric = finite_difference::gradient(|theta| law.value(theta, &phi), &theta, STEP);
            assert_gradient(&format!("{label}: θ"), &d_theta, &numeric, TOLERANCE);
            let numeric = finite_difference::gradient(|phi| law.value(&theta, phi), &phi, STEP);
            assert_gradient(&format!("{label}: φ"), &d_phi, &numeric, TOLERANCE);
            combinations += 1;
        }
    }
    combinations
}

/// A family with its support and a λ that is neither sharp nor flat.
type Member = (Support, fn() -> Box<dyn Family>, [f64; 2]);

/// The pathwise families.
fn pathwise() -> Vec<Member> {
    vec![
        (Support::Real, || Box::new(Normal), [0.4, -0.4]),
        (Support::Positive, || Box::new(LogNormal), [0.3, -0.9]),
        (Support::Positive, || Box::new(Gamma), [1.7, 1.0]),
        (Support::UnitInterval, || Box::new(Beta), [1.7, 1.5]),
    ]
}

/// Delta and atoms: r = prior. Seven priors with one noise per λ: that, four inverse flows and the hierarchical r; the two mixtures
/// without the hierarchical r. The network: nothing on λ. Two hierarchical priors: r = prior and the hierarchical r.
const PATHWISE: usize = 2 + 7 * 6 + 2 * 5 + 4 + 2 * 2;

/// Catches a reparameterisation gradient without the dependence of the entropy or of r on z, or with the direct derivative of
/// log q(z | λ), whose mean is zero, on one side only.
#[test]
fn the_mean_gradient_of_pathwise_factors_is_the_derivative_of_the_bound() {
    for (support, family, location) in pathwise() {
        let likelihood = || MeanField::new(vec![Factor::Family(family())]).unwrap();
        let name = family().name();
        assert_eq!(check(name, &alone(support), likelihood, &location, &nodes(support)), PATHWISE);
    }
}

/// Catches a signal of a discrete latent that ignores the effect of a pathwise neighbour on p and r, or the reverse.
#[test]
fn the_mean_gradient_with_pathwise_and_discrete_factors_is_the_derivative_of_the_bound() {
    for (support, family, location) in [pathwise().swap_remove(0), pathwise().swap_remove(2)] {
        let likelihood =
            || MeanField::new(vec![Factor::Family(Box::new(Bernoulli)), Factor::Family(family())]).unwrap();
        let name = format!("coin and {}", family().name());
        let location = [0.4, location[0], location[1]];
        let latents = with_coin(&nodes(support));
        assert_eq!(check(&name, &coin_and(support), likelihood, &location, &latents), PATHWISE);
    }
}

/// A placeholder for a point mass's z until λ is known.
pub(crate) fn unread() -> Rule {
    Rule { points: vec![vec![f64::NAN]], weights: vec![1.0] }
}

/// Catches a Jacobian log|dT/dλ| that is missing or has the wrong sign, and an incomplete density of λ.
#[test]
fn the_mean_gradient_of_point_masses_is_the_derivative_of_the_bound() {
    for support in [Support::Real, Support::Positive, Support::UnitInterval] {
        let likelihood = || MeanField::new(vec![Factor::PointMass(Bijector::for_support(support).unwrap())]).unwrap();
        let name = format!("point mass on {support:?}");
        // λ determines z, so only r = prior applies.
        let model = alone(support);
        for (p, prior) in priors(1).into_iter().enumerate().filter(|(_, prior)| prior.has_density()) {
            let theta = somewhere(&*prior, &[0.4], 60 + p as u64);
            let q =
                Variational::from_parts(Arc::new(likelihood()), prior, Box::new(hyperprior::recursive::SameAsPrior))
                    .unwrap();
            let noise = fixed_noise(q.prior().noise_len(), 3, 6);
            let law = Law { model: &model, q: &q, noise, latents: unread() };
            let (d_theta, _) = law.gradient(&theta, &[], &settings());
            let numeric = finite_difference::gradient(|theta| law.value(theta, &[]), &theta, STEP);
            assert_gradient(&format!("{name} × {}", q.prior().name()), &d_theta, &numeric, TOLERANCE);
        }
    }
}

/// Catches an r that does not condition on the point masses, a leading density of the wrong length, and a gradient of r
/// that does not reach λ_c.
#[test]
fn the_mean_gradient_with_point_masses_and_a_discrete_latent_is_the_derivative_of_the_bound() {
    for support in [Support::Real, Support::Positive, Support::UnitInterval] {
        let likelihood = || {
            let point = Factor::PointMass(Bijector::for_support(support).unwrap());
            MeanField::new(vec![Factor::Family(Box::new(Bernoulli)), point]).unwrap()
        };
        assert_eq!(likelihood().lambda_range(1), 0..1, "point masses come first");
        let name = format!("coin and point mass on {support:?}");
        // Delta: r = prior. Four Gaussians: r = prior, four inverse flows, two analytic ones on the noise. Three flows, the
        // low-rank Gaussian and the copula: two inverse flows on λ each. Priors without a density: none.
        assert_eq!(check(&name, &coin_and(support), likelihood, &[0.4; 2], &with_coin(&unread())), 1 + 4 * 7 + 5 * 2);
    }
}

/// Catches an error in the models of this file.
#[test]
fn the_models_of_this_file_are_consistent() {
    for support in [Support::Real, Support::Positive, Support::UnitInterval] {
        for model in [alone(support), coin_and(support)] {
            let report = hyperprior::check(&model as &dyn Model, 3).unwrap();
            assert!(report.gradient);
        }
    }
}

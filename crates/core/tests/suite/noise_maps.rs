//! Maps of noise as priors: maps that are not square, a user's own map, their initial parameters, and incompatible parts.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, assert_gradient, coins, every, fixed_noise, numbers};
use hyperprior::gradient::{Estimator, GradientSettings};
use hyperprior::likelihood::{Factor, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::Bernoulli;
use hyperprior::math::random::{Stream, stream};
use hyperprior::math::scratch::Scratch;
use hyperprior::prior::PriorPass;
use hyperprior::prior::{Density, MlpMap, NetworkPrior, NoiseMap, Prior, Start};
use hyperprior::recursive::{InverseFlow, SameAsPrior, Space};
use hyperprior::{Batch, Error, Result, Variational};
use hyperprior_testkit::enumerate::counts;
use hyperprior_testkit::finite_difference::gradient;

fn network(noise_len: usize, lambda_len: usize) -> NetworkPrior<MlpMap> {
    NetworkPrior::new(MlpMap::new(noise_len, &[4, 3], lambda_len).unwrap()).unwrap()
}

fn lambda(prior: &dyn Prior, theta: &[f64], eps: &Batch) -> Batch {
    let mut lambda = Batch::zeros(prior.lambda_len(), eps.draws_len());
    prior.transform(
        PriorPass { theta, component: 0, eps, density: Density::Unneeded },
        &mut lambda,
        &mut [],
        &mut Scratch::default(),
    );
    lambda
}

fn coin_field() -> MeanField {
    MeanField::of(Bernoulli, 2).unwrap()
}

/// Catches a wrong derivative along location, scale or network, and a linear part that uses the wrong noise, with fewer noises than
/// parameters, as many, and more.
#[test]
fn the_pullback_of_a_network_of_any_shape_matches_finite_differences() {
    for noise_len in [1, 3, 5] {
        let prior = network(noise_len, 3);
        let theta = numbers(prior.parameters_len(), 0.6, 1);
        let eps = Batch::from_columns(numbers(noise_len * 11, 1.0, 2), 11);
        let d_lambda = Batch::from_columns(numbers(3 * 11, 1.0, 3), 11);
        let total = |theta: &[f64]| {
            let lambda = lambda(&prior, theta, &eps);
            lambda.as_slice().iter().zip(d_lambda.as_slice()).map(|(a, b)| a * b).sum()
        };
        let mut d_theta = vec![0.0; theta.len()];
        prior.map().pullback(&theta, &eps, &d_lambda, &mut d_theta, &mut Scratch::default());
        assert_gradient(&prior.name(), &d_theta, &gradient(total, &theta, 2e-3), 1e-9);
    }
}

/// Catches an initial λ that is not the start's diagonal Gaussian, and a network without a gradient.
#[test]
fn a_network_starts_as_a_diagonal_gaussian() {
    let start = Start { locations: vec![vec![0.5, -1.0]], scales: vec![vec![0.3, 2.0]], covariances: vec![None] };
    for noise_len in [1, 2, 4] {
        let prior = network(noise_len, 2);
        let mut theta = vec![f64::NAN; prior.parameters_len()];
        prior.initialize(&start, &mut stream(1, 0, 0, 0), &mut theta);
        let eps = Batch::from_columns(numbers(noise_len * 9, 1.0, 2), 9);
        let lambda = lambda(&prior, &theta, &eps);
        for s in 0..9 {
            assert!((lambda.get(0, s) - (0.5 + 0.3 * eps.get(0, s))).abs() < 1e-15);
            let own = if noise_len > 1 { 2.0 * eps.get(1, s) } else { 0.0 };
            assert!((lambda.get(1, s) - (-1.0 + own)).abs() < 1e-15);
        }
        let mut d_theta = vec![0.0; theta.len()];
        let d_lambda = Batch::from_columns(numbers(18, 1.0, 3), 9);
        prior.map().pullback(&theta, &eps, &d_lambda, &mut d_theta, &mut Scratch::default());
        let (_, of_network) = d_theta.split_at(2 + noise_len.min(2));
        assert!(of_network.iter().any(|d| d.abs() > 0.1));
    }
}

/// A user's own map: two parameters on a parabola, λ = (a + bε, c + dε²). λ has no density.
#[derive(Debug)]
struct Parabola;

impl NoiseMap for Parabola {
    fn name(&self) -> String {
        "parabola".to_owned()
    }

    fn noise_len(&self) -> usize {
        1
    }

    fn lambda_len(&self) -> usize {
        2
    }

    fn parameters_len(&self) -> usize {
        4
    }

    fn forward(&self, theta: &[f64], eps: &Batch, lambda: &mut Batch, _scratch: &mut Scratch) {
        for (s, e) in eps.column(0).iter().enumerate() {
            lambda.set(0, s, theta[0] + theta[1] * e);
            lambda.set(1, s, theta[2] + theta[3] * e * e);
        }
    }

    fn pullback(&self, _theta: &[f64], eps: &Batch, d_lambda: &Batch, d_theta: &mut [f64], _scratch: &mut Scratch) {
        for (s, e) in eps.column(0).iter().enumerate() {
            let (first, second) = (d_lambda.get(0, s), d_lambda.get(1, s));
            for (d, by) in d_theta.iter_mut().zip([first, first * e, second, second * e * e]) {
                *d += by;
            }
        }
    }

    fn initialize(&self, start: &Start, _rng: &mut Stream, theta: &mut [f64]) {
        let (location, scale) = (&start.locations[0], &start.scales[0]);
        theta.copy_from_slice(&[location[0], scale[0], location[1], scale[1]]);
    }
}

/// The exact law with maps that are not square, for which r = prior applies. Catches a bound that assumes one noise per parameter.
#[test]
fn the_mean_gradient_of_maps_that_are_not_square_is_the_derivative_of_the_bound() {
    let model = coins();
    let priors: [Box<dyn Prior>; 3] =
        [Box::new(network(1, 2)), Box::new(network(4, 2)), Box::new(NetworkPrior::new(Parabola).unwrap())];
    for prior in priors {
        let theta = numbers(prior.parameters_len(), 0.5, 4);
        let q = Variational::from_parts(std::sync::Arc::new(coin_field()), prior, Box::new(SameAsPrior)).unwrap();
        let noise = fixed_noise(q.prior().noise_len(), 3, 5);
        let law = Law { model: &model, q: &q, noise, latents: every(&[counts(1), counts(1)]) };
        for estimator in [Estimator::Score, Estimator::LocalExpectation] {
            let settings =
                GradientSettings::default().replicates(1).antithetic(false).baseline(false).estimator(estimator);
            let (d_theta, _) = law.gradient(&theta, &[], &settings);
            let numeric = gradient(|theta| law.value(theta, &[]), &theta, 1e-2);
            assert_gradient(&q.prior().name(), &d_theta, &numeric, 1e-8);
        }
    }
}

#[track_caller]
fn refused<T>(result: Result<T>, words: &[&str]) {
    let Err(error @ Error::Mismatch { .. }) = result else { panic!("it went through, or failed otherwise") };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{message}` does not say `{word}`");
    }
}

/// Catches a bound that is NaN at the first step instead of an error.
#[test]
fn parts_that_need_a_density_are_refused() {
    let on = |space: Space| InverseFlow::new(&coin_field(), 1, 2, space);
    let on_lambda = Variational::new(coin_field(), network(2, 2), on(Space::Lambda));
    refused(on_lambda, &["`network of 2, 4, 3, 2`", "no density of λ", "put the approximation on the noise"]);
    assert!(Variational::new(coin_field(), network(2, 2), on(Space::Noise)).is_ok());
    assert!(Variational::new(coin_field(), network(2, 2), SameAsPrior).is_ok());

    let point = || Factor::PointMass(Bijector::Exp);
    let points = MeanField::new(vec![point(), point()]).unwrap();
    refused(
        Variational::new(points, network(2, 2), SameAsPrior),
        &["the likelihood", "point masses take their entropy", "use a Gaussian, a mixture or a flow"],
    );
    let mixed = || MeanField::new(vec![Factor::Family(Box::new(Bernoulli)), point()]).unwrap();
    let recursive = InverseFlow::new(&mixed(), 1, 2, Space::Noise);
    refused(
        Variational::new(mixed(), network(2, 2), recursive),
        &["combined with other latents", "use a Gaussian or a mixture"],
    );
    refused(Variational::new(mixed(), network(2, 2), SameAsPrior), &["combined with other latents"]);

    // A map that is not square has no inverse flow on its noise.
    let other_len = Variational::new(coin_field(), network(3, 2), on(Space::Noise));
    refused(other_len, &["3 normals and 0 switches behind 2 parameters", "r = prior", "hierarchical r"]);
}

/// Catches a finite value in place of a density that does not exist.
#[test]
fn a_density_that_does_not_exist_is_nan() {
    let prior = network(2, 2);
    let theta = numbers(prior.parameters_len(), 0.5, 1);
    let eps = Batch::from_columns(numbers(6, 1.0, 2), 3);
    let mut out = [0.0; 3];
    prior.log_density(&theta, &eps, &mut out, &mut Scratch::default());
    assert!(out.iter().all(|q| q.is_nan()));
    for density in [Density::Whole, Density::Leading(1)] {
        let (mut lambda, mut log_q) = (Batch::zeros(2, 3), [0.0; 3]);
        prior.transform(
            PriorPass { theta: &theta, component: 0, eps: &eps, density },
            &mut lambda,
            &mut log_q,
            &mut Scratch::default(),
        );
        assert!(log_q.iter().all(|q| q.is_nan()));
    }
}

/// Catches sizes that would panic later.
#[test]
fn empty_maps_are_refused() {
    for (noise_len, hidden, lambda_len) in [(0, 4, 2), (2, 0, 2), (2, 4, 0)] {
        let Err(error) = MlpMap::new(noise_len, &[hidden], lambda_len) else { panic!("it went through") };
        assert!(error.to_string().contains("each must be at least 1"), "{error}");
    }
}

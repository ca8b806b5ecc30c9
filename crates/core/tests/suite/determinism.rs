//! Same seed, same numbers, at any number of threads: one stream per draw, and sums in a fixed order.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::fit::{Fit, FitSettings, Quiet, StartSettings, fit};
use hyperprior::gradient::{Estimator, GradientSettings};
use hyperprior::likelihood::MeanField;
use hyperprior::objective::{BoundSettings, evaluate};
use hyperprior::prior::{Covariance, Mixture, PlanarFlow, Prior, Start};
use hyperprior::recursive::{InverseFlow, Recursive, Space};
use hyperprior::targets::{CorrelatedCounts, CountTarget};
use hyperprior::{Model, Variational, exact};
use std::sync::Arc;

fn on<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

fn variationals(model: &dyn Model) -> Vec<Variational> {
    let new = |prior: Box<dyn Prior>, layers_len: usize| {
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let recursive: Box<dyn Recursive> =
            Box::new(InverseFlow::new(&likelihood, prior.components_len(), layers_len, Space::Noise));
        Variational::from_parts(Arc::new(likelihood), prior, recursive).unwrap()
    };
    vec![
        new(Box::new(PlanarFlow::new(2, 2).unwrap()), 10),
        new(Box::new(Mixture::new(2, 3, Covariance::Full).unwrap()), 0),
    ]
}

fn settings(seed: u64, estimator: Estimator) -> FitSettings {
    // 100 draws are several blocks, the last of them short.
    let gradient = GradientSettings::default().draws(100).estimator(estimator);
    FitSettings::default().seed(seed).steps(20).gradient(gradient)
}

/// Every bit of θ and φ after 20 steps.
fn twenty_steps(model: &dyn Model, q: &Variational, settings: &FitSettings) -> Vec<u64> {
    let mut fit = Fit::init(model, q, settings, &Start::at(vec![1.5, 1.0], 0.4)).unwrap();
    for _ in 0..20 {
        fit.step(0.02).unwrap();
    }
    fit.theta().iter().chain(fit.phi()).map(|x| x.to_bits()).collect()
}

/// Catches a sum whose order depends on the threads, and a stream that two threads share.
#[test]
fn twenty_steps_are_the_same_bits_on_one_two_and_four_threads() {
    let model = CorrelatedCounts::new(CountTarget::C);
    for q in variationals(&model) {
        for estimator in [Estimator::Score, Estimator::LocalExpectation] {
            let settings = settings(7, estimator);
            let runs = [1, 2, 4].map(|threads| on(threads, || twenty_steps(&model, &q, &settings)));
            assert!(runs[0] == runs[1] && runs[0] == runs[2], "{} by {estimator:?}", q.prior().name());
        }
    }
}

/// Catches a seed that is not used.
#[test]
fn a_different_seed_gives_different_numbers() {
    let model = CorrelatedCounts::new(CountTarget::C);
    for q in variationals(&model) {
        let run = |seed: u64| twenty_steps(&model, &q, &settings(seed, Estimator::Score));
        let (first, again, other) = (run(7), run(7), run(8));
        assert_eq!(first, again);
        assert!(first.iter().zip(&other).all(|(a, b)| a != b), "every number moved");
    }
}

/// Catches a start, a ranking of starts, or a report that depends on the threads.
#[test]
fn a_whole_fit_and_its_report_are_the_same_on_one_two_and_four_threads() {
    let model = CorrelatedCounts::new(CountTarget::B);
    for q in variationals(&model) {
        let start = StartSettings::default().tries(2).steps(10).ranking_draws(300);
        let settings = settings(3, Estimator::Automatic).start(start);
        let posterior = exact::posterior(&model, 40).unwrap();
        let run = || {
            let fitted = fit(&model, &q, &settings, &mut Quiet).unwrap();
            let bounds = BoundSettings::default().draws(300).samples(3).seed(5);
            let bounds = evaluate(&model, &q, (&fitted.theta, &fitted.phi), &bounds).unwrap();
            let marginal = exact::marginal(&q, &fitted.theta, &posterior, 9);
            (fitted, bounds, marginal)
        };
        let [one, two, four] = [1, 2, 4].map(|threads| on(threads, run));
        assert!(one == two && one == four, "{}", q.prior().name());
    }
}

//! Annealed importance sampling against enumeration.

use super::{Case, case, states};
use crate::annealed::Annealing;
use crate::burst::{Tokens, constant};
use crate::local::Method;
use crate::shape::Family;
use crate::weights::{LayerWeights, WeightPosterior};
use hyperprior_math::random::stream;
use hyperprior_math::special::log_sum_exp;

/// Estimates of ln p(x) less the exact value.
fn errors(case: &Case, mean: f32, temperatures: usize, runs: usize) -> Vec<f64> {
    let all = states(&case.shape, 16, 1);
    let z: Vec<Vec<f64>> = all.iter().map(|state| state.at.clone()).collect();
    let exact = log_sum_exp(&case.log_p(&z));
    let bursts = case.bursty.as_ref().map_or(&[][..], |(_, bursts)| bursts);
    let rest = constant(bursts, (&case.words.0, &case.words.1)) - case.terms.background_sum();
    let links: Vec<_> = case.layer_weights.iter().map(LayerWeights::link).collect();
    let means: Vec<Vec<f32>> = case.shape.layers().iter().map(|layer| vec![mean; layer.width]).collect();
    let mut annealing = Annealing::new(&case.given(&links), &means);
    let mut rng = stream(7, 0, 0, 0);
    (0..runs).map(|_| annealing.run(temperatures, &mut rng) + rest - exact).collect()
}

/// Catches a weight that is not unbiased: a ratio taken after the move instead of before it, a move that changes q^(1−t) p^t, a
/// factorial counted twice, a child that is left behind.
#[test]
fn the_mean_weight_of_annealed_chains_is_the_likelihood() {
    use Family::{Bernoulli, Poisson};
    for (layers, mean) in [
        (&[(Bernoulli, 3)][..], 0.5),
        (&[(Poisson, 2)], 1.0),
        (&[(Poisson, 2), (Bernoulli, 2)], 0.6),
        (&[(Bernoulli, 2), (Poisson, 2)], 0.6),
        (&[(Bernoulli, 2), (Bernoulli, 2), (Bernoulli, 2)], 0.3),
    ] {
        for is_bursty in [false, true] {
            let mut case = case(layers, Method::MeanField, WeightPosterior::Point);
            if is_bursty {
                let tokens = Tokens::of(std::iter::once((case.words.0.as_slice(), case.words.1.as_slice())));
                case.bursty = Some((tokens, vec![0.7, 0.2, 0.4, 1.3]));
            }
            let runs = 4000;
            for temperatures in [1, 2, 5] {
                let weights: Vec<f64> = errors(&case, mean, temperatures, runs).iter().map(|e| e.exp()).collect();
                let average = weights.iter().sum::<f64>() / runs as f64;
                let squares = weights.iter().map(|w| (w - average).powi(2)).sum::<f64>();
                let error = squares.sqrt() / runs as f64;
                assert!(error < 0.02, "{layers:?}, {temperatures} temperatures: a standard error of {error}");
                assert!((average - 1.0).abs() < 4.0 * error, "{layers:?}, {temperatures}: {average} ± {error}");
            }
        }
    }
}

/// The estimate is too low on average, and by less with every doubling of the temperatures.
#[test]
fn more_temperatures_bring_the_estimate_nearer() {
    let case = case(&[(Family::Poisson, 2), (Family::Bernoulli, 2)], Method::MeanField, WeightPosterior::Point);
    let runs = 2000;
    let means = [1, 2, 4, 8, 16, 32].map(|temperatures| {
        let errors = errors(&case, 2.5, temperatures, runs);
        errors.iter().sum::<f64>() / runs as f64
    });
    assert!(means.windows(2).all(|pair| pair[0] < pair[1]), "{means:?}");
    assert!(means[5] < 0.0 && means[5] > 0.1 * means[0], "{means:?}");
}

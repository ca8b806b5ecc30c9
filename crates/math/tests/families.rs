//! The same tests for every family: derivatives, total mass, information, samplers, windows, and extreme λ.

mod support;

use hyperprior_math::bijector::Bijector;
use hyperprior_math::family::*;
use hyperprior_math::random::{Stream, stream};
use hyperprior_math::special::{incomplete_beta, incomplete_gamma, normal_cdf, sigmoid};
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use hyperprior_testkit::goodness::{chi_square, kolmogorov_smirnov};
use hyperprior_testkit::mean::assert_mean;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::{expectation, families, information, log_density, members, pathwise, sample, score, streams};

/// The probability that a correct sampler fails its test; with fixed seeds, a failure means that the values changed.
const ALPHA: f64 = 1e-6;

/// The distribution functions of the continuous families.
fn distribution(family: &dyn Family, lambda: &[f64], z: f64) -> f64 {
    let [first, second] = [lambda[0], lambda[1]];
    match family.name() {
        "normal" => normal_cdf((z - first) / second.exp()),
        "log-normal" => normal_cdf((z.ln() - first) / second.exp()),
        "gamma" => incomplete_gamma(first.exp(), second.exp() * z),
        "beta" => incomplete_beta(first.exp(), second.exp(), z),
        name => panic!("{name} is not continuous"),
    }
}

/// The quantile on the real line behind the support, by bisection to the last bit.
fn real_quantile(family: &dyn Family, lambda: &[f64], p: f64) -> f64 {
    let bijector = Bijector::for_support(family.support()).expect("a continuous support");
    let (mut low, mut high) = (-600.0, 600.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let mut z = [0.0];
        bijector.forward(&[middle], &mut z);
        if distribution(family, lambda, z[0]) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, rng_seed: RngSeed::Fixed(17), ..ProptestConfig::default() })]

    #[test]
    fn scores_are_gradients_of_the_log_density(lambda in prop::array::uniform3(-2.5..2.5f64), seed in 0..1000u64) {
        for family in families() {
            let lambda = &lambda[..family.parameters_len()];
            let z = sample(family.as_ref(), lambda, seed, 1)[0];
            let numeric = gradient(|l| log_density(family.as_ref(), l, z), lambda, 1e-3);
            assert_close(&score(family.as_ref(), lambda, z), &numeric, 1e-8, 1e-9 * (1.0 + z.abs()));
        }
    }

    #[test]
    fn slopes_in_z_are_derivatives_of_the_log_density(lambda in prop::array::uniform2(-1.5..2.5f64), seed in 0..1000u64) {
        for family in families().iter().filter(|family| family.is_pathwise()) {
            let mut z = sample(family.as_ref(), &lambda, seed, 1)[0];
            // A step proportional to the distance from z to the edge, which the beta must keep positive; the slope is scaled alike.
            let room = match family.support() {
                Support::Real => 1.0,
                Support::UnitInterval => {
                    z = z.min(0.999);
                    z * (1.0 - z)
                }
                _ => z,
            };
            let mut slope = [f64::NAN];
            family.d_log_density_d_z(&lambda, &[z], &mut slope);
            let numeric = gradient(|t| log_density(family.as_ref(), &lambda, z + room * t[0]), &[0.0], 1e-3);
            assert_close(&[room * slope[0]], &numeric, 1e-8, 1e-8);
        }
    }

    #[test]
    fn pathwise_derivatives_are_those_of_the_quantile(
        lambda in prop::array::uniform2(-1.5..2.5f64),
        p in 0.01..0.99f64,
    ) {
        for family in families().iter().filter(|family| family.is_pathwise()) {
            let bijector = Bijector::for_support(family.support()).expect("a continuous support");
            let x = real_quantile(family.as_ref(), &lambda, p);
            let mut z = [0.0];
            bijector.forward(&[x], &mut z);
            // On the real line behind the support, where quantiles do not round to an edge.
            let mut dz_dx = [0.0];
            bijector.pullback(&[x], &[1.0], &[0.0], &mut dz_dx);
            let numeric = gradient(|l| real_quantile(family.as_ref(), l, p), &lambda, 1e-2);
            let analytic: Vec<f64> =
                pathwise(family.as_ref(), &lambda, z[0]).iter().map(|d| d / dz_dx[0]).collect();
            // Near an edge z itself is only known to its last bit.
            let known = f64::EPSILON / dz_dx[0].min(1.0);
            assert_close(&analytic, &numeric, 1e-7, 1e-8 + 1e3 * known);
        }
    }
}

#[test]
fn densities_have_total_mass_one_and_scores_mean_zero() {
    for family in families() {
        for lambda in members(family.as_ref()) {
            let [mass] = expectation(family.as_ref(), &lambda, |_| [1.0]);
            assert!((mass - 1.0).abs() < 1e-9, "{} {lambda:?}: mass {mass}", family.name());
            let p = lambda.len() - 1;
            let [mean] = expectation(family.as_ref(), &lambda, |z| [score(family.as_ref(), &lambda, z)[p]]);
            assert!(mean.abs() < 1e-8, "{} {lambda:?}: mean score {mean}", family.name());
        }
    }
}

#[test]
fn information_is_the_mean_of_the_squared_score() {
    for family in families() {
        for lambda in members(family.as_ref()) {
            let n = lambda.len();
            let mut summed = vec![0.0; n * n];
            for entry in 0..n * n {
                [summed[entry]] = expectation(family.as_ref(), &lambda, |z| {
                    let score = score(family.as_ref(), &lambda, z);
                    [score[entry / n] * score[entry % n]]
                });
            }
            assert_close(&information(family.as_ref(), &lambda), &summed, 1e-7, 1e-9);
        }
    }
}

#[test]
fn information_about_the_negative_binomial_shape_where_the_mean_is_far_above_it() {
    // Here Fisher's series needs thousands of terms and its tail is an integral.
    for lambda in [[5.0, 0.0], [6.0, -1.5], [3.0, -3.0], [7.0, 2.0]] {
        let [summed] = expectation(&NegativeBinomial, &lambda, |z| [score(&NegativeBinomial, &lambda, z)[1].powi(2)]);
        assert_close(&[information(&NegativeBinomial, &lambda)[3]], &[summed], 1e-8, 0.0);
    }
}

#[test]
fn samplers_follow_their_densities() {
    const DRAWS_LEN: usize = 20_000;
    for family in families() {
        for (i, lambda) in members(family.as_ref()).iter().enumerate() {
            let z = sample(family.as_ref(), lambda, 31 + i as u64, DRAWS_LEN);
            assert!(z.iter().all(|&z| family.support().contains(z)), "{} left its support", family.name());
            let p = if let Some((lower, upper)) = family.window(lambda) {
                let mut observed = vec![0; (upper - lower) as usize + 1];
                z.iter().filter(|&&z| z >= lower && z <= upper).for_each(|z| observed[(z - lower) as usize] += 1);
                let probabilities: Vec<f64> =
                    (0..observed.len()).map(|i| log_density(family.as_ref(), lambda, lower + i as f64).exp()).collect();
                chi_square(&observed, &probabilities, DRAWS_LEN as u64)
            } else {
                kolmogorov_smirnov(&z, |z| distribution(family.as_ref(), lambda, z))
            };
            assert!(p > ALPHA, "{} {lambda:?}: p = {p:e}", family.name());
        }
    }
}

#[test]
fn samplers_hold_where_their_algorithm_changes() {
    const DRAWS_LEN: usize = 20_000;
    let large = Binomial::new(1000).expect("a thousand trials");
    // Poisson by rejection, binomial by rejection, negative binomial with a tiny and a large shape.
    let cases: [(&dyn Family, &[f64]); 5] = [
        (&Poisson, &[4.0]),
        (&large, &[0.4]),
        (&large, &[-6.0]),
        (&NegativeBinomial, &[1.0, -3.0]),
        (&NegativeBinomial, &[4.0, 6.0]),
    ];
    for (i, (family, lambda)) in cases.into_iter().enumerate() {
        let (lower, upper) = family.window(lambda).expect("discrete");
        let mut observed = vec![0; (upper - lower) as usize + 1];
        let z = sample(family, lambda, 41 + i as u64, DRAWS_LEN);
        z.iter().filter(|&&z| z >= lower && z <= upper).for_each(|z| observed[(z - lower) as usize] += 1);
        let probabilities: Vec<f64> =
            (0..observed.len()).map(|i| log_density(family, lambda, lower + i as f64).exp()).collect();
        let p = chi_square(&observed, &probabilities, DRAWS_LEN as u64);
        assert!(p > ALPHA, "{} {lambda:?}: p = {p:e}", family.name());
    }
    // Gamma and beta with shapes far below one, where most draws lie near an edge. The beta's draws within 1e-16 of one
    // round to a single number, so the distribution is tested given z < 0.999.
    for (family, lambda, seed) in [(&Gamma as &dyn Family, [-3.0, 0.5], 51), (&Beta, [-3.0, -2.0], 52)] {
        let z: Vec<f64> = sample(family, &lambda, seed, DRAWS_LEN).into_iter().filter(|&z| z < 0.999).collect();
        let below = distribution(family, &lambda, 0.999);
        let p = kolmogorov_smirnov(&z, |z| distribution(family, &lambda, z) / below);
        assert!(p > ALPHA, "{} {lambda:?}: p = {p:e}", family.name());
    }
}

#[test]
fn pathwise_gradients_of_the_mean_are_unbiased() {
    const DRAWS_LEN: usize = 20_000;
    // E z = a/b for the gamma, so its derivative along the log parameters is ±a/b.
    let lambda = [0.7_f64, -0.2];
    let mean = (lambda[0] - lambda[1]).exp();
    let z = sample(&Gamma, &lambda, 61, DRAWS_LEN);
    for (p, exact) in [mean, -mean].into_iter().enumerate() {
        let derivatives: Vec<f64> = z.iter().map(|&z| pathwise(&Gamma, &lambda, z)[p]).collect();
        assert_mean(&derivatives, exact, 0.05 * mean);
    }
    // E z = σ(λ₀ − λ₁) for the beta.
    let slope = sigmoid(lambda[0] - lambda[1]) * sigmoid(lambda[1] - lambda[0]);
    let z = sample(&Beta, &lambda, 62, DRAWS_LEN);
    for (p, exact) in [slope, -slope].into_iter().enumerate() {
        let derivatives: Vec<f64> = z.iter().map(|&z| pathwise(&Beta, &lambda, z)[p]).collect();
        assert_mean(&derivatives, exact, 0.05 * slope);
    }
}

/// The first draws of stream (1, 0, 0, 0). A change here changes every result and belongs in the changelog.
#[test]
fn first_draws_do_not_change() {
    // Name, first parameter (0.5 and −0.5 follow it), draws.
    let golden: [(&str, f64, [f64; 5]); 14] = [
        ("bernoulli", 0.0, [1.0, 0.0, 1.0, 1.0, 1.0]),
        (
            "beta",
            1.0,
            [0.7835412585553391, 0.6919794141429303, 0.49691974034347663, 0.548135782980936, 0.35045206121581457],
        ),
        ("binomial", 0.5, [10.0, 7.0, 9.0, 11.0, 9.0]),
        ("categorical", 0.0, [0.0, 2.0, 0.0, 0.0, 0.0]),
        ("conway-maxwell", 4.0, [11.0, 10.0, 12.0, 11.0, 11.0]),
        (
            "gamma",
            1.0,
            [0.7055602418592151, 0.5435528226328163, 0.3672525727374054, 0.48596749622041263, 1.0853773371984015],
        ),
        ("geometric", -2.0, [0.0, 5.0, 5.0, 0.0, 3.0]),
        (
            "log-normal",
            0.0,
            [0.1967705974201786, 2.245081969178753, 0.11925733966504203, 0.20205957077180856, 0.06070296262634057],
        ),
        ("mixed", 2.0, [1.0, 0.0, 8.0, 42.0, 42.0]),
        ("mixed", 0.5, [4.0, 0.0, 3.0, 3.0, 5.0]),
        ("negative-binomial", 2.0, [1.0, 0.0, 7.0, 4.0, 5.0]),
        (
            "normal",
            0.0,
            [-1.6257167088785276, 0.8087420324113067, -2.1264716025539094, -1.5991927202458753, -2.8017627744250295],
        ),
        ("poisson", 2.0, [3.0, 8.0, 8.0, 7.0, 10.0]),
        ("truncated-poisson", 2.0, [7.0, 6.0, 8.0, 7.0, 7.0]),
    ];
    for (family, (name, first, want)) in families().iter().zip(golden) {
        assert_eq!(family.name(), name);
        let mut rng = [stream(1, 0, 0, 0)];
        let got: [f64; 5] = std::array::from_fn(|_| {
            let mut z = [f64::NAN];
            family.sample(&[first, 0.5, -0.5][..family.parameters_len()], &mut rng, &mut z);
            z[0]
        });
        // The last bits depend on the platform's exp and ln.
        assert_close(&got, &want, 1e-13, 0.0);
    }
}

#[test]
fn windows_leave_out_less_than_they_promise() {
    for family in families().iter().filter(|family| family.support().is_discrete()) {
        for first in [-6.0, -2.0, 0.0, 1.0, 3.0, 5.0] {
            for second in [-2.0, 0.0, 4.0] {
                let lambda = &[first, second, 0.0][..family.parameters_len()];
                let (lower, upper) = family.window(lambda).expect("discrete families have windows");
                if upper == 1e7 {
                    // With log rates spread by e⁴ no window is wide enough, and none claims to be.
                    assert_eq!((family.name(), second), ("mixed", 4.0));
                    continue;
                }
                let mass = |z: f64| log_density(family.as_ref(), lambda, z).exp();
                let below: f64 = (0..lower as u64).map(|z| mass(z as f64)).sum();
                let above: f64 = (1..=10 * upper as u64 + 100).map(|k| mass(upper + k as f64)).sum();
                assert!(below + above < 1e-14, "{} {lambda:?}: {below:e} + {above:e}", family.name());

                // Nor are they needlessly wide: the upper end is at most twice the tightest plus 40.
                let (mut tightest, mut tail) = (upper, above);
                while tightest > lower && tail < 1e-14 {
                    tail += mass(tightest);
                    tightest -= 1.0;
                }
                assert!(upper <= 2.0 * tightest + 40.0, "{} {lambda:?}: {upper} for {tightest}", family.name());
            }
        }
    }
}

#[test]
fn a_window_covers_every_draw_and_stays_finite() {
    let (lower, upper) = Poisson.window(&[0.0, 5.0]).expect("discrete");
    assert_eq!(lower, 0.0);
    assert_eq!(Some(upper), Poisson.window(&[5.0]).map(|w| w.1));
    for family in families().iter().filter(|family| family.support().is_discrete()) {
        for extreme in [-700.0, 700.0, -1e4, 1e4] {
            for other in [-700.0, 0.0, 700.0] {
                let lambda = &[extreme, other, extreme][..family.parameters_len()];
                let (lower, upper) = family.window(lambda).expect("discrete");
                assert!(0.0 <= lower && lower <= upper && upper <= 1e7, "{} {lambda:?}", family.name());
            }
        }
    }
}

#[test]
fn extreme_parameters_neither_panic_nor_give_nan() {
    let extremes = [-1e4, -700.0, -40.0, 0.0, 40.0, 700.0, 1e4];
    let places = [-1.0, 0.0, 1e-300, 0.3, 1.0, 2.0, 7.0, 1e6, 1e18];
    for family in families() {
        for first in extremes {
            for second in extremes {
                let lambda = &[first, second, -first][..family.parameters_len()];
                let z = sample(family.as_ref(), lambda, 71, 1)[0];
                assert!(family.support().contains(z), "{} {lambda:?} drew {z}", family.name());
                for z in places.into_iter().chain([z]) {
                    let value = log_density(family.as_ref(), lambda, z);
                    assert!(!value.is_nan(), "{} {lambda:?} at {z}", family.name());
                    assert!(family.support().contains(z) || value == f64::NEG_INFINITY, "{} at {z}", family.name());
                    if family.support().contains(z) {
                        let score = score(family.as_ref(), lambda, z);
                        assert!(score.iter().all(|s| !s.is_nan()), "{} {lambda:?} at {z}: {score:?}", family.name());
                    }
                    if family.is_pathwise() && family.support().contains(z) {
                        let slopes = pathwise(family.as_ref(), lambda, z);
                        assert!(slopes.iter().all(|s| !s.is_nan()), "{} {lambda:?} at {z}: {slopes:?}", family.name());
                    }
                }
                let information = information(family.as_ref(), lambda);
                assert!(information.iter().all(|i| !i.is_nan()), "{} {lambda:?}: {information:?}", family.name());
            }
        }
    }
}

#[test]
fn nan_stays_nan() {
    for family in families() {
        let n = family.parameters_len();
        assert_eq!(log_density(family.as_ref(), &vec![0.1; n], f64::NAN), f64::NEG_INFINITY, "{}", family.name());
        assert!(sample(family.as_ref(), &vec![f64::NAN; n], 81, 1)[0].is_nan(), "{}", family.name());
        let mut start = vec![f64::NAN; n];
        family.start_at(f64::NAN, &mut start);
        assert!(start.iter().all(|l| l.is_finite()), "{}: {start:?}", family.name());
    }
}

#[test]
fn a_draw_without_signal_adds_exactly_nothing() {
    for family in families() {
        let n = family.parameters_len();
        // Draw 0 has no signal and a z at which the score is not finite; draw 1 doubles its score.
        let z = sample(family.as_ref(), &vec![0.4; n], 91, 1)[0];
        let mut d_lambda = vec![0.5; 2 * n];
        family.score(&vec![0.4; 2 * n], &[f64::NAN, z], &[0.0, 2.0], &mut d_lambda);
        for (p, score) in score(family.as_ref(), &vec![0.4; n], z).into_iter().enumerate() {
            assert_eq!(d_lambda[2 * p], 0.5, "{}", family.name());
            assert!((d_lambda[2 * p + 1] - 0.5 - 2.0 * score).abs() < 1e-13, "{}", family.name());
        }
    }
}

#[test]
fn a_batch_is_its_draws_side_by_side() {
    for family in families() {
        let members = members(family.as_ref());
        let n = family.parameters_len();
        let columns: Vec<f64> = (0..n).flat_map(|p| members.iter().map(move |lambda| lambda[p])).collect();
        let mut z = vec![0.0; members.len()];
        family.sample(&columns, &mut streams(7, members.len()), &mut z);
        let mut together = vec![0.0; members.len()];
        family.log_density(&columns, &z, &mut together);
        let mut table = vec![0.0; n * n * members.len()];
        family.information(&columns, &mut table);
        for (s, lambda) in members.iter().enumerate() {
            let mut alone = [0.0];
            family.sample(lambda, &mut [stream(7, 0, 0, s as u64)], &mut alone);
            assert_eq!(alone[0], z[s], "{}", family.name());
            // A vectorised path may round differently at the end of a column.
            assert_close(&[log_density(family.as_ref(), lambda, z[s])], &[together[s]], 1e-13, 1e-13);
            let entries: Vec<f64> = (0..n * n).map(|e| table[e * members.len() + s]).collect();
            assert_close(&information(family.as_ref(), lambda), &entries, 1e-13, 1e-13);
        }
    }
}

#[test]
fn starts_are_centred_at_the_value_asked_for() {
    for family in families() {
        let places: &[f64] = match family.support() {
            Support::UnitInterval => &[0.05, 0.5, 0.8],
            Support::Integers { .. } => &[0.0, 1.0],
            _ => &[1.0, 4.0, 30.0],
        };
        for &place in places {
            let mut lambda = vec![f64::NAN; family.parameters_len()];
            family.start_at(place, &mut lambda);
            let [mean] = expectation(family.as_ref(), &lambda, |z| [z]);
            // Halves for the counts, 13 % for the mean of a log-normal with median z, a logit of 1.5 for the rest.
            let allowed = if family.support().is_discrete() { 0.9 } else { 0.15 * place };
            assert!((mean - place).abs() < allowed, "{} at {place}: mean {mean}", family.name());
        }
        // A value outside the support is replaced by the nearest inside.
        let mut lambda = vec![f64::NAN; family.parameters_len()];
        for outside in [-1e9, 1e9, f64::INFINITY, 0.4] {
            family.start_at(outside, &mut lambda);
            assert!(lambda.iter().all(|l| l.is_finite()), "{} at {outside}: {lambda:?}", family.name());
        }
    }
}

#[test]
fn constructors_reject_invalid_arguments() {
    assert_eq!(Binomial::new(0), Err(BinomialError::NoTrials));
    assert_eq!(Binomial::new(u64::MAX), Err(BinomialError::TooManyTrials { trials: u64::MAX }));
    assert_eq!(Categorical::new(1), Err(CategoricalError::TooFewValues { len: 1 }));
    for upper in [0, 1_000_001] {
        let error = if upper == 0 { ConwayMaxwellError::NoRange } else { ConwayMaxwellError::TooLarge { upper } };
        assert_eq!(ConwayMaxwell::new(upper), Err(error));
        assert_eq!(TruncatedPoisson::new(upper), Err(error));
    }
    assert_eq!(Mixed::new(Normal, 9), Err(MixedError::NotOneParameter { family: "normal", len: 2 }));
    assert_eq!(Mixed::new(Line, 9), Err(MixedError::Continuous { family: "line" }));
    for len in [0, 129] {
        assert_eq!(Mixed::new(Poisson, len), Err(MixedError::NodesLen { len }));
    }
    assert!(Mixed::new(Poisson, 9).is_ok_and(|m| m.nodes_len() == 9 && m.family() == &Poisson));
    assert!(ConwayMaxwell::new(1).is_ok_and(|c| c.upper() == 1));
    assert!(TruncatedPoisson::new(1_000_000).is_ok_and(|t| t.upper() == 1_000_000));
    assert!(Binomial::new(7).is_ok_and(|b| b.trials() == 7) && Categorical::new(2).is_ok_and(|c| c.len() == 2));
}

/// A continuous family of one parameter; the crate has none.
#[derive(Debug, PartialEq)]
struct Line;

impl Family for Line {
    fn name(&self) -> &'static str {
        "line"
    }
    fn parameters_len(&self) -> usize {
        1
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, _: &[f64], _: &[f64], _: &mut [f64]) {}
    fn score(&self, _: &[f64], _: &[f64], _: &[f64], _: &mut [f64]) {}
    fn sample(&self, _: &[f64], _: &mut [Stream], _: &mut [f64]) {}
    fn information(&self, _: &[f64], _: &mut [f64]) {}
    fn start_at(&self, _: f64, _: &mut [f64]) {}
}

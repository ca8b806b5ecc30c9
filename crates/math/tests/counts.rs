//! Properties of the count families alone: dispersion, truncated ranges, mixtures.

mod support;

use hyperprior_math::family::*;
use hyperprior_testkit::finite_difference::assert_close;
use hyperprior_testkit::quadrature::Rule;
use support::{expectation, information, log_density, score};

/// Catches a dispersion with the wrong sign, and a sum that is truncated too early: against explicit factorials, on a range
/// short enough for them.
#[test]
fn the_conway_maxwell_is_narrower_than_the_poisson_above_zero_and_wider_below() {
    let family = ConwayMaxwell::new(60).expect("counts to sixty");
    let exact = |a: f64, b: f64| {
        let mut log_weights = vec![0.0];
        for k in 1..=60 {
            log_weights.push(log_weights[k - 1] + a - b.exp() * (k as f64).ln());
        }
        let log_total = hyperprior_math::special::log_sum_exp(&log_weights);
        log_weights.into_iter().map(move |l| l - log_total).collect::<Vec<f64>>()
    };
    for (a, b) in [(2.0, 0.0), (1.5, -1.0), (0.0, -300.0), (6.0, 1.2), (700.0, 0.0), (-700.0, 3.0), (650.0, 5.5)] {
        let found: Vec<f64> = (0..=60).map(|z| log_density(&family, &[a, b], f64::from(z))).collect();
        assert_close(&found, &exact(a, b), 1e-13, 1e-11);
    }
    // With mode 8 throughout, the variance falls with b.
    let variance = |b: f64| {
        let a = 8.5_f64.ln() * b.exp();
        let [mean, square] = expectation(&family, &[a, b], |z| [z, z * z]);
        (square - mean * mean) / mean
    };
    assert!(variance(0.7) < 0.6 && (variance(0.0) - 1.0).abs() < 1e-6 && variance(-0.5) > 1.5);
    // With b = 0 the one-parameter family agrees in every method.
    let cut = TruncatedPoisson::new(60).expect("counts to sixty");
    for (log_rate, z) in [(1.0, 3.0), (4.5, 60.0), (-20.0, 0.0)] {
        let both = [log_rate, 0.0];
        assert_eq!(log_density(&cut, &[log_rate], z), log_density(&family, &both, z));
        assert_close(&score(&cut, &[log_rate], z), &score(&family, &both, z)[..1], 1e-14, 0.0);
        assert_eq!(information(&cut, &[log_rate])[0], information(&family, &both)[0]);
        assert_eq!(cut.window(&[log_rate]), family.window(&both));
    }
}

/// Catches a start that ignores the truncation: a Poisson with rate 40, truncated at 40, has its mean 5 below 40.
#[test]
fn starts_at_an_end_of_a_truncated_range_stay_there() {
    for upper in [1_u64, 40, 100_000] {
        let family = ConwayMaxwell::new(upper).expect("a range");
        for z in [0.0, (upper / 2) as f64, upper as f64] {
            let mut lambda = [f64::NAN; 2];
            family.start_at(z, &mut lambda);
            let [mean] = expectation(&family, &lambda, |z| [z]);
            assert!((mean - z).abs() < 0.51 && lambda[1] == 0.0, "{upper}: {mean} for {z}");
        }
    }
}

/// Catches a rule for another weight function: with enough nodes the mixture is the integral over the normal, which the
/// trapezoid rule gives to 1e-10.
#[test]
fn a_mixture_with_many_nodes_is_the_integral_over_the_parameter() {
    let binomial = Binomial::new(6).expect("six trials");
    let poisson = Mixed::new(Poisson, 60).expect("sixty nodes");
    let successes = Mixed::new(binomial, 60).expect("sixty nodes");
    let integral = |family: &dyn Family, [mu, log_sigma]: [f64; 2], z: f64| {
        let rule = Rule::normal(1, 0.05);
        rule.integrate(|x| log_density(family, &[mu + log_sigma.exp() * x[0]], z).exp())
    };
    for lambda in [[0.4, -1.0], [1.5, -0.5]] {
        for z in [0.0, 2.0, 6.0] {
            let found = [&poisson as &dyn Family, &successes].map(|f| log_density(f, &lambda, z).exp());
            assert_close(&found, &[integral(&Poisson, lambda, z), integral(&binomial, lambda, z)], 1e-6, 1e-9);
        }
    }
}

/// Catches a mixture that is wider than its one node, and a node counted twice.
#[test]
fn a_mixture_over_one_node_is_the_family_itself() {
    let family = Mixed::new(Geometric, 1).expect("one node");
    for (mu, z) in [(-1.0, 3.0), (2.0, 0.0), (700.0, 0.0)] {
        let lambda = [mu, 0.3];
        assert_close(&[log_density(&family, &lambda, z)], &[log_density(&Geometric, &[mu], z)], 1e-14, 1e-14);
        assert_close(&score(&family, &lambda, z), &[score(&Geometric, &[mu], z)[0], 0.0], 1e-13, 1e-14);
        let alone = information(&Geometric, &[mu])[0];
        // The window leaves out 1e-14, where the score is thirty times its usual size.
        assert_close(&information(&family, &lambda), &[alone, 0.0, 0.0, 0.0], 1e-11, 1e-14);
        assert_eq!(family.window(&lambda), Geometric.window(&[mu]));
    }
}

/// Catches an information for large rates that is below the true one or not positive definite. At a log rate of 12 the sum
/// is still possible here: the nodes are well separated, so that the bound is attained.
#[test]
fn information_beyond_the_sum_is_that_of_separated_nodes() {
    let family = Mixed::new(Poisson, 3).expect("three nodes");
    let lambda = [12.0, -0.5];
    let [a, b, c, d] = information(&family, &lambda)[..] else { panic!("two parameters") };
    let entry = |p: usize, q: usize| {
        let [sum] = expectation(&family, &lambda, |z| {
            let score = score(&family, &lambda, z);
            [score[p] * score[q]]
        });
        sum
    };
    assert_close(&[a, b, c, d], &[entry(0, 0), entry(0, 1), entry(0, 1), entry(1, 1)], 1e-9, 0.0);
    // Far beyond what can be summed it is still a covariance.
    for lambda in [[30.0, 1.0], [700.0, -3.0], [0.0, 9.0]] {
        let [a, b, _, d] = information(&family, &lambda)[..] else { panic!("two parameters") };
        assert!(a > 0.0 && d > 0.0 && b * b <= a * d * (1.0 + 1e-12), "{lambda:?}: {a:e} {b:e} {d:e}");
        assert!(a.is_finite() && d.is_finite(), "{lambda:?}: {a:e} {d:e}");
    }
}

/// Catches a table over values that differs from the density and the score at each value.
#[test]
fn tables_are_the_densities_and_scores_of_their_values() {
    let families: [(&dyn Family, Vec<f64>); 4] = [
        (&ConwayMaxwell::new(12).unwrap(), vec![0.4, 1.1, -0.3, 0.2, -0.5, 0.1]),
        (&TruncatedPoisson::new(9).unwrap(), vec![0.4, 1.1, -0.3]),
        (&Categorical::new(4).unwrap(), vec![0.3, -0.2, 0.5, 1.0, -1.0, 0.2, 0.1, 0.4, -0.6]),
        (&Poisson, vec![0.4, 1.1, -0.3]),
    ];
    for (family, lambda) in families {
        let (draws_len, values) = (3, [0.0, 1.0, 3.0, 20.0]);
        let signal: Vec<f64> = (0..12).map(|i| f64::from(i % 5) - 1.5).collect();
        let mut z = vec![0.0; draws_len];
        let mut table = vec![0.0; 12];
        family.log_densities(&lambda, &values, &mut z, &mut table);
        let (mut summed, mut expected) = (vec![0.0; lambda.len()], vec![0.0; lambda.len()]);
        // Values outside the support have no score.
        let inside: Vec<f64> = values.into_iter().filter(|v| family.support().contains(*v)).collect();
        family.scores(&lambda, &inside, &mut z, &signal[..inside.len() * draws_len], &mut summed);
        for (v, value) in values.into_iter().enumerate() {
            let column = vec![value; draws_len];
            let mut density = vec![0.0; draws_len];
            family.log_density(&lambda, &column, &mut density);
            for s in 0..draws_len {
                let found = table[v * draws_len + s];
                assert!(found == density[s] || (found - density[s]).abs() < 1e-13, "{}: {value}", family.name());
            }
            if v < inside.len() {
                family.score(&lambda, &column, &signal[v * draws_len..(v + 1) * draws_len], &mut expected);
            }
        }
        for (found, expected) in summed.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{}: {found} against {expected}", family.name());
        }
    }
}

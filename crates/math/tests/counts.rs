//! What only the families of counts promise: dispersion, cut ranges, mixtures.

mod support;

use hyperprior_math::family::*;
use hyperprior_testkit::finite_difference::assert_close;
use support::{expectation, information, log_density, score};

/// Catches a dispersion with the wrong sign, and a sum that is cut where it still matters: against the factorials written
/// out, on a range short enough for them.
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
    // With b at zero the family with one parameter is the same, in every answer.
    let cut = TruncatedPoisson::new(60).expect("counts to sixty");
    for (log_rate, z) in [(1.0, 3.0), (4.5, 60.0), (-20.0, 0.0)] {
        let both = [log_rate, 0.0];
        assert_eq!(log_density(&cut, &[log_rate], z), log_density(&family, &both, z));
        assert_close(&score(&cut, &[log_rate], z), &score(&family, &both, z)[..1], 1e-14, 0.0);
        assert_eq!(information(&cut, &[log_rate])[0], information(&family, &both)[0]);
        assert_eq!(cut.window(&[log_rate]), family.window(&both));
    }
}

/// Catches a start that ignores the cut: the mean of a Poisson with rate 40 is 5 below 40 once it is cut there.
#[test]
fn starts_at_an_end_of_a_cut_range_stay_there() {
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

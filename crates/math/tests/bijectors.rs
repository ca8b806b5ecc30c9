//! Bijectors: round trips, derivatives by finite differences, and behaviour at the edge of f64.

use hyperprior_math::bijector::{Bijector, Interval};
use hyperprior_math::family::Support;
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn bijectors() -> Vec<Bijector> {
    let interval = Interval::new(-3.0, 0.5).expect("a valid interval");
    vec![Bijector::Identity, Bijector::Exp, Bijector::Logistic(Interval::UNIT), Bijector::Logistic(interval)]
}

fn apply(f: impl Fn(&[f64], &mut [f64]), x: f64) -> f64 {
    let mut out = [f64::NAN];
    f(&[x], &mut out);
    out[0]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn inverse_undoes_forward(x in -8.0..8.0f64) {
        for bijector in bijectors() {
            let y = apply(|x, out| bijector.forward(x, out), x);
            assert_close(&[apply(|y, out| bijector.inverse(y, out), y)], &[x], 0.0, 1e-11);
        }
    }

    #[test]
    fn derivatives_meet_finite_differences(x in -8.0..8.0f64, d_y in -2.0..2.0f64, d_log in -2.0..2.0f64) {
        for bijector in bijectors() {
            let forward = |x: &[f64]| apply(|x, out| bijector.forward(x, out), x[0]);
            let log_derivative = |x: &[f64]| apply(|x, out| bijector.log_derivative(x, out), x[0]);
            let slope = gradient(forward, &[x], 1e-3);
            assert_close(&[log_derivative(&[x]).exp()], &slope, 1e-8, 1e-11);

            let numeric = gradient(|x| d_y * forward(x) + d_log * log_derivative(x), &[x], 1e-3);
            // The pullback adds to the existing value.
            let mut d_x = [1.0];
            bijector.pullback(&[x], &[d_y], &[d_log], &mut d_x);
            assert_close(&[d_x[0] - 1.0], &numeric, 1e-8, 1e-10);
        }
    }
}

#[test]
fn images_stay_inside_the_support() {
    for support in [Support::Real, Support::Positive, Support::UnitInterval] {
        let bijector = Bijector::for_support(support).expect("continuous supports have a bijector");
        for x in [-1e6, -800.0, -50.0, 0.0, 50.0, 800.0, 1e6] {
            let y = apply(|x, out| bijector.forward(x, out), x);
            assert!(support.contains(y), "{bijector:?} sends {x} to {y}");
        }
    }
}

#[test]
fn discrete_supports_have_none() {
    assert_eq!(Bijector::for_support(Support::Counts), None);
    assert_eq!(Bijector::for_support(Support::BINARY), None);
}

#[test]
fn an_interval_needs_finite_increasing_ends_with_room_between() {
    let bad =
        [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX), (1.0, 1.0_f64.next_up())];
    for (lower, upper) in bad {
        let error = Interval::new(lower, upper).expect_err("not an interval");
        assert!(error.to_string().contains("lower < upper"), "{error}");
    }
    assert_eq!(Interval::new(0.0, 1.0), Ok(Interval::UNIT));
}

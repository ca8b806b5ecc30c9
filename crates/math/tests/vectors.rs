//! The vectorised functions against the standard library's, over all of f64 and at every length around the eight of a vector.

use hyperprior_math::special;
use hyperprior_math::vector;

type Map = fn(&[f64], &mut [f64]);

/// Applies `map` to every number of `x`, in slices of every length from 0 to 20, and checks that nothing beyond is written.
fn apply(map: Map, x: &[f64]) -> Vec<f64> {
    const UNTOUCHED: f64 = 123.25;
    let mut all = Vec::new();
    let (mut at, mut len) = (0, 0);
    while at < x.len() {
        let slice = &x[at..(at + len).min(x.len())];
        let mut out = vec![UNTOUCHED; slice.len() + 3];
        let (inside, outside) = out.split_at_mut(slice.len());
        map(slice, inside);
        assert_eq!(outside, [UNTOUCHED; 3], "length {len}");
        all.extend_from_slice(inside);
        at += slice.len();
        len = (len + 1) % 21;
    }
    all
}

/// Numbers of every size and both signs, close to where each function changes its method.
fn everywhere() -> Vec<f64> {
    let mut x = vec![0.0, -0.0, 1.0, -1.0, f64::MIN_POSITIVE, 5e-324, 2e-310, f64::EPSILON, f64::MAX, f64::MIN];
    for exponent in -320..309 {
        for mantissa in [1.0, 1.37, std::f64::consts::SQRT_2, 1.9999, 2.5, 7.3] {
            let value: f64 = mantissa * 10f64.powi(exponent);
            x.extend([value, -value]);
        }
    }
    for i in -40_000..=40_000 {
        x.push(f64::from(i) * 0.02 + 1e-3);
        x.push(f64::from(i) * 1e-4);
    }
    x
}

/// |found − expected| ≤ relative · |expected| + absolute, infinities and NaN in the same places.
fn check(name: &str, map: Map, exact: fn(f64) -> f64, x: &[f64], relative: f64, absolute: f64) {
    for (x, found) in x.iter().zip(apply(map, x)) {
        let expected = exact(*x);
        let same = found == expected || (found.is_nan() && expected.is_nan());
        let close = (found - expected).abs() <= relative * expected.abs() + absolute;
        assert!(same || close, "{name}({x:e}) = {found:e}, not {expected:e}");
    }
}

const SPECIAL: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// Catches an error in a polynomial, a scaling or the end of a range. Results below 1e-307 may underflow to zero.
#[test]
fn exp_is_the_standard_librarys() {
    check("exp", vector::exp, f64::exp, &everywhere(), 1e-15, 1e-307);
    check("exp", vector::exp, f64::exp, &SPECIAL, 0.0, 0.0);
    let edge: Vec<f64> = (0..2000).map(|i| 708.0 + f64::from(i) * 1e-3).collect();
    check("exp", vector::exp, f64::exp, &edge, 1e-15, 0.0);
    check("exp", vector::exp, f64::exp, &[709.782_712_893_383_9, 709.782_712_893_384_1, 710.0, 1e308], 2e-15, 0.0);
}

#[test]
fn ln_is_the_standard_librarys() {
    check("ln", vector::ln, f64::ln, &everywhere(), 4e-16, 0.0);
    check("ln", vector::ln, f64::ln, &SPECIAL, 0.0, 0.0);
}

#[test]
fn ln_1p_is_the_standard_librarys() {
    let x: Vec<f64> = everywhere().into_iter().filter(|x| *x >= -1.0).collect();
    check("ln_1p", vector::ln_1p, f64::ln_1p, &x, 1e-15, 0.0);
    check("ln_1p", vector::ln_1p, f64::ln_1p, &[f64::INFINITY, f64::NAN, -1.0, -0.999_999_999_999_999_9], 1e-15, 0.0);
}

#[test]
fn tanh_is_the_standard_librarys() {
    check("tanh", vector::tanh, f64::tanh, &everywhere(), 0.0, 5e-16);
    check("tanh", vector::tanh, f64::tanh, &SPECIAL, 0.0, 0.0);
}

#[test]
fn softplus_and_sigmoid_are_the_scalar_ones() {
    let softplus: Map = |x, out| vector::softplus_sigmoid(x, out, &mut vec![0.0; x.len()]);
    let sigmoid: Map = |x, out| vector::softplus_sigmoid(x, &mut vec![0.0; x.len()], out);
    for x in [everywhere(), SPECIAL.to_vec()] {
        check("softplus", softplus, special::softplus, &x, 1e-15, 1e-307);
        check("sigmoid", sigmoid, special::sigmoid, &x, 1e-15, 1e-307);
    }
}

/// Catches an overflow, a skipped column, and an empty sum that is not −∞.
#[test]
fn log_sum_exp_is_the_scalar_one_at_every_length() {
    let (infinite, none) = (f64::INFINITY, f64::NEG_INFINITY);
    let terms = [0.3, -2.0, 700.0, -700.0, 1e300, none, -1e300, 5.0, 5.0, none, 0.0];
    for draws_len in 0..=20 {
        for columns_len in 1..=4 {
            let at = |v: usize, s: usize| terms[(3 * v + 7 * s + v * s) % terms.len()];
            let x: Vec<f64> = (0..columns_len * draws_len).map(|e| at(e / draws_len, e % draws_len)).collect();
            let mut out = vec![f64::NAN; draws_len];
            vector::log_sum_exp_columns(&x, &mut out);
            for s in 0..draws_len {
                let column: Vec<f64> = (0..columns_len).map(|v| at(v, s)).collect();
                let expected = special::log_sum_exp(&column);
                let close = (out[s] - expected).abs() <= 2e-15 * expected.abs() + 2e-15;
                assert!(out[s] == expected || close, "{column:?}: {} not {expected}", out[s]);
            }
        }
    }
    let (top, bottom) = ([none, infinite, 1.0, f64::NAN, none, f64::NAN], [none, 0.0, f64::NAN, 0.0, f64::NAN, none]);
    let mut out = [0.0; 6];
    vector::log_sum_exp_columns(&[top, bottom].concat(), &mut out);
    assert_eq!(out[..2], [none, infinite]);
    assert!(out[2..].iter().all(|o| o.is_nan()), "{out:?}");
}

#[test]
fn shifted_exponentials_and_sums_are_the_scalar_ones_at_every_length() {
    for n in 0..=20 {
        let x: Vec<f64> = (0..2 * n).map(|i| (i as f64 * 0.7).sin() * 3.0).collect();
        let shift: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
        let mut found = x.clone();
        vector::exp_shifted_columns(&mut found, &shift);
        for (e, found) in found.iter().enumerate() {
            assert!((found - (x[e] - shift[e % n]).exp()).abs() <= 2e-15 * found.abs());
        }
        let mut sum = shift.clone();
        vector::add_scaled(1.5, &x[..n], &mut sum);
        for i in 0..n {
            assert!((sum[i] - (shift[i] + 1.5 * x[i])).abs() < 1e-15);
        }
        let dot: f64 = x[..n].iter().zip(&shift).map(|(a, b)| a * b).sum();
        assert!((vector::dot(&x[..n], &shift) - dot).abs() < 1e-13);
        let mut log_q = vec![0.0; n];
        let z: Vec<f64> = (0..n).map(|i| [0.0, 1.0, 0.5][i % 3]).collect();
        vector::log_bernoulli(&x[..n], &z, &mut log_q);
        for i in 0..n {
            let expected = if z[i] == 0.5 { f64::NEG_INFINITY } else { z[i] * x[i] - special::softplus(x[i]) };
            assert!(log_q[i] == expected || (log_q[i] - expected).abs() < 1e-14);
        }
    }
}

//! The single-precision functions against the standard library's in double precision.

use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, ln, ln_normal, load, softplus_sigmoid, splat, sums, tanh};
use hyperprior_math::single::{DRAWS, LANES, Lanes, clear_padding, read_row, write_row};

/// All functions of sixteen numbers at once.
type All = [[f32; LANES]; 6];

#[inline(always)]
fn all_kernel<S: Simd>(s: S, x: &[f32; LANES]) -> All {
    let x = load(s, x);
    let (softplus, sigmoid) = softplus_sigmoid(s, x);
    let mut out = [[0.0; LANES]; 6];
    for (out, v) in out.iter_mut().zip([exp(s, x), ln(s, x), ln_normal(s, x), softplus, sigmoid, tanh(s, x)]) {
        v.store_slice(out);
    }
    out
}
simd_fn!(fn all(x: &[f32; LANES]) -> All = all_kernel);

#[inline(always)]
fn sums_kernel<S: Simd>(s: S, rows: &[[f32; LANES]; DRAWS]) -> [f32; DRAWS] {
    let mut v = [splat(s, 0.0); DRAWS];
    for (v, row) in v.iter_mut().zip(rows) {
        *v = load(s, row);
    }
    sums(s, v)
}
simd_fn!(fn row_sums(rows: &[[f32; LANES]; DRAWS]) -> [f32; DRAWS] = sums_kernel);

fn numbers() -> Vec<f32> {
    let mut x =
        vec![0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, 3e-40, f32::MAX, f32::MIN, f32::EPSILON, 88.7, -87.3, -200.0];
    x.extend((-40..39).flat_map(|e| [1.0, 1.37, 2.5, 7.3].map(|m: f32| m * 10f32.powi(e))));
    x.extend((-20_000..20_000).map(|i| i as f32 * 0.01 + 1e-4));
    x.resize(x.len().next_multiple_of(LANES), 0.5);
    x
}

fn check(name: &str, x: f32, found: f32, expected: f64, relative: f64, absolute: f64) {
    let rounded = expected as f32;
    let same = found == rounded || (found.is_nan() && rounded.is_nan());
    let close = (f64::from(found) - expected).abs() <= relative * expected.abs() + absolute;
    assert!(same || close, "{name}({x:e}) = {found:e}, not {expected:e}");
}

/// Catches an error in a polynomial, a scaling or the end of a range.
#[test]
fn functions_are_the_standard_librarys() {
    for x in numbers().as_chunks::<LANES>().0 {
        let found = all(x);
        for (i, x) in x.iter().enumerate() {
            let d = f64::from(*x);
            // Results below e⁻⁸⁷ may underflow to zero.
            check("exp", *x, found[0][i], d.exp(), 3e-7, 2e-38);
            check("ln", *x, found[1][i], d.ln(), 3e-7, 0.0);
            if *x >= f32::MIN_POSITIVE {
                check("ln of a normal number", *x, found[2][i], d.ln(), 3e-7, 0.0);
            }
            check("softplus", *x, found[3][i], d.max(0.0) + (-d.abs()).exp().ln_1p(), 5e-7, 2e-38);
            check("sigmoid", *x, found[4][i], 1.0 / (1.0 + (-d).exp()), 5e-7, 2e-38);
            check("tanh", *x, found[5][i], d.tanh(), 0.0, 2e-7);
        }
    }
}

#[test]
fn special_values_stay_special() {
    let mut x = [f32::NAN; LANES];
    x[1..3].copy_from_slice(&[f32::INFINITY, f32::NEG_INFINITY]);
    let [exp, ln, _, softplus, sigmoid, tanh] = all(&x);
    for nan in [exp[0], ln[0], softplus[0], sigmoid[0], tanh[0], ln[2]] {
        assert!(nan.is_nan());
    }
    assert_eq!([exp[1], exp[2]], [f32::INFINITY, 0.0]);
    assert_eq!(ln[1], f32::INFINITY);
    assert_eq!([softplus[1], softplus[2], sigmoid[1], sigmoid[2]], [f32::INFINITY, 0.0, 1.0, 0.0]);
    assert_eq!([tanh[1], tanh[2]], [1.0, -1.0]);
}

#[test]
fn eight_rows_are_summed_each_to_its_lane() {
    let rows = std::array::from_fn(|q| std::array::from_fn(|j| (q * q * 100 + j * (q + 1)) as f32));
    let expected: [f32; DRAWS] = rows.map(|row: [f32; LANES]| row.iter().sum());
    assert_eq!(row_sums(&rows), expected);
}

#[test]
fn rows_come_back_as_they_went_in() {
    for len in [0, 1, 15, 16, 17, 40] {
        let numbers: Vec<f64> = (0..len).map(|i| f64::from(i as f32) + 0.5).collect();
        let mut row = vec![Lanes([9.0; LANES]); 3];
        read_row(&numbers, &mut row);
        assert!(row.iter().flat_map(|l| l.0).skip(len).all(|x| x == 0.0));
        let mut back = vec![0.0; len];
        write_row(&row, &mut back);
        assert_eq!(numbers, back);
        let mut row = vec![Lanes([9.0; LANES]); len.div_ceil(LANES)];
        clear_padding(len, &mut row);
        assert!(row.iter().flat_map(|l| l.0).enumerate().all(|(i, x)| x == if i < len { 9.0 } else { 0.0 }));
    }
}

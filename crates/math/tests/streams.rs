//! Random streams: numbers that never change, no two streams alike, and quasi-random normals that are normal.

use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, quasi_normals, standard_normals, stream};
use hyperprior_math::special::normal_cdf;
use hyperprior_testkit::goodness::kolmogorov_smirnov;
use hyperprior_testkit::mean::assert_mean;
use rand::{Rng, RngExt};

/// The probability that a correct generator fails.
const ALPHA: f64 = 1e-6;

/// Catches a change of the generator or of its keys: every fit with a given seed would give different numbers. Change these
/// only together with a line in the changelog.
#[test]
fn streams_give_the_numbers_they_always_gave() {
    let first = |mut rng: Stream| [rng.next_u64(), rng.next_u64()];
    assert_eq!(first(stream(0, 0, 0, 0)), [0xf9b3_b031_6136_6598, 0xffb4_5a3a_a18e_0898]);
    assert_eq!(first(stream(1, 2, 3, 4)), [0xa45d_aa0e_b331_9695, 0xc175_7d82_29b0_6273]);
    assert_eq!(first(stream(u64::MAX, u64::MAX, u64::MAX, u64::MAX)), [0xf9e7_3282_8730_5f92, 0x982d_5c54_b855_1606]);
    let mut noise = Batch::zeros(2, 2);
    standard_normals(&mut [stream(1, 0, 0, 0), stream(1, 0, 0, 1)], &mut noise);
    assert_eq!(noise.as_slice(), [-0.9860470279419445, 0.8908250545157844, 0.4905268384557658, 0.7169617521209092]);
}

/// Catches normals that depend on the rest of the batch: a draw's numbers come from its stream alone.
#[test]
fn a_draws_normals_do_not_depend_on_the_batch() {
    let streams = |range: std::ops::Range<u64>| range.map(|s| stream(5, 0, 0, s)).collect::<Vec<_>>();
    let (mut all, mut some) = (Batch::zeros(3, 8), Batch::zeros(3, 2));
    standard_normals(&mut streams(0..8), &mut all);
    standard_normals(&mut streams(4..6), &mut some);
    for i in 0..3 {
        assert_eq!(some.column(i), &all.column(i)[4..6]);
    }
}

/// Catches keys that collide: streams that differ in a single key are different, and neighbours are independent.
#[test]
fn neighbouring_streams_are_independent() {
    let uniform = |seed: u64, step: u64, datum: u64, draw: u64| stream(seed, step, datum, draw).random::<f64>();
    type Along = (&'static str, fn(u64) -> [u64; 4]);
    let along: [Along; 4] = [
        ("seed", |i| [i, 1, 1, 1]),
        ("step", |i| [1, i, 1, 1]),
        ("datum", |i| [1, 1, i, 1]),
        ("draw", |i| [1, 1, 1, i]),
    ];
    for (name, key) in along {
        let u: Vec<f64> = (0..20_000).map(key).map(|[a, b, c, d]| uniform(a, b, c, d)).collect();
        let p = kolmogorov_smirnov(&u, |x| x);
        assert!(p > ALPHA, "{name}: p = {p:e}");
        // Neighbours' product has mean ¼; a copied stream would give ⅓.
        let products: Vec<f64> = u.chunks_exact(2).map(|pair| pair[0] * pair[1]).collect();
        assert_mean(&products, 0.25, 0.05);
    }
    let mut first: Vec<u64> = along
        .iter()
        .flat_map(|(_, key)| (2..500).map(key).collect::<Vec<_>>())
        .map(|[a, b, c, d]| stream(a, b, c, d).next_u64())
        .collect();
    let len = first.len();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), len, "no two streams begin alike");
}

#[test]
fn standard_normals_are_standard_normal() {
    let n = 20_000;
    let mut noise = Batch::zeros(2, n);
    standard_normals(&mut (0..n as u64).map(|s| stream(8, 0, 0, s)).collect::<Vec<_>>(), &mut noise);
    for i in 0..2 {
        let p = kolmogorov_smirnov(noise.column(i), normal_cdf);
        assert!(p > ALPHA, "column {i}: p = {p:e}");
    }
    let products: Vec<f64> = (0..n).map(|s| noise.get(0, s) * noise.get(1, s)).collect();
    assert_mean(&products, 0.0, 0.05);
}

/// Catches dimensions that repeat each other, and points no better than random ones: over 4,096 points means, variances and
/// covariances are accurate to 5e-3, where random ones have a standard error of 0.016.
#[test]
fn quasi_normals_have_the_moments_of_normals_to_quasi_random_accuracy() {
    let (n, points) = (12, 4096);
    for seed in [0, 1, 77] {
        let mut noise = Batch::zeros(n, points);
        quasi_normals(seed, 0, &mut noise);
        let mean = |f: &dyn Fn(usize) -> f64| (0..points).map(f).sum::<f64>() / points as f64;
        for i in 0..n {
            assert!(mean(&|s| noise.get(i, s)).abs() < 5e-3, "mean of {i}");
            assert!((mean(&|s| noise.get(i, s).powi(2)) - 1.0).abs() < 5e-3, "variance of {i}");
            for j in 0..i {
                let covariance = mean(&|s| noise.get(i, s) * noise.get(j, s));
                assert!(covariance.abs() < 3e-2, "{i} and {j}: {covariance}");
            }
        }
    }
}

/// Catches a sequence that depends on how it is split, ends, or runs out of dimensions.
#[test]
fn quasi_normals_continue_and_extend_beyond_their_dimensions() {
    let (mut whole, mut rest) = (Batch::zeros(300, 64), Batch::zeros(300, 24));
    quasi_normals(3, 0, &mut whole);
    quasi_normals(3, 40, &mut rest);
    for i in 0..300 {
        assert_eq!(rest.column(i), &whole.column(i)[40..]);
    }
    // Beyond its 65,536 points the sequence is scrambled again, and still normal.
    let mut late = Batch::zeros(1, 4096);
    quasi_normals(3, 65_536 - 2048, &mut late);
    let p = kolmogorov_smirnov(late.column(0), normal_cdf);
    assert!(p > ALPHA, "p = {p:e}");
    assert!(late.as_slice().iter().all(|x| x.abs() < 6.0), "the quantile never sees 0 or 1");
    let tail: Vec<f64> = (256..300).flat_map(|i| whole.column(i).to_vec()).collect();
    assert!(kolmogorov_smirnov(&tail, normal_cdf) > ALPHA);
}

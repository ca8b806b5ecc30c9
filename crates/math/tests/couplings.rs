//! Coupling flows: the spline's formula and its edges, the determinant, the pullback, the inverse, the identity that they
//! start from, and extreme parameters.

use hyperprior_math::batch::Batch;
use hyperprior_math::flow::{Bend, Coupling, Flow};
use hyperprior_math::random::{standard_normals, stream};
use hyperprior_math::scratch::Scratch;
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The step of a difference, extrapolated twice. A spline's second derivative jumps at its knots: steps this short rarely
/// cross one, and with the fixed seeds below none does. An affine layer has no knots, but five of them make numbers large,
/// whose rounding needs longer steps.
fn step(flow: Coupling) -> f64 {
    match flow.bend {
        Bend::Affine => 2e-3,
        Bend::Spline { .. } => 1e-4,
    }
}

fn normals(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    let mut batch = Batch::zeros(len, 1);
    standard_normals(&mut [stream(seed, 0, 0, 0)], &mut batch);
    batch.as_slice().iter().map(|x| scale * x).collect()
}

fn batch(len: usize, draws_len: usize, scale: f64, seed: u64) -> Batch {
    Batch::from_columns(normals(len * draws_len, scale, seed), draws_len)
}

/// y and log|det| for every draw.
fn forward(flow: Coupling, parameters: &[f64], x: &Batch) -> (Batch, Vec<f64>) {
    let (mut y, mut log_det) = (x.clone(), vec![0.0; x.draws_len()]);
    flow.forward(parameters, &mut y, &mut log_det, &mut Scratch::default());
    (y, log_det)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// log|det| of a matrix given row by row, by elimination with pivots.
fn log_abs_det(mut a: Vec<Vec<f64>>) -> f64 {
    let n = a.len();
    let mut total = 0.0;
    for i in 0..n {
        let pivot = (i..n).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs())).unwrap_or(i);
        a.swap(i, pivot);
        total += a[i][i].abs().ln();
        for r in i + 1..n {
            let factor = a[r][i] / a[i][i];
            for c in i..n {
                a[r][c] -= factor * a[i][c];
            }
        }
    }
    total
}

/// Both bends for each length: a single number, a pair, and odd lengths.
fn flows(layers_len: usize) -> impl Iterator<Item = Coupling> {
    [1, 2, 3, 5].into_iter().flat_map(move |len| {
        [Bend::Affine, Bend::Spline { bins: 4 }].map(|bend| Coupling { len, layers_len, hidden_len: 6, bend })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Catches a log-determinant that is not the Jacobian's: a layer that changes the numbers it keeps, a slope without its ρ.
    #[test]
    fn the_log_determinant_is_that_of_the_jacobian(seed in any::<u64>(), layers_len in 1..5_usize) {
        for flow in flows(layers_len) {
            // Strongly contracting layers have a Jacobian whose determinant is lost in rounding.
            let parameters = normals(flow.parameters_len(), 0.25, seed);
            let x = batch(flow.len, 1, 1.5, seed ^ 1);
            let one = |x: &[f64]| Batch::from_columns(x.to_vec(), 1);
            let row = |i: usize| gradient(|x| forward(flow, &parameters, &one(x)).0.get(i, 0), x.as_slice(), step(flow));
            let jacobian: Vec<Vec<f64>> = (0..flow.len).map(row).collect();
            let (_, log_det) = forward(flow, &parameters, &x);
            assert_close(&log_det, &[log_abs_det(jacobian)], 1e-8, 1e-8);
        }
    }

    /// Catches a pullback that is wrong along any parameter or x, or that overwrites where it should add, with fewer and more
    /// draws than the eight of a vector.
    #[test]
    fn the_pullback_meets_finite_differences(
        seed in any::<u64>(),
        layers_len in 0..6_usize,
        draws_len in 1..11_usize,
    ) {
        for flow in flows(layers_len) {
            let parameters = normals(flow.parameters_len(), 0.4, seed);
            let x = batch(flow.len, draws_len, 1.5, seed ^ 1);
            let (d_y, d_log_det) = (batch(flow.len, draws_len, 1.0, seed ^ 2), normals(draws_len, 1.0, seed ^ 3));
            let total = |parameters: &[f64], x: &Batch| {
                let (y, log_det) = forward(flow, parameters, x);
                dot(y.as_slice(), d_y.as_slice()) + dot(&log_det, &d_log_det)
            };
            let (mut moving, mut d_x) = (x.clone(), d_y.clone());
            let mut d_parameters = vec![1.0; parameters.len()];
            let mut scratch = Scratch::default();
            flow.pullback(&parameters, &mut moving, &mut d_x, &d_log_det, &mut d_parameters, &mut scratch);
            let numeric = gradient(|p| total(p, &x), &parameters, step(flow));
            let numeric: Vec<f64> = numeric.into_iter().map(|d| d + 1.0).collect();
            assert_close(&d_parameters, &numeric, 1e-8, 1e-8);
            let moved = |x: &[f64]| total(&parameters, &Batch::from_columns(x.to_vec(), draws_len));
            assert_close(d_x.as_slice(), &gradient(moved, x.as_slice(), step(flow)), 1e-8, 1e-8);
            // x is restored.
            assert_eq!(moving, x);
        }
    }

    /// Catches a root on another branch, a bin found on the wrong side, and layers inverted in the wrong order.
    #[test]
    fn inverting_undoes_the_chain(seed in any::<u64>(), layers_len in 0..6_usize) {
        for flow in flows(layers_len) {
            let parameters = normals(flow.parameters_len(), 0.4, seed);
            let x = batch(flow.len, 11, 2.5, seed ^ 1);
            let (mut y, log_det) = forward(flow, &parameters, &x);
            let mut back = vec![0.0; 11];
            flow.invert(&parameters, &mut y, &mut back, &mut Scratch::default());
            assert_close(y.as_slice(), x.as_slice(), 1e-9, 1e-9);
            assert_close(&back, &log_det, 1e-9, 1e-9);
        }
    }
}

/// Catches a flow in which some number never changes or has no effect: after two layers every number depends on another,
/// and after four on all those in another half.
#[test]
fn every_number_depends_on_others() {
    for (len, layers_len) in [(2, 2), (3, 2), (5, 4), (8, 4)] {
        let flow = Coupling { len, layers_len, hidden_len: 6, bend: Bend::Affine };
        let parameters = normals(flow.parameters_len(), 0.7, 3);
        let x = batch(len, 1, 1.0, 4);
        for i in 0..len {
            let moved = |x: &[f64]| forward(flow, &parameters, &Batch::from_columns(x.to_vec(), 1)).0.get(i, 0);
            let by = gradient(moved, x.as_slice(), step(flow));
            let others = (0..len).filter(|&j| j != i && by[j].abs() > 1e-6).count();
            assert!(others >= if layers_len < 4 { 1 } else { len / 2 }, "{len} {layers_len} {i}: {by:?}");
        }
    }
}

/// The textbook spline of one number: knots from the shares of widths and heights, then the quotient of quadratics.
fn textbook(bins: usize, raw: &[f64], x: f64) -> (f64, f64) {
    let sizes = |raw: &[f64]| {
        let total: f64 = raw.iter().map(|r| r.exp()).sum();
        raw.iter().map(|r| 10.0 * (0.01 / bins as f64 + 0.99 * r.exp() / total)).collect::<Vec<f64>>()
    };
    let (widths, heights) = (sizes(&raw[..bins]), sizes(&raw[bins..2 * bins]));
    let slope = |knot: usize| {
        if knot == 0 || knot == bins { 1.0 } else { (6.0 * (raw[2 * bins + knot - 1] / 6.0).tanh()).exp() }
    };
    let (mut left, mut bottom) = (-5.0, -5.0);
    for k in 0..bins {
        if x < left + widths[k] || k + 1 == bins {
            let (rho, a, b) = (heights[k] / widths[k], slope(k), slope(k + 1));
            let xi = (x - left) / widths[k];
            let u = xi * (1.0 - xi);
            let denominator = rho + (a + b - 2.0 * rho) * u;
            let y = bottom + heights[k] * (rho * xi * xi + a * u) / denominator;
            let numerator = b * xi * xi + 2.0 * rho * u + a * (1.0 - xi) * (1.0 - xi);
            return (y, (rho * rho * numerator / (denominator * denominator)).ln());
        }
        left += widths[k];
        bottom += heights[k];
    }
    (x, 0.0)
}

/// Catches a spline that differs from the paper's: for a single number the parameters are the raw shape.
#[test]
fn a_single_number_is_transformed_by_the_textbook_spline() {
    for bins in [2, 3, 8] {
        let flow = Coupling { len: 1, layers_len: 1, hidden_len: 6, bend: Bend::Spline { bins } };
        assert_eq!(flow.parameters_len(), 3 * bins - 1);
        let raw = normals(3 * bins - 1, 1.5, bins as u64);
        let grid: Vec<f64> = (0..101).map(|i| -4.999 + 0.09998 * f64::from(i)).collect();
        let (y, log_det) = forward(flow, &raw, &Batch::from_columns(grid.clone(), grid.len()));
        let (expected, expected_log): (Vec<f64>, Vec<f64>) = grid.iter().map(|x| textbook(bins, &raw, *x)).unzip();
        assert_close(y.as_slice(), &expected, 1e-12, 1e-12);
        assert_close(&log_det, &expected_log, 1e-11, 1e-11);
    }
}

/// Catches a spline that jumps at its edges, or that is not the identity beyond them.
#[test]
fn a_spline_is_continuous_at_its_edges_and_the_identity_outside() {
    let flow = Coupling { len: 1, layers_len: 1, hidden_len: 6, bend: Bend::Spline { bins: 5 } };
    let raw = normals(14, 1.5, 1);
    let outside = [-1e6, -7.0, -5.0, 5.0, 5.5, 1e300, f64::INFINITY];
    let (y, log_det) = forward(flow, &raw, &Batch::from_columns(outside.to_vec(), outside.len()));
    assert_eq!(y.as_slice(), outside);
    assert_eq!(log_det, [0.0; 7]);
    let just_inside = [-5.0 + 1e-9, 5.0 - 1e-9];
    let (y, log_det) = forward(flow, &raw, &Batch::from_columns(just_inside.to_vec(), 2));
    // The slope is 1 at the edges and changes by less than a few hundred per unit here.
    assert_close(y.as_slice(), &just_inside, 0.0, 1e-12);
    assert_close(&log_det, &[0.0; 2], 0.0, 1e-6);
    // Inside it is not the identity, or the checks above would be empty.
    let (y, _) = forward(flow, &raw, &Batch::from_columns(vec![0.3], 1));
    assert!((y.get(0, 0) - 0.3).abs() > 0.05);
    // Outside nothing depends on the shape.
    let (mut x, mut d_x) = (Batch::from_columns(vec![-6.0, 8.0], 2), Batch::from_columns(vec![0.7, -0.2], 2));
    let mut d_raw = vec![0.0; 14];
    flow.pullback(&raw, &mut x, &mut d_x, &[1.0, 1.0], &mut d_raw, &mut Scratch::default());
    assert_eq!(d_x.as_slice(), [0.7, -0.2]);
    assert_eq!(d_raw, [0.0; 14]);
}

/// Catches a start that is not exactly the identity, and one that a fit cannot leave.
#[test]
fn identity_parameters_give_exactly_the_identity_and_can_leave_it() {
    for flow in flows(4) {
        let mut parameters = vec![f64::NAN; flow.parameters_len()];
        flow.identity(&mut stream(2, 0, 0, 0), &mut parameters);
        let x = batch(flow.len, 50, 2.0, 3);
        let (y, log_det) = forward(flow, &parameters, &x);
        assert_eq!(y, x);
        assert_close(&log_det, &[0.0; 50], 0.0, 1e-14);
        let mut d_parameters = vec![0.0; parameters.len()];
        let mut d_x = batch(flow.len, 50, 1.0, 4);
        flow.pullback(&parameters, &mut x.clone(), &mut d_x, &[1.0; 50], &mut d_parameters, &mut Scratch::default());
        assert!(d_parameters.iter().any(|d| d.abs() > 0.1), "{flow:?}");
    }
}

/// Catches overflow, 0/0 and bins without width: however extreme the parameters, a spline maps its range onto itself, an
/// affine layer stretches by e² at most, and derivatives are finite.
#[test]
fn extreme_parameters_give_finite_bounded_results() {
    for (flow, scale) in flows(4).flat_map(|flow| [30.0, 1e3, 1e8].map(|scale| (flow, scale))) {
        let parameters = normals(flow.parameters_len(), scale, 5);
        let x = batch(flow.len, 20, 2.0, 6);
        let (y, log_det) = forward(flow, &parameters, &x);
        let stretched = 2.0 * 4.0 * flow.len as f64;
        match flow.bend {
            Bend::Affine => assert!(log_det.iter().all(|d| d.abs() <= stretched), "{flow:?} {scale}: {log_det:?}"),
            Bend::Spline { .. } => {
                let largest = x.as_slice().iter().zip(y.as_slice()).map(|(x, y)| y.abs() - x.abs().max(5.0));
                assert!(largest.fold(f64::NEG_INFINITY, f64::max) <= 1e-12, "{flow:?} {scale}");
                // Four layers; slopes lie within e^±6, and those of a bin's diagonal within 400 and 1/400.
                assert!(log_det.iter().all(|d| d.abs() <= 4.0 * flow.len as f64 * 24.0), "{flow:?} {scale}");
            }
        }
        let mut d_parameters = vec![0.0; parameters.len()];
        let mut d_x = batch(flow.len, 20, 1.0, 7);
        flow.pullback(&parameters, &mut x.clone(), &mut d_x, &[1.0; 20], &mut d_parameters, &mut Scratch::default());
        assert!(d_parameters.iter().chain(d_x.as_slice()).all(|d| d.is_finite()), "{flow:?} {scale}");
        let (mut back, mut undone) = (y, vec![0.0; 20]);
        flow.invert(&parameters, &mut back, &mut undone, &mut Scratch::default());
        assert!(back.as_slice().iter().chain(&undone).all(|x| x.is_finite()), "{flow:?} {scale}");
    }
}

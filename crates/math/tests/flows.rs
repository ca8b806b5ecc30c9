//! Planar flows: the documented numbers (T3), the determinant, the pullback, the inverse, and layers without direction.

use hyperprior_math::batch::Batch;
use hyperprior_math::flow::Planar;
use hyperprior_math::random::{standard_normals, stream};
use hyperprior_math::scratch::Scratch;
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn normals(len: usize, seed: u64) -> Vec<f64> {
    let mut batch = Batch::zeros(len, 1);
    standard_normals(&mut [stream(seed, 0, 0, 0)], &mut batch);
    batch.as_slice().to_vec()
}

/// Parameters whose directions w are not near zero, where û = … / |w|² would spoil finite differences.
fn parameters(flow: Planar, seed: u64) -> Vec<f64> {
    normals(flow.parameters_len(), seed).iter().map(|x| 0.5 * x + 0.25 * x.signum()).collect()
}

/// y and log|det| for every draw.
fn forward(flow: Planar, parameters: &[f64], x: &Batch) -> (Batch, Vec<f64>) {
    let (mut y, mut log_det) = (x.clone(), vec![0.0; x.draws_len()]);
    let mut tanh = vec![0.0; flow.layers_len * x.draws_len()];
    flow.forward(parameters, &mut y, &mut log_det, &mut tanh);
    (y, log_det)
}

fn one(x: &[f64]) -> Batch {
    Batch::from_columns(x.to_vec(), 1)
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

/// T3. Catches an û that differs from the paper's appendix.
#[test]
fn one_layer_has_the_documented_numbers() {
    let flow = Planar { len: 2, layers_len: 1 };
    let (y, log_det) = forward(flow, &[1.0, -2.0, 0.5, 1.5, 0.1], &one(&[0.3, -0.7]));
    assert_close(&[y.get(0, 0), y.get(1, 0), log_det[0]], &[-0.573725, -0.000991, -0.723506], 0.0, 6e-7);
    // û itself, read off where tanh is one: far along w.
    let far = [1000.0, 1000.0];
    let (y, _) = forward(flow, &[1.0, -2.0, 0.5, 1.5, 0.1], &one(&far));
    assert_close(&[y.get(0, 0) - far[0], y.get(1, 0) - far[1]], &[1.315778, -1.052666], 0.0, 6e-7);
}

/// T3. Catches a log-determinant with the wrong sign: it is added to log r and subtracted from log q. In one dimension a layer
/// with w = 1 and w·û = 1 doubles lengths at the origin, like the documented map 2x.
#[test]
fn the_two_directions_count_the_determinant_with_opposite_signs() {
    let log_normal = |x: f64| -0.5 * x * x - 0.918_938_533_204_672_8;
    // softplus(u) − 1 = 1.
    let u = (2.0_f64.exp() - 1.0).ln();
    let flow = Planar { len: 1, layers_len: 1 };
    let (at_zero, log_det) = forward(flow, &[u, 1.0, 0.0], &one(&[0.0]));
    assert_close(&[at_zero.get(0, 0), log_det[0]], &[0.0, 2.0_f64.ln()], 0.0, 1e-15);
    // The documented densities of the linear map: g⁻¹(λ) = 2λ at .5, and f(x) = 2x at λ = 1.
    assert_close(&[log_normal(1.0) + log_det[0]], &[-0.725791], 0.0, 6e-7);
    assert_close(&[log_normal(0.5) - log_det[0]], &[-1.737086], 0.0, 6e-7);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]

    /// Catches a log-determinant that is not the Jacobian's.
    #[test]
    fn the_log_determinant_is_that_of_the_jacobian(seed in any::<u64>(), len in 1..6_usize, layers_len in 1..4_usize) {
        let flow = Planar { len, layers_len };
        let parameters = parameters(flow, seed);
        let x = normals(len, seed ^ 1);
        let row = |i: usize| gradient(|x| forward(flow, &parameters, &one(x)).0.get(i, 0), &x, 2e-3);
        let jacobian: Vec<Vec<f64>> = (0..len).map(row).collect();
        let (_, log_det) = forward(flow, &parameters, &one(&x));
        assert_close(&log_det, &[log_abs_det(jacobian)], 1e-7, 1e-7);
    }

    /// Catches a pullback that is wrong in u, w, b or x, for lengths and numbers of draws below and above the eight of a vector.
    #[test]
    fn the_pullback_meets_finite_differences(
        seed in any::<u64>(),
        len in 1..11_usize,
        layers_len in 0..4_usize,
        draws_len in 1..11_usize,
    ) {
        let flow = Planar { len, layers_len };
        let parameters = parameters(flow, seed);
        let x = Batch::from_columns(normals(len * draws_len, seed ^ 1), draws_len);
        let (d_y, d_log_det) = (normals(len * draws_len, seed ^ 2), normals(draws_len, seed ^ 3));
        let total = |parameters: &[f64], x: &Batch| {
            let (y, log_det) = forward(flow, parameters, x);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(y.as_slice(), &d_y) + dot(&log_det, &d_log_det)
        };
        let mut log_det = vec![0.0; draws_len];
        let mut tanh = vec![0.0; layers_len * draws_len];
        let mut moving = x.clone();
        flow.forward(&parameters, &mut moving, &mut log_det, &mut tanh);
        let mut d_x = Batch::from_columns(d_y.clone(), draws_len);
        let mut d_parameters = vec![0.0; parameters.len()];
        let mut scratch = Scratch::default();
        flow.pullback(&parameters, &mut moving, &mut d_x, &d_log_det, &tanh, &mut d_parameters, &mut scratch);
        assert_close(&d_parameters, &gradient(|p| total(p, &x), &parameters, 2e-3), 1e-7, 1e-7);
        let numeric = gradient(|x| total(&parameters, &Batch::from_columns(x.to_vec(), draws_len)), x.as_slice(), 2e-3);
        assert_close(d_x.as_slice(), &numeric, 1e-7, 1e-7);
        // The pullback recovers the input.
        assert_close(moving.as_slice(), x.as_slice(), 1e-12, 1e-12);
    }

    /// Catches a root that is not found, or on another branch.
    #[test]
    fn inverting_undoes_the_chain(seed in any::<u64>(), len in 1..6_usize, layers_len in 0..5_usize) {
        let flow = Planar { len, layers_len };
        let parameters: Vec<f64> = normals(flow.parameters_len(), seed).iter().map(|x| 2.0 * x).collect();
        let x = Batch::from_columns(normals(len * 9, seed ^ 1), 9);
        let (mut y, log_det) = forward(flow, &parameters, &x);
        let mut back = vec![0.0; 9];
        flow.invert(&parameters, &mut y, &mut back);
        // A layer can contract lengths by 1 + w·û, down to a thousandth here; the inverse magnifies rounding by as much.
        assert_close(y.as_slice(), x.as_slice(), 1e-8, 1e-8);
        assert_close(&back, &log_det, 1e-7, 1e-7);
    }
}

/// Catches 0/0 where a layer has no direction: it is a shift, and its derivatives are finite.
#[test]
fn a_layer_without_direction_is_a_shift() {
    let flow = Planar { len: 3, layers_len: 1 };
    let parameters = [0.5, -1.0, 2.0, 0.0, 0.0, 0.0, 0.8];
    let x = Batch::from_columns(normals(3 * 5, 1), 5);
    let (mut y, log_det) = forward(flow, &parameters, &x);
    assert_eq!(log_det, [0.0; 5]);
    for i in 0..3 {
        for s in 0..5 {
            assert!((y.get(i, s) - x.get(i, s) - parameters[i] * 0.8_f64.tanh()).abs() < 1e-15);
        }
    }
    let mut back = vec![0.0; 5];
    flow.invert(&parameters, &mut y, &mut back);
    assert_close(y.as_slice(), x.as_slice(), 1e-15, 1e-15);

    let mut d_parameters = vec![0.0; 7];
    let mut d_x = Batch::from_columns(vec![1.0; 15], 5);
    let (mut moving, mut log_det, mut tanh) = (x.clone(), vec![0.0; 5], vec![0.0; 5]);
    flow.forward(&parameters, &mut moving, &mut log_det, &mut tanh);
    flow.pullback(&parameters, &mut moving, &mut d_x, &[1.0; 5], &tanh, &mut d_parameters, &mut Scratch::default());
    assert!(d_parameters.iter().chain(d_x.as_slice()).all(|d| d.is_finite()), "{d_parameters:?}");
    assert_close(&d_parameters[..3], &[5.0 * 0.8_f64.tanh(); 3], 1e-14, 0.0);
}

/// Catches a start that is not the identity.
#[test]
fn identity_parameters_give_the_identity_and_can_leave_it() {
    for len in [1, 2, 30] {
        let flow = Planar { len, layers_len: 4 };
        let mut parameters = vec![0.0; flow.parameters_len()];
        flow.identity(1.0, &mut stream(2, 0, 0, 0), &mut parameters);
        let x = Batch::from_columns(normals(len * 9, 3), 9);
        let (y, log_det) = forward(flow, &parameters, &x);
        assert_close(y.as_slice(), x.as_slice(), 1e-13, 1e-13);
        assert_close(&log_det, &[0.0; 9], 0.0, 1e-13);
        // Moving u along w changes the map.
        parameters[0] += 0.5;
        let (y, _) = forward(flow, &parameters, &x);
        assert!(y.as_slice().iter().zip(x.as_slice()).any(|(a, b)| (a - b).abs() > 1e-3));
    }
}

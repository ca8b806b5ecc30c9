//! Fully connected networks: a number computed by hand, the pullback, and the initial weights.

use hyperprior_math::batch::Batch;
use hyperprior_math::network::Mlp;
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

/// The hidden layers and the output.
fn forward(network: &Mlp, parameters: &[f64], draws_len: usize, input: &[f64]) -> (Vec<f64>, Vec<f64>) {
    // Previous contents must not matter.
    let mut hidden = vec![f64::NAN; network.hidden_len() * draws_len];
    let mut output = vec![f64::NAN; network.output_len() * draws_len];
    network.forward(parameters, draws_len, input, &mut hidden, &mut output);
    (hidden, output)
}

/// Sizes without hidden layers, with several, with no inputs, with an empty hidden layer, and with more numbers than a
/// vector holds.
fn networks() -> Vec<Mlp> {
    [vec![3, 2], vec![2, 5, 3], vec![1, 9, 10, 2], vec![0, 4, 2], vec![3, 0, 2], vec![11, 4, 9]].map(Mlp::new).to_vec()
}

/// Catches weights read column by column, a missing bias, and an output through tanh.
#[test]
fn a_small_network_has_the_numbers_computed_by_hand() {
    let network = Mlp::new(vec![2, 2, 1]);
    let parameters = [1.0, 2.0, -0.5, 0.25, 0.1, -0.2, 3.0, -4.0, 0.7];
    let (x, y) = (0.3_f64, -0.8_f64);
    let first = (x + 2.0 * y + 0.1).tanh();
    let second = (-0.5 * x + 0.25 * y - 0.2).tanh();
    let (hidden, output) = forward(&network, &parameters, 1, &[x, y]);
    assert_close(&hidden, &[first, second], 1e-14, 0.0);
    assert_close(&output, &[3.0 * first - 4.0 * second + 0.7], 1e-14, 0.0);
}

/// Catches counts that do not add up.
#[test]
fn sizes_are_counted() {
    let network = Mlp::new([3, 5, 4, 2]);
    assert_eq!([network.input_len(), network.hidden_len(), network.output_len()], [3, 9, 2]);
    assert_eq!(network.parameters_len(), 20 + 24 + 10);
    let identity = Mlp::new([2]);
    assert_eq!([identity.input_len(), identity.hidden_len(), identity.output_len()], [2, 0, 2]);
    let mut output = [0.0; 2];
    identity.forward(&[], 1, &[0.5, -1.5], &mut [], &mut output);
    assert_eq!(output, [0.5, -1.5]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, rng_seed: RngSeed::Fixed(6), ..ProptestConfig::default() })]

    /// Catches a wrong derivative along weights, biases or input, and a pullback that overwrites where it should add, with
    /// fewer and more draws than the eight of a vector.
    #[test]
    fn the_pullback_meets_finite_differences(seed in any::<u64>(), draws_len in 1..11_usize) {
        for network in networks() {
            let parameters = normals(network.parameters_len(), seed);
            let input = normals(network.input_len() * draws_len, seed ^ 1);
            let d_output = normals(network.output_len() * draws_len, seed ^ 2);
            let total = |parameters: &[f64], input: &[f64]| {
                let (_, output) = forward(&network, parameters, draws_len, input);
                output.iter().zip(&d_output).map(|(a, b)| a * b).sum::<f64>()
            };
            let (hidden, _) = forward(&network, &parameters, draws_len, &input);
            let (mut d_parameters, mut d_input) = (vec![1.0; parameters.len()], vec![2.0; input.len()]);
            let mut scratch = Scratch::default();
            network.pullback(
                &parameters, draws_len, &input, &hidden, &d_output, &mut d_parameters, &mut d_input, &mut scratch,
            );
            let more = |numeric: Vec<f64>, by: f64| numeric.into_iter().map(|d| d + by).collect::<Vec<f64>>();
            let numeric = gradient(|p| total(p, &input), &parameters, 5e-3);
            assert_close(&d_parameters, &more(numeric, 1.0), 1e-9, 1e-9);
            let numeric = gradient(|x| total(&parameters, x), &input, 5e-3);
            assert_close(&d_input, &more(numeric, 2.0), 1e-9, 1e-9);
        }
    }
}

/// Catches a start whose output is not zero where it should be, and one whose signal vanishes or explodes: with Xavier's
/// variance a wide layer of inputs of size one has sums of size one.
#[test]
fn networks_start_with_weights_of_the_right_size() {
    let network = Mlp::new(vec![400, 400, 3]);
    let mut parameters = vec![f64::NAN; network.parameters_len()];
    network.initialize(0.0, &mut stream(1, 0, 0, 0), &mut parameters);
    let input = normals(400 * 5, 2);
    let (_, output) = forward(&network, &parameters, 5, &input);
    assert_eq!(output, [0.0; 15]);
    let variance = parameters[..400 * 400].iter().map(|w| w * w).sum::<f64>() / (400.0 * 400.0);
    // The mean of 160,000 squares has a relative standard error of 0.0035; a variance of 1/in or 1/out would be the same here,
    // one of 2/in or 1/(in + out) would be off by a factor of two.
    assert!((variance * 400.0 - 1.0).abs() < 5.0 * 0.0035, "{variance}");
    network.initialize(1.0, &mut stream(1, 0, 0, 0), &mut parameters);
    let (_, output) = forward(&network, &parameters, 5, &input);
    assert!(output.iter().all(|y| *y != 0.0));
}

//! The single-precision kernels compared with the double-precision parts that they replace.

use hyperprior::likelihood::MeanField;
use hyperprior::many::{Cotangents, FlowPair, count_features};
use hyperprior::math::family::Poisson;
use hyperprior::math::random::stream;
use hyperprior::math::scratch::Scratch;
use hyperprior::math::single::planar::Into;
use hyperprior::math::single::{DRAWS, LANES, Lanes, Tile};
use hyperprior::prior::PriorPass;
use hyperprior::prior::{Density, PlanarFlow};
use hyperprior::recursive::RecursivePass;
use hyperprior::recursive::{Cache, InverseFlow, Known, Space};
use hyperprior::{Batch, Result, Variational};
use rand::RngExt;

/// Random inputs of a step.
struct Case {
    theta: Vec<f64>,
    phi: Vec<f64>,
    eps: Batch,
    z: Batch,
    d_lambda: Batch,
    d_log_q: [f64; DRAWS],
    d_log_r: [f64; DRAWS],
}

/// The results of a step.
struct Found {
    log_q: Vec<f64>,
    log_r: Vec<f64>,
    d_theta: Vec<f64>,
    d_phi: Vec<f64>,
}

fn variational(d: usize, flow_len: usize, inverse_len: usize) -> Result<Variational> {
    let likelihood = MeanField::of(Poisson, d)?;
    let recursive = InverseFlow::new(&likelihood, 1, inverse_len, Space::Lambda);
    Variational::new(likelihood, PlanarFlow::new(d, flow_len)?, recursive)
}

fn case(q: &Variational, d: usize, seed: u64) -> Case {
    let mut rng = stream(seed, 0, 0, 0);
    let mut uniform = |scale: f64| scale * (2.0 * rng.random::<f64>() - 1.0);
    let theta = (0..q.theta_len()).map(|_| uniform(0.6)).collect();
    let phi = (0..q.phi_len()).map(|_| uniform(0.4)).collect();
    let mut batch = |scale: f64, floor: bool| {
        let numbers = (0..d * DRAWS).map(|_| if floor { uniform(scale).abs().floor() } else { uniform(scale) });
        Batch::from_columns(numbers.collect(), DRAWS)
    };
    let (eps, z, d_lambda) = (batch(2.0, false), batch(5.0, true), batch(1.0, false));
    let mut weights = || std::array::from_fn(|_| uniform(1.0));
    Case { theta, phi, eps, z, d_lambda, d_log_q: weights(), d_log_r: weights() }
}

fn double(q: &Variational, case: &Case) -> Found {
    let (prior, recursive) = (q.prior(), q.recursive());
    let at = q.surroundings(&case.theta, &case.phi, 0);
    let mut scratch = Scratch::default();
    let (mut prepared, mut cache) = (Cache::default(), Cache::default());
    let mut lambda = Batch::zeros(q.prior().lambda_len(), DRAWS);
    let (mut log_q, mut log_r) = (vec![0.0; DRAWS], vec![0.0; DRAWS]);
    prior.transform(
        PriorPass { theta: &case.theta, component: 0, eps: &case.eps, density: Density::Whole },
        &mut lambda,
        &mut log_q,
        &mut scratch,
    );
    recursive.prepare(at, &lambda, &case.z, &mut prepared, &mut scratch);
    recursive.forward(at, &lambda, &prepared, &mut log_r, &mut cache, &mut scratch);
    let mut d_lambda = case.d_lambda.clone();
    let mut d_z = Batch::zeros(lambda.columns_len(), DRAWS);
    let (mut d_theta, mut d_phi) = (vec![0.0; q.theta_len()], vec![0.0; q.phi_len()]);
    let known = Known { prepared: &prepared, cache: &cache };
    recursive.pullback(
        RecursivePass { at, x: &lambda, z: &case.z, known },
        &case.d_log_r,
        &mut d_lambda,
        &mut d_z,
        &mut d_phi,
        &mut scratch,
    );
    let density = Density::Whole;
    let d_log_q = &case.d_log_q;
    prior.pullback(
        PriorPass { theta: &case.theta, component: 0, eps: &case.eps, density },
        &lambda,
        &d_lambda,
        d_log_q,
        &mut d_theta,
        &mut scratch,
    );
    Found { log_q, log_r, d_theta, d_phi }
}

fn tiles(batch: &Batch) -> Vec<Tile> {
    let mut tiles = vec![Tile::default(); batch.columns_len().div_ceil(LANES)];
    for i in 0..batch.columns_len() {
        for s in 0..DRAWS {
            tiles[i / LANES].0[s][i % LANES] = batch.get(i, s) as f32;
        }
    }
    tiles
}

/// The step, and its gradients in lanes.
fn single(pair: &FlowPair, q: &Variational, case: &Case, times: usize) -> (Found, [Vec<Lanes>; 2]) {
    let (mut theta, mut phi) = (vec![Lanes::default(); pair.theta_len()], vec![Lanes::default(); pair.phi_len()]);
    pair.read_theta(&case.theta, &mut theta);
    pair.read_phi(&case.phi, &mut phi);
    let (eps, z, given) = (tiles(&case.eps), tiles(&case.z), tiles(&case.d_lambda));
    let mut features = vec![Tile::default(); 2 * pair.tiles_len()];
    count_features(&z, &mut features);
    let mut work = pair.work();
    // Previous values must not affect the first call.
    let (mut d_theta, mut d_phi) = (vec![Lanes([7.0; LANES]); theta.len()], vec![Lanes([7.0; LANES]); phi.len()]);
    let (weights_q, weights_r) = (case.d_log_q.map(|x| x as f32), case.d_log_r.map(|x| x as f32));
    let (mut log_q, mut log_r) = ([0.0; DRAWS], [0.0; DRAWS]);
    for time in 0..times {
        log_q = pair.transform(&theta, &eps, &mut work);
        log_r = pair.log_r(&phi, &features, &mut work);
        let d = Cotangents { lambda: &given, log_q: &weights_q, log_r: &weights_r };
        let into = if time == 0 { Into::Replace } else { Into::Add };
        pair.pullback((&theta, &phi), (&eps, &features), d, &mut work, into, (&mut d_theta, &mut d_phi));
    }
    let mut found = Found {
        log_q: log_q.map(f64::from).to_vec(),
        log_r: log_r.map(f64::from).to_vec(),
        d_theta: vec![0.0; q.theta_len()],
        d_phi: vec![0.0; q.phi_len()],
    };
    pair.write_theta(&d_theta, &mut found.d_theta);
    pair.write_phi(&d_phi, &mut found.d_phi);
    (found, [d_theta, d_phi])
}

fn close(name: &str, single: &[f64], double: &[f64], factor: f64) {
    let size = double.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
    for (i, (s, d)) in single.iter().zip(double).enumerate() {
        assert!(
            (s - factor * d).abs() < 3e-5 * factor * size,
            "{name}[{i}]: {s} against {} of size {size}",
            factor * d
        );
    }
}

#[test]
fn the_pair_equals_the_flow_and_the_inverse_flow_in_double_precision() {
    for (d, flow_len, inverse_len) in
        [(1, 1, 1), (3, 0, 2), (15, 2, 0), (16, 0, 0), (17, 3, 4), (40, 18, 17), (145, 2, 10)]
    {
        let q = variational(d, flow_len, inverse_len).unwrap();
        let pair = FlowPair::new(d, flow_len, inverse_len);
        for seed in 1..4 {
            let case = case(&q, d, seed);
            let expected = double(&q, &case);
            for times in 1..3 {
                let (found, _) = single(&pair, &q, &case, times);
                close("log q", &found.log_q, &expected.log_q, 1.0);
                close("log r", &found.log_r, &expected.log_r, 1.0);
                close("d θ", &found.d_theta, &expected.d_theta, times as f64);
                close("d φ", &found.d_phi, &expected.d_phi, times as f64);
            }
        }
    }
}

#[test]
fn lanes_beyond_the_last_latent_have_no_gradient() {
    let (d, flow_len, inverse_len) = (19, 2, 3);
    let q = variational(d, flow_len, inverse_len).unwrap();
    let pair = FlowPair::new(d, flow_len, inverse_len);
    let (found, gradients) = single(&pair, &q, &case(&q, d, 5), 2);
    let total = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(f64::abs).sum::<f64>();
    let lanes = total(&mut gradients.iter().flatten().flat_map(|l| l.0).map(f64::from));
    let named = total(&mut found.d_theta.iter().chain(&found.d_phi).copied());
    assert!((lanes - named).abs() < 1e-9 * named, "{lanes} in lanes, {named} of parameters");
}

#[test]
fn a_layer_without_direction_is_a_shift() {
    let q = variational(4, 1, 1).unwrap();
    let mut case = case(&q, 4, 9);
    // w of both layers.
    case.theta[8 + 4..8 + 8].fill(0.0);
    case.phi[4..8].fill(0.0);
    let expected = double(&q, &case);
    let (found, _) = single(&FlowPair::new(4, 1, 1), &q, &case, 1);
    close("log r", &found.log_r, &expected.log_r, 1.0);
    close("d θ", &found.d_theta, &expected.d_theta, 1.0);
    close("d φ", &found.d_phi, &expected.d_phi, 1.0);
}

/// Catches a determinant that cancels to zero where w·u is far below zero.
#[test]
fn a_layer_at_the_limit_of_invertibility_stays_finite() {
    let q = variational(3, 1, 1).unwrap();
    let mut case = case(&q, 3, 13);
    // u = −20 w / |w|² for both layers.
    for layer in [&mut case.theta[6..12], &mut case.phi[..6]] {
        let (u, w) = layer.split_at_mut(3);
        w.copy_from_slice(&[0.6, -0.8, 0.5]);
        let square: f64 = w.iter().map(|w| w * w).sum();
        u.iter_mut().zip(w).for_each(|(u, w)| *u = -20.0 * *w / square);
    }
    let expected = double(&q, &case);
    let (found, gradients) = single(&FlowPair::new(3, 1, 1), &q, &case, 1);
    assert!(gradients.iter().flatten().flat_map(|l| l.0).all(f32::is_finite));
    close("log q", &found.log_q, &expected.log_q, 1.0);
    close("log r", &found.log_r, &expected.log_r, 1.0);
}

//! The families under test, and each of their methods for a single draw.

#![allow(dead_code, reason = "every test binary uses some of it")]

use hyperprior_math::bijector::Bijector;
use hyperprior_math::family::*;
use hyperprior_math::random::{Stream, stream};

pub fn families() -> Vec<Box<dyn Family>> {
    vec![
        Box::new(Bernoulli),
        Box::new(Beta),
        Box::new(Binomial::new(12).expect("twelve trials")),
        Box::new(Categorical::new(4).expect("four values")),
        Box::new(ConwayMaxwell::new(40).expect("counts to forty")),
        Box::new(Gamma),
        Box::new(Geometric),
        Box::new(LogNormal),
        Box::new(Mixed::new(Poisson, 7).expect("seven nodes")),
        Box::new(Mixed::new(Binomial::new(12).expect("twelve trials"), 9).expect("nine nodes")),
        Box::new(NegativeBinomial),
        Box::new(Normal),
        Box::new(Poisson),
        Box::new(TruncatedPoisson::new(40).expect("counts to forty")),
    ]
}

/// Parameters that are neither sharp nor flat, and some that are moderately so.
pub fn members(family: &dyn Family) -> Vec<Vec<f64>> {
    let rows = [[0.3, -0.4, 0.8], [1.2, 0.9, -1.0], [-1.1, 0.7, 0.1], [2.0, -0.3, 1.4]];
    rows.iter().map(|row| row[..family.parameters_len()].to_vec()).collect()
}

pub fn streams(seed: u64, draws_len: usize) -> Vec<Stream> {
    (0..draws_len).map(|s| stream(seed, 0, 0, s as u64)).collect()
}

pub fn log_density(family: &dyn Family, lambda: &[f64], z: f64) -> f64 {
    let mut out = [f64::NAN];
    family.log_density(lambda, &[z], &mut out);
    out[0]
}

pub fn score(family: &dyn Family, lambda: &[f64], z: f64) -> Vec<f64> {
    let mut d_lambda = vec![0.0; lambda.len()];
    family.score(lambda, &[z], &[1.0], &mut d_lambda);
    d_lambda
}

pub fn information(family: &dyn Family, lambda: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; lambda.len() * lambda.len()];
    family.information(lambda, &mut out);
    out
}

pub fn pathwise(family: &dyn Family, lambda: &[f64], z: f64) -> Vec<f64> {
    let mut d_lambda = vec![0.0; lambda.len()];
    family.pathwise(lambda, &[z], &[1.0], &mut d_lambda);
    d_lambda
}

/// `draws_len` draws that share λ.
pub fn sample(family: &dyn Family, lambda: &[f64], seed: u64, draws_len: usize) -> Vec<f64> {
    let columns: Vec<f64> = lambda.iter().flat_map(|&l| std::iter::repeat_n(l, draws_len)).collect();
    let mut z = vec![f64::NAN; draws_len];
    family.sample(&columns, &mut streams(seed, draws_len), &mut z);
    z
}

/// Nodes z and weights w with Σ w f(z) = ∫ f(z) dz: the whole numbers of the window, or the trapezoid rule on the real
/// line behind the support, whose error for these smooth and decaying integrands is below 1e-10.
pub fn integration_rule(family: &dyn Family, lambda: &[f64]) -> Vec<(f64, f64)> {
    if let Some((lower, upper)) = family.window(lambda) {
        return (lower as u64..=upper as u64).map(|z| (z as f64, 1.0)).collect();
    }
    let bijector = Bijector::for_support(family.support()).expect("a continuous support");
    const STEP: f64 = 0.01;
    let x: Vec<f64> = (-12_000..=12_000).map(|i| f64::from(i) * STEP).collect();
    let (mut z, mut log_slope) = (x.clone(), x.clone());
    bijector.forward(&x, &mut z);
    bijector.log_derivative(&x, &mut log_slope);
    z.into_iter().zip(log_slope).map(|(z, l)| (z, l.exp() * STEP)).collect()
}

pub fn expectation<const N: usize>(family: &dyn Family, lambda: &[f64], f: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    let mut sums = [0.0; N];
    for (z, weight) in integration_rule(family, lambda) {
        let mass = weight * log_density(family, lambda, z).exp();
        if mass > 0.0 {
            f(z).iter().zip(&mut sums).for_each(|(f, sum)| *sum += mass * f);
        }
    }
    sums
}

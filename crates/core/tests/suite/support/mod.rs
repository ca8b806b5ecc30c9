//! Shared by the tests: small models with every capability, exact expectations, and recursive approximations for special purposes.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(dead_code, unused_imports, reason = "two test binaries include this module and use different parts")]

mod given;
mod law;
mod parts;
mod recursives;

pub use given::{GivenPrior, GivenRecursive};
pub use law::Law;
pub use parts::{priors, recursives, variational};
pub use recursives::{Frozen, Joint};

use hyperprior::model::{Conditionals, Gradient, Latents, Support};
use hyperprior::{Batch, Model, Result};
use hyperprior_testkit::quadrature::Rule;

type LogJoint = dyn Fn(&[f64]) -> f64 + Send + Sync;
type LogJointGradient = dyn Fn(&[f64], &mut [f64]) + Send + Sync;

/// A model given by a function of one z, with conditionals by brute force and optionally a gradient.
pub struct Small {
    latents: Latents,
    log_joint: Box<LogJoint>,
    gradient: Option<Box<LogJointGradient>>,
}

impl Small {
    /// One scalar latent per support.
    pub fn new(supports: &[Support], log_joint: impl Fn(&[f64]) -> f64 + Send + Sync + 'static) -> Self {
        let latents = supports.iter().enumerate().fold(Latents::new(), |latents, (i, support)| {
            latents.scalar(&format!("z{i}"), *support).expect("a valid declaration")
        });
        Self { latents, log_joint: Box::new(log_joint), gradient: None }
    }

    /// With ∂ log p / ∂z, written into its second argument.
    pub fn with_gradient(mut self, gradient: impl Fn(&[f64], &mut [f64]) + Send + Sync + 'static) -> Self {
        self.gradient = Some(Box::new(gradient));
        self
    }
}

fn draw(z: &Batch, s: usize) -> Vec<f64> {
    (0..z.columns_len()).map(|i| z.get(i, s)).collect()
}

impl Model for Small {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            *out = (self.log_joint)(&draw(z, s));
        }
        Ok(())
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        self.gradient.as_ref().map(|_| self as &dyn Gradient)
    }
}

impl Conditionals for Small {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        for s in 0..z.draws_len() {
            let mut point = draw(z, s);
            for (v, value) in values.iter().enumerate() {
                point[i] = *value;
                out.set(v, s, (self.log_joint)(&point));
            }
        }
        Ok(())
    }
}

impl Gradient for Small {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        let gradient = self.gradient.as_ref().expect("used only if there is one");
        for (s, out) in out.iter_mut().enumerate() {
            let point = draw(z, s);
            let mut d = vec![0.0; point.len()];
            *out = (self.log_joint)(&point);
            gradient(&point, &mut d);
            for (i, d) in d.into_iter().enumerate() {
                d_z.set(i, s, d);
            }
        }
        Ok(())
    }
}

/// Asserts |analytic − numeric| ≤ tolerance · max(1, |numeric|) for every number; the message names the part that is wrong.
#[track_caller]
pub fn assert_gradient(label: &str, analytic: &[f64], numeric: &[f64], tolerance: f64) {
    assert_eq!(analytic.len(), numeric.len(), "{label}: lengths differ");
    for (i, (a, n)) in analytic.iter().zip(numeric).enumerate() {
        // Written so that NaN fails.
        assert!((a - n).abs() <= tolerance * n.abs().max(1.0), "{label}: index {i}: {a:e} against {n:e}");
    }
}

/// A batch from draws as rows.
pub fn batch(rows: &[Vec<f64>]) -> Batch {
    let mut batch = Batch::zeros(rows[0].len(), rows.len());
    for (s, row) in rows.iter().enumerate() {
        for (i, value) in row.iter().enumerate() {
            batch.set(i, s, *value);
        }
    }
    batch
}

/// `len` numbers of size about `scale`, determined by the seed.
pub fn numbers(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    let mut batch = Batch::zeros(len, 1);
    let mut rng = [hyperprior::math::random::stream(seed, 0, 0, 0)];
    hyperprior::math::random::standard_normals(&mut rng, &mut batch);
    batch.as_slice().iter().map(|x| scale * x).collect()
}

/// As [`numbers`], for parameters whose effects add up: with more than a dozen, each is smaller, so that together they move λ about
/// as far.
pub fn moves(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    numbers(len, scale / (len as f64 / 12.0).sqrt().max(1.0), seed)
}

/// A few draws of `dimensions` normals with equal weights: fixed noise, so that everything else is exact.
pub fn fixed_noise(dimensions: usize, draws_len: usize, seed: u64) -> Rule {
    let points = (0..draws_len as u64).map(|s| numbers(dimensions, 1.0, 1000 * seed + s)).collect();
    Rule { points, weights: vec![1.0 / draws_len as f64; draws_len] }
}

/// Every value of discrete latents, each with weight one.
pub fn every(values: &[Vec<f64>]) -> Rule {
    let points = hyperprior_testkit::enumerate::product(values);
    Rule { weights: vec![1.0; points.len()], points }
}

/// Two coupled coins that tend to differ, one with a preference for heads.
pub fn coins() -> Small {
    const LOG_P: [[f64; 2]; 2] = [[-1.4, 0.3], [0.8, -0.9]];
    Small::new(&[Support::BINARY; 2], |z| LOG_P[z[0] as usize][z[1] as usize])
}

/// A coin and a three-sided die that depend on each other.
pub fn coin_and_die() -> Small {
    const LOG_P: [[f64; 3]; 2] = [[-1.4, 0.3, 0.1], [0.8, -0.9, -2.0]];
    let die = Support::Integers { lower: 0.0, upper: 2.0 };
    Small::new(&[Support::BINARY, die], |z| LOG_P[z[0] as usize][z[1] as usize])
}

/// A count with two modes.
pub fn count() -> Small {
    Small::new(&[Support::Counts], |z| {
        let poisson = |rate: f64| z[0] * rate.ln() - rate - hyperprior::math::special::ln_factorial(z[0]);
        hyperprior::math::special::log_sum_exp(&[poisson(1.0), poisson(6.0) - 0.5])
    })
}

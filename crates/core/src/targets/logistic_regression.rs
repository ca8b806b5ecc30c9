//! A logistic regression on simulated data.

use super::{at_each_draw, log_normal_density};
use crate::error::Result;
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;
use hyperprior_math::special::{sigmoid, softplus};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The seed of the data.
const SEED: u64 = 1972;

/// The standard deviation of each coefficient under the prior.
const PRIOR_SCALE: f64 = 2.0;

/// y_n ~ Bernoulli(σ(β · x_n)) for 100 rows of four standard normal covariates and an intercept, β_i ~ N(0, 2²).
///
/// The data are drawn from a fixed seed with the coefficients [`TRUTH`](Self::TRUTH). The evidence is not known in closed
/// form.
///
/// ```
/// use hyperprior::targets::LogisticRegression;
/// hyperprior::check(&LogisticRegression::new(), 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogisticRegression {
    latents: Latents,
    rows: Vec<([f64; Self::COEFFICIENTS_LEN], f64)>,
}

impl Default for LogisticRegression {
    fn default() -> Self {
        Self::new()
    }
}

impl LogisticRegression {
    /// How many coefficients there are, the intercept first.
    pub const COEFFICIENTS_LEN: usize = 5;

    /// The coefficients that made the data.
    pub const TRUTH: [f64; Self::COEFFICIENTS_LEN] = [-0.5, 1.5, -1.0, 0.5, 0.0];

    /// The model with its data.
    ///
    /// # Panics
    /// Never: its latents are declared correctly.
    pub fn new() -> Self {
        const ROWS_LEN: u64 = 100;
        let latents = Latents::new()
            .vector("beta", Self::COEFFICIENTS_LEN, Support::Real)
            .expect("five numbers are a valid declaration");
        let rows = (0..ROWS_LEN).map(|row| {
            let mut rng = stream(SEED, 0, row, 0);
            let mut covariates = [1.0; Self::COEFFICIENTS_LEN];
            covariates[1..].iter_mut().for_each(|x| *x = StandardNormal.sample(&mut rng));
            let success = rng.random::<f64>() < sigmoid(predictor(&covariates, &Self::TRUTH));
            (covariates, f64::from(success))
        });
        Self { latents, rows: rows.collect() }
    }

    /// Each row's covariates, the constant 1 of the intercept first, and its outcome.
    pub fn rows(&self) -> &[([f64; Self::COEFFICIENTS_LEN], f64)] {
        &self.rows
    }

    fn log_density(&self, beta: [f64; Self::COEFFICIENTS_LEN]) -> (f64, [f64; Self::COEFFICIENTS_LEN]) {
        let prior = beta.map(|beta| log_normal_density(beta, 0.0, PRIOR_SCALE));
        let mut log_density: f64 = prior.iter().map(|(log_density, _)| log_density).sum();
        let mut gradient = prior.map(|(_, slope)| slope);
        for (covariates, outcome) in &self.rows {
            let logit = predictor(covariates, &beta);
            log_density += outcome * logit - softplus(logit);
            let residual = outcome - sigmoid(logit);
            gradient.iter_mut().zip(covariates).for_each(|(d, x)| *d += residual * x);
        }
        (log_density, gradient)
    }
}

fn predictor(covariates: &[f64], beta: &[f64]) -> f64 {
    covariates.iter().zip(beta).map(|(x, beta)| x * beta).sum()
}

impl Model for LogisticRegression {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        at_each_draw(z, out, None, |beta| self.log_density(beta));
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for LogisticRegression {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        at_each_draw(z, out, Some(d_z), |beta| self.log_density(beta));
        Ok(())
    }
}

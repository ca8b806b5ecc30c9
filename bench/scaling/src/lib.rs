//! What the scaling bench steps: d independent Poisson latents under a planar flow of 2 and an inverse flow of 10.

use hyperprior::gradient::{Estimator, GradientEngine, GradientSettings};
use hyperprior::likelihood::MeanField;
use hyperprior::model::{Latents, Locals, Model, Support};
use hyperprior::prior::{PlanarFlow, Start};
use hyperprior::recursive::{InverseFlow, Space};
use hyperprior::{Batch, Result, Variational};
use hyperprior_math::random::stream;
use hyperprior_math::special::ln_factorial;

const FLOW: usize = 2;
const INVERSE: usize = 10;
const DRAWS: usize = 8;
const SEED: u64 = 7;

/// z_i ~ Poisson(r_i), independent: O(d) per draw, and nothing is allocated.
pub struct Counts {
    latents: Latents,
    rates: Vec<f64>,
}

impl Counts {
    /// `d` latents with rates between 1/2 and 4.
    ///
    /// # Errors
    /// Where `d` is 0.
    pub fn new(d: usize) -> Result<Self> {
        let latents = Latents::new().vector("z", d, Support::Counts)?;
        let rates = (0..d).map(|i| 0.5 * f64::from(1 + (i % 8) as u32)).collect();
        Ok(Self { latents, rates })
    }

    fn log_density(&self, i: usize, z: f64) -> f64 {
        z * self.rates[i].ln() - self.rates[i] - ln_factorial(z)
    }
}

impl Model for Counts {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        out.fill(0.0);
        for i in 0..z.columns_len() {
            for (o, z) in out.iter_mut().zip(z.column(i)) {
                *o += self.log_density(i, *z);
            }
        }
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        Some(self)
    }
}

impl Locals for Counts {
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()> {
        for i in 0..z.columns_len() {
            for (o, z) in out.column_mut(i).iter_mut().zip(z.column(i)) {
                *o = self.log_density(i, *z);
            }
        }
        Ok(())
    }
}

/// A fit that has not moved yet, ready to take gradient steps.
pub struct Stepper {
    model: Counts,
    q: Variational,
    engine: GradientEngine,
    theta: Vec<f64>,
    phi: Vec<f64>,
    d_theta: Vec<f64>,
    d_phi: Vec<f64>,
    taken: u64,
}

impl Stepper {
    /// Over `d` latents.
    ///
    /// # Errors
    /// Where `d` is 0.
    pub fn new(d: usize) -> Result<Self> {
        Self::with_lengths(d, FLOW, INVERSE)
    }

    /// Over `d` latents, with flows of these lengths.
    ///
    /// # Errors
    /// Where `d` is 0.
    pub fn with_lengths(d: usize, flow_len: usize, inverse_len: usize) -> Result<Self> {
        let model = Counts::new(d)?;
        let likelihood = MeanField::for_latents(model.latents())?;
        let recursive = InverseFlow::new(&likelihood, 1, inverse_len, Space::Lambda);
        let q = Variational::new(likelihood, PlanarFlow::new(d, flow_len)?, recursive)?;
        Self::over(model, q)
    }

    /// Of any variational model over these latents.
    ///
    /// # Errors
    /// Where the two do not fit together.
    pub fn over(model: Counts, q: Variational) -> Result<Self> {
        let settings = GradientSettings::default().draws(DRAWS).replicates(1).estimator(Estimator::Score);
        let engine = GradientEngine::new(&model, &q, &settings)?;
        let (mut theta, mut phi) = (vec![0.0; q.theta_len()], vec![0.0; q.phi_len()]);
        let (start, mut rng) = (Start::at(vec![0.5; q.prior().lambda_len()], 0.3), stream(SEED, 0, 0, 0));
        q.prior().initialize(&start, &mut rng, &mut theta);
        q.recursive().initialize(&start, &mut rng, &mut phi);
        let (d_theta, d_phi) = (theta.clone(), phi.clone());
        Ok(Self { model, q, engine, theta, phi, d_theta, d_phi, taken: 0 })
    }

    /// One gradient step, each with draws of its own; returns the estimate of the bound.
    ///
    /// # Errors
    /// Where no draw is finite.
    pub fn step(&mut self) -> Result<f64> {
        self.taken += 1;
        let (at, to) = ((&self.theta[..], &self.phi[..]), (&mut self.d_theta[..], &mut self.d_phi[..]));
        Ok(self.engine.step(&self.model, &self.q, (SEED, self.taken), at, to)?.elbo)
    }
}

/// The least-squares slope of ln y over ln x.
pub fn exponent(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let (mean_x, mean_y) = (logs().map(|l| l.0).sum::<f64>() / n, logs().map(|l| l.1).sum::<f64>() / n);
    let covariance: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    covariance / logs().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponent_of_a_power() {
        let points = [1e3, 1e4, 1e5].map(|x: f64| (x, 3.0 * x.powf(1.1)));
        assert!((exponent(&points) - 1.1).abs() < 1e-12);
    }

    #[test]
    fn model_is_sound() {
        hyperprior::check(&Counts::new(5).unwrap(), 3).unwrap();
    }
}

//! g(ε) = log p(x, z(λ(ε; θ))) + log |dz/dε|, the model in the coordinates in which q is standard normal, and its derivatives.

use crate::error::{Error, Result};
use crate::likelihood::PathwisePass;
use crate::model::Model;
use crate::prior::{Density, PriorPass, log_standard_normal};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{lower_solve, lower_transpose_multiply, packed_len};
use hyperprior_math::scratch::Scratch;

/// The model behind one Gaussian, λ = μ + L ε.
pub(crate) struct Target<'a> {
    model: &'a dyn Model,
    q: &'a Variational,
    theta: &'a [f64],
    /// μ and L.
    mean: Vec<f64>,
    scale: Vec<f64>,
}

fn needs() -> Error {
    Error::BadModel("uncorrected Hamiltonian annealing needs a model with a gradient, and a Gaussian prior".to_owned())
}

/// Buffers of an evaluation.
#[derive(Default)]
pub(crate) struct Memory {
    lambda: Batch,
    z: Batch,
    d_z: Batch,
    log_q: Batch,
    d_lambda: Batch,
    log_prior: Vec<f64>,
    scratch: Scratch,
}

impl<'a> Target<'a> {
    pub(crate) fn new(model: &'a dyn Model, q: &'a Variational, theta: &'a [f64]) -> Result<Self> {
        let n = q.prior().lambda_len();
        let (mut mean, mut scale) = (vec![0.0; n], vec![0.0; packed_len(n)]);
        let gaussians = q.prior().gaussians().ok_or_else(needs)?;
        gaussians.component(theta, 0, &mut mean, &mut scale);
        Ok(Self { model, q, theta, mean, scale })
    }

    /// The length of ε.
    pub(crate) fn noise_len(&self) -> usize {
        self.mean.len()
    }

    /// The noise of these latents.
    pub(crate) fn noise(&self, z: &Batch) -> Batch {
        let (likelihood, len) = (self.q.likelihood(), z.draws_len());
        let mut eps = Batch::zeros(self.mean.len(), len);
        for i in 0..z.columns_len() {
            let at = likelihood.lambda_range(i).start;
            for (s, z) in z.column(i).iter().enumerate() {
                let mut lambda = [0.0];
                likelihood.start_at(i, *z, &mut lambda);
                eps.set(at, s, lambda[0] - self.mean[at]);
            }
        }
        lower_solve(&self.scale, eps.as_mut_slice(), len);
        eps
    }

    /// g of every draw, and ∇g.
    pub(crate) fn evaluate(
        &self,
        eps: &Batch,
        log_g: &mut [f64],
        d_eps: &mut Batch,
        memory: &mut Memory,
    ) -> Result<()> {
        let len = eps.draws_len();
        self.place(eps, log_g, memory)?;
        d_eps.reset(eps.columns_len(), len);
        lower_transpose_multiply(&self.scale, memory.d_lambda.as_slice(), d_eps.as_mut_slice(), len);
        Ok(())
    }

    /// Adds Σ weight\[s\] ∂g/∂θ at fixed noise.
    pub(crate) fn pull_back(
        &self,
        eps: &Batch,
        weight: &[f64],
        d_theta: &mut [f64],
        memory: &mut Memory,
    ) -> Result<()> {
        self.place(eps, &mut vec![0.0; weight.len()], memory)?;
        let Memory { lambda, d_lambda, scratch, .. } = memory;
        for i in 0..d_lambda.columns_len() {
            // An invalid draw has weight 0 and is left out even if its derivative is not finite.
            d_lambda.column_mut(i).iter_mut().zip(weight).for_each(|(d, w)| *d = if *w == 0.0 { 0.0 } else { *d * w });
        }
        let d_log_q: Vec<f64> = weight.iter().map(|w| -w).collect();
        self.q.prior().pullback(self.pass(eps), lambda, d_lambda, &d_log_q, d_theta, scratch);
        Ok(())
    }

    fn pass<'b>(&'b self, eps: &'b Batch) -> PriorPass<'b> {
        PriorPass { theta: self.theta, component: 0, eps, density: Density::Whole }
    }

    /// λ, z, g and its derivative along λ.
    fn place(&self, eps: &Batch, log_g: &mut [f64], memory: &mut Memory) -> Result<()> {
        let (likelihood, len) = (self.q.likelihood(), eps.draws_len());
        let Memory { lambda, z, d_z, log_q, d_lambda, log_prior, scratch } = memory;
        lambda.reshape(self.mean.len(), len);
        log_prior.resize(len, 0.0);
        self.q.prior().transform(self.pass(eps), lambda, log_prior, scratch);
        z.reshape(likelihood.latents_len(), len);
        // Point masses are not random.
        likelihood.sample(lambda, &mut vec![hyperprior_math::random::stream(0, 0, 0, 0); len], z, scratch);
        d_z.reset(z.columns_len(), len);
        self.model.gradient().ok_or_else(needs)?.log_joint_gradient(z, log_g, d_z)?;
        log_q.reshape(z.columns_len(), len);
        likelihood.log_density(lambda, z, log_q, scratch);
        d_lambda.reset(lambda.columns_len(), len);
        let ones = vec![1.0; len];
        for i in 0..z.columns_len() {
            let pass = PathwisePass { z: z.column(i), d_z: d_z.column(i), weight: &ones };
            likelihood.pathwise(i, lambda, pass, d_lambda, scratch);
        }
        let mut noise = vec![0.0; len];
        log_standard_normal(eps, 0..eps.columns_len(), &mut noise);
        for (s, log_g) in log_g.iter_mut().enumerate() {
            let log_q: f64 = (0..log_q.columns_len()).map(|i| log_q.get(i, s)).sum();
            *log_g += noise[s] - log_prior[s] - log_q;
        }
        Ok(())
    }
}

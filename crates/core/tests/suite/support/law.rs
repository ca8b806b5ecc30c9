//! Exact expectations: noise at given nodes, latents at all their values, and the engine's forward and backward passes.

use hyperprior::gradient::{Backward, GradientSettings, plan};
use hyperprior::likelihood::Kind;
use hyperprior::math::random::stream;
use hyperprior::math::scratch::Scratch;
use hyperprior::objective::Pass;
use hyperprior::prior::Density;
use hyperprior::prior::PriorPass;
use hyperprior::{Batch, Model, Variational};
use hyperprior_testkit::quadrature::Rule;

/// The hierarchical ELBO as an exact function of θ and φ: Σ_k π_k Σ_ε weight Σ_z q(z | λ(ε)) · integrand.
pub struct Law<'a> {
    pub model: &'a dyn Model,
    pub q: &'a Variational,
    /// Nodes of ε.
    pub noise: Rule,
    /// Values of z, weighted by their dz (one for discrete latents). Those of point masses are not used.
    pub latents: Rule,
}

impl Law<'_> {
    /// The draws of component k, all nodes times all values, and the weight of each.
    pub fn pass(&self, theta: &[f64], phi: &[f64], k: usize) -> (Pass, Vec<f64>) {
        let (nodes, values) = (self.noise.points.len(), self.latents.points.len());
        let draws_len = nodes * values;
        let (prior, likelihood) = (self.q.prior(), self.q.likelihood());
        let mut eps = Batch::zeros(prior.columns_len(), draws_len);
        let mut z = Batch::zeros(likelihood.latents_len(), draws_len);
        for s in 0..draws_len {
            for (i, value) in self.noise.points[s / values].iter().enumerate() {
                eps.set(i, s, *value);
            }
            for (i, value) in self.latents.points[s % values].iter().enumerate() {
                z.set(i, s, *value);
            }
        }
        let points: Vec<usize> =
            (0..likelihood.latents_len()).filter(|&i| likelihood.kind(i) == Kind::PointMass).collect();
        if !points.is_empty() {
            let mut lambda = Batch::zeros(prior.lambda_len(), draws_len);
            let mut unused = vec![0.0; draws_len];
            let mut scratch = Scratch::default();
            prior.transform(
                PriorPass { theta, component: k, eps: &eps, density: Density::Unneeded },
                &mut lambda,
                &mut unused,
                &mut scratch,
            );
            let mut drawn = z.clone();
            likelihood.sample(&lambda, &mut vec![stream(0, 0, 0, 0); draws_len], &mut drawn, &mut scratch);
            for i in &points {
                z.column_mut(*i).copy_from_slice(drawn.column(*i));
            }
        }
        let mut pass = Pass::default();
        pass.set(self.q, theta, k, &eps, &z);
        pass.forward(self.model, self.q, theta, phi).expect("the model works");
        let weight = (0..draws_len)
            .map(|s| {
                let log_q: f64 =
                    (0..z.columns_len()).filter(|i| !points.contains(i)).map(|i| pass.log_q.get(i, s)).sum();
                self.noise.weights[s / values] * self.latents.weights[s % values] * log_q.exp()
            })
            .collect();
        (pass, weight)
    }

    /// F_k, the bound of each component.
    pub fn values(&self, theta: &[f64], phi: &[f64]) -> Vec<f64> {
        let value = |k: usize| {
            let (pass, weight) = self.pass(theta, phi, k);
            weight.iter().zip(&pass.integrand).filter(|(w, _)| **w > 0.0).map(|(w, f)| w * f).sum()
        };
        (0..self.q.prior().components_len()).map(value).collect()
    }

    /// Σ_k π_k F_k.
    pub fn value(&self, theta: &[f64], phi: &[f64]) -> f64 {
        self.log_weights(theta).iter().zip(self.values(theta, phi)).map(|(p, f)| p.exp() * f).sum()
    }

    /// log π_k.
    pub fn log_weights(&self, theta: &[f64]) -> Vec<f64> {
        let mut log_pi = vec![0.0; self.q.prior().components_len()];
        self.q.prior().log_weights(theta, &mut log_pi);
        log_pi
    }

    /// The mean of the engine's estimate of the gradient along θ and φ.
    pub fn gradient(&self, theta: &[f64], phi: &[f64], settings: &GradientSettings) -> (Vec<f64>, Vec<f64>) {
        let plans = plan(self.model, self.q, settings).expect("a plan for every latent");
        let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
        let log_pi = self.log_weights(theta);
        for (k, log_pi) in log_pi.iter().enumerate() {
            let (mut pass, mut weight) = self.pass(theta, phi, k);
            weight.iter_mut().for_each(|w| *w *= log_pi.exp());
            pass.backward(
                Backward { model: self.model, q: self.q, theta, phi, plans: &plans, settings, weight: &weight },
                &mut d_theta,
                &mut d_phi,
            )
            .expect("the model works");
        }
        self.q.prior().weights_pullback(theta, &self.values(theta, phi), &mut d_theta);
        (d_theta, d_phi)
    }

    /// q(z) of every value of the latents.
    pub fn marginal(&self, theta: &[f64], phi: &[f64]) -> Vec<f64> {
        let values = self.latents.points.len();
        let mut total = vec![0.0; values];
        for (k, log_pi) in self.log_weights(theta).iter().enumerate() {
            for (s, w) in self.pass(theta, phi, k).1.iter().enumerate() {
                total[s % values] += log_pi.exp() * w;
            }
        }
        total
    }
}

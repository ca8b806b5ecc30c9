//! The job with the engine's own parts, in double precision.

use hyperprior::recursive::RecursivePass;
use hyperprior::prior::PriorPass;
use crate::files;
use crate::job::{Job, SHARE, Shape};
use hyperprior::Batch;
use hyperprior::Variational;
use hyperprior::likelihood::MeanField;
use hyperprior::prior::{Density, PlanarFlow};
use hyperprior::recursive::{Cache, InverseFlow, Known, Space};
use hyperprior_math::family::Poisson;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::{add_scaled, dot};
use rayon::prelude::*;
use std::error::Error;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What is given about one posterior: its noise, its counts, and the cotangent g of λ.
struct Draws {
    eps: Batch,
    z: Batch,
    g: Batch,
}

/// The working memory of one thread.
struct Worker {
    lambda: Batch,
    d_lambda: Batch,
    d_z: Batch,
    log_q: Vec<f64>,
    log_r: Vec<f64>,
    /// 1/S and −1/S: the cotangents of log r and of log q(λ).
    d_log_r: Vec<f64>,
    d_log_q: Vec<f64>,
    prepared: Cache,
    cache: Cache,
    scratch: Scratch,
}

impl Worker {
    fn new(shape: Shape) -> Self {
        let (d, draws) = (shape.latents_len, shape.draws_len);
        let share = 1.0 / draws as f64;
        Self {
            lambda: Batch::zeros(d, draws),
            d_lambda: Batch::zeros(d, draws),
            d_z: Batch::zeros(d, draws),
            log_q: vec![0.0; draws],
            log_r: vec![0.0; draws],
            d_log_r: vec![share; draws],
            d_log_q: vec![-share; draws],
            prepared: Cache::default(),
            cache: Cache::default(),
            scratch: Scratch::default(),
        }
    }

    /// One posterior's value; its gradient is added to `d_theta` and `d_phi`.
    fn run(
        &mut self,
        q: &Variational,
        draws: &Draws,
        (theta, phi): (&[f64], &[f64]),
        (d_theta, d_phi): (&mut [f64], &mut [f64]),
    ) -> f64 {
        let Self { lambda, d_lambda, d_z, log_q, log_r, d_log_r, d_log_q, prepared, cache, scratch } = self;
        let (prior, recursive) = (q.prior(), q.recursive());
        let at = q.surroundings(theta, phi, 0);
        prior.transform(PriorPass { theta, component: 0, eps: &draws.eps, density: Density::Whole }, lambda, log_q, scratch);
        recursive.prepare(at, lambda, &draws.z, prepared, scratch);
        recursive.forward(at, lambda, prepared, log_r, cache, scratch);
        let share = d_log_r[0];
        let sum = log_r.iter().sum::<f64>() - log_q.iter().sum::<f64>() + dot(draws.g.as_slice(), lambda.as_slice());
        d_lambda.as_mut_slice().fill(0.0);
        add_scaled(share, draws.g.as_slice(), d_lambda.as_mut_slice());
        let known = Known { prepared, cache };
        recursive.pullback(RecursivePass { at, x: lambda, z: &draws.z, known }, d_log_r, d_lambda, d_z, d_phi, scratch);
        prior.pullback(PriorPass { theta, component: 0, eps: &draws.eps, density: Density::Whole }, lambda, d_lambda, d_log_q, d_theta, scratch);
        share * sum
    }
}

/// All posteriors with their parameters, gradients and values.
pub struct Double {
    q: Variational,
    draws: Vec<Draws>,
    theta: Vec<f64>,
    phi: Vec<f64>,
    workers: Vec<Mutex<Worker>>,
    values: Vec<f64>,
    d_theta: Vec<f64>,
    d_phi: Vec<f64>,
}

impl Double {
    /// Reads the inputs and makes room for `threads` workers.
    pub fn read(folder: &Path, shape: Shape, threads: usize) -> Result<Self, Box<dyn Error>> {
        let Shape { posteriors_len, draws_len, latents_len, .. } = shape;
        let likelihood = MeanField::of(Poisson, latents_len)?;
        let prior = PlanarFlow::new(latents_len, shape.flow_len)?;
        let recursive = InverseFlow::new(&likelihood, 1, shape.inverse_len, Space::Lambda);
        let q = Variational::new(likelihood, prior, recursive)?;
        let (theta_len, phi_len) = (posteriors_len * q.theta_len(), posteriors_len * q.phi_len());
        let by_posterior = |name: &str| -> Result<Vec<Batch>, Box<dyn Error>> {
            let numbers = files::read(&folder.join(name), posteriors_len * draws_len * latents_len)?;
            Ok(numbers.chunks_exact(draws_len * latents_len).map(|rows| columns(rows, latents_len)).collect())
        };
        let (eps, z, g) = (by_posterior("eps.f32")?, by_posterior("z.f32")?, by_posterior("g.f32")?);
        let draws = eps.into_iter().zip(z).zip(g).map(|((eps, z), g)| Draws { eps, z, g }).collect();
        Ok(Self {
            draws,
            theta: files::read(&folder.join("theta.f32"), theta_len)?,
            phi: files::read(&folder.join("phi.f32"), phi_len)?,
            workers: (0..threads).map(|_| Mutex::new(Worker::new(shape))).collect(),
            values: vec![0.0; posteriors_len],
            d_theta: vec![0.0; theta_len],
            d_phi: vec![0.0; phi_len],
            q,
        })
    }
}

impl Job for Double {
    fn step(&mut self) {
        let Self { q, draws, theta, phi, workers, values, d_theta, d_phi } = self;
        let (theta_len, phi_len) = (SHARE * q.theta_len(), SHARE * q.phi_len());
        let parameters = theta.par_chunks(theta_len).zip(phi.par_chunks(phi_len));
        let gradients = d_theta.par_chunks_mut(theta_len).zip(d_phi.par_chunks_mut(phi_len));
        let posteriors = draws.par_chunks(SHARE).zip(values.par_chunks_mut(SHARE));
        let shares = posteriors.zip(parameters).zip(gradients);
        shares.for_each(|(((draws, values), (theta, phi)), (d_theta, d_phi))| {
            let thread = rayon::current_thread_index().unwrap_or(0);
            let mut worker = workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
            let parameters = theta.chunks_exact(q.theta_len()).zip(phi.chunks_exact(q.phi_len()));
            let gradients = d_theta.chunks_exact_mut(q.theta_len()).zip(d_phi.chunks_exact_mut(q.phi_len()));
            for (((draws, value), at), d) in draws.iter().zip(values).zip(parameters).zip(gradients) {
                // The pullbacks add.
                d.0.fill(0.0);
                d.1.fill(0.0);
                *value = worker.run(q, draws, at, d);
            }
        });
    }

    fn value(&self) -> f64 {
        self.values.iter().sum()
    }

    fn gradients(&self) -> [Vec<f64>; 2] {
        [self.d_theta.clone(), self.d_phi.clone()]
    }
}

/// A batch from rows, one per draw.
fn columns(rows: &[f64], latents_len: usize) -> Batch {
    let mut batch = Batch::zeros(latents_len, rows.len() / latents_len);
    for (s, row) in rows.chunks_exact(latents_len).enumerate() {
        for (i, x) in row.iter().enumerate() {
            batch.set(i, s, *x);
        }
    }
    batch
}

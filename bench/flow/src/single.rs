//! The job with the kernels for many posteriors, in single precision.

use crate::files;
use crate::job::{Job, SHARE, Shape};
use hyperprior::many::{Cotangents, FlowPair, Work, count_features};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::planar::Into;
use hyperprior_math::single::simd::{load, splat};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use rayon::prelude::*;
use std::error::Error;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What is given about one posterior: its noise, its counts, and the cotangent g of λ.
struct Draws {
    eps: Vec<Tile>,
    z: Vec<Tile>,
    g: Vec<Tile>,
}

/// The working memory of one thread.
struct Worker {
    work: Work,
    features: Vec<Tile>,
    /// g/S.
    d_lambda: Vec<Tile>,
}

impl Worker {
    /// One posterior's value and gradient.
    fn run(
        &mut self,
        pair: &FlowPair,
        draws: &Draws,
        parameters: (&[Lanes], &[Lanes]),
        gradients: (&mut [Lanes], &mut [Lanes]),
    ) -> f64 {
        let Self { work, features, d_lambda } = self;
        let share = 1.0 / DRAWS as f32;
        let log_q = pair.transform(parameters.0, &draws.eps, work);
        let linear = weigh(share, &draws.g, work.lambda(), d_lambda);
        count_features(&draws.z, features);
        let log_r = pair.log_r(parameters.1, features, work);
        let d = Cotangents { lambda: d_lambda, log_q: &[-share; DRAWS], log_r: &[share; DRAWS] };
        pair.pullback(parameters, (&draws.eps, features), d, work, Into::Replace, gradients);
        let sum = |numbers: &[f32]| numbers.iter().map(|x| f64::from(*x)).sum::<f64>();
        f64::from(share) * (sum(&log_r) - sum(&log_q) + f64::from(linear))
    }
}

#[inline(always)]
fn weigh_kernel<S: Simd>(s: S, share: f32, g: &[Tile], lambda: &[Tile], d_lambda: &mut [Tile]) -> f32 {
    let mut sum = splat(s, 0.0);
    for ((d, g), lambda) in d_lambda.iter_mut().zip(g).zip(lambda) {
        for q in 0..DRAWS {
            let g = load(s, &g.0[q]);
            sum = g.mul_add(load(s, &lambda.0[q]), sum);
            (g * share).store_slice(&mut d.0[q]);
        }
    }
    sum.reduce_sum()
}
simd_fn!(
    /// d_λ = g/S; returns g·λ summed over draws.
    fn weigh(share: f32, g: &[Tile], lambda: &[Tile], d_lambda: &mut [Tile]) -> f32 = weigh_kernel
);

/// All posteriors.
pub struct Single {
    pair: FlowPair,
    lens: (usize, usize),
    draws: Vec<Draws>,
    theta: Vec<Lanes>,
    phi: Vec<Lanes>,
    d_theta: Vec<Lanes>,
    d_phi: Vec<Lanes>,
    workers: Vec<Mutex<Worker>>,
    values: Vec<f64>,
}

impl Single {
    /// Reads the inputs and makes room for `threads` workers.
    pub fn read(folder: &Path, shape: Shape, threads: usize) -> Result<Self, Box<dyn Error>> {
        let Shape { posteriors_len, draws_len, latents_len, flow_len, inverse_len } = shape;
        assert_eq!(draws_len, DRAWS, "the job is one call a posterior");
        let pair = FlowPair::new(latents_len, flow_len, inverse_len);
        let layer_len = 2 * latents_len + 1;
        let lens = (2 * latents_len + flow_len * layer_len, inverse_len * layer_len + 6 * latents_len);
        let by_posterior = |name: &str| -> Result<Vec<Vec<Tile>>, Box<dyn Error>> {
            let numbers = files::read(&folder.join(name), posteriors_len * draws_len * latents_len)?;
            Ok(numbers.chunks_exact(draws_len * latents_len).map(|rows| tiles(rows, &pair, latents_len)).collect())
        };
        let (eps, z, g) = (by_posterior("eps.f32")?, by_posterior("z.f32")?, by_posterior("g.f32")?);
        let mut theta = vec![Lanes::default(); posteriors_len * pair.theta_len()];
        let mut phi = vec![Lanes::default(); posteriors_len * pair.phi_len()];
        let numbers = files::read(&folder.join("theta.f32"), posteriors_len * lens.0)?;
        let rows = theta.chunks_exact_mut(pair.theta_len());
        rows.zip(numbers.chunks_exact(lens.0)).for_each(|(row, numbers)| pair.read_theta(numbers, row));
        let numbers = files::read(&folder.join("phi.f32"), posteriors_len * lens.1)?;
        let rows = phi.chunks_exact_mut(pair.phi_len());
        rows.zip(numbers.chunks_exact(lens.1)).for_each(|(row, numbers)| pair.read_phi(numbers, row));
        let worker = || {
            let (features, d_lambda) = (2 * pair.tiles_len(), pair.tiles_len());
            let [features, d_lambda] = [features, d_lambda].map(|len| vec![Tile::default(); len]);
            Mutex::new(Worker { work: pair.work(), features, d_lambda })
        };
        Ok(Self {
            draws: eps.into_iter().zip(z).zip(g).map(|((eps, z), g)| Draws { eps, z, g }).collect(),
            d_theta: vec![Lanes::default(); theta.len()],
            d_phi: vec![Lanes::default(); phi.len()],
            theta,
            phi,
            workers: (0..threads).map(|_| worker()).collect(),
            values: vec![0.0; posteriors_len],
            lens,
            pair,
        })
    }
}

impl Job for Single {
    fn step(&mut self) {
        let Self { pair, draws, theta, phi, d_theta, d_phi, workers, values, .. } = self;
        let (theta_len, phi_len) = (pair.theta_len(), pair.phi_len());
        let parameters = theta.par_chunks(theta_len).zip(phi.par_chunks(phi_len));
        let gradients = d_theta.par_chunks_mut(theta_len).zip(d_phi.par_chunks_mut(phi_len));
        let posteriors = draws.par_iter().zip(values.par_iter_mut());
        posteriors.zip(parameters).zip(gradients).with_min_len(SHARE).for_each(|(((draws, value), at), to)| {
            let thread = rayon::current_thread_index().unwrap_or(0);
            let mut worker = workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
            *value = worker.run(pair, draws, at, to);
        });
    }

    fn value(&self) -> f64 {
        self.values.iter().sum()
    }

    fn gradients(&self) -> [Vec<f64>; 2] {
        let posteriors_len = self.values.len();
        let mut theta = vec![0.0; posteriors_len * self.lens.0];
        let mut phi = vec![0.0; posteriors_len * self.lens.1];
        let rows = self.d_theta.chunks_exact(self.pair.theta_len());
        rows.zip(theta.chunks_exact_mut(self.lens.0)).for_each(|(row, to)| self.pair.write_theta(row, to));
        let rows = self.d_phi.chunks_exact(self.pair.phi_len());
        rows.zip(phi.chunks_exact_mut(self.lens.1)).for_each(|(row, to)| self.pair.write_phi(row, to));
        [theta, phi]
    }
}

/// Eight rows, one per draw, as tiles.
fn tiles(rows: &[f64], pair: &FlowPair, latents_len: usize) -> Vec<Tile> {
    let mut tiles = vec![Tile::default(); pair.tiles_len()];
    for (s, row) in rows.chunks_exact(latents_len).enumerate() {
        for (i, x) in row.iter().enumerate() {
            tiles[i / LANES].0[s][i % LANES] = *x as f32;
        }
    }
    tiles
}

//! Exact answers for small models: enumerates every value of the latents and integrates q(z) over λ.
//!
//! For models with few, discrete latents. The integral over λ uses scrambled Sobol noise; the number of nodes is doubled until
//! the Kullback–Leibler divergence converges.

use crate::error::{Error, Result};
use crate::model::{Latents, Model, Support};
use crate::prior::PriorPass;
use crate::prior::{Density, log_noise, throw_switches};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, quasi_normals};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector::add_scaled;
use rand::RngExt;
use rayon::prelude::*;
use std::ops::Range;

/// Every combination of the latents' values, the last latent fastest. See [`marginal`].
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    values: Vec<Vec<f64>>,
}

impl Grid {
    /// The largest number of states in a grid.
    pub const STATES_MAX: usize = 1 << 24;

    /// All values of finite supports, and counts from 0 to `largest_count`.
    ///
    /// # Errors
    /// [`Error::NotEnumerable`] for continuous latents and for too many states.
    pub fn new(latents: &Latents, largest_count: u32) -> Result<Self> {
        let values: Vec<Vec<f64>> = (0..latents.len())
            .map(|i| match latents.support(i) {
                Support::Integers { lower, upper } if upper - lower < Self::STATES_MAX as f64 => {
                    Ok((0..=(upper - lower) as usize).map(|v| lower + v as f64).collect())
                }
                Support::Counts => Ok((0..=largest_count).map(f64::from).collect()),
                other => Err(Error::NotEnumerable(format!("{} has the support {other:?}", latents.name(i)))),
            })
            .collect::<Result<_>>()?;
        let states = values.iter().try_fold(1usize, |n, v| n.checked_mul(v.len()).filter(|n| *n <= Self::STATES_MAX));
        match states {
            Some(_) => Ok(Self { values }),
            None => Err(Error::NotEnumerable(format!("there are more than {} states", Self::STATES_MAX))),
        }
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.values.iter().map(Vec::len).product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of latent `i`.
    pub fn values(&self, i: usize) -> &[f64] {
        &self.values[i]
    }

    /// Every state as a draw.
    pub fn states(&self) -> Batch {
        self.states_in(0..self.len())
    }

    /// The states with these numbers as draws.
    pub fn states_in(&self, range: Range<usize>) -> Batch {
        let mut z = Batch::zeros(self.values.len(), range.len());
        let mut inner = self.len();
        for (i, values) in self.values.iter().enumerate() {
            inner /= values.len();
            for (s, z) in range.clone().zip(z.column_mut(i)) {
                *z = values[s / inner % values.len()];
            }
        }
        z
    }
}

/// The model's exact posterior over a grid. See [`marginal`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Posterior {
    /// The states.
    pub grid: Grid,
    /// log p(x, z) of every state.
    pub log_joint: Vec<f64>,
    /// log p(x), the log sum of the joint.
    pub log_evidence: f64,
}

impl Posterior {
    /// Draws from the posterior, by inversion.
    pub fn sample(&self, draws_len: usize, rng: &mut Stream) -> Batch {
        let mut below = 0.0;
        let cumulated: Vec<f64> = self
            .log_joint
            .iter()
            .map(|log_joint| {
                below += (log_joint - self.log_evidence).exp();
                below
            })
            .collect();
        let mut z = Batch::zeros(self.grid.values.len(), draws_len);
        for s in 0..draws_len {
            let u = rng.random::<f64>() * below;
            let state = cumulated.partition_point(|below| *below <= u).min(self.grid.len() - 1);
            let drawn = self.grid.states_in(state..state + 1);
            (0..z.columns_len()).for_each(|i| z.set(i, s, drawn.get(i, 0)));
        }
        z
    }
}

/// The exact posterior by enumeration.
///
/// # Errors
/// As [`Grid::new`], and errors of the model.
pub fn posterior(model: &dyn Model, largest_count: u32) -> Result<Posterior> {
    let grid = Grid::new(model.latents(), largest_count)?;
    let mut log_joint = vec![0.0; grid.len()];
    model.log_joint(&grid.states(), &mut log_joint)?;
    let log_evidence = log_sum_exp(&log_joint);
    Ok(Posterior { grid, log_joint, log_evidence })
}

/// q(z; θ) over a grid, and how far it is from a posterior. See [`marginal`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Marginal {
    /// q(z) of every state.
    pub probability: Vec<f64>,
    /// KL(q ‖ p), in nats.
    pub kl: f64,
    /// The exact ELBO of q(z), E_q\[log p(x, z) − log q(z)\].
    pub elbo: f64,
    /// The probability on the grid; if it is far below 1, the grid is too small and nothing here is exact.
    pub mass: f64,
    /// How many noise nodes per component the integral used.
    pub nodes: usize,
}

/// The most nodes per component.
const NODES_MAX: usize = 1 << 18;

/// q(z; θ) by quasi-random integration over λ, doubling the nodes until the divergence changes by less than 5 %.
///
/// ```
/// use hyperprior::{Model, Variational, exact, likelihood::MeanField, targets::Ising};
/// let model = Ising::ring(3, 0.5)?;
/// let posterior = exact::posterior(&model, 0)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let marginal = exact::marginal(&q, &[0.0; 3], &posterior, 1);
/// assert!((marginal.elbo + marginal.kl - posterior.log_evidence).abs() < 1e-9);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Panics
/// If θ has the wrong length for q, or the posterior belongs to a model with other latents.
pub fn marginal(q: &Variational, theta: &[f64], posterior: &Posterior, seed: u32) -> Marginal {
    if let Some(nodes) = finite_nodes(q) {
        return Marginal::new(integrate(q, theta, &posterior.grid, seed, 0..nodes), nodes, posterior);
    }
    let mut nodes = 2048;
    let mut sum = integrate(q, theta, &posterior.grid, seed, 0..nodes);
    let mut current = Marginal::new(mean(&sum, nodes), nodes, posterior);
    while nodes < NODES_MAX {
        let more = integrate(q, theta, &posterior.grid, seed, nodes..2 * nodes);
        sum.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        nodes *= 2;
        let next = Marginal::new(mean(&sum, nodes), nodes, posterior);
        let moved = (next.kl - current.kl).abs();
        current = next;
        if moved < 0.05 * current.kl.abs() {
            break;
        }
    }
    current
}

/// The number of values of the noise, if there are few: one for a point, 2^M for M switches alone.
fn finite_nodes(q: &Variational) -> Option<usize> {
    let (noise_len, switches_len) = (q.prior().noise_len(), q.prior().switches_len());
    (noise_len == 0 && switches_len <= SWITCHES_MAX).then_some(1 << switches_len)
}

/// The largest number of switches to enumerate.
const SWITCHES_MAX: usize = 12;

fn mean(sum: &[f64], nodes: usize) -> Vec<f64> {
    sum.iter().map(|s| s / nodes as f64).collect()
}

impl Marginal {
    fn new(probability: Vec<f64>, nodes: usize, posterior: &Posterior) -> Self {
        let mass = probability.iter().sum();
        let elbo: f64 = probability
            .iter()
            .zip(&posterior.log_joint)
            .filter(|(q, _)| **q > 0.0)
            .map(|(q, log_p)| q * (log_p - q.ln()))
            .sum();
        Self { kl: posterior.log_evidence - elbo, probability, elbo, mass, nodes }
    }
}

/// Σ over nodes and components of π_k q(z | λ(ε)), for every state.
fn integrate(q: &Variational, theta: &[f64], grid: &Grid, seed: u32, nodes: Range<usize>) -> Vec<f64> {
    const CHUNK: usize = 256;
    /// Chunks summed at a time: this bounds the memory, and the order of summation does not depend on the threads.
    const WAVE: usize = 16;
    let components_len = q.prior().components_len();
    let mut log_pi = vec![0.0; components_len];
    q.prior().log_weights(theta, &mut log_pi);
    let chunks: Vec<(usize, usize, usize)> = (0..components_len)
        .flat_map(|k| nodes.clone().step_by(CHUNK).map(move |first| (k, first)))
        .map(|(k, first)| (k, first, CHUNK.min(nodes.end - first)))
        .collect();
    let mut total = vec![0.0; grid.len()];
    for wave in chunks.chunks(WAVE) {
        let parts: Vec<Vec<f64>> = wave
            .par_iter()
            .map(|&(k, first, len)| chunk(q, theta, grid, k, log_pi[k].exp(), seed, first, len))
            .collect();
        for part in parts {
            total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
    }
    total
}

fn chunk(
    q: &Variational,
    theta: &[f64],
    grid: &Grid,
    k: usize,
    weight: f64,
    seed: u32,
    first: usize,
    len: usize,
) -> Vec<f64> {
    let mut scratch = Scratch::default();
    let prior = q.prior();
    let mut eps = Batch::zeros(prior.columns_len(), len);
    let mut weights = vec![weight; len];
    if finite_nodes(q).is_some() {
        for s in 0..len {
            for m in 0..prior.switches_len() {
                eps.set(m, s, f64::from(((first + s) >> m) & 1 == 1));
            }
        }
        let mut log_p = vec![0.0; len];
        log_noise(prior, theta, &eps, 0, &mut log_p, &mut scratch);
        weights.iter_mut().zip(&log_p).for_each(|(w, l)| *w = weight * l.exp());
    } else {
        quasi_normals(seed.wrapping_add(k as u32), first as u32, &mut eps);
        throw_switches(prior, theta, &mut eps, &mut scratch);
    }
    let mut lambda = Batch::zeros(q.prior().lambda_len(), len);
    let mut unused = vec![0.0; len];
    q.prior().transform(
        PriorPass { theta, component: k, eps: &eps, density: Density::Unneeded },
        &mut lambda,
        &mut unused,
        &mut scratch,
    );
    if !q.likelihood().is_factorised() {
        return whole_states(q, grid, &lambda, &weights, &mut scratch);
    }
    let tables: Vec<Batch> = grid
        .values
        .iter()
        .enumerate()
        .map(|(i, values)| {
            let mut table = Batch::zeros(values.len(), len);
            q.likelihood().log_densities_of(i, &lambda, values, &mut vec![0.0; len], &mut table);
            table.as_mut_slice().iter_mut().for_each(|p| *p = p.exp());
            table
        })
        .collect();
    // Split the latents in two: a state's probability is the product of its halves', and a row of later halves is added at once.
    let (earlier, later) = tables.split_at(halves(&tables));
    let mut total = vec![0.0; grid.len()];
    let (mut first, mut second) = (vec![Vec::new(); TOGETHER], vec![Vec::new(); TOGETHER]);
    for from in (0..len).step_by(TOGETHER) {
        let together = TOGETHER.min(len - from);
        for s in 0..together {
            products(earlier, from + s, weights[from + s], &mut first[s]);
            products(later, from + s, 1.0, &mut second[s]);
        }
        for (row, total) in total.chunks_exact_mut(second[0].len()).enumerate() {
            for s in 0..together {
                // Most of a grid of counts has negligible probability.
                if first[s][row] > 1e-300 {
                    add_scaled(first[s][row], &second[s], total);
                }
            }
        }
    }
    total
}

/// How many nodes are added to a row of states while it is in cache.
const TOGETHER: usize = 8;

/// Where to split the latents so that the later ones have about the square root of the number of states.
fn halves(tables: &[Batch]) -> usize {
    let root = tables.iter().map(|t| t.columns_len() as f64).product::<f64>().sqrt();
    let mut states = 1.0;
    for (i, table) in tables.iter().enumerate().rev() {
        states *= table.columns_len() as f64;
        if states >= root {
            return i;
        }
    }
    0
}

/// out ← weight · Π of every combination of the tables' entries for draw `s`, the last table fastest.
fn products(tables: &[Batch], s: usize, weight: f64, out: &mut Vec<f64>) {
    out.clear();
    out.push(weight);
    for table in tables {
        let len = out.len();
        out.resize(len * table.columns_len(), 0.0);
        // From the back, so that entries are read before they are overwritten.
        for i in (0..len).rev() {
            let p = out[i];
            for v in (0..table.columns_len()).rev() {
                out[i * table.columns_len() + v] = p * table.get(v, s);
            }
        }
    }
}

/// Σ_s weights\[s\] q(z | λ_s) for every state, for a q that is not a product of factors.
fn whole_states(q: &Variational, grid: &Grid, lambda: &Batch, weights: &[f64], scratch: &mut Scratch) -> Vec<f64> {
    let states = grid.states();
    let mut same = Batch::zeros(lambda.columns_len(), grid.len());
    let mut log_q = Batch::zeros(states.columns_len(), grid.len());
    let mut total = vec![0.0; grid.len()];
    for (s, weight) in weights.iter().enumerate() {
        for j in 0..lambda.columns_len() {
            same.column_mut(j).fill(lambda.get(j, s));
        }
        q.likelihood().log_density(&same, &states, &mut log_q, scratch);
        for (state, total) in total.iter_mut().enumerate() {
            *total += weight * (0..log_q.columns_len()).map(|i| log_q.get(i, state)).sum::<f64>().exp();
        }
    }
    total
}

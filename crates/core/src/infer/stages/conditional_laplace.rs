//! A model as a few latents θ and the many others x that they describe: the mode and the Gaussian of x given θ, and values of θ weighted by
//! the marginal density, with x integrated out by Laplace's method.

use super::adaptive_importance::Proposal;
use super::conditional_grid::ConditionalGrid;
use super::sparse_curvature::SparseCurvature;
use super::whitening::Whitening;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::{Purpose, Stream, stream};
use hyperprior_math::sparse::SparseCholesky;
use hyperprior_math::special::HALF_LN_2_PI;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// The most latents that describe the others.
const HUBS_MAX: usize = 16;
/// The most steps of Newton's method towards the mode of x, how often one is halved, and the gain at which they end.
const STEPS: usize = 8;
const HALVINGS: usize = 8;
const GAIN_MIN: f64 = 1e-3;
/// The least curvature along a latent.
pub(super) const FLAT: f64 = 1e-8;
/// Values of θ that are treated together.
pub(super) const TOGETHER: usize = 16;

/// The Gaussian of x given θ.
pub(super) struct Conditional {
    /// All latents, with x at its mode.
    pub(super) point: Vec<f64>,
    pub(super) factor: SparseCholesky,
    /// The log density at the point.
    pub(super) log_p: f64,
}

/// The model as θ and x.
pub(super) struct Parts<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) theta: Vec<usize>,
    pub(super) others: Vec<usize>,
    pub(super) curvature: SparseCurvature,
    /// The mean of all latents, and how much each is expected to change with each standardised θ.
    pub(super) mean: Vec<f64>,
    pub(super) slopes: Vec<Vec<f64>>,
    /// The lower Cholesky factor of the covariance of θ in the Gaussian.
    pub(super) scale: Vec<f64>,
}

impl<'a> Parts<'a> {
    /// `None` if no latents describe the others, or too many do, or if some are discrete.
    pub(super) fn new(model: &'a dyn Model, location: &[f64], whitening: &Whitening) -> Option<Self> {
        let n = location.len();
        let Whitening::Sparse(factor) = whitening else { return None };
        // The others may be discrete.
        if n != model.latents().len() {
            return None;
        }
        let theta = SparseCurvature::new(model, &(0..n).collect::<Vec<_>>())?.hubs();
        if theta.is_empty() || theta.len() > HUBS_MAX {
            return None;
        }
        let others: Vec<usize> = (0..n).filter(|i| theta.binary_search(i).is_err()).collect();
        let curvature = SparseCurvature::new(model, &others)?;
        // The columns of the covariance that belong to θ.
        let k = theta.len();
        let mut columns = vec![0.0; n * k];
        theta.iter().enumerate().for_each(|(c, i)| columns[i * k + c] = 1.0);
        factor.solve(&mut columns, k);
        factor.solve_transpose(&mut columns, k);
        let covariance: Vec<f64> = (0..k * k).map(|e| columns[theta[e / k] * k + e % k]).collect();
        let scale = cholesky(&covariance, k)?;
        // Σ_xθ L⁻ᵀ, where L Lᵀ is the covariance of θ.
        let slopes = (0..n)
            .map(|i| {
                let mut slope = columns[i * k..(i + 1) * k].to_vec();
                for a in 0..k {
                    let taken: f64 = (0..a).map(|b| scale[packed(a, b)] * slope[b]).sum();
                    slope[a] = (slope[a] - taken) / scale[packed(a, a)];
                }
                slope
            })
            .collect();
        Some(Self { model, theta, others, curvature, mean: location.to_vec(), slopes, scale })
    }

    /// θ and the others, near a point.
    pub(super) fn at(
        model: &'a dyn Model,
        (theta, others): (Vec<usize>, Vec<usize>),
        curvature: SparseCurvature,
        point: Vec<f64>,
    ) -> Self {
        let k = theta.len();
        let scale = (0..k).flat_map(|i| (0..=i).map(move |j| f64::from(i == j))).collect();
        let slopes = vec![vec![0.0; k]; point.len()];
        Self { model, theta, others, curvature, mean: point, slopes, scale }
    }

    /// Where all latents are expected to be, given θ.
    fn expected(&self, theta: &[f64]) -> Vec<f64> {
        let mut e: Vec<f64> = self.theta.iter().zip(theta).map(|(i, x)| x - self.mean[*i]).collect();
        for a in 0..e.len() {
            let taken: f64 = (0..a).map(|b| self.scale[packed(a, b)] * e[b]).sum();
            e[a] = (e[a] - taken) / self.scale[packed(a, a)];
        }
        let away = |slope: &Vec<f64>| slope.iter().zip(&e).map(|(s, e)| s * e).sum::<f64>();
        let mut point: Vec<f64> = self.mean.iter().zip(&self.slopes).map(|(m, slope)| m + away(slope)).collect();
        self.theta.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
        point
    }

    /// The Gaussians of x given some values of θ; `None` for those without a finite density.
    pub(super) fn conditionals(&self, theta: &[Vec<f64>]) -> Result<Vec<Option<Conditional>>> {
        let (n, len) = (self.mean.len(), theta.len());
        let Some(gradient) = self.model.gradient() else { return Ok(Vec::new()) };
        let mut points = Batch::zeros(n, len);
        for (s, theta) in theta.iter().enumerate() {
            self.expected(theta).into_iter().enumerate().for_each(|(i, x)| points.set(i, s, x));
        }
        let (mut log_p, mut d_z) = (vec![0.0; len], Batch::zeros(n, len));
        let mut factors: Vec<Option<SparseCholesky>> = vec![None; len];
        let mut is_moving = vec![true; len];
        for step in 0..=STEPS {
            gradient.log_joint_gradient(&points, &mut log_p, &mut d_z)?;
            let entries = self.curvature.at(self.model, &self.others, &points)?;
            for (s, entries) in entries.into_iter().enumerate() {
                let found = entries.and_then(|entries| self.curvature.definite(entries, FLAT));
                factors[s] = found.map(|(_, factor)| factor);
                is_moving[s] &= factors[s].is_some() && log_p[s].is_finite();
            }
            if step == STEPS || !is_moving.contains(&true) {
                break;
            }
            self.newton_step(&mut points, &log_p, &d_z, &factors, &mut is_moving)?;
        }
        let one = |s: usize| {
            let point: Vec<f64> = (0..n).map(|i| points.get(i, s)).collect();
            factors[s].clone().filter(|_| log_p[s].is_finite()).map(|factor| Conditional {
                point,
                factor,
                log_p: log_p[s],
            })
        };
        Ok((0..len).map(one).collect())
    }

    /// One step of Newton's method for each point that still moves, halved until the density rises.
    fn newton_step(
        &self,
        points: &mut Batch,
        log_p: &[f64],
        d_z: &Batch,
        factors: &[Option<SparseCholesky>],
        is_moving: &mut [bool],
    ) -> Result<()> {
        let len = points.draws_len();
        let mut steps: Vec<Vec<f64>> = vec![Vec::new(); len];
        for s in (0..len).filter(|s| is_moving[*s]) {
            if let Some(factor) = &factors[s] {
                steps[s] = self.others.iter().map(|i| d_z.get(*i, s)).collect();
                factor.solve(&mut steps[s], 1);
                factor.solve_transpose(&mut steps[s], 1);
            }
        }
        let (mut share, mut open) = (1.0, is_moving.to_vec());
        let (mut tried, mut log_tried) = (points.clone(), vec![0.0; len]);
        for _ in 0..HALVINGS {
            for s in (0..len).filter(|s| open[*s]) {
                for (i, step) in self.others.iter().zip(&steps[s]) {
                    tried.set(*i, s, points.get(*i, s) + share * step);
                }
            }
            self.model.log_joint(&tried, &mut log_tried)?;
            for s in 0..len {
                if open[s] && log_tried[s] >= log_p[s] {
                    open[s] = false;
                    is_moving[s] = log_tried[s] > log_p[s] + GAIN_MIN;
                    self.others.iter().for_each(|i| points.set(*i, s, tried.get(*i, s)));
                }
            }
            share *= 0.5;
            if !open.contains(&true) {
                return Ok(());
            }
        }
        // Where no step is uphill, the point is the mode, as far as can be told.
        is_moving.iter_mut().zip(open).for_each(|(is, open)| *is &= !open);
        Ok(())
    }

    /// Values of θ with the Gaussians of x, and the log weights of θ; those without a finite density are left out.
    pub(super) fn explore(
        &self,
        from: &(dyn Fn(&mut Stream) -> (Vec<f64>, f64) + Sync),
        len: usize,
        seed: u64,
        round: u64,
    ) -> Result<Vec<(Conditional, f64, f64)>> {
        let numbers: Vec<u64> = (0..len as u64).collect();
        let found: Vec<Vec<(Conditional, f64, f64)>> = numbers
            .par_chunks(TOGETHER)
            .map(|numbers| {
                let draw = |s: &u64| from(&mut stream(seed, Purpose::NestedLaplace.step(), round, *s));
                let (theta, log_q): (Vec<Vec<f64>>, Vec<f64>) = numbers.iter().map(draw).unzip();
                let constant = self.others.len() as f64 * HALF_LN_2_PI;
                let with_weight = |(one, log_q): (Option<Conditional>, f64)| {
                    one.map(|one| {
                        let log_weight = one.log_p + constant - one.factor.log_diagonal() - log_q;
                        (one, log_weight, log_q)
                    })
                };
                Ok(self.conditionals(&theta)?.into_iter().zip(log_q).filter_map(with_weight).collect())
            })
            .collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().filter(|(_, log_weight, _)| log_weight.is_finite()).collect())
    }

    /// The densities of x given θ, if they are independent.
    pub(super) fn grid(&self, one: &Conditional) -> Result<Option<ConditionalGrid>> {
        if !self.curvature.is_diagonal() {
            return Ok(None);
        }
        let mut scales = vec![1.0; self.others.len()];
        one.factor.solve_transpose(&mut scales, 1);
        ConditionalGrid::new(self.model, &one.point, &self.others, scales)
    }

    /// Draws x from its Gaussian, each draw with its mirror image, and adds the negative log densities to `energy`; returns the log
    /// integral of the density by Laplace's method.
    pub(super) fn draw(&self, one: &Conditional, rng: &mut Stream, z: &mut Batch, energy: &mut [f64]) -> f64 {
        let log_integral = self.others.len() as f64 * HALF_LN_2_PI - one.factor.log_diagonal();
        energy.iter_mut().for_each(|energy| *energy += log_integral);
        let mut e = Batch::zeros(self.others.len(), energy.len());
        for k in 0..self.others.len() {
            for (own, energy) in e.column_mut(k).chunks_mut(2).zip(energy.chunks_mut(2)) {
                let x: f64 = StandardNormal.sample(rng);
                own.copy_from_slice(&[x, -x]);
                energy.iter_mut().for_each(|energy| *energy += 0.5 * x * x);
            }
        }
        one.factor.solve_transpose(e.as_mut_slice(), energy.len());
        for (k, i) in self.others.iter().enumerate() {
            z.column_mut(*i).iter_mut().zip(e.column(k)).for_each(|(z, x)| *z += x);
        }
        log_integral
    }

    /// The weighted mean and scale of θ, the scale times a factor.
    pub(super) fn proposal(
        &self,
        found: &[(Conditional, f64, f64)],
        log_weights: &[f64],
        wider: f64,
    ) -> Option<Proposal> {
        Proposal::of(&self.thetas(found), log_weights, wider)
    }

    /// The values of θ.
    pub(super) fn thetas(&self, found: &[(Conditional, f64, f64)]) -> Vec<Vec<f64>> {
        found.iter().map(|(one, ..)| self.theta.iter().map(|i| one.point[*i]).collect()).collect()
    }
}

/// The log weights of θ.
pub(super) fn weights_of(found: &[(Conditional, f64, f64)]) -> Vec<f64> {
    found.iter().map(|(_, log_weight, _)| *log_weight).collect()
}

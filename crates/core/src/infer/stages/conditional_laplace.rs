//! A model as a few latents θ and the many others x that they describe: the mode and the Gaussian of x given θ, and values of θ weighted by
//! the marginal density, with x integrated out by Laplace's method.

use super::adaptive_importance::Proposal;
use super::conditional_grid::ConditionalGrid;
use super::resample::taken;
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
/// The most modes that are remembered.
const KNOWN: usize = 256;
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
    /// All latents at some values of θ, with x at its mode.
    known: Vec<Vec<f64>>,
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
        Some(Self { model, theta, others, curvature, mean: location.to_vec(), slopes, scale, known: Vec::new() })
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
        Self { model, theta, others, curvature, mean: point, slopes, scale, known: Vec::new() }
    }

    /// Where all latents are expected to be, given θ: near the mode for the nearest θ that is known.
    fn expected(&self, theta: &[f64]) -> Vec<f64> {
        let to_mean = self.away(theta, |i| self.mean[i]);
        let nearest = self.known.iter().map(|point| (point, self.away(theta, |i| point[i])));
        let squared = |e: &[f64]| e.iter().map(|x| x * x).sum::<f64>();
        let (from, e) = nearest.fold((&self.mean, to_mean), |a, b| if squared(&b.1) < squared(&a.1) { b } else { a });
        let away = |slope: &Vec<f64>| slope.iter().zip(&e).map(|(s, e)| s * e).sum::<f64>();
        let mut point: Vec<f64> = from.iter().zip(&self.slopes).map(|(m, slope)| m + away(slope)).collect();
        self.theta.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
        point
    }

    /// How far θ is from a point, standardised.
    fn away(&self, theta: &[f64], at: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut e: Vec<f64> = self.theta.iter().zip(theta).map(|(i, x)| x - at(*i)).collect();
        for a in 0..e.len() {
            let taken: f64 = (0..a).map(|b| self.scale[packed(a, b)] * e[b]).sum();
            e[a] = (e[a] - taken) / self.scale[packed(a, a)];
        }
        e
    }

    /// Remembers some of these modes; searches for others begin there.
    pub(super) fn remember(&mut self, found: &[(Conditional, f64, f64)]) {
        self.known = found.iter().take(KNOWN).map(|(one, ..)| one.point.clone()).collect();
    }

    /// The Gaussians of x given some values of θ; `None` for those without a finite density.
    pub(super) fn conditionals(&self, theta: &[Vec<f64>]) -> Result<Vec<Option<Conditional>>> {
        let Some(gradient) = self.model.gradient() else { return Ok(Vec::new()) };
        let mut found: Vec<Option<Conditional>> = theta.iter().map(|_| None).collect();
        // The numbers of those that still move, and where they are.
        let mut moving: Vec<usize> = (0..theta.len()).collect();
        let mut points = Batch::from_draws(&theta.iter().map(|theta| self.expected(theta)).collect::<Vec<_>>());
        for step in 1..=STEPS {
            let (mut log_p, mut d_z) = (vec![0.0; moving.len()], Batch::zeros(self.mean.len(), moving.len()));
            gradient.log_joint_gradient(&points, &mut log_p, &mut d_z)?;
            let factors = self.factors(&points, &log_p)?;
            let gains = self.newton_step(&mut points, &mut log_p, &d_z, &factors)?;
            let has_ended = |s: &usize| step == STEPS || gains[*s] <= GAIN_MIN;
            let finite = (0..moving.len()).filter(|s| factors[*s].is_some());
            let (ended, left): (Vec<usize>, Vec<usize>) = finite.partition(has_ended);
            let log_p: Vec<f64> = ended.iter().map(|s| log_p[*s]).collect();
            let factors = self.factors(&taken(&points, &ended), &log_p)?;
            for ((s, factor), log_p) in ended.into_iter().zip(factors).zip(log_p) {
                let mut point = vec![0.0; points.columns_len()];
                points.read_draw(s, &mut point);
                found[moving[s]] = factor.map(|factor| Conditional { point, factor, log_p });
            }
            points = taken(&points, &left);
            moving = left.into_iter().map(|s| moving[s]).collect();
            if moving.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// The factors of the curvature at these points; `None` where the density is not finite.
    fn factors(&self, points: &Batch, log_p: &[f64]) -> Result<Vec<Option<SparseCholesky>>> {
        let entries = self.curvature.at(self.model, &self.others, points)?.into_iter().zip(log_p);
        let of_point = |(entries, log_p): (Option<Vec<f64>>, &f64)| {
            let (_, factor) = self.curvature.definite(entries.filter(|_| log_p.is_finite())?, FLAT)?;
            Some(factor)
        };
        Ok(entries.map(of_point).collect())
    }

    /// One step of Newton's method for each point, halved until the density rises; returns by how much it does. Where no step is uphill,
    /// the point is the mode, as far as can be told.
    fn newton_step(
        &self,
        points: &mut Batch,
        log_p: &mut [f64],
        d_z: &Batch,
        factors: &[Option<SparseCholesky>],
    ) -> Result<Vec<f64>> {
        let len = points.draws_len();
        let (mut steps, mut gains) = (vec![Vec::new(); len], vec![0.0; len]);
        let mut open: Vec<usize> = Vec::new();
        for (s, factor) in factors.iter().enumerate() {
            if let Some(factor) = factor {
                steps[s] = self.others.iter().map(|i| d_z.get(*i, s)).collect();
                factor.solve(&mut steps[s], 1);
                factor.solve_transpose(&mut steps[s], 1);
                open.push(s);
            }
        }
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            if open.is_empty() {
                break;
            }
            let mut tried = taken(points, &open);
            for (k, s) in open.iter().enumerate() {
                let moved = self.others.iter().zip(&steps[*s]);
                moved.for_each(|(i, step)| tried.set(*i, k, points.get(*i, *s) + share * step));
            }
            let mut log_tried = vec![0.0; open.len()];
            self.model.log_joint(&tried, &mut log_tried)?;
            let mut still = Vec::new();
            for (k, s) in open.into_iter().enumerate() {
                if log_tried[k] >= log_p[s] {
                    gains[s] = log_tried[k] - log_p[s];
                    log_p[s] = log_tried[k];
                    self.others.iter().for_each(|i| points.set(*i, s, tried.get(*i, k)));
                } else {
                    still.push(s);
                }
            }
            open = still;
            share *= 0.5;
        }
        Ok(gains)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;

    /// Catches modes that depend on where the search for them began, or on which others were searched for with them.
    #[test]
    fn modes_are_the_same_from_other_modes() {
        let walk = Coupled::walk(60);
        let others: Vec<usize> = (1..61).collect();
        let curvature = || SparseCurvature::new(&walk, &others).expect("a sparse curvature");
        let mut parts = Parts::at(&walk, (vec![0], others.clone()), curvature(), vec![0.0; 61]);
        let theta: Vec<Vec<f64>> = (0..20).map(|k| vec![-1.0 + 0.2 * f64::from(k)]).collect();
        let found = parts.conditionals(&theta).expect("no fault");
        let some = found.into_iter().flatten().map(|one| (one, 0.0, 0.0)).collect::<Vec<_>>();
        assert_eq!(some.len(), theta.len());
        parts.remember(&some[..5]);
        for ((before, ..), theta) in some.iter().zip(&theta) {
            assert_eq!(before.point[0], theta[0]);
            let alone = parts.conditionals(std::slice::from_ref(theta)).expect("no fault").remove(0).expect("a mode");
            // A search ends where a step gains less than this.
            assert!((alone.log_p - before.log_p).abs() < 2.0 * GAIN_MIN, "{} {}", alone.log_p, before.log_p);
            let log_marginal = |one: &Conditional| one.log_p - one.factor.log_diagonal();
            assert!((log_marginal(&alone) - log_marginal(before)).abs() < 0.01);
            // The gradient along x vanishes.
            let gradient = walk.gradient().expect("a gradient");
            let (mut log_p, mut d_z) = ([0.0], Batch::zeros(61, 1));
            let point = Batch::from_columns(alone.point.clone(), 1);
            gradient.log_joint_gradient(&point, &mut log_p, &mut d_z).expect("no fault");
            assert!((log_p[0] - alone.log_p).abs() < 1e-9);
            let mut step: Vec<f64> = others.iter().map(|i| d_z.get(*i, 0)).collect();
            alone.factor.solve(&mut step, 1);
            assert!(step.iter().map(|x| x * x).sum::<f64>() < 2.0 * GAIN_MIN);
        }
    }
}

//! Nested Laplace approximation (Rue, Martino and Chopin, 2009) for very many latents x that a few others θ describe.
//!
//! One Gaussian over all of them cannot follow how the location and the scale of x change with θ. So θ is drawn from its marginal, with x
//! integrated out by Laplace's method, and x from the Gaussian at its mode given θ. If x is Gaussian given θ and the data, this is exact.

use super::adaptive_importance::{Proposal, effective, tempered};
use super::resample::systematic;
use super::sparse_curvature::SparseCurvature;
use super::whitening::Whitening;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::sparse::SparseCholesky;
use hyperprior_math::special::{HALF_LN_2_PI, log_sum_exp};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// The most latents that describe the others.
const HUBS_MAX: usize = 64;
/// The values of θ from which its marginal is learnt, and those that are kept. The draws of x for each are in pairs.
const LEARNT: usize = 256;
const KEPT: usize = 1024;
/// Values of θ that are treated together.
const TOGETHER: usize = 16;
/// How much wider than its guess the distribution is that θ is drawn from, at first and then.
const WIDER: [f64; 2] = [1.5, 1.1];
/// The most of θ that are searched for, the values in a round of the search, the most rounds, and the number of their random streams.
const SEARCHED_MAX: usize = 8;
const SEARCHED: usize = 96;
const SEARCH_ROUNDS: u64 = 20;
const SEARCH_STREAM: u64 = 3;
/// The most steps of Newton's method towards the mode of x, how often one is halved, and the gain at which they end.
const STEPS: usize = 8;
const HALVINGS: usize = 8;
const GAIN_MIN: f64 = 1e-3;
/// The least curvature along a latent.
const FLAT: f64 = 1e-8;

/// Draws of θ and x.
pub(in crate::infer) struct Nested {
    pub(in crate::infer) z: Batch,
    /// Their log importance weights.
    pub(in crate::infer) log_weights: Vec<f64>,
    /// The log weights of their θ, with x integrated out by Laplace's method.
    log_marginal_weights: Vec<f64>,
    /// How many consecutive draws have the same θ.
    pub(in crate::infer) each: usize,
}

/// The Gaussian of x given θ.
struct Conditional {
    /// All latents, with x at its mode.
    point: Vec<f64>,
    factor: SparseCholesky,
    /// The log density at the point.
    log_p: f64,
}

/// The model as θ and x.
struct Parts<'a> {
    model: &'a dyn Model,
    theta: Vec<usize>,
    others: Vec<usize>,
    curvature: SparseCurvature,
    /// The mean of all latents, and how much each is expected to change with each standardised θ.
    mean: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// The lower Cholesky factor of the covariance of θ in the Gaussian.
    scale: Vec<f64>,
}

impl<'a> Parts<'a> {
    /// `None` if no latents describe the others, or too many do.
    fn new(model: &'a dyn Model, location: &[f64], whitening: &Whitening) -> Option<Self> {
        let n = location.len();
        let Whitening::Sparse(factor) = whitening else { return None };
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
    fn conditionals(&self, theta: &[Vec<f64>]) -> Result<Vec<Option<Conditional>>> {
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
    fn explore(&self, from: &Proposal, len: usize, seed: u64, round: u64) -> Result<Vec<(Conditional, f64, f64)>> {
        let numbers: Vec<u64> = (0..len as u64).collect();
        let found: Vec<Vec<(Conditional, f64, f64)>> = numbers
            .par_chunks(TOGETHER)
            .map(|numbers| {
                let draw = |s: &u64| from.draw(&mut stream(seed, Purpose::NestedLaplace.step(), round, *s));
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

    /// The weighted mean and scale of θ, the scale times a factor.
    fn proposal(&self, found: &[(Conditional, f64, f64)], log_weights: &[f64], wider: f64) -> Option<Proposal> {
        let k = self.theta.len();
        let log_sum = log_sum_exp(log_weights);
        let weight = |s: usize| (log_weights[s] - log_sum).exp();
        let of = |s: usize, a: usize| found[s].0.point[self.theta[a]];
        let mean: Vec<f64> = (0..k).map(|a| (0..found.len()).map(|s| weight(s) * of(s, a)).sum()).collect();
        let entry = |a: usize, b: usize| {
            (0..found.len()).map(|s| weight(s) * (of(s, a) - mean[a]) * (of(s, b) - mean[b])).sum::<f64>()
        };
        let covariance: Vec<f64> = (0..k * k).map(|e| entry(e / k, e % k)).collect();
        let scale = cholesky(&covariance, k)?.into_iter().map(|x| wider * x).collect();
        Some(Proposal { mean, scale })
    }
}

/// The log weights of θ.
fn weights_of(found: &[(Conditional, f64, f64)]) -> Vec<f64> {
    found.iter().map(|(_, log_weight, _)| *log_weight).collect()
}

/// The middle of the marginal of θ, with x at its mode there: where the mass is, though a density over θ and x together may be larger, or
/// unbounded, where the scale of x is small. θ is looked for by importance sampling whose proposal moves to the weighted mean, at first
/// with weights to a small power (population Monte Carlo; Cappé, Guillin, Marin and Robert, 2004). `None` if the model is not of this
/// kind. The points are where θ may be.
pub(super) fn marginal_centre(
    model: &dyn Model,
    sparse: &SparseCurvature,
    points: &Batch,
    seed: u64,
) -> Result<Option<Vec<f64>>> {
    let (n, theta) = (points.columns_len(), sparse.hubs());
    let (k, others): (usize, Vec<usize>) = (theta.len(), (0..n).filter(|i| theta.binary_search(i).is_err()).collect());
    if theta.is_empty() || k > SEARCHED_MAX {
        return Ok(None);
    }
    let Some(curvature) = SparseCurvature::new(model, &others) else { return Ok(None) };
    let unit: Vec<f64> = (0..k).flat_map(|i| (0..=i).map(move |j| f64::from(i == j))).collect();
    let mean = (0..n).map(|i| points.get(i, 0)).collect();
    let mut parts = Parts { model, theta, others, curvature, mean, slopes: vec![vec![0.0; k]; n], scale: unit.clone() };
    let candidates: Vec<Vec<f64>> =
        (0..points.draws_len()).map(|s| parts.theta.iter().map(|i| points.get(*i, s)).collect()).collect();
    let found: Vec<Vec<Option<Conditional>>> =
        candidates.par_chunks(TOGETHER).map(|theta| parts.conditionals(theta)).collect::<Result<_>>()?;
    let log_marginal = |one: &Conditional| one.log_p - one.factor.log_diagonal();
    let best = |a: Conditional, b: Conditional| if log_marginal(&b) > log_marginal(&a) { b } else { a };
    let Some(mut at) = found.into_iter().flatten().flatten().reduce(best) else { return Ok(None) };
    let mut proposal = Proposal { mean: parts.theta.iter().map(|i| at.point[*i]).collect(), scale: unit };
    for round in 0..SEARCH_ROUNDS {
        parts.mean.clone_from(&at.point);
        let found = parts.explore(&proposal, SEARCHED, seed, SEARCH_STREAM + round)?;
        if found.len() < SEARCHED / 4 {
            proposal.scale.iter_mut().for_each(|x| *x *= 0.5);
            continue;
        }
        let (weights, power) = tempered(&weights_of(&found), 3.0 * k as f64 + 8.0);
        let is_found = power == 1.0 && effective(&weights) > SEARCHED as f64 / 3.0;
        match parts.proposal(&found, &weights, WIDER[0]) {
            Some(next) => proposal = next,
            None => proposal.scale.iter_mut().for_each(|x| *x *= 0.5),
        }
        let middle = parts.conditionals(&[proposal.mean.clone()])?.into_iter().flatten().next();
        at = match (middle, is_found) {
            (Some(middle), true) => return Ok(Some(middle.point)),
            (Some(middle), false) => middle,
            (None, _) => at,
        };
    }
    Ok(None)
}

/// `len` draws; `None` if the model is not of this kind.
pub(in crate::infer) fn nested_laplace(
    model: &dyn Model,
    (location, whitening): (&[f64], &Whitening),
    len: usize,
    seed: u64,
) -> Result<Option<Nested>> {
    let Some(parts) = Parts::new(model, location, whitening) else { return Ok(None) };
    let first = Proposal {
        mean: parts.theta.iter().map(|i| parts.mean[*i]).collect(),
        scale: parts.scale.iter().map(|x| WIDER[0] * x).collect(),
    };
    let learnt = parts.explore(&first, LEARNT, seed, 0)?;
    // With few weights that count, the covariance is not known.
    let weights = weights_of(&learnt);
    let is_known = effective(&weights) > 4.0 * parts.theta.len() as f64;
    let second = if is_known { parts.proposal(&learnt, &weights, WIDER[1]) } else { None };
    let found = parts.explore(second.as_ref().unwrap_or(&first), KEPT, seed, 1)?;
    if found.len() < KEPT / 2 {
        return Ok(None);
    }
    let n = location.len();
    let each = len.div_ceil(found.len()).next_multiple_of(2);
    let draws: Vec<(Batch, Vec<f64>, f64)> = found
        .par_iter()
        .enumerate()
        .map(|(number, (one, log_marginal, log_q))| {
            let mut rng = stream(seed, Purpose::NestedLaplace.step(), 2, number as u64);
            let mut e = Batch::zeros(parts.others.len(), each);
            let mut energy = vec![0.0; each];
            for k in 0..parts.others.len() {
                for (pair, own) in e.column_mut(k).chunks_mut(2).enumerate() {
                    let x: f64 = StandardNormal.sample(&mut rng);
                    own.copy_from_slice(&[x, -x]);
                    energy[2 * pair] += 0.5 * x * x;
                    energy[2 * pair + 1] += 0.5 * x * x;
                }
            }
            one.factor.solve_transpose(e.as_mut_slice(), each);
            let mut z = Batch::zeros(n, each);
            (0..n).for_each(|i| z.column_mut(i).fill(one.point[i]));
            for (k, i) in parts.others.iter().enumerate() {
                z.column_mut(*i).iter_mut().zip(e.column(k)).for_each(|(z, x)| *z += x);
            }
            let mut log_weights = vec![0.0; each];
            model.log_joint(&z, &mut log_weights)?;
            let constant = parts.others.len() as f64 * HALF_LN_2_PI - one.factor.log_diagonal() - log_q;
            log_weights.iter_mut().zip(&energy).for_each(|(w, energy)| *w += energy + constant);
            Ok((z, log_weights, *log_marginal))
        })
        .collect::<Result<_>>()?;
    let mut z = Batch::zeros(n, found.len() * each);
    let (mut log_weights, mut log_marginal_weights) = (Vec::new(), Vec::new());
    for (number, (own, of_own, log_marginal)) in draws.into_iter().enumerate() {
        for i in 0..n {
            z.column_mut(i)[number * each..(number + 1) * each].copy_from_slice(own.column(i));
        }
        log_weights.extend(of_own);
        log_marginal_weights.extend(std::iter::repeat_n(log_marginal, each));
    }
    Ok(Some(Nested { z, log_weights, log_marginal_weights, each }))
}

impl Nested {
    /// `len` draws in proportion to the weights of θ alone.
    pub(in crate::infer) fn by_marginal(&self, len: usize) -> Vec<usize> {
        systematic(&self.log_marginal_weights, log_sum_exp(&self.log_marginal_weights), len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_walk::Walk;

    /// The mean and the standard deviation of the precision's marginal by Laplace's method, on a grid.
    fn on_grid(parts: &Parts) -> (f64, f64) {
        let theta: Vec<Vec<f64>> = (0..160).map(|k| vec![3.0 + 0.05 * f64::from(k)]).collect();
        let found: Vec<Option<Conditional>> =
            theta.chunks(16).flat_map(|theta| parts.conditionals(theta).expect("no fault")).collect();
        let log_m: Vec<f64> = found
            .iter()
            .map(|one| one.as_ref().map_or(f64::NEG_INFINITY, |c| c.log_p - c.factor.log_diagonal()))
            .collect();
        let log_sum = log_sum_exp(&log_m);
        let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
            log_m.iter().zip(&theta).map(|(m, theta)| (m - log_sum).exp() * f(theta[0])).sum()
        };
        let mean = moment(&|x| x);
        (mean, moment(&|x| (x - mean).powi(2)).sqrt())
    }

    /// Catches a proposal whose density is wrong, a wrong constant of Laplace's method, and a search that ends elsewhere: the draws by the
    /// weights of θ have the marginal of θ on a grid, and the centre is its middle.
    #[test]
    fn the_marginal_of_the_precision_is_that_on_a_grid() {
        let (walk, n) = (Walk::new(400), 401);
        let sparse = SparseCurvature::new(&walk, &(0..n).collect::<Vec<_>>()).expect("a sparse curvature");
        assert_eq!(sparse.hubs(), [0]);
        // From far away: a precision of e⁹, where the walk hardly moves.
        let mut start = vec![0.0; n];
        start[0] = 9.0;
        let centre = marginal_centre(&walk, &sparse, &Batch::from_columns(start, 1), 1).expect("no fault");
        let centre = centre.expect("a centre");
        let entries = sparse.mean(&walk, &(0..n).collect::<Vec<_>>(), &Batch::from_columns(centre.clone(), 1));
        let (_, factor) = sparse.definite(entries.expect("no fault").expect("finite"), FLAT).expect("a factor");
        let whitening = Whitening::Sparse(factor);
        let parts = Parts::new(&walk, &centre, &whitening).expect("a model of this kind");
        let (mean, sd) = on_grid(&parts);
        assert!((centre[0] - mean).abs() < 0.3 * sd, "{} and {mean} ± {sd}", centre[0]);
        let nested = nested_laplace(&walk, (&centre, &whitening), 4000, 1).expect("no fault").expect("draws");
        let drawn: Vec<f64> = nested.by_marginal(4000).into_iter().map(|s| nested.z.get(0, s)).collect();
        let own = drawn.iter().sum::<f64>() / 4000.0;
        let own_sd = (drawn.iter().map(|x| (x - own).powi(2)).sum::<f64>() / 4000.0).sqrt();
        assert!((own - mean).abs() < 0.1 * sd && (own_sd / sd - 1.0).abs() < 0.08, "{own} ± {own_sd}, {mean} ± {sd}");
    }
}

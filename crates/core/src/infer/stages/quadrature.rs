//! Adaptive quadrature of posteriors with few coupled latents.
//!
//! Latents that are independent of each other given a few others θ are integrated out one by one, each on a line of its own
//! ([`LineDensity`]), whatever their densities look like: several modes, jumps, long tails. Latents that are Gaussian given θ are integrated
//! out together. One or two θ are integrated out on lines around that, more of them by adaptive importance sampling. The draws are nearly
//! independent and have importance weights, which would betray latents that are not independent, or not Gaussian, after all.

use super::conditional_laplace::{Conditional, Parts};
use super::division::{Division, chosen, may_suit};
use super::gaussian_check::is_gaussian_at;
use super::given_theta::{Given, Lines, Rest, log_integral};
use super::line_density::{LineDensity, Wanted};
use super::places::{Place, Seen, is_ordinary, place};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The tolerances of the lines of x and of θ.
const TOLERANCES: [f64; 2] = [1e-4, 5e-4];
/// Rounds in which a line gets new nodes.
const ROUNDS: usize = 80;
/// How many times the expected number of evaluations there may be.
const EVALUATED_MAX: f64 = 4.0;
/// Evaluations that are made together.
const TOGETHER: usize = 256;
/// A posterior as θ and the latents that are independent, or Gaussian, given θ.
pub(in crate::infer) struct Quadrature<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) outer: Vec<usize>,
    pub(super) inner: Vec<usize>,
    rest: Rest<'a>,
    /// Whether θ is integrated out on lines as well.
    pub(super) is_on_lines: bool,
    pub(super) places: Vec<Place>,
    pub(super) seen: Seen<'a>,
    /// The evaluations that a value of θ takes, those so far, and the most.
    each: f64,
    evaluated: AtomicU64,
    evaluated_max: u64,
}

impl<'a> Quadrature<'a> {
    /// For a model with continuous latents of which few are coupled with others, or leave the others Gaussian, if it takes no more than
    /// this work.
    pub(in crate::infer) fn new(
        model: &'a dyn Model,
        seen: Seen<'a>,
        allows_gaussian: bool,
        work_max: f64,
    ) -> Result<Option<Self>> {
        if !may_suit(model) {
            return Ok(None);
        }
        let Some(places) = (0..model.latents().len()).map(|i| place(&seen, i)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        if !is_ordinary(model, &places) {
            return Ok(None);
        }
        let Some(division) = chosen(model, &places, &seen, allows_gaussian, work_max)? else { return Ok(None) };
        let evaluated_max = (EVALUATED_MAX * division.evaluations()) as u64;
        let Division { outer, inner, rest, is_on_lines, each } = division;
        let evaluated = AtomicU64::new(0);
        Ok(Some(Self { model, outer, inner, rest, is_on_lines, places, seen, each, evaluated, evaluated_max }))
    }

    /// Whether so many more evaluations are too many.
    pub(super) fn is_spent(&self, more: usize) -> bool {
        self.evaluated.fetch_add(more as u64, Ordering::Relaxed) + more as u64 > self.evaluated_max
    }

    /// The number of θ, and of the latents that are independent given them.
    pub(in crate::infer) fn size(&self) -> [usize; 2] {
        [self.outer.len(), self.inner.len()]
    }

    /// Whether every latent is integrated out, as far as can be told; importance sampling of some is not exact.
    pub(in crate::infer) fn is_exact(&self) -> bool {
        self.is_on_lines && !matches!(self.rest, Rest::Gaussian { is_exact: false, .. })
    }

    /// Whether the others are Gaussian given θ, not independent.
    pub(in crate::infer) fn is_gaussian(&self) -> bool {
        matches!(self.rest, Rest::Gaussian { .. })
    }

    fn line(&self, latent: usize, tolerance: f64) -> LineDensity {
        LineDensity::new(self.places[latent].middle, self.places[latent].scale, tolerance)
    }

    /// The log density at a point.
    pub(super) fn log_joint(&self, point: &[f64]) -> Result<f64> {
        let mut log_p = [0.0];
        self.model.log_joint(&Batch::from_columns(point.to_vec(), 1), &mut log_p)?;
        Ok(log_p[0])
    }

    /// Adds nodes to the lines of the latents that are independent, the others being at this point with this log density. `None` if there
    /// were too many evaluations.
    fn evaluate(
        &self,
        (point, log_p): (&[f64], f64),
        jobs: &[(usize, f64)],
        lines: &mut [LineDensity],
    ) -> Result<Option<()>> {
        if self.is_spent(jobs.len()) {
            return Ok(None);
        }
        let mut found: Vec<Vec<(f64, f64)>> = vec![Vec::new(); lines.len()];
        for jobs in jobs.chunks(TOGETHER) {
            let mut z = Batch::zeros(point.len(), jobs.len());
            (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
            jobs.iter().enumerate().for_each(|(s, (j, x))| z.set(self.inner[*j], s, *x));
            let mut out = vec![0.0; jobs.len()];
            self.model.log_joint(&z, &mut out)?;
            jobs.iter().zip(out).for_each(|((j, x), own)| found[*j].push((*x, own - log_p)));
        }
        lines.iter_mut().zip(found).for_each(|(line, found)| line.add(found.into_iter()));
        Ok(Some(()))
    }

    /// The latents that are independent, given θ at this point. `None` if one cannot be covered.
    fn lines(&self, point: &[f64]) -> Result<Option<Lines>> {
        let lines = || self.inner.iter().map(|i| self.line(*i, TOLERANCES[0])).collect::<Vec<LineDensity>>();
        let (mut densities, mut point, mut log_p) = (lines(), point.to_vec(), 0.0);
        let first = |j: usize| densities[j].first(&self.places[self.inner[j]].known);
        let mut jobs: Vec<(usize, f64)> =
            (0..densities.len()).flat_map(|j| first(j).into_iter().map(move |x| (j, x))).collect();
        // While one is moved, the others are where the density is high. One alone needs no such place.
        if self.inner.len() > 1 {
            let mut coarse = lines();
            let base = self.log_joint(&point)?;
            if !base.is_finite() || self.evaluate((&point, base), &jobs, &mut coarse)?.is_none() {
                return Ok(None);
            }
            self.inner.iter().zip(&coarse).for_each(|(i, line)| point[*i] = line.best());
            log_p = self.log_joint(&point)?;
            if !log_p.is_finite() {
                return Ok(None);
            }
        }
        for _ in 0..ROUNDS {
            if self.evaluate((&point, log_p), &jobs, &mut densities)?.is_none() {
                return Ok(None);
            }
            jobs.clear();
            for (j, density) in densities.iter().enumerate() {
                match density.wanted() {
                    Wanted::Nodes(nodes) => jobs.extend(nodes.into_iter().map(|x| (j, x))),
                    Wanted::Nothing => {}
                    Wanted::Other => return Ok(None),
                }
            }
            if jobs.is_empty() {
                return Ok(Some(Lines { log_p, densities }));
            }
        }
        Ok(None)
    }

    /// The Gaussian of the other latents, given θ at this point.
    fn conditional(&self, (parts, is_exact): (&Parts, bool), point: &[f64]) -> Result<Option<Conditional>> {
        if self.is_spent(self.each as usize) {
            return Ok(None);
        }
        let theta: Vec<f64> = self.outer.iter().map(|i| point[*i]).collect();
        let Some(one) = parts.conditionals(&[theta])?.into_iter().flatten().next() else { return Ok(None) };
        let is_gaussian = || Ok(is_gaussian_at(parts, &one, 2, 1.0)? && is_gaussian_at(parts, &one, 3, 4.0)?);
        Ok((!is_exact || is_gaussian()?).then_some(one))
    }

    /// The distribution of the other latents, given θ at this point. `None` if one cannot be covered.
    pub(super) fn given(&self, point: &[f64]) -> Result<Option<Given>> {
        Ok(match &self.rest {
            Rest::Independent => self.lines(point)?.and_then(Lines::given),
            Rest::Gaussian { parts, is_exact } => self.conditional((parts, *is_exact), point)?.map(Given::from),
        })
    }

    /// The log density of the first θ up to this level, with all other latents integrated out. `None` if that cannot be done.
    pub(super) fn log_marginal(&self, level: usize, point: &[f64]) -> Result<Option<f64>> {
        if level == self.outer.len() {
            return Ok(match &self.rest {
                Rest::Independent => self.lines(point)?.map(|lines| lines.log_integral()),
                Rest::Gaussian { parts, is_exact } => {
                    self.conditional((parts, *is_exact), point)?.as_ref().map(log_integral)
                }
            });
        }
        Ok(self.outer(level, point)?.map(|density| density.log_integral()))
    }

    /// The density of the θ with this number, given those before it, with all others integrated out.
    pub(super) fn outer(&self, level: usize, point: &[f64]) -> Result<Option<LineDensity>> {
        let latent = self.outer[level];
        let mut density = self.line(latent, TOLERANCES[1]);
        let mut nodes = density.first(&self.places[latent].known);
        for _ in 0..ROUNDS {
            let at = |x: &f64| {
                let mut point = point.to_vec();
                point[latent] = *x;
                // Far away it may not be known.
                Ok((*x, self.log_marginal(level + 1, &point)?.unwrap_or(f64::NAN)))
            };
            let found: Vec<(f64, f64)> = nodes.par_iter().map(at).collect::<Result<_>>()?;
            density.add(found.into_iter());
            match density.wanted() {
                Wanted::Nodes(wanted) => nodes = wanted,
                Wanted::Nothing => return Ok(Some(density)),
                Wanted::Other => return Ok(None),
            }
        }
        Ok(None)
    }
}

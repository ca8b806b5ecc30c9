//! Adaptive quadrature of posteriors with few coupled latents.
//!
//! Latents that are independent of each other given a few others θ are integrated out one by one, each on a line of its own
//! ([`LineDensity`]), whatever their densities look like: several modes, jumps, long tails. One or two θ are integrated out the same way
//! around that, more of them by adaptive importance sampling. The draws are nearly independent and have importance weights, which would
//! betray latents that are not independent after all.

use super::independent::divided;
use super::line_density::{LineDensity, Wanted};
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most θ that are integrated out on lines, and by importance sampling.
pub(super) const LINES_MAX: usize = 2;
const OUTER_MAX: usize = 8;
/// The most latents that are integrated out given θ.
const INNER_MAX: usize = 100;
/// The tolerances of the lines of x and of θ.
const TOLERANCES: [f64; 2] = [1e-4, 5e-4];
/// Rounds in which a line gets new nodes.
const ROUNDS: usize = 80;
/// The nodes that a line is expected to need.
const NODES: f64 = 70.0;
/// The most values of the first θ that the draws have, if there are one or two θ; and how many of θ for each of them.
pub(super) const DRAWN: [(usize, usize); 2] = [(4096, 1), (1024, 4)];
/// The values of θ in a round of importance sampling, and those that are kept.
pub(super) const LEARNT: usize = 512;
pub(super) const KEPT: usize = 2048;
/// How many times the expected number of evaluations there may be.
const EVALUATED_MAX: f64 = 4.0;
/// The distance at which a model is asked whether it takes its usual time, in standard deviations.
const FAR: f64 = 64.0;
/// Evaluations that are made together.
const TOGETHER: usize = 256;
/// The most values that a latent is known to have.
const KNOWN_MAX: usize = 16;

/// What is known of a latent.
pub(super) struct Place {
    pub(super) middle: f64,
    scale: f64,
    known: Vec<f64>,
}

/// A posterior as θ and the latents that are independent given θ.
pub(in crate::infer) struct Quadrature<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) outer: Vec<usize>,
    pub(super) inner: Vec<usize>,
    pub(super) places: Vec<Place>,
    pub(super) seen: Seen<'a>,
    /// The evaluations so far, and the most.
    evaluated: AtomicU64,
    evaluated_max: u64,
}

/// Where the posterior is known to be.
pub(in crate::infer) struct Seen<'a> {
    /// Draws.
    pub(in crate::infer) z: &'a Batch,
    /// The ends of chains from elsewhere, if there are some.
    pub(in crate::infer) chains: Option<&'a Batch>,
    /// Modes.
    pub(in crate::infer) modes: &'a Batch,
    /// Where ascents ended.
    pub(in crate::infer) ends: &'a Batch,
}

/// The latents that are independent given θ: the log density where all others are, and each one's own.
pub(super) struct Inner {
    log_p: f64,
    pub(super) densities: Vec<LineDensity>,
}

impl Inner {
    pub(super) fn log_integral(&self) -> f64 {
        self.log_p + self.densities.iter().map(LineDensity::log_integral).sum::<f64>()
    }
}

/// Whether a model has few enough latents, and no discrete ones.
pub(in crate::infer) fn may_suit(model: &dyn Model) -> bool {
    let n = model.latents().len();
    n <= INNER_MAX + OUTER_MAX && !(0..n).any(|i| model.latents().support(i).is_discrete())
}

impl<'a> Quadrature<'a> {
    /// For a model with continuous latents of which few are coupled with others, if it takes no more than this work.
    pub(in crate::infer) fn new(model: &'a dyn Model, seen: Seen<'a>, work_max: f64) -> Option<Self> {
        if !may_suit(model) {
            return None;
        }
        let n = model.latents().len();
        let (outer, inner) = divided(model);
        let each = NODES * inner.len() as f64;
        let evaluations = each
            * match outer.len() {
                0 => 2.0,
                1 => NODES + DRAWN[0].0 as f64,
                2 => NODES * (NODES + DRAWN[1].0 as f64) + (DRAWN[1].0 * DRAWN[1].1) as f64,
                _ => (LEARNT * 2 + KEPT * 2) as f64,
            };
        if outer.len() > OUTER_MAX || inner.len() > INNER_MAX || evaluations * model.work() as f64 > work_max {
            return None;
        }
        let place = |i: usize| {
            let own = seen.z.column(i);
            let middle = own.iter().sum::<f64>() / own.len() as f64;
            let scale = (own.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / own.len() as f64).sqrt();
            let scale = if scale > 0.0 { scale } else { 1.0 };
            let mut known = seen.modes.column(i).to_vec();
            for x in seen.ends.column(i) {
                if known.len() < KNOWN_MAX && known.iter().all(|other| (x - other).abs() > 0.01 * scale) {
                    known.push(*x);
                }
            }
            (middle.is_finite() && scale.is_finite()).then_some(Place { middle, scale, known })
        };
        let places = (0..n).map(place).collect::<Option<Vec<_>>>()?;
        let evaluated_max = (EVALUATED_MAX * evaluations) as u64;
        let evaluated = AtomicU64::new(0);
        let quadrature = Self { model, outer, inner, places, seen, evaluated, evaluated_max };
        quadrature.is_ordinary().then_some(quadrature)
    }

    /// Whether the model takes its usual time far from the middle as well.
    fn is_ordinary(&self) -> bool {
        let n = self.places.len();
        let mut far = Batch::zeros(n, 2 * n);
        for (i, place) in self.places.iter().enumerate() {
            far.column_mut(i).fill(place.middle);
            far.set(i, 2 * i, place.middle - FAR * place.scale);
            far.set(i, 2 * i + 1, place.middle + FAR * place.scale);
        }
        let mut is_ordinary = vec![true; 2 * n];
        self.model.is_ordinary(&far, &mut is_ordinary);
        !is_ordinary.contains(&false)
    }

    /// Whether so many more evaluations are too many.
    fn is_spent(&self, more: usize) -> bool {
        self.evaluated.fetch_add(more as u64, Ordering::Relaxed) + more as u64 > self.evaluated_max
    }

    /// The number of θ, and of the latents that are independent given them.
    pub(in crate::infer) fn size(&self) -> [usize; 2] {
        [self.outer.len(), self.inner.len()]
    }

    /// Whether θ is integrated out on lines as well.
    pub(in crate::infer) fn is_on_lines(&self) -> bool {
        self.outer.len() <= LINES_MAX
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
    pub(super) fn inner(&self, point: &[f64]) -> Result<Option<Inner>> {
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
                return Ok(Some(Inner { log_p, densities }));
            }
        }
        Ok(None)
    }

    /// The log density of the first θ up to this level, with all other latents integrated out. `None` if that cannot be done.
    pub(super) fn log_marginal(&self, level: usize, point: &[f64]) -> Result<Option<f64>> {
        if level == self.outer.len() {
            return Ok(self.inner(point)?.map(|inner| inner.log_integral()));
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
                Ok(self.log_marginal(level + 1, &point)?.map(|log_p| (*x, log_p)))
            };
            let found: Vec<Option<(f64, f64)>> = nodes.par_iter().map(at).collect::<Result<_>>()?;
            let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
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

//! Draws of posteriors by adaptive quadrature, with importance weights.

use super::adaptive_importance::{Proposal, TMixture, effective, tempered, wider};
use super::division::{DRAWN, KEPT, LEARNT};
use super::given_theta::Given;
use super::line_density::LineDistribution;
use super::nested_laplace::{Nested, Part, WIDER};
use super::places::Seen;
use super::quadrature::Quadrature;
use crate::diagnostics::psis::psis;
use crate::error::Result;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use hyperprior_math::special::log_sum_exp;
use rand::seq::SliceRandom;
use rayon::prelude::*;

/// The most rounds in which the distribution of θ is learnt, the share of the values that must be effective then, and how often the kernels
/// are improved.
const LEARNING_ROUNDS: u64 = 10;
const EVEN: f64 = 0.2;
const ATTEMPTS: u64 = 4;
/// The number of the random streams of values of θ that are kept, and of levels.
const KEPT_STREAM: u64 = 100;
const LEVELS_STREAM: u64 = 200;
/// The draws at which the density is compared, with at most one θ and with more; by how many nats the posterior may be higher, on lines and
/// with importance sampling, whose density is not as close; and at how many draws.
const CHECKED: [usize; 2] = [512, 64];
const HIGHER: [f64; 2] = [1.0, 4.0];
const HIGHER_MAX: usize = 2;
/// The nats below the highest point, but for one for each latent, at which there is no mass.
const NEGLIGIBLE: f64 = 40.0;

/// Draws, if they cover the posterior.
pub(in crate::infer) enum Drawn {
    Draws(Nested),
    /// These points are not covered.
    Missed(Vec<Vec<f64>>),
    /// Some latents cannot be integrated out.
    Failed,
}

/// A point with a value of θ, or that value, and the log density from which it was drawn.
type Valued = (Vec<f64>, f64);

/// The distribution from which θ is drawn: of the first of one or two, or of all.
enum Outer {
    /// There is no θ: the others have this distribution.
    None(Given),
    Line(LineDistribution),
    Kernels(TMixture),
}

/// The share of the levels at either end that are kept one by one, and how many of the others are joined.
const ENDS: f64 = 0.05;
const JOINED: usize = 4;

/// `len` numbers between 0 and 1 in random order, in the middles of as many intervals: with these for each latent, the draws are a Latin
/// hypercube, and worth more than independent ones. At random places in the intervals, the last of 4,000 could be so far out that it alone
/// decides a standard deviation.
pub(super) fn levels(len: usize, seed: u64, number: u64) -> Vec<f64> {
    joined_levels(len, 1, seed, number).into_iter().map(|(level, _)| level).collect()
}

/// The same levels, but so many joined into one between the ends, with the number that each stands for.
pub(super) fn joined_levels(len: usize, joined: usize, seed: u64, number: u64) -> Vec<(f64, usize)> {
    let end = (ENDS * len as f64).ceil() as usize;
    let (mut levels, mut k) = (Vec::new(), 0);
    while k < len {
        let is_end = k < end || k + joined > len - end.min(len);
        let count = if is_end { 1 } else { joined };
        levels.push(((k as f64 + 0.5 * count as f64) / len as f64, count));
        k += count;
    }
    levels.shuffle(&mut stream(seed, Purpose::Quadrature.step(), LEVELS_STREAM, number));
    levels
}

impl Quadrature<'_> {
    /// The middle of all latents.
    fn middle(&self) -> Vec<f64> {
        self.places.iter().map(|place| place.middle).collect()
    }

    /// About `len` draws of all latents with their importance weights.
    pub(in crate::infer) fn draws(&self, len: usize, seed: u64) -> Result<Drawn> {
        let found = match self.outer.len() {
            0 => self.given(&self.middle())?.map(|given| (vec![(self.middle(), 0.0)], Outer::None(given))),
            _ if self.is_on_lines => self.on_lines(len, seed)?,
            _ => self.by_importance(seed)?,
        };
        let Some((thetas, outer)) = found else { return Ok(Drawn::Failed) };
        let each = len.div_ceil(thetas.len());
        let levels: Vec<Vec<f64>> =
            (0..self.inner.len() as u64).map(|j| levels(each * thetas.len(), seed, j)).collect();
        // Consecutive draws may have the same θ.
        let of_theta = |(first, same): (usize, &[Valued])| {
            let (point, log_q) = &same[0];
            let Some(given) = self.given(point)? else { return Ok(None) };
            let own_len = same.len() * each;
            let (mut z, mut energy) = (Batch::zeros(point.len(), own_len), vec![-log_q; own_len]);
            (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
            let own: Vec<&[f64]> = levels.iter().map(|all| &all[first * each..first * each + own_len]).collect();
            given.draw(&self.inner, &own, &mut z, &mut energy);
            let mut log_weights = vec![0.0; own_len];
            self.model.log_joint(&z, &mut log_weights)?;
            log_weights.iter_mut().zip(&energy).for_each(|(w, energy)| *w += energy);
            Ok(Some((z, log_weights, vec![given.log_integral - log_q; same.len()])))
        };
        let mut first = 0;
        let groups: Vec<(usize, &[Valued])> = thetas
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| {
                first += same.len();
                (first - same.len(), same)
            })
            .collect();
        let drawn: Vec<Option<Part>> = groups.into_par_iter().map(of_theta).collect::<Result<_>>()?;
        let Some(drawn) = drawn.into_iter().collect::<Option<Vec<_>>>() else { return Ok(Drawn::Failed) };
        // Where weights depend on θ, those with the same first θ are not independent.
        let group = match self.outer.len() {
            _ if self.is_exact() => 1,
            len if self.is_on_lines && len > 1 => DRAWN[len - 1].1 * each,
            _ => each,
        };
        let nested = Nested::joined(drawn, group);
        let log_evidence = log_sum_exp(&nested.log_weights) - (nested.log_weights.len() as f64).ln();
        let higher = self.higher(&outer, log_evidence)?;
        if self.is_spent(0) {
            return Ok(Drawn::Failed);
        }
        Ok(if higher.is_empty() { Drawn::Draws(nested) } else { Drawn::Missed(higher) })
    }

    /// The points at which the posterior is higher than these draws say, as it is at a mode that was missed: among the draws that were seen,
    /// the ends of chains, and the modes.
    fn higher(&self, outer: &Outer, log_evidence: f64) -> Result<Vec<Vec<f64>>> {
        let Seen { z, chains, modes, ends } = &self.seen;
        let checked = if self.outer.len() < 2 { CHECKED[0] } else { CHECKED[1] };
        let of = |seen: &Batch, most: usize| -> Vec<Vec<f64>> {
            let len = seen.draws_len().min(most);
            let point = |k: usize| (0..seen.columns_len()).map(|i| seen.get(i, k * seen.draws_len() / len)).collect();
            (0..len).map(point).collect()
        };
        let mut points = of(modes, usize::MAX);
        // A kernel may be lower where an ascent ended in a corner, as its weights show.
        if self.is_exact() {
            points.extend(of(ends, CHECKED[1]));
        }
        chains.iter().for_each(|chains| points.extend(of(chains, usize::MAX)));
        let draws_from = points.len();
        points.extend(of(z, checked));
        let log_p: Vec<f64> = points.par_iter().map(|point| self.log_joint(point)).collect::<Result<_>>()?;
        let top = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let limit = log_evidence + if self.is_exact() { HIGHER[0] } else { HIGHER[1] };
        let is_higher = |(point, log_p): (&Vec<f64>, f64)| {
            // Far below there is no mass.
            if !(log_p > top - NEGLIGIBLE - self.places.len() as f64) {
                return Ok(false);
            }
            Ok(self.log_density(outer, point)?.is_none_or(|log_q| log_p - log_q > limit))
        };
        let is: Vec<bool> = points.par_iter().zip(log_p).map(is_higher).collect::<Result<_>>()?;
        // Each of many lines may err a little at a jump.
        let is_tolerated = !is[..draws_from].contains(&true) && is.iter().filter(|is| **is).count() <= HIGHER_MAX;
        let higher = points.into_iter().zip(is).filter_map(|(point, is)| is.then_some(point)).collect();
        Ok(if is_tolerated { Vec::new() } else { higher })
    }

    /// The log density of the draws at a point; `None` if it cannot be found.
    fn log_density(&self, outer: &Outer, point: &[f64]) -> Result<Option<f64>> {
        let mut log_q = match outer {
            Outer::None(given) => return Ok(Some(given.log_density(&self.inner, point))),
            Outer::Line(first) => first.log_density(point[self.outer[0]]),
            Outer::Kernels(kernels) => kernels.log_density(&self.outer.iter().map(|i| point[*i]).collect::<Vec<_>>()),
        };
        let mut base = point.to_vec();
        self.inner.iter().for_each(|i| base[*i] = self.places[*i].middle);
        if let (Outer::Line(_), Some(second)) = (outer, self.outer.get(1)) {
            let Some(line) = self.outer(1, &base)?.and_then(|density| density.normalised()) else { return Ok(None) };
            log_q += line.log_density(point[*second]);
        }
        let Some(given) = self.given(&base)? else { return Ok(None) };
        log_q += given.log_density(&self.inner, point);
        Ok(Some(log_q))
    }

    /// Values of one or two θ, with the log densities from which they were drawn.
    fn on_lines(&self, len: usize, seed: u64) -> Result<Option<(Vec<Valued>, Outer)>> {
        let Some(first) = self.outer(0, &self.middle())?.and_then(|density| density.normalised()) else {
            return Ok(None);
        };
        let (most, each) = DRAWN[self.outer.len() - 1];
        let strata = len.div_ceil(each).min(most);
        // Weights that depend on θ need groups of one size.
        let joined = if self.is_exact() { JOINED } else { 1 };
        let of_first = joined_levels(strata, joined, seed, self.inner.len() as u64);
        let of_second = levels(strata * each, seed, self.inner.len() as u64 + 1);
        let mut starts = vec![0];
        of_first.iter().for_each(|(_, count)| starts.push(starts[starts.len() - 1] + count));
        let of_stratum = |number: usize| {
            let (level, count) = of_first[number];
            let (x, log_q) = first.quantile(level);
            let mut point = self.middle();
            point[self.outer[0]] = x;
            let Some(second) = self.outer.get(1) else { return Ok(Some(vec![(point, log_q); count])) };
            let Some(line) = self.outer(1, &point)?.and_then(|density| density.normalised()) else { return Ok(None) };
            let one = |p: &f64| {
                let (x, log_own) = line.quantile(*p);
                let mut point = point.clone();
                point[*second] = x;
                (point, log_q + log_own)
            };
            let own = starts[number] * each..starts[number + 1] * each;
            Ok(Some(of_second[own].iter().map(one).collect()))
        };
        let found: Vec<Option<Vec<Valued>>> =
            (0..of_first.len()).into_par_iter().map(of_stratum).collect::<Result<_>>()?;
        Ok(found.into_iter().collect::<Option<Vec<_>>>().map(|found| (found.concat(), Outer::Line(first))))
    }

    /// Values of many θ by adaptive importance sampling, with the log densities from which they were drawn.
    fn by_importance(&self, seed: u64) -> Result<Option<(Vec<Valued>, Outer)>> {
        let k = self.outer.len();
        let own = |s: usize| self.outer.iter().map(|i| self.seen.z.get(*i, s)).collect::<Vec<f64>>();
        let thetas: Vec<Vec<f64>> = (0..self.seen.z.draws_len()).map(own).collect();
        let Some(mut proposal) = Proposal::of(&thetas, &vec![0.0; thetas.len()], wider(WIDER[0], k)) else {
            return Ok(None);
        };
        type Draw<'a> = &'a dyn Fn(&mut Stream) -> Valued;
        let drawn = |draw: Draw, len: usize, number: u64| -> Vec<Valued> {
            (0..len as u64).map(|s| draw(&mut stream(seed, Purpose::Quadrature.step(), number, s))).collect()
        };
        let at = |theta: &[f64]| {
            let mut point = self.middle();
            self.outer.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
            point
        };
        let weighed = |found: &[Valued]| -> Result<Vec<Option<f64>>> {
            let weight = |(theta, log_q): &Valued| Ok(self.log_marginal(k, &at(theta))?.map(|m| m - log_q));
            found.par_iter().map(weight).collect()
        };
        let mut kernels: Option<TMixture> = None;
        for number in 0..LEARNING_ROUNDS {
            let found = drawn(&|rng| proposal.draw(rng), LEARNT, number);
            // Far away the others may not be known, and the next proposal need not be wide enough for that.
            let known = weighed(&found)?.into_iter().zip(found).filter_map(|(w, (theta, _))| Some((w?, theta)));
            let (weights, thetas): (Vec<f64>, Vec<Vec<f64>>) = known.unzip();
            let even = effective(&weights) / LEARNT as f64;
            let (weights, _) = tempered(&weights, 3.0 * k as f64 + 8.0);
            let Some(next) = Proposal::of(&thetas, &weights, wider(WIDER[0], k)) else { return Ok(None) };
            if even > EVEN {
                kernels = TMixture::kernels(&thetas, &weights, next);
                break;
            }
            proposal = next;
        }
        for attempt in 0..ATTEMPTS {
            let Some(from) = kernels else { return Ok(None) };
            let found = drawn(&|rng| from.draw(rng), KEPT, KEPT_STREAM + attempt);
            let Some(mut weights) = weighed(&found)?.into_iter().collect::<Option<Vec<f64>>>() else {
                return Ok(None);
            };
            let thetas: Vec<Vec<f64>> = found.iter().map(|(theta, _)| theta.clone()).collect();
            // With more kernels where the weights are large.
            kernels = Proposal::of(&thetas, &weights, wider(WIDER[0], k))
                .and_then(|wide| TMixture::kernels(&thetas, &weights, wide));
            if psis(&mut weights).is_good() {
                let found = found.into_iter().map(|(theta, log_q)| (at(&theta), log_q)).collect();
                return Ok(Some((found, Outer::Kernels(from))));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "quadrature_tests.rs"]
mod tests;

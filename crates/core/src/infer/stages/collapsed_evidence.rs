//! The log evidence from chains over discrete latents d and a few continuous latents θ.

use super::adaptive_importance::Proposal;
use super::bridge::estimate;
use super::collapsed_chains::{FAILED_MAX, Place};
use super::gaussian_marginal::Marginal;
use crate::error::Result;
use crate::objective::Estimate;
use hyperprior_math::random::{Purpose, Stream, stream};
use hyperprior_math::special::log_sum_exp;
use rand::RngExt;
use rayon::prelude::*;

/// The largest number of kernels in the density for bridge sampling.
const KERNELS: usize = 512;
/// The probability with which a kernel draws a discrete latent from its marginal distribution, and does not keep its value.
const AGAIN: f64 = 0.2;
/// The number of draws from this density, and the largest number from the chains.
const BRIDGED: usize = 2048;
/// The number of the random streams.
const EVIDENCE_STREAM: u64 = 5001;

impl Marginal<'_> {
    /// The log evidence by bridge sampling (Meng and Wong, 1996) between half of the chains and a density that is made of the other half:
    /// kernels around its values, which sometimes draw a discrete latent from its marginal distribution.
    pub(super) fn evidence(&self, kept: &[Vec<Place>], ess: f64, seed: u64) -> Result<Option<Estimate>> {
        let chains = kept.first().map_or(0, Vec::len);
        let of_half = |half: usize, most: usize| -> Vec<&Place> {
            let all = kept.len() * chains / 2;
            let len = all.min(most);
            (0..len).map(|s| s * all / len).map(|s| &kept[s % kept.len()][2 * (s / kept.len()) + half]).collect()
        };
        let (around, drawn) = (of_half(0, KERNELS), of_half(1, BRIDGED));
        let Some(density) = Kernels::new(&around, &self.ranges()) else { return Ok(None) };
        let value = |s: u64| density.value(&mut stream(seed, Purpose::GaussianMarginal.step(), EVIDENCE_STREAM, s));
        let values: Vec<Place> = (0..BRIDGED as u64).map(value).collect();
        let mut log_p = self.log_masses_at(&values)?;
        if log_p.iter().filter(|log_p| log_p.is_nan()).count() as f64 > FAILED_MAX * BRIDGED as f64 {
            return Ok(None);
        }
        // The chains have not been there either.
        log_p.iter_mut().filter(|log_p| log_p.is_nan()).for_each(|log_p| *log_p = f64::NEG_INFINITY);
        let of_q: Vec<f64> =
            values.par_iter().zip(log_p).map(|(place, log_p)| log_p - density.log_density(place)).collect();
        let of_p: Vec<f64> = drawn.par_iter().map(|place| place.log_p - density.log_density(place)).collect();
        let ess = ess * of_p.len() as f64 / (kept.len() * chains) as f64;
        Ok(estimate(&of_q, &of_p, ess.max(1.0)))
    }
}

/// A density of θ and d: equal shares of kernels around places.
struct Kernels<'a> {
    around: &'a [&'a Place],
    /// The lower triangle of the kernels of θ.
    scale: Vec<f64>,
    /// The smallest value of each discrete latent, and its marginal probabilities.
    again: Vec<(f64, Vec<f64>)>,
}

impl<'a> Kernels<'a> {
    /// `None` if the values of θ do not span the space.
    fn new(around: &'a [&'a Place], ranges: &[(f64, usize)]) -> Option<Self> {
        let thetas: Vec<Vec<f64>> = around.iter().map(|place| place.theta.clone()).collect();
        let (k, len) = (thetas.first()?.len() as f64, around.len() as f64);
        // The bandwidth of Silverman (1986).
        let bandwidth = (4.0 / ((k + 2.0) * len)).powf(1.0 / (k + 4.0));
        let scale = Proposal::of(&thetas, &vec![0.0; around.len()], bandwidth)?.scale;
        let shares = |(d, (low, values)): (usize, &(f64, usize))| {
            let mut shares = vec![0.5 / (0.5 * *values as f64 + len); *values];
            around
                .iter()
                .for_each(|place| shares[(place.discrete[d] - low) as usize] += 1.0 / (0.5 * *values as f64 + len));
            (*low, shares)
        };
        Some(Self { around, scale, again: ranges.iter().enumerate().map(shares).collect() })
    }

    fn value(&self, rng: &mut Stream) -> Place {
        let centre = self.around[rng.random_range(0..self.around.len())];
        let (theta, _) = Proposal { mean: centre.theta.clone(), scale: self.scale.clone() }.draw(rng);
        let mut discrete = centre.discrete.clone();
        for (value, (low, shares)) in discrete.iter_mut().zip(&self.again) {
            if rng.random::<f64>() < AGAIN {
                let mut left: f64 = rng.random();
                let drawn = shares.iter().position(|share| {
                    left -= share;
                    left < 0.0
                });
                *value = low + drawn.unwrap_or(shares.len() - 1) as f64;
            }
        }
        Place { theta, discrete, log_p: f64::NAN }
    }

    fn log_density(&self, place: &Place) -> f64 {
        let mut kernel = Proposal { mean: Vec::new(), scale: self.scale.clone() };
        let logs = self.around.iter().map(|centre| {
            kernel.mean.clone_from(&centre.theta);
            let of_discrete =
                place.discrete.iter().zip(&centre.discrete).zip(&self.again).map(|((x, at), (low, shares))| {
                    (AGAIN * shares[(x - low) as usize] + if x == at { 1.0 - AGAIN } else { 0.0 }).ln()
                });
            kernel.log_density(&place.theta) + of_discrete.sum::<f64>()
        });
        log_sum_exp(&logs.collect::<Vec<f64>>()) - (self.around.len() as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_testkit::goodness::chi_square;
    use hyperprior_testkit::quadrature::Rule;

    const SMALL: f64 = 1e-4;

    /// Catches kernels whose density does not add up to one, or is not that of what they draw.
    #[test]
    fn the_density_for_the_evidence_is_that_of_its_values() {
        let ranges = [(0.0, 3), (0.0, 2), (1.0, 2)];
        let places: Vec<Place> = (0..7)
            .map(|s| Place {
                theta: vec![(s as f64).sin()],
                discrete: vec![(s % 3) as f64, (s % 2) as f64, 1.0 + f64::from(s > 4)],
                log_p: 0.0,
            })
            .collect();
        let around: Vec<&Place> = places.iter().collect();
        let kernels = Kernels::new(&around, &ranges).unwrap();
        let values: Vec<Vec<f64>> =
            ranges.iter().map(|(low, len)| (0..*len).map(|k| low + k as f64).collect()).collect();
        let states = hyperprior_testkit::enumerate::product(&values);
        let line = Rule::line(-12.0, 12.0, 0.02);
        let at = |d: &[f64], t: f64| Place { theta: vec![t], discrete: d.to_vec(), log_p: f64::NAN };
        let shares: Vec<f64> =
            states.iter().map(|d| line.integrate(|t| kernels.log_density(&at(d, t[0])).exp())).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let mut seen = vec![0_u64; states.len()];
        for s in 0..20_000 {
            let value = kernels.value(&mut stream(7, 0, 0, s));
            seen[states.iter().position(|d| *d == value.discrete).unwrap()] += 1;
        }
        assert!(chi_square(&seen, &shares, 20_000) > SMALL);
    }
}

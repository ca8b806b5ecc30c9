//! The mass of a place that the draws may have missed: a lower bound, from a simple distribution there.

use super::curvature::{LocalGaussian, LogDensity, climb, log_mean_weight};
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::error::Result;
use crate::infer::result::MissedMode;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, stream};
use hyperprior_math::special::HALF_LN_2_PI;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// A place with a smaller share of the posterior is negligible, and one with less than `SHARE_LARGE` matters only if it adds more than
/// `VARIANCE_MAX` to the variance of a latent, in variances; one with fewer than `FEW` of its share of the draws was missed.
const SHARE_MIN: f64 = 0.0025;
const SHARE_LARGE: f64 = 0.03;
const VARIANCE_MAX: f64 = 0.2;
pub(super) const FEW: f64 = 0.2;
/// A draw within this many standard deviations, per latent, belongs to a place.
pub(super) const THERE: f64 = 3.0;
/// The draws from which the mass of a place is estimated.
const DRAWS: usize = 128;

/// Where a superchain stays: independent marginals, or the Gaussian at the nearest mode if that has more mass.
pub(super) struct Place {
    mean: Vec<f64>,
    shape: Shape,
    /// A lower bound on the log of its mass.
    log_mass: f64,
    /// The same for the marginals alone.
    log_mass_independent: f64,
}

enum Shape {
    /// The standard deviation of each latent.
    Independent(Vec<f64>),
    /// The scale of the continuous latents, which have these columns.
    Gaussian(Whitening, Vec<usize>),
}

impl Shape {
    /// The distance of a difference from the place, in standard deviations and per latent.
    fn distance(&self, away: &[f64]) -> f64 {
        let scaled: Vec<f64> = match self {
            Self::Independent(sd) => away.iter().zip(sd).map(|(x, sd)| x / sd).collect(),
            Self::Gaussian(whitening, continuous) => {
                let mut x: Vec<f64> = continuous.iter().map(|i| away[*i]).collect();
                whitening.solve(&mut x);
                x
            }
        };
        (scaled.iter().map(|x| x * x).sum::<f64>() / scaled.len() as f64).sqrt()
    }
}

impl Place {
    pub(super) fn new(
        whitened: &WhitenedModel<dyn Model + '_>,
        chains: &Batch,
        log_p: &[f64],
        own: Range<usize>,
        seed: u64,
    ) -> Result<Self> {
        let latents = whitened.latents();
        let of = |i: usize| &chains.column(i)[own.clone()];
        let (mean, variance): (Vec<f64>, Vec<f64>) = (0..latents.len()).map(|i| moments(of(i))).unzip();
        let sd: Vec<f64> = variance.iter().map(|v| v.sqrt()).collect();
        let log_mass = product_bound(whitened, &of, &mean, &sd, (seed, own.start))?;
        // The width of a discrete latent that all chains agree on is not zero.
        let width = |i: usize| if latents.support(i).is_discrete() { sd[i].max(0.25) } else { sd[i] };
        let shape = Shape::Independent((0..latents.len()).map(width).collect());
        let mut place = Self { mean, shape, log_mass, log_mass_independent: log_mass };
        let continuous = whitened.continuous();
        let best = own.clone().max_by(|a, b| log_p[*a].total_cmp(&log_p[*b]));
        if let (Some(gradient), Some(best), false) = (whitened.gradient(), best, continuous.is_empty()) {
            let mut point: Vec<f64> = (0..latents.len()).map(|i| chains.get(i, best)).collect();
            let density = LogDensity::new(whitened, gradient, continuous);
            climb(density, &mut point)?;
            if let Some(local) = LocalGaussian::new(density, &point, seed)?
                && let Some(log_mass) = local.log_mass()
                && !(log_mass <= place.log_mass)
            {
                let shape = Shape::Gaussian(local.whitening, continuous.to_vec());
                place = Self { mean: point, shape, log_mass, ..place };
            }
        }
        Ok(place)
    }

    /// Whether where the superchain stays, not only the nearest mode, has a share of the posterior that is not small.
    pub(super) fn has_mass(&self, log_evidence: f64) -> bool {
        share(self.log_mass_independent, log_evidence) > SHARE_LARGE
    }

    /// The place as a missed mode, if it has mass and too few draws.
    pub(super) fn missed(
        &self,
        whitened: &WhitenedModel<dyn Model + '_>,
        u: &Batch,
        log_evidence: f64,
    ) -> Option<MissedMode> {
        let away = |s: usize| (0..self.mean.len()).map(|i| u.get(i, s) - self.mean[i]).collect::<Vec<f64>>();
        let there = (0..u.draws_len()).filter(|s| self.shape.distance(&away(*s)) <= THERE).count();
        let drawn = there as f64 / u.draws_len() as f64;
        let share = share(self.log_mass, log_evidence);
        let far = (0..self.mean.len()).map(|i| {
            let (mean, variance) = moments(u.column(i));
            (self.mean[i] - mean).abs() / variance.sqrt().max(1e-9)
        });
        let z = whitened.restored(&Batch::from_columns(self.mean.clone(), 1));
        let is_missed = matters(share, far.fold(0.0, f64::max)) && drawn < FEW * share;
        is_missed.then(|| MissedMode { share, drawn, z: z.as_slice().to_vec() })
    }
}

/// The share of the posterior at a place with this mass, if the evidence is that of the rest.
pub(super) fn share(log_mass: f64, log_evidence: f64) -> f64 {
    1.0 / (1.0 + (log_evidence - log_mass).exp())
}

/// The one with the larger share.
pub(super) fn larger(one: Option<MissedMode>, other: Option<MissedMode>) -> Option<MissedMode> {
    match (one, other) {
        (Some(one), Some(other)) if other.share > one.share => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// Whether a place with this share of the posterior, this many standard deviations away, would change a mean or a variance.
pub(super) fn matters(share: f64, far: f64) -> bool {
    share > SHARE_LARGE || (share > SHARE_MIN && share * far * far > VARIANCE_MAX)
}

/// A lower bound on the log of the mass from the product of a superchain's marginals: the log of the mean importance weight.
fn product_bound<'c>(
    whitened: &WhitenedModel<dyn Model + '_>,
    of: &impl Fn(usize) -> &'c [f64],
    mean: &[f64],
    sd: &[f64],
    (seed, number): (u64, usize),
) -> Result<f64> {
    let latents = whitened.latents();
    let mut rng = stream(seed, Purpose::Superchains.step(), 1, number as u64);
    let (mut draws, mut log_g) = (Batch::zeros(latents.len(), DRAWS), vec![0.0; DRAWS]);
    for i in 0..latents.len() {
        for s in 0..DRAWS {
            if latents.support(i).is_discrete() {
                let x = of(i)[rng.random_range(0..of(i).len())];
                draws.set(i, s, x);
                log_g[s] += (of(i).iter().filter(|y| **y == x).count() as f64 / of(i).len() as f64).ln();
            } else {
                let noise: f64 = StandardNormal.sample(&mut rng);
                draws.set(i, s, mean[i] + sd[i] * noise);
                log_g[s] -= 0.5 * noise * noise + HALF_LN_2_PI + sd[i].ln();
            }
        }
    }
    let mut log_p = vec![0.0; DRAWS];
    whitened.log_joint(&draws, &mut log_p)?;
    let possible: Vec<f64> = log_p.iter().zip(&log_g).map(|(p, g)| p - g).filter(|x| x.is_finite()).collect();
    Ok(log_mean_weight(possible, DRAWS))
}

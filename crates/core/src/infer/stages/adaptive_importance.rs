//! Adaptive importance sampling of a few latents: a proposal with long tails, and weights to a power.

use super::resample::{MIDDLE, systematic};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, lower_outer, lower_solve, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::special::{ln_gamma, log_sum_exp};
use hyperprior_math::vector::{dot, ln_1p, log_sum_exp_columns};
use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// The degrees of freedom of a proposal for k latents: the tails of many need not be as long.
fn df(k: usize) -> f64 {
    (2 * k).max(8) as f64
}

/// A factor by which the distribution of k latents is made wider: less for many, of which hardly any draw would be near the middle.
pub(super) fn wider(factor: f64, k: usize) -> f64 {
    1.0 + (factor - 1.0) * (4.0 / k as f64).sqrt().min(1.0)
}

/// The weighted mean and covariance of values; `None` if there are none.
pub(super) fn weighted_moments(values: &[Vec<f64>], log_weights: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let k = values.first()?.len();
    if k == 0 {
        return Some((Vec::new(), Vec::new()));
    }
    let log_sum = log_sum_exp(log_weights);
    let weighted = || values.iter().zip(log_weights).map(|(x, w)| (x, (w - log_sum).exp())).filter(|(_, w)| *w > 0.0);
    let mut mean = vec![0.0; k];
    weighted().for_each(|(x, w)| mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += w * x));
    let (mut covariance, mut away) = (vec![0.0; k * k], vec![0.0; k]);
    for (x, w) in weighted() {
        away.iter_mut().zip(x.iter().zip(&mean)).for_each(|(away, (x, mean))| *away = x - mean);
        for (row, a) in covariance.chunks_exact_mut(k).zip(&away) {
            row.iter_mut().zip(&away).for_each(|(entry, b)| *entry += w * a * b);
        }
    }
    Some((mean, covariance))
}

/// The mean and covariance of the draws of a batch with these weights, of which some are positive; with room for as many draws, twice.
pub(super) fn moments_of(x: &Batch, weights: &[f64], [away, weighted]: &mut [Batch; 2]) -> (Vec<f64>, Vec<f64>) {
    let (k, len) = (x.columns_len(), x.draws_len());
    let total: f64 = weights.iter().sum();
    let mean: Vec<f64> = (0..k).map(|i| dot(weights, x.column(i)) / total).collect();
    for (i, mean) in mean.iter().enumerate() {
        let own = away.column_mut(i).iter_mut().zip(weighted.column_mut(i));
        own.zip(x.column(i).iter().zip(weights)).for_each(|((away, weighted), (x, w))| {
            *away = x - mean;
            *weighted = w * *away;
        });
    }
    let mut lower = vec![0.0; packed_len(k)];
    lower_outer(weighted.as_slice(), away.as_slice(), &mut lower, len);
    let entry = |at: usize| lower[packed((at / k).max(at % k), (at / k).min(at % k))] / total;
    (mean, (0..k * k).map(entry).collect())
}

/// Student t with this location and this lower triangle as its scale.
#[derive(Clone)]
pub(super) struct Proposal {
    pub(super) mean: Vec<f64>,
    pub(super) scale: Vec<f64>,
}

impl Proposal {
    /// With the weighted mean and scale of these values, the scale times a factor. `None` if they do not span the space.
    pub(super) fn of(values: &[Vec<f64>], log_weights: &[f64], wider: f64) -> Option<Self> {
        let (mean, covariance) = weighted_moments(values, log_weights)?;
        let mut proposal = Self::new(mean, &covariance)?;
        proposal.scale.iter_mut().for_each(|x| *x *= wider);
        Some(proposal)
    }

    /// With this location and the square of the scale, row by row. `None` if it is not positive definite.
    pub(super) fn new(mean: Vec<f64>, squared: &[f64]) -> Option<Self> {
        let scale = cholesky(squared, mean.len())?;
        Some(Self { mean, scale })
    }

    /// So much wider that long tails have draws too.
    pub(super) fn much_wider(&self) -> Self {
        let wider = wider(DEFENSIVE, self.mean.len());
        Self { mean: self.mean.clone(), scale: self.scale.iter().map(|x| wider * x).collect() }
    }

    /// A value.
    fn value(&self, rng: &mut Stream) -> Vec<f64> {
        let k = self.mean.len();
        let e: Vec<f64> = (0..k).map(|_| StandardNormal.sample(rng)).collect();
        let df = df(k);
        let mixing = ChiSquared::new(df).map_or(1.0, |chi| Distribution::<f64>::sample(&chi, rng) / df);
        let of_row = |i: usize| (0..=i).map(|j| self.scale[packed(i, j)] * e[j]).sum::<f64>() / mixing.sqrt();
        (0..k).map(|i| self.mean[i] + of_row(i)).collect()
    }

    /// The squared distance of a value from the location, in scales.
    pub(super) fn squared_distance(&self, x: &[f64]) -> f64 {
        let (mut squared, mut t) = (0.0, vec![0.0; x.len()]);
        for i in 0..x.len() {
            let row = &self.scale[packed(i, 0)..=packed(i, i)];
            let taken: f64 = row[..i].iter().zip(&t).map(|(scale, t)| scale * t).sum();
            t[i] = (x[i] - self.mean[i] - taken) / row[i];
            squared += t[i] * t[i];
        }
        squared
    }

    /// The squared distances of many values.
    fn squared_distances(&self, x: &Batch, away: &mut Batch, squared: &mut [f64]) {
        let len = x.draws_len();
        away.copy_from(x);
        for (i, mean) in self.mean.iter().enumerate() {
            away.column_mut(i).iter_mut().for_each(|x| *x -= mean);
        }
        lower_solve(&self.scale, away.as_mut_slice(), len);
        squared.fill(0.0);
        for column in away.as_slice().chunks_exact(len.max(1)) {
            squared.iter_mut().zip(column).for_each(|(squared, t)| *squared += t * t);
        }
    }

    /// Whether a value is within this many scales of the location.
    pub(super) fn is_near(&self, x: &[f64], scales: f64) -> bool {
        self.squared_distance(x) < scales * scales
    }

    /// The log density at the location.
    fn log_height(&self) -> f64 {
        let k = self.mean.len();
        let (df, d) = (df(k), k as f64);
        let log_scale: f64 = (0..k).map(|i| self.scale[packed(i, i)].ln()).sum();
        ln_gamma(0.5 * (df + d)) - ln_gamma(0.5 * df) - 0.5 * d * (df * std::f64::consts::PI).ln() - log_scale
    }

    /// The log density at a value.
    pub(super) fn log_density(&self, x: &[f64]) -> f64 {
        self.log_height() + log_tail(self.squared_distance(x), x.len())
    }

    /// A value, and its log density.
    pub(super) fn draw(&self, rng: &mut Stream) -> (Vec<f64>, f64) {
        let x = self.value(rng);
        let log_density = self.log_density(&x);
        (x, log_density)
    }
}

/// How far the log density of k latents is below that at the location, at this squared distance from it.
fn log_tail(squared: f64, k: usize) -> f64 {
    -0.5 * (df(k) + k as f64) * (squared / df(k)).ln_1p()
}

/// How much a value at this squared distance tells of the location and the scale, against a Gaussian.
pub(super) fn relevance(squared: f64, k: usize) -> f64 {
    (df(k) + k as f64) / (df(k) + squared)
}

/// The share of the wide distribution, and the number of kernels.
const WIDE: f64 = 0.2;
const KERNELS: usize = 128;
/// The fewest kernels of a group.
const KERNELS_MIN: usize = 8;
/// How much wider than the proposal the wide part of a defensive mixture is, for up to four latents.
const DEFENSIVE: f64 = 3.0;

/// A Student t distribution in a mixture.
pub(super) struct Part {
    log_share: f64,
    log_height: f64,
    t: Proposal,
}

impl Part {
    pub(super) fn new(share: f64, t: Proposal) -> Self {
        Self { log_share: share.ln(), log_height: t.log_height(), t }
    }

    /// The log of the share times the density at a value.
    fn log_density(&self, x: &[f64]) -> f64 {
        self.log_share + self.log_height + log_tail(self.t.squared_distance(x), x.len())
    }

    /// The logs of the share times the densities at many values, and the squared distances of these; `away` is room.
    pub(super) fn log_densities(&self, x: &Batch, away: &mut Batch, out: &mut [f64], squared: &mut [f64]) {
        let k = x.columns_len();
        self.t.squared_distances(x, away, squared);
        let of_df = away.column_mut(0);
        of_df.iter_mut().zip(&*squared).for_each(|(of_df, squared)| *of_df = squared / df(k));
        ln_1p(of_df, out);
        let (top, slope) = (self.log_share + self.log_height, -0.5 * (df(k) + k as f64));
        out.iter_mut().for_each(|log| *log = slope.mul_add(*log, top));
    }
}

/// So many Student t distributions at weighted values, with this share in all. `None` if the values do not span the space.
fn kernels(values: &[Vec<f64>], log_weights: &[f64], share: f64, len: usize) -> Option<Vec<Part>> {
    let k = values.first()?.len() as f64;
    // The bandwidth of Silverman (1986).
    let bandwidth = (4.0 / ((k + 2.0) * len as f64)).powf(1.0 / (k + 4.0));
    let scale = Proposal::of(values, log_weights, bandwidth)?.scale;
    let each = share / len as f64;
    let at = |s: usize| Part::new(each, Proposal { mean: values[s].clone(), scale: scale.clone() });
    Some(systematic(log_weights, log_sum_exp(log_weights), len, MIDDLE).map(at).collect())
}

/// Student t distributions that follow curved posteriors, beside a wide one, which leaves no tail out (a defensive mixture; Hesterberg,
/// 1995).
pub(super) struct TMixture {
    /// The first is the wide one.
    parts: Vec<Part>,
}

impl TMixture {
    /// These parts, whatever the sum of their shares is, beside a wide one.
    pub(super) fn of_parts(mut parts: Vec<Part>, wide: Proposal) -> Self {
        let total: f64 = parts.iter().map(|part| part.log_share.exp()).sum();
        parts.iter_mut().for_each(|part| part.log_share += ((1.0 - WIDE) / total).ln());
        parts.insert(0, Part::new(WIDE, wide));
        Self { parts }
    }

    /// Narrow ones at these values. `None` if they do not span the space.
    pub(super) fn kernels(values: &[Vec<f64>], log_weights: &[f64], wide: Proposal) -> Option<Self> {
        Some(Self::of_parts(kernels(values, log_weights, 1.0, KERNELS)?, wide))
    }

    /// The same for groups of weighted values, each with a bandwidth of its own and as many kernels as its share says, and beside them
    /// proposals that have this share in all. `None` if no group spans the space.
    pub(super) fn kernels_of_groups(
        groups: &[(Vec<Vec<f64>>, Vec<f64>)],
        beside: &[Proposal],
        share_beside: f64,
        wide: Proposal,
    ) -> Option<Self> {
        let logs: Vec<f64> = groups.iter().map(|(_, log_weights)| log_sum_exp(log_weights)).collect();
        let log_sum = log_sum_exp(&logs);
        let mut parts = Vec::new();
        for ((values, log_weights), log) in groups.iter().zip(logs) {
            let share = (log - log_sum).exp();
            let len = ((share * KERNELS as f64).ceil() as usize).max(KERNELS_MIN);
            parts.extend(kernels(values, log_weights, share, len).into_iter().flatten());
        }
        if parts.is_empty() {
            return None;
        }
        parts.extend(beside.iter().map(|one| Part::new(share_beside / beside.len() as f64, one.clone())));
        Some(Self::of_parts(parts, wide))
    }

    /// One proposal.
    pub(super) fn defensive(proposal: Proposal) -> Self {
        let wide = proposal.much_wider();
        Self::of_parts(vec![Part::new(1.0, proposal)], wide)
    }

    /// A single proposal.
    pub(super) fn of_one(proposal: Proposal) -> Self {
        Self { parts: vec![Part::new(1.0, proposal)] }
    }

    /// Proposals with these shares, beside a wide one.
    pub(super) fn of_proposals(proposals: impl Iterator<Item = (f64, Proposal)>, wide: Proposal) -> Self {
        Self::of_parts(proposals.map(|(share, one)| Part::new(share, one)).collect(), wide)
    }

    /// These proposals in equal shares, beside one that is much wider than the first.
    pub(super) fn around(places: &[Proposal]) -> Self {
        let parts = places.iter().map(|place| Part::new(1.0, place.clone())).collect();
        Self::of_parts(parts, places[0].much_wider())
    }

    /// The number of distributions.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// A value.
    pub(super) fn value(&self, rng: &mut Stream) -> Vec<f64> {
        let mut left = rng.random::<f64>();
        let part = self.parts.iter().find(|part| {
            left -= part.log_share.exp();
            left < 0.0
        });
        part.unwrap_or(&self.parts[0]).t.value(rng)
    }

    /// A value, and its log density.
    pub(super) fn draw(&self, rng: &mut Stream) -> (Vec<f64>, f64) {
        let x = self.value(rng);
        let log_density = self.log_density(&x);
        (x, log_density)
    }

    /// The log density at a value.
    pub(super) fn log_density(&self, x: &[f64]) -> f64 {
        log_sum_exp(&self.parts.iter().map(|part| part.log_density(x)).collect::<Vec<_>>())
    }

    /// The log densities at many values.
    pub(super) fn log_densities(&self, x: &Batch) -> Vec<f64> {
        let len = x.draws_len();
        let (mut away, mut each, mut squared) = (x.clone(), Batch::zeros(self.len(), len), vec![0.0; len]);
        for (c, part) in self.parts.iter().enumerate() {
            part.log_densities(x, &mut away, each.column_mut(c), &mut squared);
        }
        let mut out = vec![0.0; len];
        log_sum_exp_columns(each.as_slice(), &mut out);
        out
    }
}

/// The effective number of weights.
pub(in crate::infer) fn effective(log_weights: &[f64]) -> f64 {
    let log_sum = log_sum_exp(log_weights);
    1.0 / log_weights.iter().map(|w| (2.0 * (w - log_sum)).exp()).sum::<f64>()
}

/// The log weights to the largest power up to 1 that leaves this many effective ones, and that power.
pub(super) fn tempered(log_weights: &[f64], least: f64) -> (Vec<f64>, f64) {
    let to_power = |power: f64| log_weights.iter().map(|w| power * w).collect::<Vec<_>>();
    let (mut low, mut high) = (0.0, 1.0);
    if effective(log_weights) >= least {
        return (log_weights.to_vec(), 1.0);
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if effective(&to_power(middle)) >= least { low = middle } else { high = middle }
    }
    (to_power(low), low)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;

    /// Catches a density that is not that of the draws: the mean of 1/q over draws in a box is its volume.
    #[test]
    fn the_density_is_that_of_the_draws() {
        let proposal = || Proposal { mean: vec![1.0, -2.0], scale: vec![0.5, 0.3, 2.0] };
        let values: Vec<Vec<f64>> = (0..500).map(|s| proposal().draw(&mut stream(4, 0, 0, s)).0).collect();
        let kernels = TMixture::kernels(&values, &vec![0.0; 500], proposal()).unwrap();
        let one = |rng: &mut Stream| proposal().draw(rng);
        let many = |rng: &mut Stream| kernels.draw(rng);
        let mixed = TMixture::defensive(proposal());
        let defensive = |rng: &mut Stream| mixed.draw(rng);
        for draw in [&one as &dyn Fn(&mut Stream) -> (Vec<f64>, f64), &many, &defensive] {
            let len = 100_000;
            let mut volume = 0.0;
            for s in 0..len {
                let (x, log_q) = draw(&mut stream(3, 0, 0, s));
                if (x[0] - 1.0).abs() < 0.5 && (x[1] + 2.0).abs() < 1.5 {
                    volume += (-log_q).exp() / len as f64;
                }
            }
            assert!((volume - 3.0).abs() < 0.04, "{volume}");
        }
    }

    /// Catches densities and moments of many values that are not those of each.
    #[test]
    fn many_values_are_as_each() {
        let values: Vec<Vec<f64>> = (0..37)
            .map(|s| (0..3).map(|_| StandardNormal.sample(&mut stream(6, 0, s, 0))).collect())
            .map(|x: Vec<f64>| vec![x[0], x[1] - 0.3 * x[0], 2.0 * x[2] + 1.0])
            .enumerate()
            .map(|(s, x)| vec![x[0] + 0.1 * (s as f64).sin(), x[1] * (1.0 + 0.05 * s as f64), x[2] - (s as f64).cos()])
            .collect();
        let x = Batch::from_draws(&values);
        let weights: Vec<f64> = (0..37).map(|s| f64::from(s % 5)).collect();
        let (mean, covariance) = moments_of(&x, &weights, &mut [x.clone(), x.clone()]);
        let log_weights: Vec<f64> = weights.iter().map(|w| w.ln()).collect();
        let expected = weighted_moments(&values, &log_weights).unwrap();
        for (found, expected) in mean.iter().chain(&covariance).zip(expected.0.iter().chain(&expected.1)) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
        let wide = Proposal::new(mean, &covariance).unwrap();
        let kernels = TMixture::kernels(&values, &log_weights, wide).unwrap();
        for (found, x) in kernels.log_densities(&x).into_iter().zip(&values) {
            assert!((found - kernels.log_density(x)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_power_leaves_as_many_weights_as_asked_for() {
        let log_weights: Vec<f64> = (0..50).map(|k| f64::from(k * k)).collect();
        let (weights, power) = tempered(&log_weights, 20.0);
        assert!(power < 1.0 && (effective(&weights) - 20.0).abs() < 0.01);
        assert_eq!(tempered(&[0.0; 30], 20.0), (vec![0.0; 30], 1.0));
    }
}

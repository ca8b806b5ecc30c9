//! Adaptive importance sampling of a few latents: a proposal with long tails, and weights to a power.

use hyperprior_math::linalg::packed;
use hyperprior_math::random::Stream;
use hyperprior_math::special::{ln_gamma, log_sum_exp};
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// The degrees of freedom of a proposal for k latents: the tails of many need not be as long.
fn df(k: usize) -> f64 {
    (2 * k).max(8) as f64
}

/// Student t with this location and this lower triangle as its scale.
pub(super) struct Proposal {
    pub(super) mean: Vec<f64>,
    pub(super) scale: Vec<f64>,
}

impl Proposal {
    /// A value, and its log density.
    pub(super) fn draw(&self, rng: &mut Stream) -> (Vec<f64>, f64) {
        let k = self.mean.len();
        let e: Vec<f64> = (0..k).map(|_| StandardNormal.sample(rng)).collect();
        let df = df(k);
        let mixing = ChiSquared::new(df).map_or(1.0, |chi| Distribution::<f64>::sample(&chi, rng) / df);
        let t: Vec<f64> = e.iter().map(|e| e / mixing.sqrt()).collect();
        let of_row = |i: usize| (0..=i).map(|j| self.scale[packed(i, j)] * t[j]).sum::<f64>();
        let theta = (0..k).map(|i| self.mean[i] + of_row(i)).collect();
        let squared: f64 = t.iter().map(|t| t * t).sum();
        let (half, d) = (0.5 * (df + k as f64), k as f64);
        let log_scale: f64 = (0..k).map(|i| self.scale[packed(i, i)].ln()).sum();
        let log_density = ln_gamma(half)
            - ln_gamma(0.5 * df)
            - 0.5 * d * (df * std::f64::consts::PI).ln()
            - log_scale
            - half * (squared / df).ln_1p();
        (theta, log_density)
    }
}

/// The effective number of weights.
pub(super) fn effective(log_weights: &[f64]) -> f64 {
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
mod tests {
    use super::*;
    use hyperprior_math::random::stream;

    /// Catches a density that is not that of the draws: the mean of 1/q over draws in a box is its volume.
    #[test]
    fn the_density_is_that_of_the_draws() {
        let proposal = Proposal { mean: vec![1.0, -2.0], scale: vec![0.5, 0.3, 2.0] };
        let len = 200_000;
        let mut volume = 0.0;
        for s in 0..len {
            let (x, log_q) = proposal.draw(&mut stream(3, 0, 0, s));
            if (x[0] - 1.0).abs() < 0.5 && (x[1] + 2.0).abs() < 1.5 {
                volume += (-log_q).exp() / len as f64;
            }
        }
        assert!((volume - 3.0).abs() < 0.03, "{volume}");
    }

    #[test]
    fn a_power_leaves_as_many_weights_as_asked_for() {
        let log_weights: Vec<f64> = (0..50).map(|k| f64::from(k * k)).collect();
        let (weights, power) = tempered(&log_weights, 20.0);
        assert!(power < 1.0 && (effective(&weights) - 20.0).abs() < 0.01);
        assert_eq!(tempered(&[0.0; 30], 20.0), (vec![0.0; 30], 1.0));
    }
}

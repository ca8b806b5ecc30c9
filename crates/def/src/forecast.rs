//! How often words are expected to occur, if they come in bursts.

use crate::burst::thinned;
use crate::weights::TermWeights;
use hyperprior_math::single::{LANES, Lanes};
use rayon::prelude::*;

/// The share of a document that is observed.
pub(crate) const SEEN: f64 = 0.5;

/// How often words are expected to occur, relative to their rates.
pub(crate) struct Forecast {
    /// For each term; empty if all are 1.
    factors: Vec<f64>,
    /// The sums over the terms of the weights of each latent times the factors.
    pub(crate) sums: Vec<f64>,
}

impl Forecast {
    pub(crate) fn new(terms: &TermWeights, bursts: &[f32], factor: fn(&[f32], usize) -> f64) -> Self {
        let width = terms.width();
        if bursts.is_empty() {
            return Self { factors: Vec::new(), sums: (0..width).map(|k| f64::from(terms.sum(k))).collect() };
        }
        let factors: Vec<f64> = (0..terms.terms_len()).map(|v| factor(bursts, v)).collect();
        let sum = |k: usize| factors.iter().enumerate().map(|(v, factor)| factor * f64::from(terms.mean(v, k))).sum();
        Self { sums: (0..width).into_par_iter().map(sum).collect(), factors }
    }

    pub(crate) fn factor(&self, term: u32) -> f64 {
        self.factors.get(term as usize).copied().unwrap_or(1.0)
    }
}

/// How often a term is expected to occur in the hidden half of the words, relative to R + δ times its count in the other half: the
/// conditional mean of a mixture of Poisson counts with gamma rates of shape R/δ and scale e^δ − 1.
pub(crate) fn continued(bursts: &[f32], term: usize) -> f64 {
    let scale = f64::from(bursts[term]).exp_m1();
    (1.0 - SEEN) * scale / (f64::from(bursts[term]) * (1.0 + SEEN * scale))
}

/// The rates of the visible half of the words, summed over the terms for each latent, and of the background.
pub(crate) fn halved(terms: &TermWeights, bursts: &[f32]) -> (Vec<Lanes>, f64) {
    let mut sums = terms.seen().sums.to_vec();
    if bursts.is_empty() {
        sums.iter_mut().for_each(|sum| sum.0.iter_mut().for_each(|x| *x *= SEEN as f32));
        return (sums, terms.background_sum() * SEEN);
    }
    let smaller: Vec<f64> = (0..bursts.len()).map(|v| thinned(bursts, v, SEEN).0).collect();
    for k in 0..terms.width() {
        let sum: f64 = smaller.iter().enumerate().map(|(v, smaller)| smaller * f64::from(terms.mean(v, k))).sum();
        sums[k / LANES].0[k % LANES] = sum as f32;
    }
    let background = smaller.iter().enumerate().map(|(v, smaller)| smaller * f64::from(terms.background(v))).sum();
    (sums, background)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::{constant, mean_length};
    use hyperprior_math::special::ln_factorial;

    /// Catches a wrong conditional mean: by summing over all counts of a word and all ways to hide some of its occurrences.
    #[test]
    fn hidden_words_have_their_conditional_means() {
        let (rate, bursts) = (0.7, [0.8_f32]);
        let burst = f64::from(bursts[0]);
        let log_p = |x: u32| -> f64 {
            let rises: f64 = (0..x).map(|i| (rate + f64::from(i) * burst).ln()).sum();
            rises - rate + constant(&bursts, (&[0], &[x as f32]))
        };
        let ln_factorial = |x: u32| ln_factorial(f64::from(x));
        let mean: f64 = (0..150).map(|x| f64::from(x) * log_p(x).exp()).sum();
        assert!((mean - rate * mean_length(&bursts, 0)).abs() < 1e-9);
        for seen in 0..5_u32 {
            let (mut total, mut hidden) = (0.0, 0.0);
            for x in seen..150 {
                let choose = ln_factorial(x) - ln_factorial(seen) - ln_factorial(x - seen);
                let (kept, lost) = (f64::from(seen) * SEEN.ln(), f64::from(x - seen) * (1.0 - SEEN).ln());
                let p = (log_p(x) + choose + kept + lost).exp();
                total += p;
                hidden += p * f64::from(x - seen);
            }
            let found = (rate + burst * f64::from(seen)) * continued(&bursts, 0);
            assert!((hidden / total / found - 1.0).abs() < 1e-9, "{seen}: {} and {found}", hidden / total);
        }
    }
}

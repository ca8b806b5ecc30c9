//! Convergence of Markov chains: rank-normalised split R̂, and bulk and tail effective sample sizes (Vehtari, Gelman, Simpson,
//! Carpenter and Bürkner, 2021).

use super::convergence::moments;
use hyperprior_math::special::normal_quantile;

/// How well the chains of one quantity agree, and how much they say about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChainStatistics {
    /// The larger of R̂ of the quantity and R̂ of its distance from the median, both rank-normalised and of split chains.
    pub(crate) rhat: f64,
    /// The effective sample size of the normal scores of its ranks.
    pub(crate) ess_bulk: f64,
    /// The smaller effective sample size of its 5 % and 95 % quantiles.
    pub(crate) ess_tail: f64,
}

impl ChainStatistics {
    /// Of a quantity whose chains of equal length are laid end to end. One that never changes has converged.
    pub(crate) fn new(draws: &[f64], chains_len: usize) -> Self {
        let halves: Vec<&[f64]> = draws.chunks(draws.len() / chains_len).flat_map(split).collect();
        let sorted = {
            let mut sorted = halves.concat();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        if !(first.is_finite() && last.is_finite()) {
            return Self { rhat: f64::INFINITY, ess_bulk: 0.0, ess_tail: 0.0 };
        }
        let n = sorted.len();
        if first == last {
            return Self { rhat: 1.0, ess_bulk: n as f64, ess_tail: n as f64 };
        }
        let median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
        let scored = scores(&halves, &sorted);
        let folded: Vec<Vec<f64>> =
            halves.iter().map(|half| half.iter().map(|x| (x - median).abs()).collect()).collect();
        let mut distances = folded.concat();
        distances.sort_by(f64::total_cmp);
        let folded: Vec<&[f64]> = folded.iter().map(Vec::as_slice).collect();
        let of_indicator = |quantile: f64| {
            let below: Vec<Vec<f64>> =
                halves.iter().map(|half| half.iter().map(|x| f64::from(*x <= quantile)).collect()).collect();
            effective_sample_size(&below)
        };
        let at = |share: f64| sorted[((share * n as f64) as usize).min(n - 1)];
        Self {
            rhat: split_rhat(&scored).max(split_rhat(&scores(&folded, &distances))),
            ess_bulk: effective_sample_size(&scored),
            ess_tail: of_indicator(at(0.05)).min(of_indicator(at(0.95))),
        }
    }
}

/// The two halves of a chain, without the middle draw if their number is odd.
fn split(chain: &[f64]) -> [&[f64]; 2] {
    let half = chain.len() / 2;
    [&chain[..half], &chain[chain.len() - half..]]
}

/// The normal scores of ranks; equal draws share the mean of theirs.
fn scores(chains: &[&[f64]], sorted: &[f64]) -> Vec<Vec<f64>> {
    let n = sorted.len() as f64;
    let score = |x: &f64| {
        let (below, upto) = (sorted.partition_point(|y| y < x), sorted.partition_point(|y| y <= x));
        let rank = 0.5 * (below + 1 + upto) as f64;
        normal_quantile((rank - 0.375) / (n + 0.25))
    };
    chains.iter().map(|chain| chain.iter().map(score).collect()).collect()
}

/// R̂ of chains of equal length.
fn split_rhat(chains: &[Vec<f64>]) -> f64 {
    let n = chains[0].len() as f64;
    let (means, variances): (Vec<f64>, Vec<f64>) = chains.iter().map(|chain| moments(chain)).unzip();
    let (between, within) = (moments(&means).1, moments(&variances).0);
    if between == 0.0 { 1.0 } else { ((n - 1.0) / n + between / within).sqrt() }
}

/// The effective sample size of the mean, by Geyer's initial monotone sequence over all chains.
fn effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    let (n, total) = (chains[0].len(), (chains.len() * chains[0].len()) as f64);
    let (means, variances): (Vec<f64>, Vec<f64>) = chains.iter().map(|chain| moments(chain)).unzip();
    let within = moments(&variances).0;
    let overall = within * (n as f64 - 1.0) / n as f64 + moments(&means).1;
    if !(overall > 0.0) {
        return total;
    }
    let correlation = |lag: usize| {
        let covariance = |(chain, mean): (&Vec<f64>, &f64)| {
            chain.iter().zip(&chain[lag..]).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / n as f64
        };
        // A biased autocovariance, on the scale of the unbiased variance.
        let covariance = chains.iter().zip(&means).map(covariance).sum::<f64>() / chains.len() as f64;
        1.0 - (within - covariance * n as f64 / (n as f64 - 1.0)) / overall
    };
    let (mut time, mut before) = (-1.0, f64::INFINITY);
    let mut lag = 0;
    while lag + 1 < n {
        let pair = (if lag == 0 { 1.0 } else { correlation(lag) }) + correlation(lag + 1);
        if !(pair > 0.0) {
            break;
        }
        before = pair.min(before);
        time += 2.0 * before;
        lag += 2;
    }
    // Antithetic chains may be better than independent draws, but not by more than can be estimated.
    total / time.max(1.0 / total.log10())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    /// Autoregressive chains with this correlation; `shift` moves the first, `scale` widens it.
    fn autoregressive(correlation: f64, shift: f64, scale: f64) -> ChainStatistics {
        let (chains, len) = (8, 2000);
        let mut draws = Vec::new();
        for c in 0..chains {
            let mut rng = stream(7, 0, 0, c);
            let mut x: f64 = StandardNormal.sample(&mut rng);
            for _ in 0..len {
                let noise: f64 = StandardNormal.sample(&mut rng);
                x = correlation * x + (1.0 - correlation * correlation).sqrt() * noise;
                draws.push(if c == 0 { shift + scale * x } else { x });
            }
        }
        ChainStatistics::new(&draws, chains as usize)
    }

    #[test]
    fn effective_sample_sizes_are_those_of_autoregressions() {
        for correlation in [-0.4, 0.0, 0.5, 0.9] {
            let expected = 16_000.0 * (1.0 - correlation) / (1.0 + correlation);
            let found = autoregressive(correlation, 0.0, 1.0);
            assert!((found.ess_bulk / expected - 1.0).abs() < 0.2, "{correlation}: {found:?}, {expected}");
            // With m half chains, R̂² − 1 is about m / ESS by chance.
            assert!(
                found.rhat < 1.0 + 16.0 / found.ess_bulk && found.ess_tail > 0.4 * expected.min(16_000.0),
                "{correlation}: {found:?}"
            );
        }
    }

    #[test]
    fn a_chain_elsewhere_or_of_another_width_is_seen() {
        assert!(autoregressive(0.0, 1.0, 1.0).rhat > 1.05);
        assert!(autoregressive(0.0, 0.0, 3.0).rhat > 1.05); // by the distance from the median
    }

    #[test]
    fn constants_have_converged_and_infinities_have_not() {
        assert_eq!(ChainStatistics::new(&[2.0; 40], 4).rhat, 1.0);
        assert_eq!(ChainStatistics::new(&[f64::NAN; 40], 4).rhat, f64::INFINITY);
    }
}

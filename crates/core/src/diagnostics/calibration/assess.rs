//! An assessment of the ranks of many quantities: p-values adjusted for their number, and what a deviation means.

use super::uniformity::uniformity;
use serde::Serialize;
use std::fmt;

/// The number of bars of a histogram.
pub const BINS: usize = 10;
/// The mean or the spread of the ranks counts as wrong if it is this many standard errors from that of a uniform.
const AWAY: f64 = 2.0;

/// What the ranks of a quantity show. See [`assess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Uniform, within chance: the posterior is calibrated.
    Uniform,
    /// The truth is in the tails too often: intervals are too narrow.
    TooNarrow,
    /// The truth is in the middle too often: intervals are too wide.
    TooWide,
    /// The truth is above the draws too often: the draws are too low.
    BiasedLow,
    /// The truth is below the draws too often: the draws are too high.
    BiasedHigh,
    /// Another deviation from uniform.
    Other,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "calibrated",
            Self::TooNarrow => "intervals too narrow",
            Self::TooWide => "intervals too wide",
            Self::BiasedLow => "biased low",
            Self::BiasedHigh => "biased high",
            Self::Other => "not uniform",
        })
    }
}

/// The assessment of one quantity. See [`assess`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Assessed {
    /// The name of the quantity.
    pub name: String,
    /// The p-value of the hypothesis that the ranks are uniform.
    pub p: f64,
    /// The p-value adjusted for the number of quantities (Holm), which controls the family-wise error rate.
    pub adjusted: f64,
    /// The deviation from uniform, if it is significant.
    pub shape: Shape,
    /// The mean rank as a share of the draws; 0.5 if calibrated.
    pub mean_rank: f64,
    /// The coverage of the central 50 % and 90 % intervals.
    pub coverage: [f64; 2],
    /// The number of ranks in each tenth.
    pub histogram: [usize; BINS],
}

/// Assesses the ranks of quantities among `draws_len` draws, the worst first; `level` is the probability that any calibrated
/// quantity is reported as wrong.
///
/// ```
/// use hyperprior::diagnostics::calibration::{Shape, assess};
///
/// let even: Vec<usize> = (0..100).collect();
/// let low: Vec<usize> = (0..100).map(|k| k / 2).collect();
/// let assessed = assess(vec![("a".to_owned(), even), ("b".to_owned(), low)], 99, 0.01);
/// assert_eq!((assessed[0].name.as_str(), assessed[0].shape), ("b", Shape::BiasedHigh));
/// assert_eq!(assessed[1].shape, Shape::Uniform);
/// ```
pub fn assess(quantities: Vec<(String, Vec<usize>)>, draws_len: usize, level: f64) -> Vec<Assessed> {
    let one = |(name, ranks): (String, Vec<usize>)| {
        let p = uniformity(&ranks, draws_len);
        // The middle of the rank's cell, which is never 0 or 1.
        let shares: Vec<f64> = ranks.iter().map(|r| (*r as f64 + 0.5) / (draws_len + 1) as f64).collect();
        let n = shares.len().max(1) as f64;
        let within = |width: f64| shares.iter().filter(|u| (**u - 0.5).abs() < 0.5 * width).count() as f64 / n;
        let mut histogram = [0; BINS];
        shares.iter().for_each(|u| histogram[((u * BINS as f64) as usize).min(BINS - 1)] += 1);
        let mean_rank = shares.iter().sum::<f64>() / n;
        let coverage = [within(0.5), within(0.9)];
        let assessed = Assessed { name, p, adjusted: p, shape: Shape::Uniform, mean_rank, coverage, histogram };
        (assessed, shape(&shares))
    };
    let mut all: Vec<(Assessed, Shape)> = quantities.into_iter().map(one).collect();
    all.sort_by(|a, b| a.0.p.total_cmp(&b.0.p));
    let len = all.len();
    let mut reached = 0.0_f64;
    for (k, (assessed, shape)) in all.iter_mut().enumerate() {
        reached = reached.max(((len - k) as f64 * assessed.p).min(1.0));
        assessed.adjusted = reached;
        if assessed.adjusted < level {
            assessed.shape = *shape;
        }
    }
    all.into_iter().map(|(assessed, _)| assessed).collect()
}

/// The deviation of ranks that are not uniform: that of their mean or their spread, whichever is larger.
fn shape(shares: &[f64]) -> Shape {
    let n = shares.len().max(1) as f64;
    let mean = |f: &dyn Fn(f64) -> f64| shares.iter().map(|u| f(*u)).sum::<f64>() / n;
    // 2u − 1 has mean 0 and variance 1/3; its square has mean 1/3 and variance 4/45.
    let tilt = mean(&|u| 2.0 * u - 1.0) / (1.0 / 3.0 / n).sqrt();
    let spread = (mean(&|u| (2.0 * u - 1.0).powi(2)) - 1.0 / 3.0) / (4.0 / 45.0 / n).sqrt();
    if tilt.abs().max(spread.abs()) < AWAY {
        Shape::Other
    } else if tilt.abs() > spread.abs() {
        if tilt > 0.0 { Shape::BiasedLow } else { Shape::BiasedHigh }
    } else if spread > 0.0 {
        Shape::TooNarrow
    } else {
        Shape::TooWide
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    /// Truths from N(0, 1), draws from N(shift, width²): 200 rounds of 99 draws.
    fn shape_of(shift: f64, width: f64) -> Shape {
        let ranks = (0..200_u64).map(|k| {
            let mut rng = stream(5, 0, 0, k);
            let truth: f64 = StandardNormal.sample(&mut rng);
            let draws: Vec<f64> = (0..99)
                .map(|_| {
                    let x: f64 = StandardNormal.sample(&mut rng);
                    shift + width * x
                })
                .collect();
            super::super::rank(truth, &draws, &mut rng)
        });
        assess(vec![("x".to_owned(), ranks.collect())], 99, 0.01)[0].shape
    }

    #[test]
    fn each_error_is_recognised_by_its_shape() {
        assert_eq!(shape_of(0.0, 1.0), Shape::Uniform);
        assert_eq!(shape_of(0.0, 0.5), Shape::TooNarrow);
        assert_eq!(shape_of(0.0, 2.0), Shape::TooWide);
        assert_eq!(shape_of(-0.7, 1.0), Shape::BiasedLow);
        assert_eq!(shape_of(0.7, 1.0), Shape::BiasedHigh);
    }

    /// A discrete truth and draws from the same distribution: ties are broken so that ranks are uniform. Of 400 tests of uniform
    /// ranks at the level 5 %, 20 are expected to fail, and more than 40 have a probability below 1e-5 (binomial).
    #[test]
    fn uniform_ranks_are_rejected_as_often_as_the_level_says() {
        let mut wrong = 0;
        for test in 0..400_u64 {
            let ranks: Vec<usize> = (0..60_u64)
                .map(|k| {
                    let mut rng = stream(9, test, 0, k);
                    let mut value = || f64::from(rng.random_range(0..3_u8));
                    let truth = value();
                    let draws: Vec<f64> = (0..20).map(|_| value()).collect();
                    super::super::rank(truth, &draws, &mut rng)
                })
                .collect();
            wrong += usize::from(uniformity(&ranks, 20) < 0.05);
        }
        assert!((4..=40).contains(&wrong), "{wrong} of 400");
    }

    #[test]
    fn p_values_are_adjusted_for_the_number_of_quantities() {
        let slight: Vec<usize> = (0..40).map(|k| 2 * k).collect();
        let p = uniformity(&slight, 99);
        assert!(p > 1e-3 && p < 0.05, "{p}");
        let many = (0..1000).map(|i| (format!("x[{i}]"), slight.clone())).collect();
        assert!(assess(many, 99, 0.05).iter().all(|a| a.shape == Shape::Uniform && a.adjusted == 1.0));
        assert_eq!(assess(vec![("x".to_owned(), slight)], 99, 0.05)[0].shape, Shape::BiasedHigh);
    }
}

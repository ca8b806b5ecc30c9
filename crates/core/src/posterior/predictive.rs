//! Posterior predictive checks: statistics of the data compared with those of replicated data.

use crate::json::nullable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A statistic of an array.
///
/// ```
/// use hyperprior::posterior::Statistic;
/// let data = [0.0, 3.0, 0.0, 1.0];
/// assert_eq!(Statistic::Zeros.of(data.into_iter()), 0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The standard deviation, with Bessel's correction.
    Sd,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The share of values that are 0.
    Zeros,
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Mean => "mean",
            Self::Sd => "sd",
            Self::Min => "min",
            Self::Max => "max",
            Self::Zeros => "share of zeros",
        })
    }
}

impl Statistic {
    /// Its value for a sample with at least one number.
    pub fn of(self, x: impl Iterator<Item = f64> + Clone) -> f64 {
        let len = x.clone().count() as f64;
        let mean = x.clone().sum::<f64>() / len;
        match self {
            Self::Mean => mean,
            Self::Sd => (x.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (len - 1.0)).sqrt(),
            Self::Min => x.fold(f64::INFINITY, f64::min),
            Self::Max => x.fold(f64::NEG_INFINITY, f64::max),
            Self::Zeros => x.filter(|x| *x == 0.0).count() as f64 / len,
        }
    }
}

/// A statistic of the data compared with replications. See [`tail_probability`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PpcStatistic {
    /// The statistic.
    pub statistic: Statistic,
    /// Its value for the data.
    #[serde(deserialize_with = "nullable")]
    pub data: f64,
    /// Its mean over the replications.
    #[serde(deserialize_with = "nullable")]
    pub mean: f64,
    /// Its 5 % quantile over the replications.
    #[serde(deserialize_with = "nullable")]
    pub q05: f64,
    /// Its 95 % quantile over the replications.
    #[serde(deserialize_with = "nullable")]
    pub q95: f64,
    /// The two-sided tail probability: twice the share of replications at least as extreme, on the side with fewer of them and with
    /// the data counted as one.
    #[serde(deserialize_with = "nullable")]
    pub tail: f64,
}

/// The posterior predictive check of an observed array. See [`PpcStatistic`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PpcArray {
    /// Its name.
    pub array: String,
    /// The number of its observed elements.
    #[serde(default)]
    pub observed: usize,
    /// Its statistics.
    pub statistics: Vec<PpcStatistic>,
}

/// The two-sided tail probability of a statistic among its replications. The data count as one of them, so that a few replications
/// cannot make the data look extreme.
///
/// ```
/// use hyperprior::posterior::tail_probability;
/// let replicated: Vec<f64> = (1..100).map(f64::from).collect();
/// assert_eq!(tail_probability(&replicated, 500.0), 0.02);
/// ```
pub fn tail_probability(replicated: &[f64], data: f64) -> f64 {
    // Equal values may differ by rounding.
    let near = 1e-12 * data.abs();
    let above = replicated.iter().filter(|x| **x >= data - near).count();
    let below = replicated.iter().filter(|x| **x <= data + near).count();
    (2.0 * (1 + above.min(below)) as f64 / (1 + replicated.len()) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_and_tail_probabilities_of_a_small_sample() {
        let x = [0.0, 3.0, 0.0, 1.0];
        let of = |statistic: Statistic| statistic.of(x.iter().copied());
        assert_eq!((of(Statistic::Mean), of(Statistic::Min), of(Statistic::Max)), (1.0, 0.0, 3.0));
        assert_eq!((of(Statistic::Sd), of(Statistic::Zeros)), (2.0_f64.sqrt(), 0.5));
        // Of 1, …, 99 three are at least 97; ties count on both sides.
        let replicated: Vec<f64> = (1..100).map(f64::from).collect();
        assert!((tail_probability(&replicated, 97.0) - 0.08).abs() < 1e-12);
        assert!((tail_probability(&replicated, 3.0) - 0.08).abs() < 1e-12);
        assert_eq!((tail_probability(&replicated, 50.0), tail_probability(&[2.0; 9], 2.0)), (1.0, 1.0));
        assert!((tail_probability(&replicated, 500.0) - 0.02).abs() < 1e-12);
    }
}

//! Posterior predictive checks: statistics of the data beside those of data that the model would have given.

use super::draws::{Column, Draws};
use super::name::ElementName;
use super::summary::summarise;
use crate::error::Result;
use crate::model::graph::{GraphModel, Measure, Observation};
use hyperprior_math::batch::Batch;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// What is calculated from an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// Its value for numbers, of which there is at least one.
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

    /// Those that say something of such numbers: of zeros and ones the mean says all.
    fn suited(measures: &[Measure]) -> Vec<Self> {
        let all = |measure: Measure| measures.iter().all(|m| *m == measure);
        match measures {
            [_] => vec![Self::Mean],
            _ if all(Measure::Binary) => vec![Self::Mean],
            _ if all(Measure::Count) => vec![Self::Mean, Self::Sd, Self::Min, Self::Max, Self::Zeros],
            _ => vec![Self::Mean, Self::Sd, Self::Min, Self::Max],
        }
    }
}

/// A statistic of the data beside that of replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CheckedStatistic {
    /// Which.
    pub statistic: Statistic,
    /// That of the data.
    pub data: f64,
    /// Its mean over the replications.
    pub mean: f64,
    /// Their 5 % quantile.
    pub q05: f64,
    /// Their 95 % quantile.
    pub q95: f64,
    /// The two-sided tail probability: twice the share of replications, the data counted among them, at least as far out on that
    /// side on which there are fewer.
    pub tail: f64,
}

/// An observed array, checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedArray {
    /// Its name.
    pub array: String,
    /// How many of its numbers were observed.
    pub observed: usize,
    /// Its statistics.
    pub statistics: Vec<CheckedStatistic>,
}

/// Replicates the data of a model once for each draw of its latents, and holds statistics of each observed array against those of
/// the data.
///
/// # Errors
/// As [`GraphModel::replicate_each`].
pub fn check_predictive(model: &GraphModel, z: &Batch, seed: u64) -> Result<Vec<CheckedArray>> {
    let observations = model.graph().observations();
    let arrays = arrays(&observations);
    let asked: Vec<(usize, Statistic)> = arrays
        .iter()
        .enumerate()
        .flat_map(|(a, (_, own))| {
            let measures: Vec<Measure> = own.iter().map(|i| observations[*i].measure).collect();
            Statistic::suited(&measures).into_iter().map(move |statistic| (a, statistic))
        })
        .collect();
    let of = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
        asked.iter().map(|(a, statistic)| statistic.of(arrays[*a].1.iter().map(|i| values(*i)))).collect()
    };
    let data = of(&|i| observations[i].value);
    let replicated = model.replicate_each(z, seed, |values| of(&|i| values[i]))?;
    let mut columns = Batch::zeros(asked.len(), z.draws_len());
    for (s, draw) in replicated.iter().enumerate() {
        draw.iter().enumerate().for_each(|(k, x)| columns.set(k, s, *x));
    }
    let mut checked: Vec<CheckedArray> = arrays
        .iter()
        .map(|(array, own)| CheckedArray { array: (*array).to_owned(), observed: own.len(), statistics: Vec::new() })
        .collect();
    let tails: Vec<f64> = data.iter().enumerate().map(|(k, data)| tail(columns.column(k), *data)).collect();
    let names = (0..asked.len()).map(|k| Column::continuous(k.to_string())).collect();
    // Without draws there is nothing to hold the data against.
    let Ok(draws) = Draws::new(names, columns) else { return Ok(checked) };
    for (k, summary) in summarise(&draws).into_iter().enumerate() {
        let (a, statistic) = asked[k];
        let (mean, q05, q95) = (summary.mean, summary.q05, summary.q95);
        checked[a].statistics.push(CheckedStatistic { statistic, data: data[k], mean, q05, q95, tail: tails[k] });
    }
    Ok(checked)
}

/// The observations of each array, in order of their first.
fn arrays(observations: &[Observation]) -> Vec<(&str, Vec<usize>)> {
    let mut arrays: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut known = HashMap::new();
    for (i, observation) in observations.iter().enumerate() {
        let name = ElementName::parse(&observation.name).array;
        let at = *known.entry(name).or_insert_with(|| {
            arrays.push((name, Vec::new()));
            arrays.len() - 1
        });
        arrays[at].1.push(i);
    }
    arrays
}

/// Few replications cannot say that data are far out: the data are counted as one of them.
fn tail(replicated: &[f64], data: f64) -> f64 {
    // Rounding in a sum of many must not part what is equal.
    let near = 1e-12 * data.abs();
    let above = replicated.iter().filter(|x| **x >= data - near).count();
    let below = replicated.iter().filter(|x| **x <= data + near).count();
    (2.0 * (1 + above.min(below)) as f64 / (1 + replicated.len()) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_and_tails_by_hand() {
        let x = [0.0, 3.0, 0.0, 1.0];
        let of = |statistic: Statistic| statistic.of(x.iter().copied());
        assert_eq!((of(Statistic::Mean), of(Statistic::Min), of(Statistic::Max)), (1.0, 0.0, 3.0));
        assert_eq!((of(Statistic::Sd), of(Statistic::Zeros)), (2.0_f64.sqrt(), 0.5));
        // Of 1, …, 99 three are at least 97; ties count on both sides.
        let replicated: Vec<f64> = (1..100).map(f64::from).collect();
        assert!((tail(&replicated, 97.0) - 0.08).abs() < 1e-12);
        assert!((tail(&replicated, 3.0) - 0.08).abs() < 1e-12);
        assert_eq!((tail(&replicated, 50.0), tail(&[2.0; 9], 2.0)), (1.0, 1.0));
        assert!((tail(&replicated, 500.0) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn statistics_suit_what_is_measured() {
        let len = |measures: &[Measure]| Statistic::suited(measures).len();
        assert_eq!(len(&[Measure::Binary; 3]), 1);
        assert_eq!(len(&[Measure::Count; 3]), 5);
        assert_eq!(len(&[Measure::Count, Measure::Number]), 4);
        assert_eq!(len(&[Measure::Count]), 1);
    }
}

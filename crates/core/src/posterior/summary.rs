//! Summaries of draws: moments, quantiles, probabilities, and Monte Carlo errors.

use super::draws::{Draws, Kind};
use super::weights::Weights;
use crate::json::nullable;
use rayon::prelude::*;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A discrete variable with more distinct values than this has no table of probabilities.
pub const PMF_VALUES_MAX: usize = 100;

/// The summary of one scalar; its name is its key in [`Parameters`]. See [`summarise`].
///
/// If a column contains NaN, the mean and the quantiles are NaN, `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Summary {
    /// The name in BUGS notation.
    #[serde(skip)]
    pub name: String,
    /// Which values it takes.
    #[serde(skip)]
    pub kind: Kind,
    /// The mean.
    #[serde(deserialize_with = "nullable")]
    pub mean: f64,
    /// The standard deviation, with Bessel's correction; NaN for a single draw.
    #[serde(deserialize_with = "nullable")]
    pub sd: f64,
    /// The 2.5 % quantile.
    #[serde(deserialize_with = "nullable")]
    pub q025: f64,
    /// The 5 % quantile.
    #[serde(deserialize_with = "nullable")]
    pub q05: f64,
    /// The lower quartile.
    #[serde(deserialize_with = "nullable")]
    pub q25: f64,
    /// The median.
    #[serde(deserialize_with = "nullable")]
    pub median: f64,
    /// The upper quartile.
    #[serde(deserialize_with = "nullable")]
    pub q75: f64,
    /// The 95 % quantile.
    #[serde(deserialize_with = "nullable")]
    pub q95: f64,
    /// The 97.5 % quantile.
    #[serde(deserialize_with = "nullable")]
    pub q975: f64,
    /// The Monte Carlo standard error of the mean.
    #[serde(deserialize_with = "nullable")]
    pub mcse: f64,
    /// The effective sample size.
    #[serde(deserialize_with = "nullable")]
    pub ess: f64,
    /// The probability of each value, for a discrete variable with at most [`PMF_VALUES_MAX`] values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmf: Option<BTreeMap<i64, f64>>,
}

/// Summaries as one object with the names as keys, in order: `parameters` of `summary.json`.
///
/// ```
/// use hyperprior::posterior::Parameters;
/// let parameters: Parameters = serde_json::from_str(r#"{"mu": {"mean": 1.5, "sd": null}}"#)?;
/// assert_eq!(parameters.0[0].name, "mu");
/// assert!(parameters.0[0].sd.is_nan());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(pub Vec<Summary>);

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for summary in &self.0 {
            map.serialize_entry(&summary.name, summary)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Parameters;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("parameters by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Vec::new();
                while let Some((name, summary)) = map.next_entry::<String, Summary>()? {
                    let kind = if summary.pmf.is_some() { Kind::Discrete } else { Kind::Continuous };
                    parameters.push(Summary { name, kind, ..summary });
                }
                Ok(Parameters(parameters))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

impl Default for Summary {
    /// A summary with every number NaN.
    fn default() -> Self {
        let [mean, sd, q025, q05, q25, median, q75, q95, q975, mcse, ess] = [f64::NAN; 11];
        let (name, kind) = (String::new(), Kind::Continuous);
        Self { name, kind, mean, sd, q025, q05, q25, median, q75, q95, q975, mcse, ess, pmf: None }
    }
}

/// Summarises every column.
///
/// Draws of a fit are independent, so the effective sample size is their number, or Kish's for weighted draws, and the standard
/// error of a mean is sd/√ESS. The quantiles of a discrete variable are among its values.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::{Column, Draws, summarise};
/// let draws = Draws::new(vec![Column::discrete("z")], Batch::from_columns(vec![0.0, 1.0, 1.0, 2.0], 4))?;
/// let summary = &summarise(&draws)[0];
/// assert_eq!((summary.mean, summary.median, summary.ess), (1.0, 1.0, 4.0));
/// assert_eq!(summary.pmf.as_ref().map(|pmf| pmf[&1]), Some(0.5));
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
pub fn summarise(draws: &Draws) -> Vec<Summary> {
    let weights = draws.weights();
    (0..draws.columns().len()).into_par_iter().map(|i| of_column(draws, &weights, i)).collect()
}

fn of_column(draws: &Draws, weights: &Weights, i: usize) -> Summary {
    let column = &draws.columns()[i];
    let ess = weights.effective_len();
    let (mean, sd) = moments(draws.column(i), weights);
    let sorted = Sorted::new(draws.column(i), weights);
    let quantile = |p| match column.kind {
        Kind::Continuous => sorted.between(p),
        Kind::Discrete => sorted.least(p),
    };
    Summary {
        name: column.name.clone(),
        kind: column.kind,
        mean,
        sd,
        q025: quantile(0.025),
        q05: quantile(0.05),
        q25: quantile(0.25),
        median: quantile(0.5),
        q75: quantile(0.75),
        q95: quantile(0.95),
        q975: quantile(0.975),
        mcse: sd / ess.sqrt(),
        ess,
        pmf: (column.kind == Kind::Discrete).then(|| sorted.pmf()).flatten(),
    }
}

/// Mean and standard deviation. With weights, Bessel's correction uses the effective sample size.
fn moments(x: &[f64], weights: &Weights) -> (f64, f64) {
    // A draw without weight does not count, even if it is infinite.
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        let terms = x.iter().zip(weights.relative()).filter(|(_, w)| **w > 0.0);
        terms.map(|(x, w)| w * f(*x)).sum::<f64>() / weights.total()
    };
    let mean = sum(&|x| x);
    let ess = weights.effective_len();
    // One draw, or one with all the weight up to rounding.
    let correction = if ess > 1.0 + 1e-9 { ess / (ess - 1.0) } else { f64::NAN };
    (mean, (sum(&|x| (x - mean) * (x - mean)) * correction).sqrt())
}

/// The draws that have weight, in order of their values.
struct Sorted {
    /// Value and weight.
    values: Vec<(f64, f64)>,
    /// The weight up to and including each.
    cumulative: Vec<f64>,
    /// The weight up to the middle of each.
    middles: Vec<f64>,
}

impl Sorted {
    fn new(x: &[f64], weights: &Weights) -> Self {
        let weighted = x.iter().copied().zip(weights.relative().iter().copied());
        let mut values: Vec<(f64, f64)> = weighted.filter(|(_, w)| *w > 0.0).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        let mut add = |(_, w): &(f64, f64)| {
            sum += w;
            sum
        };
        let cumulative: Vec<f64> = values.iter().map(&mut add).collect();
        let middles = cumulative.iter().zip(&values).map(|(c, (_, w))| c - w / 2.0).collect();
        Self { values, cumulative, middles }
    }

    /// The p-quantile: draw k is placed at the middle of its weight, and the quantile is linear between draws (with equal weights,
    /// Hazen's, or Hyndman and Fan's type 5).
    fn between(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        // NaN is sorted to one of the ends.
        if self.values[0].0.is_nan() || self.values[last].0.is_nan() {
            return f64::NAN;
        }
        let target = p * self.cumulative[last];
        let above = self.middles.partition_point(|middle| *middle <= target);
        if above == 0 || above > last {
            return self.values[above.min(last)].0;
        }
        let below = above - 1;
        let (a, b) = (self.values[below].0, self.values[above].0);
        let t = (target - self.middles[below]) / (self.middles[above] - self.middles[below]);
        if t == 0.0 || a == b { a } else { (1.0 - t) * a + t * b }
    }

    /// The smallest value whose cumulative probability reaches p.
    fn least(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        // A sum of weights that should equal p may fall short by rounding.
        let target = p * self.cumulative[last] * (1.0 - 1e-12);
        self.values[self.cumulative.partition_point(|c| *c < target).min(last)].0
    }

    /// The probability of each value, unless there are too many.
    fn pmf(&self) -> Option<BTreeMap<i64, f64>> {
        let total = self.cumulative.last()?;
        let mut pmf = BTreeMap::new();
        for run in self.values.chunk_by(|a, b| a.0 == b.0) {
            if pmf.len() == PMF_VALUES_MAX {
                return None;
            }
            let weight: f64 = run.iter().map(|(_, w)| w).sum();
            pmf.insert(run[0].0 as i64, weight / total);
        }
        Some(pmf)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Column;
    use super::*;
    use hyperprior_math::batch::Batch;

    fn one(column: Column, x: &[f64], weights: Option<&[f64]>) -> Summary {
        let draws = Draws::new(vec![column], Batch::from_columns(x.to_vec(), x.len())).unwrap();
        let draws = match weights {
            Some(weights) => draws.weighted(weights.iter().map(|w| w.ln()).collect()).unwrap(),
            None => draws,
        };
        summarise(&draws).remove(0)
    }

    #[test]
    fn summaries_with_equal_weights() {
        let s = one(Column::continuous("x"), &[4.0, 1.0, 3.0, 2.0], None);
        assert_eq!((s.mean, s.median, s.q25, s.q75), (2.5, 2.5, 1.5, 3.5));
        // Below the middle of the first draw and above that of the last, quantiles are constant.
        assert_eq!((s.q05, s.q95), (1.0, 4.0));
        assert!((s.sd - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(s.ess, 4.0);
        assert_eq!(s.mcse, s.sd / 2.0);
        assert_eq!(s.pmf, None);
    }

    #[test]
    fn summaries_with_weights() {
        // Weights 1, 2, 1 of 4: the draws are at 1/8, 1/2 and 7/8; the fourth has no weight and is infinite.
        let s = one(Column::continuous("x"), &[10.0, 20.0, 40.0, f64::INFINITY], Some(&[1.0, 2.0, 1.0, 0.0]));
        assert_eq!(s.mean, 22.5);
        assert_eq!(s.median, 20.0);
        // 1/4 is a third of the way from 1/8 to 1/2, 3/4 two thirds from 1/2 to 7/8.
        assert!((s.q25 - (10.0 + 10.0 / 3.0)).abs() < 1e-12, "{}", s.q25);
        assert!((s.q75 - (20.0 + 40.0 / 3.0)).abs() < 1e-12, "{}", s.q75);
        assert!((s.ess - 16.0 / 6.0).abs() < 1e-12);
        // Σ w (x − 22.5)² / 4 = 118.75, times ess / (ess − 1) = 1.6.
        assert!((s.sd - 190.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn quantiles_of_discrete_variables_are_values() {
        let x = [0.0, 0.0, 1.0, 7.0];
        let s = one(Column::discrete("z"), &x, None);
        // Half of the draws are 0, so the median is 0.
        assert_eq!((s.q05, s.median, s.q75, s.q95), (0.0, 0.0, 1.0, 7.0));
        assert_eq!(s.pmf, Some(BTreeMap::from([(0, 0.5), (1, 0.25), (7, 0.25)])));
        // A draw of weight two is that draw twice.
        let w = one(Column::discrete("z"), &x[1..], Some(&[2.0, 1.0, 1.0]));
        assert_eq!((w.pmf, w.median, w.mean), (s.pmf, s.median, s.mean));
    }

    #[test]
    fn a_discrete_variable_with_many_values_has_no_table() {
        let values = |len: i32| (0..len).map(f64::from).collect::<Vec<_>>();
        let len = |len| one(Column::discrete("n"), &values(len), None).pmf.map(|pmf| pmf.len());
        assert_eq!((len(100), len(101)), (Some(100), None));
    }

    #[test]
    fn unknown_numbers_are_null() {
        let single = one(Column::continuous("x"), &[2.0], None);
        assert_eq!(single.mean, 2.0);
        assert!(single.sd.is_nan() && single.mcse.is_nan());
        let broken = one(Column::continuous("x"), &[2.0, f64::NAN, 1.0], None);
        assert!(broken.mean.is_nan() && broken.median.is_nan());
        assert_eq!(serde_json::to_value(&broken).unwrap()["q05"], serde_json::Value::Null);
    }

    #[test]
    fn parameters_are_one_object_in_the_order_of_the_columns() {
        let columns = vec![Column::discrete("z[2]"), Column::continuous("a")];
        let draws = Draws::new(columns, Batch::from_columns(vec![10.0, 9.0, 1.0, 3.0], 2)).unwrap();
        let text = serde_json::to_string(&Parameters(summarise(&draws))).unwrap();
        assert!(text.starts_with(r#"{"z[2]":{"mean":9.5,"sd":0.7071"#), "{text}");
        assert!(text.contains(r#""pmf":{"9":0.5,"10":0.5}},"a":{"mean":2.0"#), "{text}");
    }
}

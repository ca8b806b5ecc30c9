//! What the draws of one scalar say: moments, quantiles, probabilities, and how well those are known.

use super::draws::{Draws, Kind};
use super::weights::Weights;
use rayon::prelude::*;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A discrete variable with more distinct values than this gets no table of probabilities.
pub const PMF_VALUES_MAX: usize = 100;

/// The summary of one scalar; its name is its key in [`Parameters`].
///
/// A column that holds something that is not a number has no mean and no quantiles: they are NaN, `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// As BUGS writes it.
    #[serde(skip)]
    pub name: String,
    /// What values it takes.
    #[serde(skip)]
    pub kind: Kind,
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with Bessel's correction; of a single draw it is not known.
    pub sd: f64,
    /// The 2.5 % quantile.
    pub q025: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The lower quartile.
    pub q25: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub q75: f64,
    /// The 95 % quantile.
    pub q95: f64,
    /// The 97.5 % quantile.
    pub q975: f64,
    /// The Monte Carlo standard error of the mean.
    pub mcse: f64,
    /// The effective sample size.
    pub ess: f64,
    /// The probability of each value that was drawn, for a discrete variable with few of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmf: Option<BTreeMap<i64, f64>>,
}

/// Summaries as one object with the names as keys, in their order: `parameters` of `summary.json`.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a>(pub &'a [Summary]);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for summary in self.0 {
            map.serialize_entry(&summary.name, summary)?;
        }
        map.end()
    }
}

/// Summarises every column.
///
/// Draws of a fit are independent, so the effective sample size is their number, or Kish's where they have weights, and the
/// standard error of a mean is sd/√ESS. The median of a discrete variable is one of its values.
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

/// Mean and standard deviation. With weights, Bessel's n is the effective one.
fn moments(x: &[f64], weights: &Weights) -> (f64, f64) {
    // A draw without weight says nothing, not even where it is infinite.
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        let terms = x.iter().zip(weights.relative()).filter(|(_, w)| **w > 0.0);
        terms.map(|(x, w)| w * f(*x)).sum::<f64>() / weights.total()
    };
    let mean = sum(&|x| x);
    let ess = weights.effective_len();
    // One draw, or one with all the weight but for rounding.
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

    /// The p-quantile between draws: draw k stands at its middle, as a share of the total weight, and the quantile is linear
    /// between draws (Hazen's, Hyndman and Fan's type 5, where weights are equal).
    fn between(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        // A NaN is sorted to one of the ends.
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

    /// The least value whose cumulative probability reaches p.
    fn least(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        // A sum of weights that should be p exactly may fall short by rounding.
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
    fn equal_weights_by_hand() {
        let s = one(Column::continuous("x"), &[4.0, 1.0, 3.0, 2.0], None);
        assert_eq!((s.mean, s.median, s.q25, s.q75), (2.5, 2.5, 1.5, 3.5));
        // Below the middle of the first draw and above that of the last there is nothing to go by.
        assert_eq!((s.q05, s.q95), (1.0, 4.0));
        assert!((s.sd - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(s.ess, 4.0);
        assert_eq!(s.mcse, s.sd / 2.0);
        assert_eq!(s.pmf, None);
    }

    #[test]
    fn weights_by_hand() {
        // Weights 1, 2, 1 of 4: the draws stand at 1/8, 1/2 and 7/8; the fourth has none, and is infinite.
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
        // Half of the draws are 0, so that the median is 0 and nothing between.
        assert_eq!((s.q05, s.median, s.q75, s.q95), (0.0, 0.0, 1.0, 7.0));
        assert_eq!(s.pmf, Some(BTreeMap::from([(0, 0.5), (1, 0.25), (7, 0.25)])));
        // A draw of weight two is that draw twice.
        let w = one(Column::discrete("z"), &x[1..], Some(&[2.0, 1.0, 1.0]));
        assert_eq!((w.pmf, w.median, w.mean), (s.pmf, s.median, s.mean));
    }

    #[test]
    fn a_discrete_variable_of_many_values_has_no_table() {
        let values = |len: i32| (0..len).map(f64::from).collect::<Vec<_>>();
        let len = |len| one(Column::discrete("n"), &values(len), None).pmf.map(|pmf| pmf.len());
        assert_eq!((len(100), len(101)), (Some(100), None));
    }

    #[test]
    fn what_is_not_known_is_null() {
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
        let text = serde_json::to_string(&Parameters(&summarise(&draws))).unwrap();
        assert!(text.starts_with(r#"{"z[2]":{"mean":9.5,"sd":0.7071"#), "{text}");
        assert!(text.contains(r#""pmf":{"9":0.5,"10":0.5}},"a":{"mean":2.0"#), "{text}");
    }
}

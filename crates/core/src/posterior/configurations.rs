//! The most probable joint configurations of discrete variables.

use super::draws::{Draws, DrawsError};
use std::cmp::Ordering;

/// One value for each variable of a group. See [`top_configurations`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Configuration {
    /// The values, in the order of the group's columns.
    pub values: Vec<i64>,
    /// The share of the draws with these values.
    pub probability: f64,
}

/// The most probable configurations of a group. See [`top_configurations`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Configurations {
    /// The group's columns.
    pub columns: Vec<usize>,
    /// In order of decreasing probability; ties are ordered by their values.
    pub top: Vec<Configuration>,
    /// The number of distinct configurations among the draws.
    pub distinct: usize,
}

impl Configurations {
    /// The total probability of the other configurations.
    pub fn other_probability(&self) -> f64 {
        (1.0 - self.top.iter().map(|c| c.probability).sum::<f64>()).max(0.0)
    }
}

/// The `top_len` most probable joint configurations of some discrete columns.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::{Column, Draws, top_configurations};
/// let columns = vec![Column::discrete("a"), Column::discrete("b")];
/// let draws = Draws::new(columns, Batch::from_columns(vec![1.0, 0.0, 1.0, 1.0, 0.0, 1.0], 3))?;
/// let found = top_configurations(&draws, &[0, 1], 1)?;
/// assert_eq!(found.top[0].values, [1, 1]);
/// assert_eq!(found.distinct, 2);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
///
/// # Errors
/// [`DrawsError::NotDiscrete`]
pub fn top_configurations(draws: &Draws, columns: &[usize], top_len: usize) -> Result<Configurations, DrawsError> {
    draws.require_discrete(columns)?;
    let weights = draws.weights();
    let compare = |a: &usize, b: &usize| {
        let orders = columns.iter().map(|i| draws.column(*i)[*a].total_cmp(&draws.column(*i)[*b]));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..draws.len()).filter(|s| weights.relative()[*s] > 0.0).collect();
    // A stable sort, so that the weights of one configuration are summed in the order of the draws.
    order.sort_by(compare);
    let mut runs: Vec<(usize, f64)> = order
        .chunk_by(|a, b| compare(a, b).is_eq())
        .map(|run| (run[0], run.iter().map(|s| weights.relative()[*s]).sum()))
        .collect();
    let distinct = runs.len();
    runs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let top = runs.iter().take(top_len).map(|(s, weight)| Configuration {
        values: columns.iter().map(|i| draws.column(*i)[*s] as i64).collect(),
        probability: weight / weights.total(),
    });
    Ok(Configurations { columns: columns.to_vec(), top: top.collect(), distinct })
}

#[cfg(test)]
mod tests {
    use super::super::draws::Column;
    use super::*;
    use hyperprior_math::batch::Batch;

    #[test]
    fn configurations_are_counted_and_ties_ordered_by_value() {
        let columns = vec![Column::discrete("a"), Column::continuous("x"), Column::discrete("b")];
        let a = [2.0, 1.0, 2.0, 10.0, 1.0, 9.0];
        let b = [0.0, 5.0, 0.0, -1.0, 5.0, -1.0];
        let values: Vec<f64> = [a, [0.5; 6], b].concat();
        let draws = Draws::new(columns, Batch::from_columns(values, 6)).unwrap();
        let found = top_configurations(&draws, &[0, 2], 3).unwrap();
        let top: Vec<(&[i64], f64)> = found.top.iter().map(|c| (&c.values[..], c.probability)).collect();
        let third = 1.0 / 3.0;
        assert_eq!(top, [(&[1, 5][..], third), (&[2, 0][..], third), (&[9, -1][..], 1.0 / 6.0)]);
        assert_eq!(found.distinct, 4);
        assert!((found.other_probability() - 1.0 / 6.0).abs() < 1e-15);

        let logs = [1.0_f64, 0.0, 1.0, 6.0, 0.0, 0.0].map(f64::ln).to_vec();
        let weighted = top_configurations(&draws.clone().weighted(logs).unwrap(), &[0, 2], 9).unwrap();
        assert_eq!(weighted.distinct, 2);
        assert_eq!(weighted.top[0].values, [10, -1]);
        assert!((weighted.top[0].probability - 0.75).abs() < 1e-15);

        let refused = top_configurations(&draws, &[0, 1], 3).unwrap_err();
        assert_eq!(refused, DrawsError::NotDiscrete { name: "x".to_owned() });
    }
}

//! Posterior predictive checks of a factor graph: its data, replicated for every draw.

use crate::model::GraphModel;
use crate::replicate::{Measure, Observation};
use hyperprior::Result;
use hyperprior::posterior::{
    Column, Draws, ElementName, PpcArray, PpcStatistic, Statistic, summarise, tail_probability,
};
use hyperprior_math::batch::Batch;
use std::collections::HashMap;

/// The statistics for data of these kinds; for zeros and ones the mean is enough.
fn statistics_for(measures: &[Measure]) -> Vec<Statistic> {
    let all = |measure: Measure| measures.iter().all(|m| *m == measure);
    match measures {
        [_] => vec![Statistic::Mean],
        _ if all(Measure::Binary) => vec![Statistic::Mean],
        _ if all(Measure::Count) => {
            vec![Statistic::Mean, Statistic::Sd, Statistic::Min, Statistic::Max, Statistic::Zeros]
        }
        _ => vec![Statistic::Mean, Statistic::Sd, Statistic::Min, Statistic::Max],
    }
}

/// Replicates the data of a model once for each draw of its latents, and compares statistics of each observed array with those
/// of the replications.
///
/// # Errors
/// As [`GraphModel::replicate_each`].
pub fn posterior_predictive_check(model: &GraphModel, z: &Batch, seed: u64) -> Result<Vec<PpcArray>> {
    let observations = model.graph().observations();
    let arrays = arrays(&observations);
    let asked: Vec<(usize, Statistic)> = arrays
        .iter()
        .enumerate()
        .flat_map(|(a, (_, own))| {
            let measures: Vec<Measure> = own.iter().map(|i| observations[*i].measure).collect();
            statistics_for(&measures).into_iter().map(move |statistic| (a, statistic))
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
    let mut checked: Vec<PpcArray> = arrays
        .iter()
        .map(|(array, own)| PpcArray { array: (*array).to_owned(), observed: own.len(), statistics: Vec::new() })
        .collect();
    let tails: Vec<f64> = data.iter().enumerate().map(|(k, data)| tail_probability(columns.column(k), *data)).collect();
    let names = (0..asked.len()).map(|k| Column::continuous(k.to_string())).collect();
    // Without draws there is nothing to compare the data with.
    let Ok(draws) = Draws::new(names, columns) else { return Ok(checked) };
    for (k, summary) in summarise(&draws).into_iter().enumerate() {
        let (a, statistic) = asked[k];
        let (mean, q05, q95) = (summary.mean, summary.q05, summary.q95);
        checked[a].statistics.push(PpcStatistic { statistic, data: data[k], mean, q05, q95, tail: tails[k] });
    }
    Ok(checked)
}

/// The observations of each array, in order of first appearance.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_depend_on_the_kind_of_data() {
        let len = |measures: &[Measure]| statistics_for(measures).len();
        assert_eq!(len(&[Measure::Binary; 3]), 1);
        assert_eq!(len(&[Measure::Count; 3]), 5);
        assert_eq!(len(&[Measure::Count, Measure::Number]), 4);
        assert_eq!(len(&[Measure::Count]), 1);
    }
}

//! The pairs of parameters with the strongest dependence, by mutual information; continuous parameters are cut into twelfths.

use crate::error::CliError;
use hyperprior::Batch;
use hyperprior::posterior::{
    Column, Dependence, Draws, DrawsError, ElementName, Kind, Monitor, PairSettings, strongest_pairs,
};
use std::collections::{HashMap, HashSet};

/// The number of bins, of equal probability, for a continuous parameter.
const PARTS: usize = 12;
/// The largest number of pairs times draws to examine: about a second.
const WORK_MAX: u64 = 300_000_000;
/// The number of draws used if there are many columns.
const DRAWS_MAX: usize = 1000;
/// The largest number of columns for which all draws are used.
const COLUMNS_FEW: usize = 300;
/// The number of pairs from which the shown ones are chosen.
const CANDIDATES: usize = 1000;
/// The number of discrete parameters, those of highest entropy, to pair with continuous ones; more would crowd out other pairs.
const DISCRETE_MAX: usize = 40;
/// The largest number of pairs with the same parameter, or with elements of the same two arrays.
const OFTEN: usize = 2;
/// Only pairs with at least this mutual information are tested for being copies.
const SAME_NATS: f64 = 1.5;
/// Above this rank correlation, one of two continuous parameters is a function of the other.
const SAME: f64 = 0.9995;

/// The pairs to show.
pub struct Found {
    /// The strongest first.
    pub pairs: Vec<Dependence>,
    /// The number of pairs not examined, to save time.
    pub skipped: usize,
}

/// At most `most` of the strongest pairs; with discrete and continuous parameters, of each kind of pair in turn. Only latents are
/// considered if there are two or more.
pub fn strongest(draws: &Draws, latents: &[Monitor], most: usize) -> Result<Found, CliError> {
    let is_finite = |i: &usize| draws.column(*i).iter().all(|x| x.abs() < 1e150);
    let is_latent = |i: &usize| {
        let element = ElementName::parse(&draws.columns()[*i].name);
        latents.iter().any(|latent| latent.selects(&element))
    };
    let all: Vec<usize> = (0..draws.columns().len()).filter(is_finite).collect();
    let own: Vec<usize> = all.iter().copied().filter(is_latent).collect();
    let columns = if own.len() < 2 { all } else { own };
    let discrete: Vec<usize> = columns.iter().copied().filter(|i| is_discrete(draws, *i)).collect();
    let settings = PairSettings::default().top(CANDIDATES).work_max(WORK_MAX);
    let alone = strongest_pairs(draws, &discrete, settings)?;
    let (mut pairs, mut skipped) = (alone.pairs, alone.left_out_len);
    if discrete.len() < columns.len() {
        let varied = varied(draws, discrete);
        let columns: Vec<usize> =
            columns.into_iter().filter(|i| !is_discrete(draws, *i) || varied.contains(i)).collect();
        let all = strongest_pairs(&coded(draws, &columns)?, &(0..columns.len()).collect::<Vec<_>>(), settings)?;
        let named = all.pairs.iter().map(|p| Dependence { first: columns[p.first], second: columns[p.second], ..*p });
        let has_continuous = |p: &Dependence| !(is_discrete(draws, p.first) && is_discrete(draws, p.second));
        let named: Vec<Dependence> = named.filter(has_continuous).collect();
        // A parameter that is a function of another one has the same pairs.
        let copies: HashSet<usize> = named.iter().filter(|p| is_same(draws, p)).map(|p| p.second).collect();
        pairs.extend(named.into_iter().filter(|p| !copies.contains(&p.first) && !copies.contains(&p.second)));
        skipped += all.left_out_len;
    }
    pairs.sort_by(|a, b| b.nats.total_cmp(&a.nats).then((a.first, a.second).cmp(&(b.first, b.second))));
    Ok(Found { pairs: chosen(draws, pairs, most), skipped })
}

fn is_discrete(draws: &Draws, i: usize) -> bool {
    draws.columns()[i].kind == Kind::Discrete
}

/// The discrete columns of highest entropy.
fn varied(draws: &Draws, mut discrete: Vec<usize>) -> Vec<usize> {
    let entropy = |i: &usize| {
        let mut counts: HashMap<i64, f64> = HashMap::new();
        draws.column(*i).iter().for_each(|x| *counts.entry(*x as i64).or_default() += 1.0);
        let mut counts: Vec<f64> = counts.into_values().collect();
        // Sorted, so that the sum is the same each time.
        counts.sort_by(f64::total_cmp);
        counts.iter().map(|count| count * (draws.len() as f64 / count).ln()).sum::<f64>()
    };
    if discrete.len() > DISCRETE_MAX {
        let mut by: Vec<(f64, usize)> = discrete.iter().map(|i| (entropy(i), *i)).collect();
        by.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        discrete = by.into_iter().take(DISCRETE_MAX).map(|(_, i)| i).collect();
    }
    discrete
}

/// All columns as discrete ones: the values of a continuous one become the twelfth of its draws that they are in.
fn coded(draws: &Draws, columns: &[usize]) -> Result<Draws, DrawsError> {
    let most = if columns.len() > COLUMNS_FEW { DRAWS_MAX } else { draws.len() };
    let len = draws.len().min(most);
    let mut values = Vec::with_capacity(columns.len() * len);
    for i in columns {
        let thinned: Vec<f64> = (0..len).map(|s| draws.column(*i)[s * draws.len() / len]).collect();
        if is_discrete(draws, *i) {
            values.extend(thinned);
        } else {
            values.extend(ranks(&thinned).into_iter().map(|rank| (rank * PARTS / len) as f64));
        }
    }
    let named = (0..columns.len()).map(|i| Column::discrete(format!("c{i}"))).collect();
    Draws::new(named, Batch::from_columns(values, len))
}

/// The rank of each value; ties get the lowest rank.
fn ranks(x: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
    let mut ranks = vec![0; x.len()];
    let mut rank = 0;
    for (place, i) in order.iter().enumerate() {
        if place == 0 || x[*i] > x[order[place - 1]] {
            rank = place;
        }
        ranks[*i] = rank;
    }
    ranks
}

/// Whether one parameter is a monotone function of the other, which says nothing about the posterior.
fn is_same(draws: &Draws, pair: &Dependence) -> bool {
    let [first, second] = [pair.first, pair.second].map(|i| draws.column(i));
    if pair.nats < SAME_NATS || is_discrete(draws, pair.first) || is_discrete(draws, pair.second) {
        return false;
    }
    let [first, second] = [first, second].map(|x| ranks(x).into_iter().map(|rank| rank as f64).collect::<Vec<_>>());
    correlation(&first, &second).abs() > SAME
}

/// Pearson's correlation.
pub fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let len = x.len() as f64;
    let [x_mean, y_mean] = [x, y].map(|v| v.iter().sum::<f64>() / len);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (x, y) = (x - x_mean, y - y_mean);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    xy / (xx * yy).sqrt()
}

/// Takes pairs of each kind in turn, strongest first, and no parameter or pair of arrays too often.
fn chosen(draws: &Draws, pairs: Vec<Dependence>, most: usize) -> Vec<Dependence> {
    let kind = |p: &Dependence| usize::from(is_discrete(draws, p.first)) + usize::from(is_discrete(draws, p.second));
    let array = |i: usize| ElementName::parse(&draws.columns()[i].name).array;
    let mut shown: HashMap<usize, usize> = HashMap::new();
    let mut shown_arrays: HashMap<[&str; 2], usize> = HashMap::new();
    let mut chosen: Vec<Dependence> = Vec::new();
    let mut by_kind: [Vec<Dependence>; 3] = [Vec::new(), Vec::new(), Vec::new()];
    for pair in pairs.into_iter().rev() {
        by_kind[kind(&pair)].push(pair);
    }
    while chosen.len() < most && by_kind.iter().any(|pairs| !pairs.is_empty()) {
        for pairs in &mut by_kind {
            while let Some(pair) = pairs.pop() {
                let is_frequent = |i: usize| shown.get(&i).is_some_and(|times| *times >= OFTEN);
                let arrays = [array(pair.first), array(pair.second)];
                let times = shown_arrays.entry(arrays).or_default();
                if is_frequent(pair.first) || is_frequent(pair.second) || *times >= OFTEN {
                    continue;
                }
                *times += 1;
                for i in [pair.first, pair.second] {
                    *shown.entry(i).or_default() += 1;
                }
                chosen.push(pair);
                break;
            }
        }
    }
    chosen.truncate(most);
    chosen.sort_by(|a, b| b.nats.total_cmp(&a.nats));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::special::normal_quantile;

    /// Low-discrepancy uniforms, which need no seed.
    fn uniforms(step: f64, len: usize) -> Vec<f64> {
        (0..len).map(|i| (0.5 + step * i as f64).fract()).collect()
    }

    #[test]
    fn dependence_of_every_kind_is_found() {
        let len = 2000;
        let u = uniforms(0.754_877_666_246_692_7, len);
        let v = uniforms(0.569_840_290_998_053_3, len);
        let w = uniforms(0.671_043_606_703_789_2, len);
        let normal = |u: &[f64]| u.iter().map(|u| normal_quantile(u.clamp(1e-6, 1.0 - 1e-6))).collect::<Vec<_>>();
        let (a, e, lone) = (normal(&u), normal(&v), normal(&w));
        let bent: Vec<f64> = a.iter().zip(&e).map(|(a, e)| a * a + 0.3 * e).collect();
        let exponential: Vec<f64> = a.iter().map(|a| a.exp()).collect();
        let label: Vec<f64> = e.iter().map(|e| f64::from(u8::from(*e > 0.0))).collect();
        let columns = vec![
            Column::continuous("a"),
            Column::continuous("bent"),
            Column::continuous("exp a"),
            Column::continuous("lone"),
            Column::discrete("label"),
            Column::continuous("e"),
        ];
        let draws = Draws::new(columns, Batch::from_columns([a, bent, exponential, lone, label, e].concat(), len))
            .expect("draws");
        let found = strongest(&draws, &[], 6).expect("pairs");
        let named: Vec<(usize, usize)> = found.pairs.iter().map(|p| (p.first, p.second)).collect();
        // A quadratic dependence without correlation, and a label with the variable that determines it.
        assert!(named.contains(&(0, 1)) && named.contains(&(4, 5)), "{named:?}");
        // A function of `a` alone, and an independent variable.
        assert!(!named.iter().any(|(i, j)| [2, 3].contains(i) || [2, 3].contains(j)), "{named:?}");
        let latents = Monitor::parse_list("a,e,label").expect("names");
        let found = strongest(&draws, &latents, 6).expect("pairs");
        let named: Vec<(usize, usize)> = found.pairs.iter().map(|p| (p.first, p.second)).collect();
        assert_eq!(named, [(4, 5)]);
    }

    #[test]
    fn equal_values_have_equal_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2, 0, 2, 1]);
        assert!((correlation(&[1.0, 2.0, 4.0], &[3.0, 5.0, 9.0]) - 1.0).abs() < 1e-12);
    }
}

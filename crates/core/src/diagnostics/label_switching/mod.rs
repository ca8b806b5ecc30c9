//! Label switching: the labels of a mixture change places between draws, so that the probability of one label means nothing.
//!
//! Swapping two labels a and b in every draw leaves an exchangeable posterior unchanged. Draws show this in three ways at once: no
//! column prefers a or b; no pair of columns does; and yet which columns share a label is far from random. The last distinguishes
//! labels that switch from labels about which nothing is known.

use crate::posterior::{Draws, DrawsError, Weights};
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_2_PI;
use std::fmt;

/// With a smaller effective sample size, chance decides which label is more frequent.
const DRAWS_MIN: f64 = 100.0;
/// Two columns are not enough: any two that are dependent and symmetric look like switched labels.
const COLUMNS_MIN: usize = 3;
/// More values than this are counts rather than labels.
const LABELS_MAX: usize = 50;
/// Pairs are formed among this many columns, spread evenly over the group.
const COLUMNS_PAIRED: usize = 48;
/// Columns in which a and b have less probability together are ignored.
const SHARE_MIN: f64 = 0.05;
/// The largest difference between the probabilities of two labels, as a share of their sum: two to one.
const IMBALANCE_MAX: f64 = 1.0 / 3.0;
/// How much less symmetric pairs may be than single columns.
const ASYMMETRY_MAX: f64 = 0.1;
/// The smallest correlation of "a rather than b" with another column that half of the columns must have, beyond chance.
const CORRELATION_MIN: f64 = 0.3;

/// Labels of a group of variables that change places between draws. See [`label_switching_among`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LabelSwitching {
    /// The names of the variables.
    pub names: Vec<String>,
    /// The sets of labels that switch with each other.
    pub labels: Vec<Vec<i64>>,
}

impl fmt::Display for LabelSwitching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, .., last] = &self.names[..] else { return Ok(()) };
        let set = |labels: &Vec<i64>| {
            let texts: Vec<String> = labels.iter().map(ToString::to_string).collect();
            let (last, rest) = texts.split_last().map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
            format!("{} and {last}", rest.join(", "))
        };
        let sets: Vec<String> = self.labels.iter().map(set).collect();
        write!(
            f,
            "the labels {} of `{first}` to `{last}` ({} variables) change places between draws, so the probability of one \
             label and the mean of anything indexed by it do not describe a component. Report quantities that do not depend \
             on the labels (whether two variables share one, the sorted sizes of the components), or order the components in \
             the model (as mu[1] < mu[2])",
            sets.join("; "),
            self.names.len()
        )
    }
}

/// Checks every array of at least three discrete variables with values 1..K for label switching.
pub fn label_switching(draws: &Draws) -> Vec<LabelSwitching> {
    let arrays = draws.arrays();
    arrays.iter().filter_map(|(_, columns)| label_switching_among(draws, columns).ok().flatten()).collect()
}

/// Checks one group of columns for label switching.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::diagnostics::label_switching_among;
/// use hyperprior::posterior::{Column, Draws};
/// // Two clusters, {1, 2} and {3}; each has label 1 in half of the draws.
/// let z = |flip: bool| (0..200).map(move |s| if (s % 2 == 0) == flip { 1.0 } else { 2.0 });
/// let values: Vec<f64> = z(true).chain(z(true)).chain(z(false)).collect();
/// let columns = (1..4).map(|i| Column::discrete(format!("z[{i}]"))).collect();
/// let draws = Draws::new(columns, Batch::from_columns(values, 200))?;
/// let found = label_switching_among(&draws, &[0, 1, 2])?.expect("labels switch");
/// assert_eq!(found.labels, [[1, 2]]);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
///
/// # Errors
/// [`DrawsError::NotDiscrete`]
pub fn label_switching_among(draws: &Draws, columns: &[usize]) -> Result<Option<LabelSwitching>, DrawsError> {
    draws.require_discrete(columns)?;
    let weights = draws.weights();
    let values = || columns.iter().flat_map(|i| draws.column(*i));
    let labels_len = values().copied().fold(0.0, f64::max);
    if columns.len() < COLUMNS_MIN
        || weights.effective_len() < DRAWS_MIN
        || !(2.0..=LABELS_MAX as f64).contains(&labels_len)
        || values().any(|x| *x < 1.0)
    {
        return Ok(None);
    }
    let labels = exchanged(&Group::new(draws, columns, &weights, labels_len as usize));
    let names = columns.iter().map(|i| draws.columns()[*i].name.clone()).collect();
    Ok((!labels.is_empty()).then_some(LabelSwitching { names, labels }))
}

/// The sets of labels that swaps connect.
fn exchanged(group: &Group) -> Vec<Vec<i64>> {
    let mut set_of: Vec<usize> = (0..group.labels_len).collect();
    for a in 0..group.labels_len {
        for b in a + 1..group.labels_len {
            if set_of[a] != set_of[b] && group.is_exchanged(a, b) {
                let (kept, joined) = (set_of[a], set_of[b]);
                set_of.iter_mut().filter(|set| **set == joined).for_each(|set| *set = kept);
            }
        }
    }
    let members = |set: usize| (0..group.labels_len).filter(|a| set_of[*a] == set).map(|a| a as i64 + 1).collect();
    (0..group.labels_len).map(members).filter(|labels: &Vec<i64>| labels.len() > 1).collect()
}

/// The probabilities of labels in columns and in pairs of columns.
struct Group {
    labels_len: usize,
    effective_len: f64,
    /// `single[i][a]`, for every column.
    single: Vec<Vec<f64>>,
    /// The columns that form pairs, as indices into `single`.
    paired: Vec<usize>,
    /// (i, j, `table[a * labels_len + b]`), where i and j are indices into `paired`.
    pairs: Vec<(usize, usize, Vec<f64>)>,
}

impl Group {
    fn new(draws: &Draws, columns: &[usize], weights: &Weights, labels_len: usize) -> Self {
        let label = |i: usize, s: usize| draws.column(columns[i])[s] as usize - 1;
        let share = |table: &mut Vec<f64>, place: &dyn Fn(usize) -> usize| {
            for (s, w) in weights.relative().iter().enumerate() {
                table[place(s)] += w / weights.total();
            }
        };
        let single = (0..columns.len()).map(|i| {
            let mut table = vec![0.0; labels_len];
            share(&mut table, &|s| label(i, s));
            table
        });
        let paired_len = columns.len().min(COLUMNS_PAIRED);
        let paired: Vec<usize> = (0..paired_len).map(|k| k * columns.len() / paired_len).collect();
        let mut pairs = Vec::new();
        for i in 0..paired_len {
            for j in i + 1..paired_len {
                let mut table = vec![0.0; labels_len * labels_len];
                share(&mut table, &|s| label(paired[i], s) * labels_len + label(paired[j], s));
                pairs.push((i, j, table));
            }
        }
        Self { labels_len, effective_len: weights.effective_len(), single: single.collect(), paired, pairs }
    }

    /// Whether swapping the two labels changes little although the columns depend on each other.
    fn is_exchanged(&self, a: usize, b: usize) -> bool {
        let concerned: Vec<(f64, f64)> =
            self.single.iter().map(|p| (p[a], p[b])).filter(|(p, q)| p + q >= SHARE_MIN).collect();
        if concerned.len() < COLUMNS_MIN || concerned.iter().any(|(p, q)| (p - q).abs() > IMBALANCE_MAX * (p + q)) {
            return false;
        }
        let imbalances: f64 = concerned.iter().map(|(p, q)| self.beyond_chance(*p, *q) / (p + q)).sum();
        let imbalance = imbalances.max(0.0) / concerned.len() as f64;
        let strongest = self.strongest(a, b);
        // The largest of that many correlations by chance, each with a standard error of 1/√n.
        let chance = (2.0 * (strongest.len() as f64).ln() / self.effective_len).sqrt();
        let strong = strongest.iter().filter(|(correlation, _)| *correlation >= CORRELATION_MIN + chance).count();
        // Modes of unequal weight are as asymmetric in pairs as in single columns. More asymmetry is not due to switching: ordered
        // states, for example, have neighbours.
        2 * strong >= strongest.len().max(1) && self.asymmetry(a, b, &strongest) <= imbalance + ASYMMETRY_MAX
    }

    /// For each relevant column, the pair with the strongest tendency to share a or b, or to avoid sharing them.
    fn strongest(&self, a: usize, b: usize) -> Vec<(f64, usize)> {
        let share = |k: usize| self.single[self.paired[k]][a] + self.single[self.paired[k]][b];
        let mut strongest = vec![(0.0, 0); self.paired.len()];
        for (number, (i, j, table)) in self.pairs.iter().enumerate() {
            if share(*i).min(share(*j)) < SHARE_MIN {
                continue;
            }
            let p = |c: usize, d: usize| table[c * self.labels_len + d];
            let difference = p(a, a) + p(b, b) - p(a, b) - p(b, a);
            let correlation = difference.abs() / (share(*i) * share(*j)).sqrt();
            for k in [*i, *j] {
                if correlation > strongest[k].0 {
                    strongest[k] = (correlation, number);
                }
            }
        }
        (0..self.paired.len()).filter(|k| share(*k) >= SHARE_MIN).map(|k| strongest[k]).collect()
    }

    /// The probability of these pairs that a swap moves, beyond chance, as a share of what it could move.
    fn asymmetry(&self, a: usize, b: usize, strongest: &[(f64, usize)]) -> f64 {
        let swap = |c: usize| match c {
            _ if c == a => b,
            _ if c == b => a,
            _ => c,
        };
        let (mut moved, mut movable) = (0.0, 0.0);
        for (_, number) in strongest {
            let table = &self.pairs[*number].2;
            for c in 0..self.labels_len {
                for d in (0..self.labels_len).filter(|d| swap(c) != c || swap(*d) != *d) {
                    let (p, swapped) = (table[c * self.labels_len + d], table[swap(c) * self.labels_len + swap(d)]);
                    moved += self.beyond_chance(p, swapped) / 2.0;
                    movable += p;
                }
            }
        }
        if movable > 0.0 { moved / movable } else { f64::INFINITY }
    }

    /// |p − q| less its mean if two shares of n draws differ by chance alone: √(2/π) √((p + q)/n).
    fn beyond_chance(&self, p: f64, q: f64) -> f64 {
        (p - q).abs() - (FRAC_2_PI * (p + q) / self.effective_len).sqrt()
    }
}

#[cfg(test)]
mod tests;

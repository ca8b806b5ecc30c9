//! Mutual information between pairs of discrete variables, in nats.
//!
//! Î = Σ p̂(a,b) log p̂(a,b) / (p̂(a) p̂(b)) with Miller and Madow's correction (m_a + m_b − m_ab − 1) / 2n, where m are the
//! numbers of cells that are not empty.

mod coded;

use super::draws::{Draws, DrawsError};
use super::weights::Weights;
use coded::Coded;
use hyperprior_math::special::normal_quantile;
use rayon::prelude::*;

/// How many pairs are examined and returned. See [`strongest_pairs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairSettings {
    /// The number of strongest pairs to return.
    pub top: usize,
    /// The maximum number of pairs times draws to examine. The default is enough for a thousand columns of four thousand draws,
    /// which takes seconds for columns with many values and much less for binary ones.
    pub work_max: u64,
}

crate::setters!(PairSettings {
    top: usize, work_max: u64;
});

impl Default for PairSettings {
    fn default() -> Self {
        Self { top: 10, work_max: 2_000_000_000 }
    }
}

/// Two columns that depend on each other. See [`strongest_pairs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// The first column.
    pub first: usize,
    /// The second column.
    pub second: usize,
    /// Their mutual information, in nats.
    pub nats: f64,
}

/// The pairs that depend most on each other, and how many were examined. See [`strongest_pairs`].
#[derive(Clone, Debug, PartialEq)]
pub struct Dependences {
    /// In order of decreasing strength; only significant pairs (at 5 %, adjusted for the number of pairs).
    pub pairs: Vec<Dependence>,
    /// The number of pairs of columns that are not constant.
    pub pairs_len: usize,
    /// The number of pairs that were skipped to save time, those with the least entropy. All others were examined, or are known to
    /// be weaker than those returned.
    pub left_out_len: usize,
    /// Columns with so many values that neighbouring ones were grouped; their mutual information is a lower bound.
    pub grouped: Vec<usize>,
}

/// Finds the pairs of discrete columns with the most mutual information.
///
/// The mutual information of a pair is at most the entropy of either column, so columns are examined in order of decreasing entropy
/// until no stronger pair can follow.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::{Column, Draws, PairSettings, strongest_pairs};
/// let coin: Vec<f64> = (0..400).map(|s| f64::from(s % 2)).collect();
/// let columns = vec![Column::discrete("z"), Column::discrete("copy")];
/// let draws = Draws::new(columns, Batch::from_columns([coin.clone(), coin].concat(), 400))?;
/// let found = strongest_pairs(&draws, &[0, 1], PairSettings::default())?;
/// assert!((found.pairs[0].nats - 2f64.ln()).abs() < 0.01);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
///
/// # Errors
/// [`DrawsError::NotDiscrete`]
pub fn strongest_pairs(draws: &Draws, columns: &[usize], settings: PairSettings) -> Result<Dependences, DrawsError> {
    draws.require_discrete(columns)?;
    let weights = draws.weights();
    let mut coded: Vec<Coded> = columns.par_iter().map(|i| Coded::new(draws.column(*i), *i, &weights)).collect();
    let grouped = coded.iter().filter(|c| c.is_grouped).map(|c| c.column).collect();
    coded.retain(|c| c.probabilities.len() > 1);
    coded.sort_by(|a, b| b.entropy.total_cmp(&a.entropy));

    let pairs_len = coded.len() * coded.len().saturating_sub(1) / 2;
    let chance = Chance::new(pairs_len, weights.effective_len());
    let mut work_left = settings.work_max;
    let mut top: Vec<Dependence> = Vec::new();
    let mut left_out_len = 0;
    for (place, second) in coded.iter().enumerate() {
        if settings.top == 0 || (top.len() == settings.top && top[settings.top - 1].nats >= second.entropy) {
            break;
        }
        let affordable = usize::try_from(work_left / draws.len() as u64).unwrap_or(usize::MAX);
        let firsts = &coded[..place.min(affordable)];
        let found: Vec<Dependence> =
            firsts.par_iter().filter_map(|first| between(first, second, &weights, &chance)).collect();
        left_out_len += place - firsts.len();
        work_left -= (firsts.len() * draws.len()) as u64;
        top.extend(found);
        top.sort_by(|a, b| b.nats.total_cmp(&a.nats).then((a.first, a.second).cmp(&(b.first, b.second))));
        top.truncate(settings.top);
    }
    Ok(Dependences { pairs: top, pairs_len, left_out_len, grouped })
}

/// The mutual information of a pair, if it is significant.
fn between(first: &Coded, second: &Coded, weights: &Weights, chance: &Chance) -> Option<Dependence> {
    let (rows, columns) = (first.probabilities.len(), second.probabilities.len());
    let table = coded::joint(first, second, weights);
    let (mut plug_in, mut cells) = (0.0, 0);
    for (a, p_a) in first.probabilities.iter().enumerate() {
        for (b, p_b) in second.probabilities.iter().enumerate() {
            let p = table[a * columns + b] / weights.total();
            if p > 0.0 {
                plug_in += p * (p / (p_a * p_b)).ln();
                cells += 1;
            }
        }
    }
    if plug_in <= chance.nats((rows - 1) * (columns - 1)) {
        return None;
    }
    let correction = (rows + columns) as f64 - f64::from(cells) - 1.0;
    let nats = (plug_in + correction / (2.0 * weights.effective_len())).max(0.0);
    let (first, second) = (first.column.min(second.column), first.column.max(second.column));
    Some(Dependence { first, second, nats })
}

/// The mutual information that independent columns have by chance: 2nÎ is approximately χ² distributed.
struct Chance {
    z: f64,
    effective_len: f64,
}

impl Chance {
    fn new(pairs_len: usize, effective_len: f64) -> Self {
        Self { z: normal_quantile(1.0 - 0.05 / pairs_len.max(1) as f64), effective_len }
    }

    /// The χ² quantile by Wilson and Hilferty's approximation.
    fn nats(&self, freedom: usize) -> f64 {
        let k = freedom as f64;
        let v = 2.0 / (9.0 * k);
        k * (1.0 - v + self.z * v.sqrt()).powi(3) / (2.0 * self.effective_len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Column;
    use super::*;
    use hyperprior_math::batch::Batch;
    use hyperprior_math::random::stream;
    use rand::RngExt as _;

    fn draws(columns: &[Vec<f64>]) -> Draws {
        let names = (1..=columns.len()).map(|i| Column::discrete(format!("z[{i}]"))).collect();
        Draws::new(names, Batch::from_columns(columns.concat(), columns[0].len())).unwrap()
    }

    fn every(len: usize) -> Vec<usize> {
        (0..len).collect()
    }

    /// `counts[a][b]` draws of (a, b).
    fn joint(counts: [[usize; 2]; 2]) -> [Vec<f64>; 2] {
        let mut columns = [vec![], vec![]];
        for (a, row) in counts.iter().enumerate() {
            for (b, count) in row.iter().enumerate() {
                columns[0].extend(std::iter::repeat_n(a as f64, *count));
                columns[1].extend(std::iter::repeat_n(b as f64, *count));
            }
        }
        columns
    }

    #[test]
    fn the_mutual_information_of_a_known_joint() {
        let found = strongest_pairs(&draws(&joint([[40, 10], [10, 40]])), &[0, 1], PairSettings::default()).unwrap();
        // All four cells are occupied, so the correction is −1/2n.
        let exact = 0.8 * 1.6_f64.ln() + 0.2 * 0.4_f64.ln() - 1.0 / 200.0;
        assert_eq!(found.pairs.len(), 1);
        assert!((found.pairs[0].nats - exact).abs() < 1e-14, "{:?} for {exact}", found.pairs);
        assert_eq!((found.pairs_len, found.left_out_len), (1, 0));
    }

    #[test]
    fn weights_act_like_repeated_draws() {
        let [a, b] = joint([[1, 1], [1, 1]]);
        let weighted = draws(&[a, b]).weighted([4.0_f64, 1.0, 1.0, 4.0].map(f64::ln).to_vec()).unwrap();
        let coded = |i| Coded::new(weighted.column(i), i, &weighted.weights());
        let certain = Chance { z: -10.0, effective_len: 1.0 };
        let found = between(&coded(0), &coded(1), &weighted.weights(), &certain).unwrap();
        // (4 + 1 + 1 + 4)² / (16 + 1 + 1 + 16) draws.
        let exact = 0.8 * 1.6_f64.ln() + 0.2 * 0.4_f64.ln() - 34.0 / 200.0;
        assert!((found.nats - exact).abs() < 1e-14, "{} for {exact}", found.nats);
    }

    #[test]
    fn independent_columns_with_many_values_are_not_reported() {
        let mut stream = stream(7, 0, 0, 0);
        let columns: Vec<Vec<f64>> =
            (0..40).map(|_| (0..1000).map(|_| f64::from(stream.random_range(0..60_u32))).collect()).collect();
        let found = strongest_pairs(&draws(&columns), &every(40), PairSettings::default()).unwrap();
        assert_eq!(found.pairs, []);
        assert_eq!((found.pairs_len, found.left_out_len, found.grouped.len()), (780, 0, 40));

        // A dependent pair is found: a column that equals another in four draws of five.
        let mut columns = columns;
        columns[3] = (0..1000).map(|s| columns[if s % 5 == 0 { 3 } else { 30 }][s]).collect();
        let found = strongest_pairs(&draws(&columns), &every(40), PairSettings::default()).unwrap();
        assert_eq!(found.pairs.iter().map(|p| (p.first, p.second)).collect::<Vec<_>>(), [(3, 30)]);
    }

    #[test]
    fn pruning_loses_nothing_and_skipped_pairs_are_counted() {
        let mut stream = stream(8, 0, 0, 0);
        // Pairs of copies with decreasing entropy, and a constant.
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for pair in 0..20 {
            let p = 0.5 - 0.02 * f64::from(pair);
            let x: Vec<f64> = (0..500).map(|_| f64::from(u8::from(stream.random_bool(p)))).collect();
            columns.extend([x.clone(), x]);
        }
        columns.push(vec![1.0; 500]);
        let draws = draws(&columns);
        let all = PairSettings { top: 1000, ..PairSettings::default() };
        let all = strongest_pairs(&draws, &every(41), all).unwrap();
        assert_eq!(all.pairs_len, 780);
        let three = PairSettings { top: 3, ..PairSettings::default() };
        let three = strongest_pairs(&draws, &every(41), three).unwrap();
        assert_eq!(three.pairs, all.pairs[..3]);
        assert_eq!(three.left_out_len, 0);
        let short = PairSettings { top: 1000, work_max: 500 * 100 };
        let short = strongest_pairs(&draws, &every(41), short).unwrap();
        assert_eq!(short.left_out_len, 680);
    }
}

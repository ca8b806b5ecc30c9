//! Columns with numbered values, and joint tables of two columns.

use crate::posterior::weights::Weights;

/// A column with its values numbered from zero.
pub(super) struct Coded {
    /// The index of the column.
    pub(super) column: usize,
    /// The number of each draw's value.
    pub(super) codes: Vec<u16>,
    /// The probability of each value.
    pub(super) probabilities: Vec<f64>,
    /// The entropy with Miller and Madow's correction; it bounds the mutual information of every pair with this column.
    pub(super) entropy: f64,
    /// Whether neighbouring values were grouped.
    pub(super) is_grouped: bool,
    /// With equal weights: for each value, the draws that have it, as bits.
    sets: Option<Vec<Vec<u64>>>,
}

impl Coded {
    /// Numbers the values of a column's draws.
    pub(super) fn new(x: &[f64], column: usize, weights: &Weights) -> Self {
        let mut order: Vec<usize> = (0..x.len()).filter(|s| weights.relative()[*s] > 0.0).collect();
        order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
        let runs: Vec<&[usize]> = order.chunk_by(|a, b| x[*a] == x[*b]).collect();
        // About four draws per cell of a pair's table: with fewer, the correction is too small and chance looks like dependence.
        let groups_max = ((weights.effective_len().sqrt() / 2.0) as usize).clamp(2, usize::from(u16::MAX));
        let is_grouped = runs.len() > groups_max;

        let mut codes = vec![0; x.len()];
        let mut probabilities: Vec<f64> = Vec::new();
        let mut below = 0.0;
        let mut group_last = None;
        for (run_number, run) in runs.iter().enumerate() {
            let share = run.iter().map(|s| weights.relative()[*s]).sum::<f64>() / weights.total();
            // Groups of about equal probability, by the middle of the value's cumulative probability.
            let group = if is_grouped { ((below + share / 2.0) * groups_max as f64) as usize } else { run_number };
            if group_last != Some(group) {
                probabilities.push(0.0);
                group_last = Some(group);
            }
            let code = probabilities.len() - 1;
            probabilities[code] += share;
            below += share;
            for s in *run {
                codes[*s] = code as u16;
            }
        }
        let plug_in: f64 = -probabilities.iter().map(|p| p * p.ln()).sum::<f64>();
        let entropy = plug_in + (probabilities.len() as f64 - 1.0) / (2.0 * weights.effective_len());
        let sets = weights.is_equal().then(|| sets(&codes, probabilities.len()));
        Self { column, codes, probabilities, entropy, is_grouped, sets }
    }
}

fn sets(codes: &[u16], codes_len: usize) -> Vec<Vec<u64>> {
    let mut sets = vec![vec![0; codes.len().div_ceil(64)]; codes_len];
    for (s, code) in codes.iter().enumerate() {
        sets[usize::from(*code)][s / 64] |= 1 << (s % 64);
    }
    sets
}

/// The weight of each pair of values: `table[a * columns + b]`.
pub(super) fn joint(first: &Coded, second: &Coded, weights: &Weights) -> Vec<f64> {
    let (rows, columns) = (first.probabilities.len(), second.probabilities.len());
    match (&first.sets, &second.sets) {
        (Some(a), Some(b)) if (rows - 1) * (columns - 1) <= CELLS_MAX => counted(a, b),
        _ => {
            let mut table = vec![0.0; rows * columns];
            for ((a, b), w) in first.codes.iter().zip(&second.codes).zip(weights.relative()) {
                table[usize::from(*a) * columns + usize::from(*b)] += w;
            }
            table
        }
    }
}

/// Up to this many cells, counting by sets, 64 draws at a time, is faster than draw by draw.
const CELLS_MAX: usize = 32;

/// The table by the sizes of intersections. Its last row and column are the remainders.
fn counted(a: &[Vec<u64>], b: &[Vec<u64>]) -> Vec<f64> {
    let len = |set: &[u64]| set.iter().map(|word| word.count_ones()).sum::<u32>();
    let common = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| (x & y).count_ones()).sum::<u32>();
    let columns = b.len();
    let mut left_over: Vec<u32> = b.iter().map(|set| len(set)).collect();
    let mut table = Vec::with_capacity(a.len() * columns);
    for x in &a[..a.len() - 1] {
        let mut row_left = len(x);
        for (column, y) in b.iter().enumerate() {
            let count = if column + 1 < columns { common(x, y) } else { row_left };
            row_left -= count;
            left_over[column] -= count;
            table.push(f64::from(count));
        }
    }
    table.extend(left_over.into_iter().map(f64::from));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_by_sets_equals_counting_by_draws() {
        let draws_len = 150;
        let weights = Weights::equal(draws_len);
        let x: Vec<f64> = (0..draws_len).map(|s| (s % 13 % 5) as f64).collect();
        let y: Vec<f64> = (0..draws_len).map(|s| (s % 7 % 3) as f64).collect();
        let (first, second) = (Coded::new(&x, 0, &weights), Coded::new(&y, 1, &weights));
        let mut expected = vec![0.0; 15];
        x.iter().zip(&y).for_each(|(x, y)| expected[(x * 3.0 + y) as usize] += 1.0);
        assert_eq!(joint(&first, &second, &weights), expected);
        // Equal log weights are not recognised as equal weights, and are counted draw by draw.
        let logs = Weights::from_logs(&vec![0.0; draws_len]);
        assert_eq!(joint(&Coded::new(&x, 0, &logs), &Coded::new(&y, 1, &logs), &logs), expected);
    }
}

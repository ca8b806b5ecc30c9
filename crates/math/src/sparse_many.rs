//! Cholesky factors of many matrices with one pattern, eight at a time: the matrices are innermost, so that every operation is on a vector.

use crate::simd::{LANES, Simd, V, load, prelude::*, splat, store};
use crate::sparse::SparsePattern;

/// The most pairs of entries in the columns of a factor: beyond these it is hardly sparse, and their list would be long.
const PAIRS_MAX: usize = 20_000_000;

/// How matrices of a pattern are factorised: A = Pᵀ L Lᵀ P for each of them, where P is the order of elimination.
///
/// ```
/// use hyperprior_math::sparse::SparsePattern;
/// use hyperprior_math::sparse_many::SparseMany;
/// // Eight matrices of order two: [[4, 2], [2, a]] with a = 2, 3, …
/// let pattern = SparsePattern::new(2, &[[0, 1]]).unwrap();
/// let many = SparseMany::new(&pattern).unwrap();
/// let entries: Vec<f64> = [[4.0; 8], [2.0; 8], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.5]].concat();
/// let mut factors = vec![0.0; many.factors_len()];
/// many.factorise(&entries, &mut factors);
/// let logs = many.log_diagonals(&factors);
/// assert!((2.0 * logs[0] - 4.0_f64.ln()).abs() < 1e-12); // the determinant is 4
/// assert!(logs[7].is_nan()); // not positive definite
/// ```
#[derive(Debug)]
pub struct SparseMany {
    /// The row of A that is eliminated first, second, and so on.
    order: Vec<u32>,
    /// Where the columns of L start; each has its diagonal first.
    columns: Vec<u32>,
    /// The rows of the entries, as rows of A.
    rows: Vec<u32>,
    /// Where each entry of A is in L.
    places: Vec<u32>,
    /// For every column, and every pair of its entries below the diagonal, the entry that their product is taken from.
    targets: Vec<u32>,
}

impl SparseMany {
    /// How the matrices of this pattern are factorised; `None` if their factors are not sparse.
    pub fn new(pattern: &SparsePattern) -> Option<Self> {
        let (order, columns, rows) = pattern.symbolic()?;
        let n = order.len();
        let mut position = vec![0_u32; n];
        order.iter().enumerate().for_each(|(k, row)| position[*row as usize] = k as u32);
        let of = |k: usize| columns[k] as usize..columns[k + 1] as usize;
        let pairs: usize = (0..n).map(|k| of(k).len() * (of(k).len() - 1) / 2).sum();
        if pairs > PAIRS_MAX {
            return None;
        }
        // The entries of each column by the order of elimination, to look them up.
        let sorted: Vec<Vec<(u32, u32)>> = (0..n)
            .map(|k| {
                let mut own: Vec<(u32, u32)> = of(k).map(|at| (position[rows[at] as usize], at as u32)).collect();
                own.sort_unstable();
                own
            })
            .collect();
        let find = |i: u32, j: u32| {
            let column = &sorted[i.min(j) as usize];
            column.binary_search_by_key(&i.max(j), |(row, _)| *row).ok().map(|at| column[at].1)
        };
        let mut targets = Vec::with_capacity(pairs);
        for k in 0..n {
            let below = of(k).start + 1..of(k).end;
            for a in below.clone() {
                for b in a..below.end {
                    targets.push(find(position[rows[a] as usize], position[rows[b] as usize])?);
                }
            }
        }
        let places = (0..n)
            .flat_map(|j| pattern.column(j).map(move |at| (pattern.rows()[at], j)))
            .map(|(i, j)| find(position[i], position[j]))
            .collect::<Option<_>>()?;
        Some(Self { order, columns, rows, places, targets })
    }

    /// The numbers in eight factors.
    pub fn factors_len(&self) -> usize {
        self.rows.len() * LANES
    }

    /// The multiplications of a factor.
    pub fn work(&self) -> usize {
        self.targets.len() + self.rows.len()
    }

    /// Factorises eight matrices, whose entries are side by side: the factor of one that is not positive definite is not a number.
    ///
    /// # Panics
    /// If there are not eight values for every entry of the pattern, or of the factor.
    pub fn factorise(&self, entries: &[f64], factors: &mut [f64]) {
        assert_eq!((entries.len(), factors.len()), (self.places.len() * LANES, self.factors_len()));
        factorise(self, entries, factors);
    }

    /// Σ log L_kk of eight factors.
    pub fn log_diagonals(&self, factors: &[f64]) -> [f64; LANES] {
        let mut logs = [0.0; LANES];
        for first in &self.columns[..self.order.len()] {
            let own = &factors[*first as usize * LANES..(*first as usize + 1) * LANES];
            logs.iter_mut().zip(own).for_each(|(log, x)| *log += x.ln());
        }
        logs
    }

    /// x := Pᵀ L⁻¹ P x for eight vectors side by side, each with its own factor.
    pub fn solve(&self, factors: &[f64], x: &mut [f64]) {
        assert_eq!(x.len(), self.order.len() * LANES);
        solve(self, factors, x);
    }

    /// x := Pᵀ Lᵀ P x, likewise.
    pub fn transpose_multiply(&self, factors: &[f64], x: &mut [f64]) {
        assert_eq!(x.len(), self.order.len() * LANES);
        for (k, row) in self.order.iter().enumerate() {
            let mut sum = [0.0; LANES];
            for at in self.columns[k] as usize..self.columns[k + 1] as usize {
                let (l, other) = (&factors[at * LANES..], &x[self.rows[at] as usize * LANES..]);
                sum.iter_mut().zip(l.iter().zip(other)).for_each(|(sum, (l, x))| *sum += l * x);
            }
            x[*row as usize * LANES..][..LANES].copy_from_slice(&sum);
        }
    }

    /// x := Pᵀ L⁻ᵀ P x, likewise.
    pub fn solve_transpose(&self, factors: &[f64], x: &mut [f64]) {
        assert_eq!(x.len(), self.order.len() * LANES);
        solve_transpose(self, factors, x);
    }
}

#[inline(always)]
fn at<S: Simd>(s: S, x: &[f64], place: u32) -> V<S> {
    load(s, &x[place as usize * LANES..(place as usize + 1) * LANES], 0, 0.0)
}

#[inline(always)]
fn put<S: Simd>(value: V<S>, x: &mut [f64], place: u32) {
    store(value, &mut x[place as usize * LANES..(place as usize + 1) * LANES], 0);
}

#[inline(always)]
fn factorise_kernel<S: Simd>(s: S, many: &SparseMany, entries: &[f64], factors: &mut [f64]) {
    factors.fill(0.0);
    for (entry, place) in many.places.iter().enumerate() {
        put(at(s, entries, entry as u32), factors, *place);
    }
    let mut targets = many.targets.iter();
    for k in 0..many.order.len() {
        let (first, end) = (many.columns[k], many.columns[k + 1]);
        // The root of a negative number is not a number; of zero, the inverse is not.
        let diagonal = at(s, factors, first).sqrt();
        let inverse = splat(s, 1.0) / diagonal;
        put(diagonal, factors, first);
        for below in first + 1..end {
            put(at(s, factors, below) * inverse, factors, below);
        }
        for a in first + 1..end {
            let minus = splat(s, 0.0) - at(s, factors, a);
            for (b, target) in (a..end).zip(targets.by_ref()) {
                put(minus.mul_add(at(s, factors, b), at(s, factors, *target)), factors, *target);
            }
        }
    }
}
crate::simd_fn!(
    fn factorise(many: &SparseMany, entries: &[f64], factors: &mut [f64]) = factorise_kernel
);

#[inline(always)]
fn solve_kernel<S: Simd>(s: S, many: &SparseMany, factors: &[f64], x: &mut [f64]) {
    for (k, row) in many.order.iter().enumerate() {
        let (first, end) = (many.columns[k], many.columns[k + 1]);
        let own = at(s, x, *row) / at(s, factors, first);
        put(own, x, *row);
        for below in first + 1..end {
            let other = many.rows[below as usize];
            let rest = at(s, x, other) - at(s, factors, below) * own;
            put(rest, x, other);
        }
    }
}
crate::simd_fn!(
    fn solve(many: &SparseMany, factors: &[f64], x: &mut [f64]) = solve_kernel
);

#[inline(always)]
fn solve_transpose_kernel<S: Simd>(s: S, many: &SparseMany, factors: &[f64], x: &mut [f64]) {
    for (k, row) in many.order.iter().enumerate().rev() {
        let (first, end) = (many.columns[k], many.columns[k + 1]);
        let mut own = at(s, x, *row);
        for below in first + 1..end {
            own -= at(s, factors, below) * at(s, x, many.rows[below as usize]);
        }
        put(own / at(s, factors, first), x, *row);
    }
}
crate::simd_fn!(
    fn solve_transpose(many: &SparseMany, factors: &[f64], x: &mut [f64]) = solve_transpose_kernel
);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::random::stream;
    use rand::RngExt;

    /// Catches an entry in the wrong place, a target of the wrong pair, and lanes that touch each other: eight random matrices, with an
    /// arrow, a chain and some other pairs, have the factors and solutions that each has alone; one is not positive definite.
    #[test]
    fn many_are_as_each() {
        for n in [1, 2, 9, 40] {
            let mut rng = stream(n as u64, 0, 0, 0);
            let mut pairs: Vec<[u32; 2]> = (1..n as u32).flat_map(|i| [[0, i], [i, i - 1]]).collect();
            pairs.extend((0..n).map(|_| [rng.random_range(0..n as u32), rng.random_range(0..n as u32)]));
            let pattern = SparsePattern::new(n, &pairs).unwrap();
            let many = SparseMany::new(&pattern).unwrap();
            let len = pattern.entries_len();
            let mut entries = vec![0.0; len * LANES];
            for j in 0..n {
                for at in pattern.column(j) {
                    for lane in 0..LANES {
                        let is_diagonal = pattern.rows()[at] == j;
                        let sign = if lane == 5 { -1.0 } else { 1.0 };
                        entries[at * LANES + lane] =
                            if is_diagonal { sign * (n as f64 + 1.0) } else { 2.0 * rng.random::<f64>() - 1.0 };
                    }
                }
            }
            let mut factors = vec![0.0; many.factors_len()];
            many.factorise(&entries, &mut factors);
            let logs = many.log_diagonals(&factors);
            let x: Vec<f64> = (0..n * LANES).map(|_| rng.random::<f64>()).collect();
            let (mut solved, mut transposed) = (x.clone(), x.clone());
            many.solve(&factors, &mut solved);
            many.solve_transpose(&factors, &mut transposed);
            let mut back = transposed.clone();
            many.transpose_multiply(&factors, &mut back);
            for lane in 0..LANES {
                let is_back = (0..n).all(|i| (back[i * LANES + lane] - x[i * LANES + lane]).abs() < 1e-10);
                assert!(is_back || lane == 5, "{n}, lane {lane}");
                let own: Vec<f64> = (0..len).map(|at| entries[at * LANES + lane]).collect();
                let Some(one) = pattern.cholesky(&own) else {
                    assert!(lane == 5 && logs[lane].is_nan(), "{n}: lane {lane}");
                    continue;
                };
                assert!((logs[lane] - one.log_diagonal()).abs() < 1e-10);
                let of_lane = |x: &[f64]| (0..n).map(|i| x[i * LANES + lane]).collect::<Vec<f64>>();
                let (mut a, mut b) = (of_lane(&x), of_lane(&x));
                one.solve(&mut a, 1);
                one.solve_transpose(&mut b, 1);
                for (found, expected) in of_lane(&solved).iter().zip(&a).chain(of_lane(&transposed).iter().zip(&b)) {
                    assert!((found - expected).abs() < 1e-10, "{n}, lane {lane}: {found} and {expected}");
                }
            }
        }
    }
}

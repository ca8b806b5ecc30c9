//! Sparse symmetric matrices and their Cholesky factors, with an order of elimination that keeps the factors sparse.
//!
//! faer finds the order (approximate minimum degree) and factorises. The triangular solves are written here, as in
//! [`linalg`](crate::linalg), with the draws innermost.

use crate::simd::{LANES, Simd, V, load, prelude::*, splat, store};
use faer::Side;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Par, Spec};

/// The pattern of a symmetric matrix, and of its Cholesky factor.
///
/// ```
/// use hyperprior_math::sparse::SparsePattern;
/// // A chain of three: its factor has no entry where the matrix has none.
/// let pattern = SparsePattern::new(3, &[[0, 1], [1, 2]]).unwrap();
/// assert_eq!((pattern.entries_len(), pattern.factor_len()), (5, 5));
/// let factor = pattern.cholesky(&[2.0, -1.0, 2.0, -1.0, 2.0]).unwrap();
/// assert!((2.0 * factor.log_diagonal() - 4.0_f64.ln()).abs() < 1e-12); // the determinant is 4
/// ```
#[derive(Debug)]
pub struct SparsePattern {
    /// The lower triangle by columns, each with its diagonal first: where they start, and their rows.
    columns: Vec<usize>,
    rows: Vec<usize>,
    symbolic: SymbolicCholesky<usize>,
}

impl SparsePattern {
    /// The pattern with the diagonal and these pairs, in any order and with repeats; `None` if it cannot be analysed for want of memory.
    pub fn new(n: usize, pairs: &[[u32; 2]]) -> Option<Self> {
        let mut entries: Vec<[usize; 2]> =
            pairs.iter().map(|[i, j]| [*i.min(j) as usize, *i.max(j) as usize]).chain((0..n).map(|i| [i, i])).collect();
        entries.sort_unstable();
        entries.dedup();
        let mut columns = vec![0; n + 1];
        entries.iter().for_each(|[column, _]| columns[column + 1] += 1);
        for k in 0..n {
            columns[k + 1] += columns[k];
        }
        let rows: Vec<usize> = entries.iter().map(|[_, row]| *row).collect();
        let params = CholeskySymbolicParams {
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SIMPLICIAL,
            ..CholeskySymbolicParams::default()
        };
        let matrix = SymbolicSparseColMatRef::new_checked(n, n, &columns, None, &rows);
        let symbolic = factorize_symbolic_cholesky(matrix, Side::Lower, SymmetricOrdering::Amd, params).ok()?;
        Some(Self { columns, rows, symbolic })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.columns.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of the lower triangle.
    pub fn entries_len(&self) -> usize {
        self.rows.len()
    }

    /// The entries of the factor.
    pub fn factor_len(&self) -> usize {
        self.symbolic.len_val()
    }

    /// Where the entries of a column start and end: the diagonal, and those below it.
    pub fn column(&self, j: usize) -> std::ops::Range<usize> {
        self.columns[j]..self.columns[j + 1]
    }

    /// The rows of all entries.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The order of elimination, the starts of the factor's columns, and the rows of its entries, as rows of the matrix.
    pub(crate) fn symbolic(&self) -> Option<(Vec<u32>, Vec<u32>, Vec<u32>)> {
        let SymbolicCholeskyRaw::Simplicial(symbolic) = self.symbolic.raw() else { return None };
        let order = self.symbolic.perm().map_or_else(|| (0..self.len()).collect(), |perm| perm.arrays().0.to_vec());
        let rows = symbolic.row_idx().iter().map(|row| order[*row] as u32).collect();
        let columns = symbolic.col_ptr().iter().map(|at| *at as u32).collect();
        Some((order.iter().map(|i| *i as u32).collect(), columns, rows))
    }

    /// The Cholesky factor of the matrix with these entries; `None` if it is not positive definite.
    ///
    /// # Panics
    /// If there are not as many values as entries.
    pub fn cholesky(&self, values: &[f64]) -> Option<SparseCholesky> {
        let n = self.len();
        assert_eq!(values.len(), self.entries_len(), "a matrix with another pattern");
        let matrix =
            SparseColMatRef::new(SymbolicSparseColMatRef::new_checked(n, n, &self.columns, None, &self.rows), values);
        let mut of_factor = vec![0.0; self.factor_len()];
        let scratch = self.symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Spec::default());
        let mut memory = MemBuffer::try_new(scratch).ok()?;
        let (regularisation, stack) = (LltRegularization::default(), MemStack::new(&mut memory));
        self.symbolic
            .factorize_numeric_llt(
                &mut of_factor,
                matrix,
                Side::Lower,
                regularisation,
                Par::Seq,
                stack,
                Spec::default(),
            )
            .ok()?;
        let (order, columns, rows) = self.symbolic()?;
        let factor = SparseCholesky { order, columns, rows, values: of_factor };
        factor.values.iter().all(|x| x.is_finite()).then_some(factor)
    }
}

/// The Cholesky factor of a sparse matrix A = Pᵀ L Lᵀ P, where P is the order of elimination.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseCholesky {
    /// The row of A that is eliminated first, second, and so on.
    order: Vec<u32>,
    /// Where the columns of L start; each has its diagonal first.
    columns: Vec<u32>,
    /// The rows of the entries, as rows of A.
    rows: Vec<u32>,
    values: Vec<f64>,
}

/// The parts of a factor: the order, the starts of the columns, the rows and the values.
pub type SparseParts = (Vec<u32>, Vec<u32>, Vec<u32>, Vec<f64>);

impl SparseCholesky {
    /// The factor with these parts; `None` if they do not belong together.
    pub fn from_parts((order, columns, rows, values): SparseParts) -> Option<Self> {
        let n = order.len();
        let mut place = vec![None; n];
        for (k, row) in order.iter().enumerate() {
            if place.get_mut(*row as usize)?.replace(k).is_some() {
                return None;
            }
        }
        if columns.len() != n + 1 || rows.len() != values.len() || *columns.last()? as usize != rows.len() {
            return None;
        }
        for k in 0..n {
            let own = rows.get(columns[k] as usize..columns[k + 1] as usize)?;
            let is_below = |row: &u32| place.get(*row as usize).copied().flatten().is_some_and(|place| place > k);
            if *own.first()? != order[k] || !own[1..].iter().all(is_below) {
                return None;
            }
        }
        Some(Self { order, columns, rows, values })
    }

    /// Its parts.
    pub fn to_parts(&self) -> SparseParts {
        (self.order.clone(), self.columns.clone(), self.rows.clone(), self.values.clone())
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of entries.
    pub fn entries_len(&self) -> usize {
        self.values.len()
    }

    /// Σ log L_kk.
    pub fn log_diagonal(&self) -> f64 {
        (0..self.len()).map(|k| self.values[self.columns[k] as usize].ln()).sum()
    }

    /// Multiplies the column of L that eliminates each row of A by the factor of that row.
    pub fn scale_columns(&mut self, factors: &[f64]) {
        for k in 0..self.len() {
            let factor = factors[self.order[k] as usize];
            self.values[self.columns[k] as usize..self.columns[k + 1] as usize].iter_mut().for_each(|x| *x *= factor);
        }
    }

    /// x := Pᵀ Lᵀ P x.
    pub fn transpose_multiply(&self, x: &mut [f64]) {
        for k in 0..self.len() {
            let own = self.columns[k] as usize..self.columns[k + 1] as usize;
            let terms = self.rows[own.clone()].iter().zip(&self.values[own]);
            x[self.order[k] as usize] = terms.map(|(row, l)| l * x[*row as usize]).sum();
        }
    }

    /// x := Pᵀ L⁻ᵀ P x for every draw; `x` has a column of draws for each row.
    ///
    /// ```
    /// use hyperprior_math::sparse::SparsePattern;
    /// let factor = SparsePattern::new(2, &[]).unwrap().cholesky(&[4.0, 9.0]).unwrap();
    /// let mut x = [2.0, 4.0, 3.0, 6.0]; // two draws of two numbers
    /// factor.solve_transpose(&mut x, 2);
    /// assert_eq!(x, [1.0, 2.0, 1.0, 2.0]);
    /// ```
    pub fn solve_transpose(&self, x: &mut [f64], draws_len: usize) {
        solve_transpose(self, x, draws_len);
    }

    /// x := Pᵀ L⁻¹ P x for every draw.
    pub fn solve(&self, x: &mut [f64], draws_len: usize) {
        solve(self, x, draws_len);
    }
}

/// Eight draws of a row.
#[inline(always)]
fn of_row<S: Simd>(s: S, x: &[f64], row: u32, draws_len: usize, at: usize) -> V<S> {
    load(s, &x[row as usize * draws_len..(row as usize + 1) * draws_len], at, 0.0)
}

#[inline(always)]
fn put_row<S: Simd>(value: V<S>, x: &mut [f64], row: u32, draws_len: usize, at: usize) {
    store(value, &mut x[row as usize * draws_len..(row as usize + 1) * draws_len], at);
}

#[inline(always)]
fn solve_transpose_kernel<S: Simd>(s: S, factor: &SparseCholesky, x: &mut [f64], draws_len: usize) {
    for k in (0..factor.len()).rev() {
        let (first, end) = (factor.columns[k] as usize, factor.columns[k + 1] as usize);
        let (row, inverse) = (factor.order[k], splat(s, 1.0 / factor.values[first]));
        for at in (0..draws_len).step_by(LANES) {
            let mut own = of_row(s, x, row, draws_len, at);
            for (other, l) in factor.rows[first + 1..end].iter().zip(&factor.values[first + 1..end]) {
                own = splat(s, -l).mul_add(of_row(s, x, *other, draws_len, at), own);
            }
            put_row(own * inverse, x, row, draws_len, at);
        }
    }
}
crate::simd_fn!(
    fn solve_transpose(factor: &SparseCholesky, x: &mut [f64], draws_len: usize) = solve_transpose_kernel
);

#[inline(always)]
fn solve_kernel<S: Simd>(s: S, factor: &SparseCholesky, x: &mut [f64], draws_len: usize) {
    for k in 0..factor.len() {
        let (first, end) = (factor.columns[k] as usize, factor.columns[k + 1] as usize);
        let (row, inverse) = (factor.order[k], splat(s, 1.0 / factor.values[first]));
        for at in (0..draws_len).step_by(LANES) {
            let own = of_row(s, x, row, draws_len, at) * inverse;
            put_row(own, x, row, draws_len, at);
            for (other, l) in factor.rows[first + 1..end].iter().zip(&factor.values[first + 1..end]) {
                let rest = splat(s, -l).mul_add(own, of_row(s, x, *other, draws_len, at));
                put_row(rest, x, *other, draws_len, at);
            }
        }
    }
}
crate::simd_fn!(
    fn solve(factor: &SparseCholesky, x: &mut [f64], draws_len: usize) = solve_kernel
);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::random::stream;
    use rand::RngExt;

    /// A random positive definite matrix with an arrow, a chain and some other pairs: the pattern, its values, and the whole matrix.
    fn example(n: usize, seed: u64) -> (SparsePattern, Vec<f64>, Vec<f64>) {
        let mut rng = stream(seed, 0, 0, 0);
        let mut pairs: Vec<[u32; 2]> = (1..n as u32).flat_map(|i| [[0, i], [i, i - 1]]).collect();
        pairs.extend((0..n).map(|_| [rng.random_range(0..n as u32), rng.random_range(0..n as u32)]));
        let pattern = SparsePattern::new(n, &pairs).unwrap();
        let (mut values, mut full) = (vec![0.0; pattern.entries_len()], vec![0.0; n * n]);
        for j in 0..n {
            for at in pattern.column(j) {
                let i = pattern.rows()[at];
                values[at] = if i == j { 2.0 * n as f64 } else { 2.0 * rng.random::<f64>() - 1.0 };
                (full[i * n + j], full[j * n + i]) = (values[at], values[at]);
            }
        }
        (pattern, values, full)
    }

    /// Catches a wrong order, side or transpose: W = Pᵀ L⁻ᵀ P has W Wᵀ = A⁻¹, and the other operations belong to it.
    #[test]
    fn solves_belong_to_the_matrix() {
        for (n, draws_len) in [(1, 3), (7, 16), (23, 5)] {
            let (pattern, values, full) = example(n, n as u64);
            let factor = pattern.cholesky(&values).unwrap();
            // As draws, the columns of the identity.
            let identity: Vec<f64> = (0..n * n).map(|e| f64::from(e / n == e % n)).collect();
            let mut w = identity.clone();
            factor.solve_transpose(&mut w, n);
            let mut transposed = identity.clone();
            factor.solve(&mut transposed, n);
            for i in 0..n {
                for j in 0..n {
                    assert!((w[i * n + j] - transposed[j * n + i]).abs() < 1e-12);
                    // A W Wᵀ = I.
                    let covariance = |k: usize| (0..n).map(|m| w[k * n + m] * w[j * n + m]).sum::<f64>();
                    let product: f64 = (0..n).map(|k| full[i * n + k] * covariance(k)).sum();
                    assert!((product - f64::from(i == j)).abs() < 1e-10, "{n}: {i}, {j}: {product}");
                }
            }
            let mut rng = stream(5, 0, 0, 0);
            let x: Vec<f64> = (0..n * draws_len).map(|_| rng.random::<f64>()).collect();
            let mut there = x.clone();
            factor.solve_transpose(&mut there, draws_len);
            for s in 0..draws_len {
                let mut back: Vec<f64> = (0..n).map(|i| there[i * draws_len + s]).collect();
                factor.transpose_multiply(&mut back);
                (0..n).for_each(|i| assert!((back[i] - x[i * draws_len + s]).abs() < 1e-10));
            }
            let dense = crate::linalg::cholesky(&full, n).unwrap();
            let log_diagonal: f64 = (0..n).map(|i| dense[crate::linalg::packed(i, i)].ln()).sum();
            assert!((factor.log_diagonal() - log_diagonal).abs() < 1e-10);
        }
    }

    #[test]
    fn scaled_columns_scale_what_they_are_multiplied_with() {
        let (pattern, values, _) = example(9, 4);
        let factor = pattern.cholesky(&values).unwrap();
        let factors: Vec<f64> = (0..9).map(|i| 1.0 + f64::from(i)).collect();
        let mut scaled = factor.clone();
        scaled.scale_columns(&factors);
        let (mut one, mut other): (Vec<f64>, Vec<f64>) = ((0..9).map(|i| factors[i] * i as f64).collect(), vec![]);
        other.extend((0..9).map(|i| i as f64));
        // (L D)⁻ᵀ D x = L⁻ᵀ x.
        scaled.solve_transpose(&mut one, 1);
        factor.solve_transpose(&mut other, 1);
        one.iter().zip(&other).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    }

    #[test]
    fn an_arrow_has_no_fill_and_an_indefinite_matrix_no_factor() {
        let pairs: Vec<[u32; 2]> = (1..50).map(|i| [0, i]).collect();
        let pattern = SparsePattern::new(50, &pairs).unwrap();
        assert_eq!(pattern.factor_len(), 99);
        let mut values: Vec<f64> = vec![1.0; 99];
        assert!(pattern.cholesky(&values).is_none());
        (0..50).for_each(|j| values[pattern.column(j).start] = 60.0);
        assert!(pattern.cholesky(&values).is_some());
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let (pattern, values, _) = example(6, 8);
        let factor = pattern.cholesky(&values).unwrap();
        let parts = factor.to_parts();
        assert_eq!(SparseCholesky::from_parts(parts.clone()), Some(factor));
        let (order, columns, rows, values) = parts;
        let twice = vec![order[0]; 6];
        assert!(SparseCholesky::from_parts((twice, columns.clone(), rows.clone(), values.clone())).is_none());
        let long = columns.iter().map(|c| c + 1).collect();
        assert!(SparseCholesky::from_parts((order.clone(), long, rows.clone(), values.clone())).is_none());
        let far = rows.iter().map(|r| r + 1).collect();
        assert!(SparseCholesky::from_parts((order.clone(), columns.clone(), far, values.clone())).is_none());
        assert!(SparseCholesky::from_parts((order, columns, rows, values[1..].to_vec())).is_none());
    }
}

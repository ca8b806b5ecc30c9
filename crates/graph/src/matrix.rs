//! Matrices of expressions: inner products, determinants and inverses by Cholesky factorisation.

use super::expression::{Expr, Expressions};
use super::operation::Unary;

impl Expressions {
    /// Σ aₖ bₖ.
    pub(super) fn inner_product(&mut self, a: &[Expr], b: &[Expr]) -> Expr {
        let mut terms = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            match (self.value(*a), self.value(*b)) {
                (Some(w), _) => terms.push((*b, w)),
                (_, Some(w)) => terms.push((*a, w)),
                _ => terms.push((self.multiply(*a, *b), 1.0)),
            }
        }
        self.linear(&terms, 0.0)
    }

    /// The lower triangle L of a = L Lᵀ, row by row; only a's lower triangle is read.
    pub(super) fn cholesky(&mut self, a: &[Expr], n: usize) -> Vec<Vec<Expr>> {
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(n);
        for i in 0..n {
            let mut row: Vec<Expr> = Vec::with_capacity(i + 1);
            for j in 0..=i {
                let others = if j < i { rows[j].clone() } else { row.clone() };
                let taken = self.inner_product(&row[..j], &others[..j]);
                let left = self.subtract(a[i * n + j], taken);
                let entry = if i == j { self.unary(Unary::Sqrt, left) } else { self.divide(left, others[j]) };
                row.push(entry);
            }
            rows.push(row);
        }
        rows
    }

    /// log |a| of a symmetric positive definite matrix.
    pub(super) fn log_determinant(&mut self, a: &[Expr], n: usize) -> Expr {
        let rows = self.cholesky(a, n);
        let terms: Vec<(Expr, f64)> = (0..n).map(|i| (self.log(rows[i][i]), 2.0)).collect();
        self.linear(&terms, 0.0)
    }

    /// The inverse of a symmetric positive definite matrix.
    pub(super) fn inverse(&mut self, a: &[Expr], n: usize) -> Vec<Expr> {
        let rows = self.cholesky(a, n);
        let zero = self.constant(0.0);
        // L⁻¹ by forward substitution, column j from the diagonal down.
        let mut inverse = vec![zero; n * n];
        for j in 0..n {
            inverse[j * n + j] = self.unary(Unary::Reciprocal, rows[j][j]);
            for i in j + 1..n {
                let column: Vec<Expr> = (j..i).map(|k| inverse[k * n + j]).collect();
                let taken = self.inner_product(&rows[i][j..i], &column);
                let left = self.scale(taken, -1.0);
                inverse[i * n + j] = self.divide(left, rows[i][i]);
            }
        }
        let mut out = vec![zero; n * n];
        for i in 0..n {
            for j in 0..=i {
                let (a, b): (Vec<Expr>, Vec<Expr>) = (i..n).map(|k| (inverse[k * n + i], inverse[k * n + j])).unzip();
                out[i * n + j] = self.inner_product(&a, &b);
                out[j * n + i] = out[i * n + j];
            }
        }
        out
    }
}

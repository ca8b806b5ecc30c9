//! Matrices of expressions: inner products, determinants and inverses by Cholesky factorisation.

use super::expression::{Expr, Expressions, Node};
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

    /// The expression of which all entries of a positive definite matrix are multiples, and the constants: of a covariance σ² R, for
    /// example, with known correlations R.
    pub(super) fn common_factor(&self, a: &[Expr]) -> Option<(Expr, Vec<f64>)> {
        let mut factor = None;
        let mut constants = Vec::with_capacity(a.len());
        for e in a {
            let (own, constant) = match self.node(*e) {
                Node::Constant(0.0) => (None, 0.0),
                Node::Constant(_) => return None,
                Node::Linear { list, weights, constant: 0.0 } if self.list(list).len() == 1 => {
                    (Some(self.list(list)[0]), self.weights(list, weights)[0])
                }
                _ => (Some(*e), 1.0),
            };
            if own.is_some_and(|own| *factor.get_or_insert(own) != own) {
                return None;
            }
            constants.push(constant);
        }
        // Of a negative factor the constants would not be positive definite.
        factor.filter(|_| constants[0] > 0.0).map(|factor| (factor, constants))
    }

    /// Numbers as expressions.
    pub(super) fn constants(&mut self, values: &[f64]) -> Vec<Expr> {
        values.iter().map(|x| self.constant(*x)).collect()
    }

    /// log |a| of a symmetric positive definite matrix.
    pub(super) fn log_determinant(&mut self, a: &[Expr], n: usize) -> Expr {
        if let Some(known) = self.log_determinants.get(a) {
            return *known;
        }
        if let Some((factor, values)) = self.common_factor(a) {
            let constants = self.constants(&values);
            let (own, log) = (self.log_determinant(&constants, n), self.log(factor));
            return self.linear(&[(own, 1.0), (log, n as f64)], 0.0);
        }
        let rows = self.cholesky(a, n);
        self.log_determinant_of(&rows)
    }

    /// 2 Σ log Lᵢᵢ.
    fn log_determinant_of(&mut self, rows: &[Vec<Expr>]) -> Expr {
        let terms: Vec<(Expr, f64)> = rows.iter().enumerate().map(|(i, row)| (self.log(row[i]), 2.0)).collect();
        self.linear(&terms, 0.0)
    }

    /// The inverse of a symmetric positive definite matrix.
    pub(super) fn inverse(&mut self, a: &[Expr], n: usize) -> Vec<Expr> {
        if let Some((factor, values)) = self.common_factor(a) {
            let constants = self.constants(&values);
            let (inverse, factor) = (self.inverse(&constants, n), self.unary(Unary::Reciprocal, factor));
            return inverse.into_iter().map(|entry| self.multiply(factor, entry)).collect();
        }
        let rows = self.cholesky(a, n);
        let log_determinant = self.log_determinant_of(&rows);
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
        let of_inverse = self.scale(log_determinant, -1.0);
        self.log_determinants.insert(out.clone(), of_inverse);
        out
    }
}

//! Coordinates of vectors: stick-breaking of a simplex, and the Cholesky factor of a precision matrix.

use super::expression::{Expr, Known};
use super::node::Graph;
use super::operation::Unary;
use super::unconstrained::{Transform, Unconstrained, own_leaves};
use hyperprior::model::Support;
use std::f64::consts::LN_2;

impl Unconstrained {
    /// x₁ = v₁, x₂ = (1 − v₁) v₂, …: each v is a logistic, shifted so that zero is the centre of the simplex.
    pub(super) fn transform_simplex(&mut self, graph: &Graph, r: usize) -> Expr {
        let leaves: Vec<usize> = own_leaves(graph, r).collect();
        let mut rest = self.arena.constant(1.0);
        let mut jacobian = Vec::new();
        for (k, &leaf) in leaves.iter().enumerate() {
            let left = leaves.len() - 1 - k;
            if left == 0 {
                self.leaves[leaf] = Some(rest);
                break;
            }
            let transform = Transform::Simplex(leaves.clone(), k);
            let coordinate = self.add_coordinate(graph, leaf, Support::Real, Known::default(), transform);
            let centred = self.arena.linear(&[(coordinate, 1.0)], -(left as f64).ln());
            let share = self.arena.sigmoid(centred);
            let other = self.arena.complement(share);
            let (log_rest, log_share, log_other) = (self.arena.log(rest), self.arena.log(share), self.arena.log(other));
            jacobian.extend([(log_rest, 1.0), (log_share, 1.0), (log_other, 1.0)]);
            self.leaves[leaf] = Some(self.arena.multiply(rest, share));
            rest = self.arena.multiply(rest, other);
        }
        self.arena.linear(&jacobian, 0.0)
    }

    /// Ω = L Lᵀ with the logs of L's diagonal as coordinates; |∂Ω/∂L| = 2ⁿ Π Lᵢᵢ^(n − i), i from 0.
    pub(super) fn transform_matrix(&mut self, graph: &Graph, r: usize) -> Expr {
        let n = graph.random[r].value.len().isqrt();
        let leaves: Vec<usize> = own_leaves(graph, r).collect();
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(n);
        let mut jacobian = Vec::new();
        let mut at = leaves.iter();
        for i in 0..n {
            let mut row = Vec::with_capacity(i + 1);
            for j in 0..=i {
                let Some(&leaf) = at.next() else { break };
                let transform = Transform::Matrix(leaves.clone(), i, j);
                let coordinate = self.add_coordinate(graph, leaf, Support::Real, Known::default(), transform);
                if i == j {
                    jacobian.push((coordinate, (n - i + 1) as f64));
                    row.push(self.arena.unary(Unary::Exp, coordinate));
                } else {
                    row.push(coordinate);
                }
            }
            rows.push(row);
        }
        let mut at = leaves.iter();
        for i in 0..n {
            for j in 0..=i {
                let Some(&leaf) = at.next() else { break };
                self.leaves[leaf] = Some(self.arena.inner_product(&rows[i][..=j], &rows[j][..=j]));
            }
        }
        self.arena.linear(&jacobian, n as f64 * LN_2)
    }
}

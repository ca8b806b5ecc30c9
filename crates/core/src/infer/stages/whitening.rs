//! The whitening of a posterior: coordinates u with z − m = L u in which it is close to a standard normal.

use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{lower_multiply, lower_transpose_multiply, packed};
use hyperprior_math::sparse::{SparseCholesky, SparseParts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// L, a lower triangle, a diagonal, or the inverse of a sparse triangle.
///
/// ```
/// use hyperprior::infer::Whitening;
/// let whitening = Whitening::Full(vec![3.0, 4.0, 3.0]);
/// assert_eq!((whitening.get(1, 0), whitening.get(0, 1)), (4.0, 0.0));
/// assert_eq!(whitening.diagonal(), Whitening::Diagonal(vec![3.0, 5.0])); // the standard deviations
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Whitening {
    /// A lower triangle, row by row.
    Full(Vec<f64>),
    /// A diagonal.
    Diagonal(Vec<f64>),
    /// C⁻ᵀ, where C is the Cholesky factor of the precision.
    #[serde(serialize_with = "to_parts", deserialize_with = "from_parts")]
    Sparse(SparseCholesky),
}

fn to_parts<S: Serializer>(factor: &SparseCholesky, to: S) -> Result<S::Ok, S::Error> {
    factor.to_parts().serialize(to)
}

fn from_parts<'d, D: Deserializer<'d>>(from: D) -> Result<SparseCholesky, D::Error> {
    let parts = SparseParts::deserialize(from)?;
    SparseCholesky::from_parts(parts).ok_or_else(|| serde::de::Error::custom("the parts of a factor do not fit"))
}

impl Whitening {
    /// The entry in row i, column j.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::Full(l) if j <= i => l[packed(i, j)],
            Self::Diagonal(l) if i == j => l[i],
            Self::Sparse(factor) => {
                let mut column = vec![0.0; factor.len()];
                column[j] = 1.0;
                factor.solve_transpose(&mut column, 1);
                column[i]
            }
            _ => 0.0,
        }
    }

    /// The standard deviations alone: the square root of the diagonal of L Lᵀ.
    pub fn diagonal(&self) -> Self {
        match self {
            Self::Full(l) => {
                let n = (2 * l.len()).isqrt();
                let row = |i: usize| (0..=i).map(|j| l[packed(i, j)].powi(2)).sum::<f64>().sqrt();
                Self::Diagonal((0..n).map(row).collect())
            }
            Self::Diagonal(l) => Self::Diagonal(l.clone()),
            Self::Sparse(factor) => {
                // Row i of L is column i of C⁻¹.
                let row = |i: usize| {
                    let mut column = vec![0.0; factor.len()];
                    column[i] = 1.0;
                    factor.solve(&mut column, 1);
                    column.iter().map(|x| x * x).sum::<f64>().sqrt()
                };
                Self::Diagonal((0..factor.len()).map(row).collect())
            }
        }
    }

    /// The cost of a product with it, in additions.
    pub(in crate::infer) fn work(&self) -> usize {
        match self {
            Self::Full(l) => 2 * l.len() - (2 * l.len()).isqrt(),
            Self::Diagonal(l) => 2 * l.len(),
            Self::Sparse(factor) => 4 * factor.entries_len(),
        }
    }

    /// Whether it is for `len` latents.
    pub(in crate::infer) fn is_for(&self, len: usize) -> bool {
        match self {
            Self::Full(l) => l.len() == len * (len + 1) / 2,
            Self::Diagonal(l) => l.len() == len,
            Self::Sparse(factor) => factor.len() == len,
        }
    }

    /// out = L x for every draw; `out` must be zero.
    pub fn multiply(&self, x: &Batch, out: &mut Batch) {
        match self {
            Self::Full(l) => lower_multiply(l, x.as_slice(), out.as_mut_slice(), x.draws_len()),
            Self::Diagonal(l) => scale(l, x, out),
            Self::Sparse(factor) => {
                out.as_mut_slice().copy_from_slice(x.as_slice());
                factor.solve_transpose(out.as_mut_slice(), x.draws_len());
            }
        }
    }

    /// out = Lᵀ x for every draw; `out` must be zero.
    pub(in crate::infer) fn transpose_multiply(&self, x: &Batch, out: &mut Batch) {
        match self {
            Self::Full(l) => lower_transpose_multiply(l, x.as_slice(), out.as_mut_slice(), x.draws_len()),
            Self::Diagonal(l) => scale(l, x, out),
            Self::Sparse(factor) => {
                out.as_mut_slice().copy_from_slice(x.as_slice());
                factor.solve(out.as_mut_slice(), x.draws_len());
            }
        }
    }

    /// x := L⁻¹ x.
    pub(in crate::infer) fn solve(&self, x: &mut [f64]) {
        match self {
            Self::Full(l) => {
                for i in 0..x.len() {
                    let taken: f64 = (0..i).map(|k| l[packed(i, k)] * x[k]).sum();
                    x[i] = (x[i] - taken) / l[packed(i, i)];
                }
            }
            Self::Diagonal(l) => x.iter_mut().zip(l).for_each(|(x, l)| *x /= l),
            Self::Sparse(factor) => factor.transpose_multiply(x),
        }
    }

    /// log |L| for `len` latents.
    pub(in crate::infer) fn log_volume(&self, len: usize) -> f64 {
        match self {
            Self::Sparse(factor) => -factor.log_diagonal(),
            _ => (0..len).map(|i| self.get(i, i).ln()).sum(),
        }
    }
}

fn scale(diagonal: &[f64], x: &Batch, out: &mut Batch) {
    for (k, scale) in diagonal.iter().enumerate() {
        for (out, x) in out.column_mut(k).iter_mut().zip(x.column(k)) {
            *out = scale * x;
        }
    }
}

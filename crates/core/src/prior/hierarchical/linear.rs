//! A linear map from the level above: shared factors in the means and scales of all λ.

use super::{LevelMap, add_outer};
use crate::prior::Start;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;
use rand_distr::{Distribution, StandardNormal};

/// m(u) = m + W u and l(u) = l + V u; parameters m, l, W and V row by row. O(dp). See [`Hierarchical`](super::Hierarchical).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearMap {
    lambda_len: usize,
    upper_len: usize,
}

impl LinearMap {
    /// From `upper_len` numbers to `lambda_len` means and log scales.
    pub fn new(lambda_len: usize, upper_len: usize) -> Self {
        Self { lambda_len, upper_len }
    }

    fn split<'a>(&self, theta: &'a [f64]) -> [&'a [f64]; 4] {
        let (m, rest) = theta.split_at(self.lambda_len);
        let (l, rest) = rest.split_at(self.lambda_len);
        let (w, v) = rest.split_at(self.lambda_len * self.upper_len);
        [m, l, w, v]
    }
}

/// out_i ← constant_i + Σ_j weights_ij x_j.
fn affine(constants: &[f64], weights: &[f64], x: &Batch, out: &mut Batch) {
    for (i, constant) in constants.iter().enumerate() {
        let column = out.column_mut(i);
        column.fill(*constant);
        for j in 0..x.columns_len() {
            add_scaled(weights[i * x.columns_len() + j], x.column(j), column);
        }
    }
}

impl LevelMap for LinearMap {
    fn name(&self) -> String {
        "linear map".to_owned()
    }

    fn upper_len(&self) -> usize {
        self.upper_len
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn parameters_len(&self) -> usize {
        2 * self.lambda_len * (1 + self.upper_len)
    }

    fn forward(&self, theta: &[f64], upper: &Batch, mean: &mut Batch, log_scale: &mut Batch, _scratch: &mut Scratch) {
        let [m, l, w, v] = self.split(theta);
        affine(m, w, upper, mean);
        affine(l, v, upper, log_scale);
    }

    fn pullback(
        &self,
        theta: &[f64],
        upper: &Batch,
        d_mean: &Batch,
        d_log_scale: &Batch,
        d_upper: &mut Batch,
        d_theta: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        let [_, _, w, v] = self.split(theta);
        let (d_constants, d_weights) = d_theta.split_at_mut(2 * self.lambda_len);
        let (d_w, d_v) = d_weights.split_at_mut(self.lambda_len * self.upper_len);
        let (d_m, d_l) = d_constants.split_at_mut(self.lambda_len);
        for (d, weights, d_constants, d_weights) in [(d_mean, w, d_m, d_w), (d_log_scale, v, d_l, d_v)] {
            for (i, d_constant) in d_constants.iter_mut().enumerate() {
                *d_constant += d.column(i).iter().sum::<f64>();
                for j in 0..self.upper_len {
                    add_scaled(weights[i * self.upper_len + j], d.column(i), d_upper.column_mut(j));
                }
            }
            add_outer(d, upper, d_weights);
        }
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let n = self.lambda_len;
        theta.fill(0.0);
        theta[..n].copy_from_slice(&start.locations[0]);
        for i in 0..n {
            let scale = start.scales[0][i].max(1e-6);
            theta[n + i] = scale.ln();
            // Small weights on each factor, so that a fit can leave the diagonal Gaussian.
            for w in &mut theta[2 * n + i * self.upper_len..2 * n + (i + 1) * self.upper_len] {
                let normal: f64 = StandardNormal.sample(rng);
                *w = 0.1 * scale * normal;
            }
        }
    }
}

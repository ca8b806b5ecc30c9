//! r(k | z), which component of a mixture the noise came from: softmax_k(c_k + Σ_i a_ki·t(z_i)).

use super::layout::{Covered, InverseFlow, prepared};
use crate::recursive::Cache;
use hyperprior_math::batch::Batch;
use hyperprior_math::vector::{add_scaled, dot, log_sum_exp_columns};

impl InverseFlow {
    /// c_k and a_k.
    fn class<'a>(&self, phi: &'a [f64], k: usize) -> &'a [f64] {
        let first = self.components_len * self.component_len() + k * (1 + self.features_len);
        &phi[first..first + 1 + self.features_len]
    }

    /// The logits c_k + a_k·t(z), a column each, and their log sum as one more column.
    pub(super) fn write_logits(&self, phi: &[f64], features: &Batch, logits: &mut Batch) {
        for k in 0..self.components_len {
            let class = self.class(phi, k);
            let column = logits.column_mut(k);
            column.fill(class[0]);
            for (f, a) in class[1..].iter().enumerate() {
                add_scaled(*a, features.column(f), column);
            }
        }
        let draws_len = logits.draws_len();
        let (columns, total) = logits.as_mut_slice().split_at_mut(self.components_len * draws_len);
        log_sum_exp_columns(columns, total);
    }

    /// out += log r(k | z).
    pub(super) fn add_class(&self, k: usize, prepared: &Cache, out: &mut [f64]) {
        if self.components_len > 1 {
            let logits = &prepared.batches[prepared::LOGITS];
            add_scaled(1.0, logits.column(k), out);
            add_scaled(-1.0, logits.column(self.components_len), out);
        }
    }

    /// The logits with one latent's features replaced by `t`.
    pub(super) fn move_logits(&self, phi: &[f64], covered: &Covered, t: &[f64], prepared: &Cache, moved: &mut Batch) {
        let draws_len = moved.draws_len();
        let features = self.features(&prepared.batches[prepared::FEATURES], covered);
        for k in 0..self.components_len {
            let column = moved.column_mut(k);
            column.copy_from_slice(prepared.batches[prepared::LOGITS].column(k));
            for f in 0..covered.features_len {
                let a = self.class(phi, k)[1 + covered.first_feature + f];
                let at = f * draws_len..(f + 1) * draws_len;
                for ((o, new), old) in column.iter_mut().zip(&t[at.clone()]).zip(&features[at]) {
                    *o += a * (new - old);
                }
            }
        }
        let (columns, total) = moved.as_mut_slice().split_at_mut(self.components_len * draws_len);
        log_sum_exp_columns(columns, total);
    }

    /// The pullback of log r(k | z).
    pub(super) fn class_pullback(
        &self,
        phi: &[f64],
        k: usize,
        d_log_r: &[f64],
        prepared: &Cache,
        d_logit: &mut [f64],
        d_features: &mut Batch,
        d_phi: &mut [f64],
    ) {
        let [features, logits] = &prepared.batches[..prepared::LEN] else { unreachable!() };
        for j in 0..self.components_len {
            let own = f64::from(j == k);
            let total = logits.column(self.components_len);
            for (((d, w), l), t) in d_logit.iter_mut().zip(d_log_r).zip(logits.column(j)).zip(total) {
                *d = w * (own - (l - t).exp());
            }
            let first = self.components_len * self.component_len() + j * (1 + self.features_len);
            d_phi[first] += d_logit.iter().sum::<f64>();
            for f in 0..self.features_len {
                d_phi[first + 1 + f] += dot(d_logit, features.column(f));
            }
            for covered in self.covered.iter().filter(|c| c.is_pathwise) {
                for f in covered.first_feature..covered.first_feature + covered.features_len {
                    add_scaled(self.class(phi, j)[1 + f], d_logit, d_features.column_mut(f));
                }
            }
        }
    }
}

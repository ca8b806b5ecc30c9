//! The fitted Gaussians of all components for given z: their shares, modes and precisions, and the density of their mixture.

use super::layout::{Fitted, GaussianFit, MixtureGaussian, PREPARED};
use super::{laplace, propagation};
use crate::recursive::{Space, Surroundings};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::HALF_LN_2_PI;
use hyperprior_math::vector::{add_scaled, log_sum_exp_columns};

/// A component's Gaussian, split into the given λ_c and the covered λ_d.
pub(super) struct Pieces {
    pub(super) mean: Vec<f64>,
    pub(super) scale: Vec<f64>,
    /// The covered block of the scale.
    pub(super) block: Vec<f64>,
}

impl Pieces {
    pub(super) fn take(at: Surroundings, k: usize, given: usize, scratch: &mut Scratch) -> Self {
        let n = at.prior.lambda_len();
        let mut mean = scratch.take(n);
        let mut scale = scratch.take(packed_len(n));
        if let Some(gaussians) = at.prior.gaussians() {
            gaussians.component(at.theta, k, &mut mean, &mut scale);
        }
        let mut block = scratch.take(packed_len(n - given));
        for i in given..n {
            for j in given..=i {
                block[packed(i - given, j - given)] = scale[packed(i, j)];
            }
        }
        Self { mean, scale, block }
    }

    pub(super) fn give(self, scratch: &mut Scratch) {
        scratch.give(self.block);
        scratch.give(self.scale);
        scratch.give(self.mean);
    }
}

impl MixtureGaussian {
    pub(super) fn solve(
        &self,
        at: Surroundings,
        block: &[f64],
        offset: &Batch,
        z: &Batch,
        fitted: Fitted,
        scratch: &mut Scratch,
    ) {
        match self.fit {
            GaussianFit::Laplace => laplace::solve(&self.shape, at.likelihood, block, offset, z, fitted, scratch),
            GaussianFit::ExpectationPropagation => {
                propagation::solve(&self.shape, at.likelihood, block, offset, z, fitted, scratch);
            }
        }
    }

    /// The conditional location μ_d + L_dc ε_c of λ_d in component k, and log N(λ_c; k), given λ_c.
    pub(super) fn offset(
        &self,
        pieces: &Pieces,
        lambda_c: &Batch,
        offset: &mut Batch,
        log_given: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let draws_len = offset.draws_len();
        log_given.fill(0.0);
        let mut eps_c = scratch.take_batch(self.shape.given, draws_len);
        for c in 0..self.shape.given {
            for (e, l) in eps_c.column_mut(c).iter_mut().zip(lambda_c.column(c)) {
                *e = l - pieces.mean[c];
            }
        }
        linalg::lower_solve(&pieces.scale[..packed_len(self.shape.given)], eps_c.as_mut_slice(), draws_len);
        for c in 0..self.shape.given {
            let log_scale = pieces.scale[packed(c, c)].ln();
            for (o, e) in log_given.iter_mut().zip(eps_c.column(c)) {
                *o -= 0.5 * e * e + log_scale + HALF_LN_2_PI;
            }
        }
        for j in 0..self.shape.covered_len() {
            let column = offset.column_mut(j);
            column.fill(pieces.mean[self.shape.given + j]);
            for c in 0..self.shape.given {
                add_scaled(pieces.scale[packed(self.shape.given + j, c)], eps_c.column(c), column);
            }
        }
        scratch.give_batch(eps_c);
    }

    /// λ_c of these draws, from x: the leading noise through its own component, or λ itself.
    pub(super) fn lambda_c(&self, at: Surroundings, x: &Batch, lambda_c: &mut Batch, scratch: &mut Scratch) {
        if self.shape.given == 0 {
            return;
        }
        let pieces = Pieces::take(at, at.component, self.shape.given, scratch);
        for c in 0..self.shape.given {
            let column = lambda_c.column_mut(c);
            column.fill(pieces.mean[c]);
            for e in 0..=c {
                add_scaled(pieces.scale[packed(c, e)], x.column(e), column);
            }
        }
        pieces.give(scratch);
    }

    /// Shares (log, normalised), modes and precisions of every component for these z.
    pub(super) fn solve_all(
        &self,
        at: Surroundings,
        x: &Batch,
        z: &Batch,
        shares: &mut Batch,
        modes: &mut Batch,
        precisions: &mut Batch,
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.shape.covered_len(), z.draws_len());
        shares.reshape(self.components_len, draws_len);
        modes.reshape(self.components_len * n, draws_len);
        precisions.reshape(self.components_len * packed_len(n), draws_len);
        let mut log_pi = scratch.take(self.components_len);
        at.prior.log_weights(at.theta, &mut log_pi);
        let mut lambda_c = scratch.take_batch(self.shape.given, draws_len);
        self.lambda_c(at, x, &mut lambda_c, scratch);
        let mut offset = scratch.take_batch(n, draws_len);
        let mut log_given = scratch.take(draws_len);
        for k in 0..self.components_len {
            let pieces = Pieces::take(at, k, self.shape.given, scratch);
            self.offset(&pieces, &lambda_c, &mut offset, &mut log_given, scratch);
            let mode = modes.columns_mut(k * n..(k + 1) * n);
            let precision = precisions.columns_mut(k * packed_len(n)..(k + 1) * packed_len(n));
            let share = shares.column_mut(k);
            let fitted = Fitted { mode, precision, evidence: &mut *share };
            self.solve(at, &pieces.block, &offset, z, fitted, scratch);
            for (share, given) in share.iter_mut().zip(&log_given) {
                *share += given + log_pi[k];
            }
            pieces.give(scratch);
        }
        let mut total = log_given;
        log_sum_exp_columns(shares.as_slice(), &mut total);
        for k in 0..self.components_len {
            add_scaled(-1.0, &total, shares.column_mut(k));
        }
        scratch.give(total);
        scratch.give_batch(offset);
        scratch.give_batch(lambda_c);
        scratch.give(log_pi);
    }

    /// out\[s\] = log N(ε; m, (C Cᵀ)⁻¹); `white` receives Cᵀ (ε − m).
    pub(super) fn log_normal(
        &self,
        eps: &[f64],
        mode: &[f64],
        precision: &[f64],
        white: &mut [f64],
        out: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.shape.covered_len(), out.len());
        let mut centred = scratch.take(n * draws_len);
        for ((c, e), m) in centred.iter_mut().zip(eps).zip(mode) {
            *c = e - m;
        }
        linalg::lower_transpose_multiply_each(precision, &centred, white, draws_len);
        out.fill(-HALF_LN_2_PI * n as f64);
        for j in 0..n {
            let diagonal = &precision[packed(j, j) * draws_len..(packed(j, j) + 1) * draws_len];
            for ((o, d), w) in out.iter_mut().zip(diagonal).zip(&white[j * draws_len..]) {
                *o += d.ln() - 0.5 * w * w;
            }
        }
        scratch.give(centred);
    }

    /// ε_d = L_k⁻¹ (λ − μ_k), and −log|L_k| (r on λ only, where nothing is given).
    pub(super) fn whiten(&self, pieces: &Pieces, lambda: &Batch, eps: &mut [f64]) -> f64 {
        let draws_len = lambda.draws_len();
        for (i, mean) in pieces.mean.iter().enumerate() {
            for (e, l) in eps[i * draws_len..(i + 1) * draws_len].iter_mut().zip(lambda.column(i)) {
                *e = l - mean;
            }
        }
        linalg::lower_solve(&pieces.scale, eps, draws_len);
        -(0..self.shape.lambda_len).map(|i| pieces.scale[packed(i, i)].ln()).sum::<f64>()
    }

    /// log r at these draws, from the solved modes; on λ the components' terms are stored in `joint`.
    pub(super) fn log_density(
        &self,
        at: Surroundings,
        x: &Batch,
        solved: &[Batch],
        joint: &mut Batch,
        out: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.shape.covered_len(), x.draws_len());
        let [shares, modes, precisions] = &solved[..PREPARED] else { unreachable!() };
        let mode = |k: usize| modes.columns(k * n..(k + 1) * n);
        let precision = |k: usize| precisions.columns(k * packed_len(n)..(k + 1) * packed_len(n));
        let mut white = scratch.take(n * draws_len);
        match self.space {
            Space::Noise => {
                let k = at.component;
                let eps = x.columns(self.shape.given..x.columns_len());
                self.log_normal(eps, mode(k), precision(k), &mut white, out, scratch);
                add_scaled(1.0, shares.column(k), out);
            }
            Space::Lambda => {
                joint.reshape(self.components_len, draws_len);
                let mut eps = scratch.take(n * draws_len);
                for k in 0..self.components_len {
                    let pieces = Pieces::take(at, k, 0, scratch);
                    let log_det = self.whiten(&pieces, x, &mut eps);
                    let term = joint.column_mut(k);
                    self.log_normal(&eps, mode(k), precision(k), &mut white, term, scratch);
                    for (t, share) in term.iter_mut().zip(shares.column(k)) {
                        *t += share + log_det;
                    }
                    pieces.give(scratch);
                }
                log_sum_exp_columns(joint.as_slice(), out);
                scratch.give(eps);
            }
        }
        scratch.give(white);
    }
}

//! The Gaussian at the mode: Newton's method on log N(ε; 0, I) + log q(z | λ(ε)), V⁻¹ = I + Lᵀ W L with W the Fisher
//! information of z about λ at the mode, and the evidence q(z | m) N(m) |2π V|^½.

use super::layout::{Fitted, Shape};
use crate::likelihood::Likelihood;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;

/// The maximum number of Newton steps; a draw that has not converged by then still has a valid density, but a less accurate one.
const STEPS_MAX: usize = 25;
/// Longer steps in λ are shortened: the quadratic approximation in the log of a rate is not reliable beyond this.
const STEP_LENGTH_MAX: f64 = 2.0;
/// A draw whose step in ε is below this has converged.
const CONVERGED: f64 = 1e-9;

pub(super) fn solve(
    shape: &Shape,
    likelihood: &dyn Likelihood,
    block: &[f64],
    offset: &Batch,
    z: &Batch,
    fitted: Fitted,
    scratch: &mut Scratch,
) {
    let (n, draws_len) = (shape.covered_len(), z.draws_len());
    let Fitted { mode, precision, evidence } = fitted;
    let mut lambda = scratch.take_batch(shape.lambda_len, draws_len);
    let mut d_lambda = scratch.take_batch(shape.lambda_len, draws_len);
    let mut step = scratch.take(n * draws_len);
    let mut move_lambda = scratch.take(n * draws_len);
    let mut log_q = scratch.take(draws_len);
    let mut active = scratch.take(draws_len);
    let mut ones = scratch.take(draws_len);
    mode.fill(0.0);
    active.fill(1.0);
    ones.fill(1.0);
    for turn in 0..=STEPS_MAX {
        shape.place(block, offset, mode, &mut lambda);
        write_precision(shape, likelihood, &lambda, block, precision, scratch);
        linalg::cholesky_each(precision, n, draws_len);
        if turn == STEPS_MAX || active.iter().all(|a| *a == 0.0) {
            break;
        }
        // The gradient −ε + Lᵀ ∇_λ log q(z | λ), then Newton's step.
        d_lambda.as_mut_slice().fill(0.0);
        for (i, _) in &shape.covered {
            likelihood.score(*i, &lambda, z.column(*i), &ones, &mut d_lambda);
        }
        for (s, m) in step.iter_mut().zip(mode.iter()) {
            *s = -m;
        }
        let score = d_lambda.columns(shape.given..shape.lambda_len);
        linalg::lower_transpose_multiply(block, score, &mut step, draws_len);
        linalg::lower_solve_each(precision, &mut step, draws_len);
        linalg::lower_transpose_solve_each(precision, &mut step, draws_len);
        move_lambda.fill(0.0);
        linalg::lower_multiply(block, &step, &mut move_lambda, draws_len);
        for s in 0..draws_len {
            if active[s] == 0.0 {
                continue;
            }
            let longest = |x: &[f64]| (0..n).map(|j| x[j * draws_len + s].abs()).fold(0.0, f64::max);
            let cut = (STEP_LENGTH_MAX / longest(&move_lambda)).min(1.0);
            for j in 0..n {
                mode[j * draws_len + s] += cut * step[j * draws_len + s];
            }
            // Each draw stops separately, so that its r depends only on its own z. A NaN step ends here too.
            if !(longest(&step) > CONVERGED) {
                active[s] = 0.0;
            }
        }
    }
    evidence.fill(0.0);
    for (i, _) in &shape.covered {
        likelihood.log_density_of(*i, &lambda, z.column(*i), &mut log_q);
        add_scaled(1.0, &log_q, evidence);
    }
    for j in 0..n {
        for s in 0..draws_len {
            let m = mode[j * draws_len + s];
            evidence[s] -= 0.5 * m * m + precision[packed(j, j) * draws_len + s].ln();
        }
    }
    for buffer in [ones, active, log_q, move_lambda, step] {
        scratch.give(buffer);
    }
    scratch.give_batch(d_lambda);
    scratch.give_batch(lambda);
}

/// I + Lᵀ W L, packed, a column per entry.
fn write_precision(
    shape: &Shape,
    likelihood: &dyn Likelihood,
    lambda: &Batch,
    block: &[f64],
    precision: &mut [f64],
    scratch: &mut Scratch,
) {
    let draws_len = lambda.draws_len();
    set_identity(shape.covered_len(), precision, draws_len);
    for (i, range) in &shape.covered {
        let p = range.len();
        let mut own = scratch.take(p * p * draws_len);
        likelihood.information(*i, lambda, &mut own);
        for (a, b) in (0..p).flat_map(|a| (0..p).map(move |b| (a, b))) {
            let w = &own[(a * p + b) * draws_len..(a * p + b + 1) * draws_len];
            add_outer(block, range.start + a, range.start + b, w, precision);
        }
        scratch.give(own);
    }
}

/// The identity, packed, a column per entry.
pub(super) fn set_identity(n: usize, precision: &mut [f64], draws_len: usize) {
    precision.fill(0.0);
    for j in 0..n {
        precision[packed(j, j) * draws_len..(packed(j, j) + 1) * draws_len].fill(1.0);
    }
}

/// precision += w · L_rowᵀ L_column, the lower triangle.
pub(super) fn add_outer(block: &[f64], row: usize, column: usize, w: &[f64], precision: &mut [f64]) {
    let draws_len = w.len();
    for j in 0..=row {
        for k in 0..=j.min(column) {
            let factor = block[packed(row, j)] * block[packed(column, k)];
            if factor != 0.0 {
                let entry = &mut precision[packed(j, k) * draws_len..(packed(j, k) + 1) * draws_len];
                add_scaled(factor, w, entry);
            }
        }
    }
}

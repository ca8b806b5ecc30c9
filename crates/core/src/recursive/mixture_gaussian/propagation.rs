//! The Gaussian with the right moments: expectation propagation over the factors q(z_i | λ_i).
//!
//! Each factor is approximated by a Gaussian site exp(c_i + ν_i λ_i − ½ τ_i λ_i²). A round removes every site in turn, matches
//! the mean and variance of the cavity times the true factor (by quadrature over the one λ_i), and updates the site to have
//! them. The tightest bound on the entropy has the r nearest to q(λ | z) in the inclusive divergence, which among Gaussians is
//! the one with its moments; expectation propagation comes close to those.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use super::laplace::{add_outer, set_identity};
use super::layout::{Fitted, Shape};
use crate::likelihood::Likelihood;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::{add_scaled, exp_shifted_columns, log_sum_exp_columns};

/// Rounds over the sites. Few enough to be cheap; a site that has not converged makes r less accurate, not invalid.
const ROUNDS: usize = 12;
/// The damping of each update: sites updated in parallel overshoot when λ is strongly correlated.
const DAMPING: f64 = 0.7;
/// Quadrature nodes, in even steps over ±REACH standard deviations.
const NODES: usize = 25;
const REACH: f64 = 5.0;

/// The sites, a column per covered parameter.
struct Sites {
    tau: Batch,
    nu: Batch,
    /// c_i, the log factor of each site.
    log_scale: Batch,
}

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
    let mut sites = Sites {
        tau: scratch.take_batch(n, draws_len),
        nu: scratch.take_batch(n, draws_len),
        log_scale: scratch.take_batch(n, draws_len),
    };
    let mut lambda = scratch.take_batch(shape.lambda_len, draws_len);
    let mut mean = scratch.take_batch(n, draws_len);
    let mut variance = scratch.take_batch(n, draws_len);
    let mut projected = scratch.take(n * draws_len);
    for round in 0..=ROUNDS {
        posterior(block, offset, &sites, mode, precision, &mut projected);
        if round == ROUNDS {
            break;
        }
        marginals(block, offset, mode, precision, &mut mean, &mut variance, &mut projected);
        for (i, range) in &shape.covered {
            let moments = (mean.column(range.start), variance.column(range.start));
            update(shape, likelihood, *i, range.start, z.column(*i), moments, &mut sites, &mut lambda, scratch);
        }
    }
    // log ∫ N(ε) Π sites = Σ_i (c_i + ν_i o_i − ½ τ_i o_i²) + ½ h·m − ½ log|P|, o the offset and P m = h.
    evidence.fill(0.0);
    projected.fill(0.0);
    for j in 0..n {
        for s in 0..draws_len {
            let (o, tau, nu) = (offset.get(j, s), sites.tau.get(j, s), sites.nu.get(j, s));
            evidence[s] += sites.log_scale.get(j, s) + nu * o - 0.5 * tau * o * o;
            evidence[s] -= precision[packed(j, j) * draws_len + s].ln();
            mean.set(j, s, nu - tau * o);
        }
    }
    linalg::lower_transpose_multiply(block, mean.as_slice(), &mut projected, draws_len);
    for j in 0..n {
        for s in 0..draws_len {
            evidence[s] += 0.5 * projected[j * draws_len + s] * mode[j * draws_len + s];
        }
    }
    scratch.give(projected);
    for batch in [variance, mean, lambda, sites.log_scale, sites.nu, sites.tau] {
        scratch.give_batch(batch);
    }
}

/// P = I + Lᵀ τ L and P m = Lᵀ (ν − τ o); `precision` becomes the factor of P and `mode` m.
fn posterior(block: &[f64], offset: &Batch, sites: &Sites, mode: &mut [f64], precision: &mut [f64], pull: &mut [f64]) {
    let (n, draws_len) = (offset.columns_len(), offset.draws_len());
    set_identity(n, precision, draws_len);
    for j in 0..n {
        add_outer(block, j, j, sites.tau.column(j), precision);
        for s in 0..draws_len {
            pull[j * draws_len + s] = sites.nu.get(j, s) - sites.tau.get(j, s) * offset.get(j, s);
        }
    }
    linalg::cholesky_each(precision, n, draws_len);
    mode.fill(0.0);
    linalg::lower_transpose_multiply(block, pull, mode, draws_len);
    linalg::lower_solve_each(precision, mode, draws_len);
    linalg::lower_transpose_solve_each(precision, mode, draws_len);
}

/// The mean and variance of every λ_j under N(m, P⁻¹).
fn marginals(
    block: &[f64],
    offset: &Batch,
    mode: &[f64],
    precision: &[f64],
    mean: &mut Batch,
    variance: &mut Batch,
    row: &mut [f64],
) {
    let (n, draws_len) = (offset.columns_len(), offset.draws_len());
    mean.copy_from(offset);
    linalg::lower_multiply(block, mode, mean.as_mut_slice(), draws_len);
    variance.as_mut_slice().fill(0.0);
    for j in 0..n {
        // var λ_j = |C⁻¹ L_jᵀ|².
        row.fill(0.0);
        for k in 0..=j {
            row[k * draws_len..(k + 1) * draws_len].fill(block[packed(j, k)]);
        }
        linalg::lower_solve_each(precision, row, draws_len);
        let column = variance.column_mut(j);
        for k in 0..n {
            for (v, r) in column.iter_mut().zip(&row[k * draws_len..]) {
                *v += r * r;
            }
        }
    }
}

/// Matches one factor's site.
fn update(
    shape: &Shape,
    likelihood: &dyn Likelihood,
    i: usize,
    j: usize,
    z_i: &[f64],
    (mean, variance): (&[f64], &[f64]),
    sites: &mut Sites,
    lambda: &mut Batch,
    scratch: &mut Scratch,
) {
    let draws_len = z_i.len();
    let mut cavity_mean = scratch.take(draws_len);
    let mut cavity_variance = scratch.take(draws_len);
    for s in 0..draws_len {
        let (tau, nu) = (sites.tau.get(j, s), sites.nu.get(j, s));
        let left = (1.0 / variance[s] - tau).max(1e-12);
        cavity_variance[s] = 1.0 / left;
        cavity_mean[s] = (mean[s] / variance[s] - nu) / left;
    }
    let mut terms = scratch.take_batch(NODES, draws_len);
    let spacing = 2.0 * REACH / (NODES - 1) as f64;
    let node = |v: usize| -REACH + spacing * v as f64;
    for v in 0..NODES {
        let column = lambda.column_mut(shape.given + j);
        for s in 0..draws_len {
            column[s] = cavity_mean[s] + node(v) * cavity_variance[s].sqrt();
        }
        let term = terms.column_mut(v);
        likelihood.log_density_of(i, lambda, z_i, term);
        let weight = -0.5 * node(v) * node(v) + (spacing / (2.0 * std::f64::consts::PI).sqrt()).ln();
        term.iter_mut().for_each(|t| *t += weight);
    }
    let mut log_total = scratch.take(draws_len);
    log_sum_exp_columns(terms.as_slice(), &mut log_total);
    let (mut first, mut second) = (scratch.take(draws_len), scratch.take(draws_len));
    exp_shifted_columns(terms.as_mut_slice(), &log_total);
    for v in 0..NODES {
        add_scaled(node(v), terms.column(v), &mut first);
        add_scaled(node(v) * node(v), terms.column(v), &mut second);
    }
    for s in 0..draws_len {
        let spread = (second[s] - first[s] * first[s]).clamp(1e-6, 1.0 - 1e-9);
        let tilted_mean = cavity_mean[s] + first[s] * cavity_variance[s].sqrt();
        let tilted_variance = spread * cavity_variance[s];
        let tau = 1.0 / tilted_variance - 1.0 / cavity_variance[s];
        let nu = tilted_mean / tilted_variance - cavity_mean[s] / cavity_variance[s];
        if !(tau.is_finite() && nu.is_finite()) {
            continue;
        }
        let mix = |old: f64, new: f64| old + DAMPING * (new - old);
        let (tau, nu) = (mix(sites.tau.get(j, s), tau), mix(sites.nu.get(j, s), nu));
        sites.tau.set(j, s, tau);
        sites.nu.set(j, s, nu);
        // c makes the cavity times the site integrate to the cavity times the factor.
        let (m, v) = (cavity_mean[s], cavity_variance[s]);
        let log_site = -0.5 * (1.0 + tau * v).ln() + 0.5 * ((m / v + nu).powi(2) / (1.0 / v + tau) - m * m / v);
        sites.log_scale.set(j, s, log_total[s] - log_site);
    }
    for buffer in [second, first, log_total, cavity_variance, cavity_mean] {
        scratch.give(buffer);
    }
    scratch.give_batch(terms);
}

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
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::{add_scaled, dot, exp_shifted_columns, log_sum_exp_columns};

/// The maximum number of rounds over the sites. A draw whose sites have not converged by then has a less accurate r, not an
/// invalid one.
const ROUNDS: usize = 20;
/// A draw has converged if no mean moves by more than this in standard deviations, and no variance by more than this share.
const CONVERGED: f64 = 1e-2;
/// How many draws are fitted together.
const TOGETHER: usize = 8;
/// The damping of each update: sites updated in parallel overshoot when λ is strongly correlated.
const DAMPING: f64 = 0.7;
/// The least precision of a site, so that a variance keeps its digits; see [`marginals`].
const TAU_MIN: f64 = 1e-8;
/// Quadrature nodes, in even steps over ±REACH standard deviations.
const NODES: usize = 25;
const REACH: f64 = 5.0;

/// The sites, a column per covered parameter.
struct Sites {
    tau: Batch,
    nu: Batch,
    /// c_i, the log factor of each site.
    log_scale: Batch,
    /// 1 for a draw that has yet to converge, 0 for others. Each draw stops separately, so that its r depends only on its own z.
    active: Vec<f64>,
}

/// The means and variances of every λ_j.
struct Marginals {
    mean: Batch,
    variance: Batch,
}

/// The fits of all draws, a few at a time: their matrices stay in the cache, and easy draws do not wait for hard ones.
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
    let mut covariance = scratch.take(packed_len(n));
    write_covariance(block, &mut covariance, n);
    let prior = GivenPrior { block, covariance: &covariance };
    for first in (0..draws_len).step_by(TOGETHER) {
        let draws = first..(first + TOGETHER).min(draws_len);
        let mut some_z = scratch.take_batch(z.columns_len(), draws.len());
        let mut some_offset = scratch.take_batch(n, draws.len());
        let mut some_mode = scratch.take(n * draws.len());
        let mut some_precision = scratch.take(packed_len(n) * draws.len());
        copy(z.as_slice(), (draws_len, draws.start), some_z.as_mut_slice(), (draws.len(), 0), draws.len());
        copy(offset.as_slice(), (draws_len, draws.start), some_offset.as_mut_slice(), (draws.len(), 0), draws.len());
        let some =
            Fitted { mode: &mut some_mode, precision: &mut some_precision, evidence: &mut evidence[draws.clone()] };
        solve_some(shape, likelihood, prior, &some_offset, &some_z, some, scratch);
        copy(&some_mode, (draws.len(), 0), mode, (draws_len, draws.start), draws.len());
        copy(&some_precision, (draws.len(), 0), precision, (draws_len, draws.start), draws.len());
        scratch.give(some_precision);
        scratch.give(some_mode);
        scratch.give_batch(some_offset);
        scratch.give_batch(some_z);
    }
    scratch.give(covariance);
}

/// Copies `len` draws of every column; columns are as long as the first number of each pair, and the draws begin at the second.
fn copy(
    from: &[f64],
    (from_len, from_at): (usize, usize),
    to: &mut [f64],
    (to_len, to_at): (usize, usize),
    len: usize,
) {
    for (from, to) in from.chunks_exact(from_len).zip(to.chunks_exact_mut(to_len)) {
        to[to_at..to_at + len].copy_from_slice(&from[from_at..from_at + len]);
    }
}

/// The covered part of the prior: L, and K = L Lᵀ.
#[derive(Clone, Copy)]
struct GivenPrior<'a> {
    block: &'a [f64],
    covariance: &'a [f64],
}

fn solve_some(
    shape: &Shape,
    likelihood: &dyn Likelihood,
    prior: GivenPrior,
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
        active: scratch.take(draws_len),
    };
    sites.active.fill(1.0);
    let mut now = Marginals { mean: scratch.take_batch(n, draws_len), variance: scratch.take_batch(n, draws_len) };
    let mut before = Marginals { mean: scratch.take_batch(n, draws_len), variance: scratch.take_batch(n, draws_len) };
    // Without sites the marginals are those of the prior.
    now.mean.copy_from(offset);
    for j in 0..n {
        now.variance.column_mut(j).fill(prior.covariance[packed(j, j)]);
    }
    let mut lambda = scratch.take_batch(shape.lambda_len, draws_len);
    for _ in 0..ROUNDS {
        for (i, range) in &shape.covered {
            let moments = (now.mean.column(range.start), now.variance.column(range.start));
            update(shape, likelihood, *i, range.start, z.column(*i), moments, &mut sites, &mut lambda, scratch);
        }
        std::mem::swap(&mut now, &mut before);
        marginals(prior, offset, &sites, precision, &mut now, scratch);
        for (s, active) in sites.active.iter_mut().enumerate() {
            if (0..n).all(|j| is_near(&now, &before, j, s)) {
                *active = 0.0;
            }
        }
        if sites.active.iter().all(|active| *active == 0.0) {
            break;
        }
    }
    let mut pull = scratch.take(n * draws_len);
    posterior(prior.block, offset, &sites, mode, precision, &mut pull);
    // log ∫ N(ε) Π sites = Σ_i (c_i + ν_i o_i − ½ τ_i o_i²) + ½ h·m − ½ log|P|, o the offset and P m = h.
    evidence.fill(0.0);
    let mut weight = before.mean;
    for j in 0..n {
        for s in 0..draws_len {
            let (o, tau, nu) = (offset.get(j, s), sites.tau.get(j, s), sites.nu.get(j, s));
            evidence[s] += sites.log_scale.get(j, s) + nu * o - 0.5 * tau * o * o;
            evidence[s] -= precision[packed(j, j) * draws_len + s].ln();
            weight.set(j, s, nu - tau * o);
        }
    }
    pull.fill(0.0);
    linalg::lower_transpose_multiply(prior.block, weight.as_slice(), &mut pull, draws_len);
    for j in 0..n {
        for s in 0..draws_len {
            evidence[s] += 0.5 * pull[j * draws_len + s] * mode[j * draws_len + s];
        }
    }
    for buffer in [pull, sites.active] {
        scratch.give(buffer);
    }
    for batch in [weight, before.variance, now.variance, now.mean, lambda, sites.log_scale, sites.nu, sites.tau] {
        scratch.give_batch(batch);
    }
}

fn is_near(now: &Marginals, before: &Marginals, j: usize, s: usize) -> bool {
    let (variance, old) = (now.variance.get(j, s), before.variance.get(j, s));
    (now.mean.get(j, s) - before.mean.get(j, s)).powi(2) <= CONVERGED * CONVERGED * variance
        && (variance - old).abs() <= CONVERGED * variance
}

/// K = L Lᵀ.
fn write_covariance(block: &[f64], covariance: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..=i {
            let (a, b) = (&block[packed(i, 0)..=packed(i, j)], &block[packed(j, 0)..=packed(j, j)]);
            covariance[packed(i, j)] = dot(a, b);
        }
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

/// The mean and variance of every λ_j under N(o, K) times the sites, from B = I + τ^½ K τ^½ in the memory of `factor`.
///
/// With Σ = (K⁻¹ + τ)⁻¹, τ^½ Σ τ^½ = I − B⁻¹: the variances need the diagonal of B⁻¹ alone, a third of the work of Σ. The mean is
/// o + K (h − τ^½ B⁻¹ τ^½ K h), h = ν − τ o.
fn marginals(
    GivenPrior { block, covariance }: GivenPrior,
    offset: &Batch,
    sites: &Sites,
    factor: &mut [f64],
    to: &mut Marginals,
    scratch: &mut Scratch,
) {
    let (n, draws_len) = (offset.columns_len(), offset.draws_len());
    let mut root = scratch.take_batch(n, draws_len);
    for (root, tau) in root.as_mut_slice().iter_mut().zip(sites.tau.as_slice()) {
        *root = tau.sqrt();
    }
    for i in 0..n {
        for j in 0..=i {
            let (entry, own) = (covariance[packed(i, j)], f64::from(i == j));
            let to = &mut factor[packed(i, j) * draws_len..(packed(i, j) + 1) * draws_len];
            for ((to, a), b) in to.iter_mut().zip(root.column(i)).zip(root.column(j)) {
                *to = own + entry * a * b;
            }
        }
    }
    linalg::cholesky_each(factor, n, draws_len);
    let mut work = scratch.take(n * draws_len);
    linalg::lower_inverse_squares_each(factor, &mut work, to.variance.as_mut_slice(), draws_len);
    for j in 0..n {
        for (v, tau) in to.variance.column_mut(j).iter_mut().zip(sites.tau.column(j)) {
            *v = (1.0 - *v) / tau;
        }
    }
    let mut pull = scratch.take_batch(n, draws_len);
    let mut solved = scratch.take_batch(n, draws_len);
    for j in 0..n {
        for s in 0..draws_len {
            pull.set(j, s, sites.nu.get(j, s) - sites.tau.get(j, s) * offset.get(j, s));
        }
    }
    work.fill(0.0);
    linalg::lower_transpose_multiply(block, pull.as_slice(), &mut work, draws_len);
    linalg::lower_multiply(block, &work, solved.as_mut_slice(), draws_len);
    let times_root = |x: &mut Batch| x.as_mut_slice().iter_mut().zip(root.as_slice()).for_each(|(x, root)| *x *= root);
    times_root(&mut solved);
    linalg::lower_solve_each(factor, solved.as_mut_slice(), draws_len);
    linalg::lower_transpose_solve_each(factor, solved.as_mut_slice(), draws_len);
    times_root(&mut solved);
    add_scaled(-1.0, solved.as_slice(), pull.as_mut_slice());
    work.fill(0.0);
    linalg::lower_transpose_multiply(block, pull.as_slice(), &mut work, draws_len);
    to.mean.copy_from(offset);
    linalg::lower_multiply(block, &work, to.mean.as_mut_slice(), draws_len);
    scratch.give(work);
    for batch in [solved, pull, root] {
        scratch.give_batch(batch);
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
        if sites.active[s] == 0.0 || !(tau.is_finite() && nu.is_finite()) {
            continue;
        }
        let mix = |old: f64, new: f64| old + DAMPING * (new - old);
        let (tau, nu) = (mix(sites.tau.get(j, s), tau).max(TAU_MIN), mix(sites.nu.get(j, s), nu));
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

//! A Gaussian per component of the prior, fitted to q(λ | k, z) for every draw: the analytic recursive approximations.
//!
//! With λ = μ_k + L_k ε, the posterior of the noise behind a draw is log q(ε | k, z) = log N(ε; 0, I) +
//! log q(z | μ_k + L_k ε) + const. It is approximated by N(m_k, V_k), and its evidence gives the component's share ρ_k. Then
//! r(k, ε | z) = ρ_k N(ε; m_k, V_k) on the noise, and Σ_k ρ_k N(λ; …) on λ.
//!
//! Two ways of fitting the Gaussian: [mode and curvature](laplace), called mixture-Laplace, exact enough for counts; and
//! [matched moments](propagation), called mixture-EP, for binary latents with wide λ, whose posteriors are one-sided and
//! leave their mode behind.
//!
//! Neither has parameters, and both are held fixed in θ (any density may serve as r, so a gradient that treats it as
//! constant is the gradient of a valid bound). They do not split by latent: O(K d³) per draw, for small λ.

mod laplace;
mod propagation;

use super::same_as_prior::pick;
use super::{Cache, Known, MadeFor, Recursive, Space, Surroundings};
use crate::error::{Error, Result};
use crate::likelihood::{Kind, Likelihood};
use crate::prior::{Prior, Start};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::{HALF_LN_2_PI, log_sum_exp};
use hyperprior_math::vector::{add_scaled, log_sum_exp_columns};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How each Gaussian is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaussianFit {
    /// At the mode, with the curvature there: mixture-Laplace.
    #[default]
    Laplace,
    /// By matching moments, expectation propagation: mixture-EP.
    ExpectationPropagation,
}

/// The analytic r for Gaussian and mixture priors.
#[derive(Clone, Debug)]
pub struct MixtureGaussian {
    fit: GaussianFit,
    space: Space,
    components_len: usize,
    shape: Shape,
}

/// What of λ is covered.
#[derive(Clone, Debug)]
struct Shape {
    latents_len: usize,
    lambda_len: usize,
    /// How many leading parameters are given.
    given: usize,
    /// The latents that are covered, with their places among the covered parameters.
    covered: Vec<(usize, Range<usize>)>,
}

impl Shape {
    fn covered_len(&self) -> usize {
        self.lambda_len - self.given
    }

    /// λ's covered columns ← offset + L ε.
    fn place(&self, block: &[f64], offset: &Batch, eps: &[f64], lambda: &mut Batch) {
        let columns = lambda.columns_mut(self.given..self.lambda_len);
        columns.copy_from_slice(offset.as_slice());
        linalg::lower_multiply(block, eps, columns, offset.draws_len());
    }
}

/// The Gaussian fitted to each draw: a column per number.
struct Fitted<'a> {
    /// m.
    mode: &'a mut [f64],
    /// The packed Cholesky factor of V⁻¹.
    precision: &'a mut [f64],
    /// log ∫ N(ε; 0, I) q(z | λ(ε)) dε, as the fit has it.
    evidence: &'a mut [f64],
}

/// What [`Recursive::prepare`] leaves: the log shares, the modes and the Cholesky factors of the precisions, all components'.
const PREPARED: usize = 3;
/// What [`Recursive::forward`] leaves: on λ each component's log share plus log density; and log r.
const HELD: usize = 2;

fn fit_name(fit: GaussianFit) -> &'static str {
    match fit {
        GaussianFit::Laplace => "mixture-Laplace",
        GaussianFit::ExpectationPropagation => "mixture-EP",
    }
}

/// A component's Gaussian, taken apart into what is given (λ_c) and what is covered (λ_d).
struct Pieces {
    mean: Vec<f64>,
    scale: Vec<f64>,
    /// The covered block of the scale.
    block: Vec<f64>,
}

impl Pieces {
    fn take(at: Surroundings, k: usize, given: usize, scratch: &mut Scratch) -> Self {
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

    fn give(self, scratch: &mut Scratch) {
        scratch.give(self.block);
        scratch.give(self.scale);
        scratch.give(self.mean);
    }
}

impl MixtureGaussian {
    /// For this likelihood and prior.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the prior is not made of Gaussians, where a factor is differentiated pathwise (its draw
    /// would move the Gaussian), where r is on λ beside point masses, or where moments are to be matched for a factor of
    /// several parameters.
    pub fn new(likelihood: &dyn Likelihood, prior: &dyn Prior, fit: GaussianFit, space: Space) -> Result<Self> {
        let mismatch = |second: String, reason: &str| Error::Mismatch {
            first: format!("the {} approximation", fit_name(fit)),
            second,
            reason: reason.to_owned(),
        };
        if prior.gaussians().is_none() {
            return Err(mismatch(
                format!("the prior `{}`", prior.name()),
                "it needs a Gaussian or a mixture of Gaussians; use an inverse flow instead",
            ));
        }
        let given = likelihood.point_mass_len();
        if given > 0 && space == Space::Lambda {
            return Err(mismatch("point masses".to_owned(), "write it on the noise instead of on λ"));
        }
        let mut covered = Vec::new();
        for i in 0..likelihood.latents_len() {
            match likelihood.kind(i) {
                Kind::PointMass => {}
                Kind::Sampled => {
                    let range = likelihood.lambda_range(i);
                    if range.len() > 1 && fit == GaussianFit::ExpectationPropagation {
                        return Err(mismatch(
                            format!("the factor `{}`", likelihood.factor_name(i)),
                            "it matches moments of one parameter at a time; use mixture-Laplace or an inverse flow",
                        ));
                    }
                    covered.push((i, range.start - given..range.end - given));
                }
                Kind::Pathwise => {
                    return Err(mismatch(
                        format!("the factor `{}`", likelihood.factor_name(i)),
                        "use a point mass for that latent, or an inverse flow",
                    ));
                }
            }
        }
        let shape = Shape { latents_len: likelihood.latents_len(), lambda_len: prior.lambda_len(), given, covered };
        Ok(Self { fit, space, components_len: prior.components_len(), shape })
    }

    fn solve(&self, at: Surroundings, block: &[f64], offset: &Batch, z: &Batch, fitted: Fitted, scratch: &mut Scratch) {
        match self.fit {
            GaussianFit::Laplace => laplace::solve(&self.shape, at.likelihood, block, offset, z, fitted, scratch),
            GaussianFit::ExpectationPropagation => {
                propagation::solve(&self.shape, at.likelihood, block, offset, z, fitted, scratch);
            }
        }
    }

    /// Where λ_d's component-k location is before ε_d moves it, μ_d + L_dc ε_c, and log N(λ_c; k), given λ_c.
    fn offset(
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
    fn lambda_c(&self, at: Surroundings, x: &Batch, lambda_c: &mut Batch, scratch: &mut Scratch) {
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
    fn solve_all(
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

    /// out\[s\] = log N(ε; m, (C Cᵀ)⁻¹); `white` is left holding Cᵀ (ε − m).
    fn log_normal(
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
    fn whiten(&self, pieces: &Pieces, lambda: &Batch, eps: &mut [f64]) -> f64 {
        let draws_len = lambda.draws_len();
        for (i, mean) in pieces.mean.iter().enumerate() {
            for (e, l) in eps[i * draws_len..(i + 1) * draws_len].iter_mut().zip(lambda.column(i)) {
                *e = l - mean;
            }
        }
        linalg::lower_solve(&pieces.scale, eps, draws_len);
        -(0..self.shape.lambda_len).map(|i| pieces.scale[packed(i, i)].ln()).sum::<f64>()
    }

    /// log r at these draws, from solved modes; on λ the components' terms are left in `joint`.
    fn log_density(
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

impl Recursive for MixtureGaussian {
    fn name(&self) -> String {
        let name = fit_name(self.fit);
        if self.space == Space::Lambda { format!("{name} on λ") } else { name.to_owned() }
    }

    fn space(&self) -> Space {
        self.space
    }

    fn parameters_len(&self) -> usize {
        0
    }

    fn is_local(&self) -> bool {
        false
    }

    fn made_for(&self) -> Option<MadeFor> {
        Some(MadeFor {
            latents_len: self.shape.latents_len,
            lambda_len: self.shape.lambda_len,
            point_mass_len: self.shape.given,
            components_len: Some(self.components_len),
        })
    }

    fn prepare(&self, at: Surroundings, x: &Batch, z: &Batch, prepared: &mut Cache, scratch: &mut Scratch) {
        let [shares, modes, precisions] = prepared.reserve(PREPARED) else { unreachable!() };
        self.solve_all(at, x, z, shares, modes, precisions, scratch);
    }

    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    ) {
        let [joint, log_r] = cache.reserve(HELD) else { unreachable!() };
        self.log_density(at, x, &prepared.batches, joint, out, scratch);
        log_r.reshape(1, out.len());
        log_r.as_mut_slice().copy_from_slice(out);
    }

    fn local(&self, _at: Surroundings, _i: usize, known: Known, out: &mut [f64]) {
        out.copy_from_slice(known.cache.batches[HELD - 1].as_slice());
    }

    fn conditional(
        &self,
        at: Surroundings,
        i: usize,
        x: &Batch,
        z: &Batch,
        values: &[f64],
        _known: Known,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) {
        let draws_len = z.draws_len();
        let n = self.shape.covered_len();
        let mut moved = scratch.take_batch(z.columns_len(), draws_len);
        moved.copy_from(z);
        let mut solved = [
            scratch.take_batch(self.components_len, draws_len),
            scratch.take_batch(self.components_len * n, draws_len),
            scratch.take_batch(self.components_len * packed_len(n), draws_len),
        ];
        let mut joint = scratch.take_batch(self.components_len, draws_len);
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            let [shares, modes, precisions] = &mut solved;
            self.solve_all(at, x, &moved, shares, modes, precisions, scratch);
            self.log_density(at, x, &solved, &mut joint, out.column_mut(v), scratch);
        }
        for batch in solved.into_iter().chain([joint, moved]) {
            scratch.give_batch(batch);
        }
    }

    fn pullback(
        &self,
        at: Surroundings,
        x: &Batch,
        _z: &Batch,
        d_log_r: &[f64],
        known: Known,
        d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        scratch: &mut Scratch,
    ) {
        if self.space == Space::Noise {
            // The noise is fixed and r is held fixed in θ: nothing moves.
            return;
        }
        let (n, draws_len) = (self.shape.covered_len(), x.draws_len());
        let [_, modes, precisions] = &known.prepared.batches[..PREPARED] else { unreachable!() };
        let joint = &known.cache.batches[0];
        let mut total = scratch.take(draws_len);
        log_sum_exp_columns(joint.as_slice(), &mut total);
        let mut eps = scratch.take(n * draws_len);
        let mut white = scratch.take(n * draws_len);
        let mut unused = scratch.take(draws_len);
        for k in 0..self.components_len {
            let pieces = Pieces::take(at, k, 0, scratch);
            self.whiten(&pieces, x, &mut eps);
            let precision = precisions.columns(k * packed_len(n)..(k + 1) * packed_len(n));
            self.log_normal(&eps, modes.columns(k * n..(k + 1) * n), precision, &mut white, &mut unused, scratch);
            // ∂/∂λ = −q(k)·L⁻ᵀ C Cᵀ(ε − m).
            eps.fill(0.0);
            for i in 0..n {
                for j in 0..=i {
                    let c = &precision[packed(i, j) * draws_len..(packed(i, j) + 1) * draws_len];
                    for s in 0..draws_len {
                        let share = (joint.get(k, s) - total[s]).exp() * d_log_r[s];
                        eps[i * draws_len + s] -= share * c[s] * white[j * draws_len + s];
                    }
                }
            }
            linalg::lower_transpose_solve(&pieces.scale, &mut eps, draws_len);
            add_scaled(1.0, &eps, d_x.as_mut_slice());
            pieces.give(scratch);
        }
        for buffer in [unused, white, eps, total] {
            scratch.give(buffer);
        }
    }

    fn sample(
        &self,
        at: Surroundings,
        prepared: &Cache,
        streams: &mut [Stream],
        x: &mut Batch,
        components: &mut [usize],
        scratch: &mut Scratch,
    ) {
        let n = self.shape.covered_len();
        let [shares, modes, precisions] = &prepared.batches[..PREPARED] else { unreachable!() };
        let mut log_p = scratch.take(self.components_len);
        let mut eps = scratch.take(n);
        let mut noise = scratch.take(n);
        let mut factor = scratch.take(packed_len(n));
        // On the noise a draw needs no component's scale.
        let needed = if self.space == Space::Lambda { self.components_len } else { 0 };
        let all: Vec<Pieces> = (0..needed).map(|k| Pieces::take(at, k, self.shape.given, scratch)).collect();
        for (s, rng) in streams.iter_mut().enumerate() {
            shares.read_draw(s, &mut log_p);
            let total = log_sum_exp(&log_p);
            log_p.iter_mut().for_each(|l| *l -= total);
            let k = pick(&log_p, rng);
            components[s] = k;
            for (entry, f) in factor.iter_mut().enumerate() {
                *f = precisions.get(k * packed_len(n) + entry, s);
            }
            for e in &mut eps {
                *e = StandardNormal.sample(rng);
            }
            linalg::lower_transpose_solve(&factor, &mut eps, 1);
            for (j, e) in eps.iter_mut().enumerate() {
                *e += modes.get(k * n + j, s);
            }
            if self.space == Space::Lambda {
                noise.copy_from_slice(&eps);
                eps.copy_from_slice(&all[k].mean);
                linalg::lower_multiply(&all[k].scale, &noise, &mut eps, 1);
            }
            for (j, e) in eps.iter().enumerate() {
                x.set(self.shape.given + j, s, *e);
            }
        }
        for pieces in all {
            pieces.give(scratch);
        }
        for buffer in [factor, noise, eps, log_p] {
            scratch.give(buffer);
        }
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}

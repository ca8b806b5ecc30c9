//! Mixture-Laplace: per Gaussian component of the prior, the mode and curvature of q(λ | k, z), found by Newton's method.
//!
//! With λ = μ_k + L_k ε, each component has log q(ε | k, z) = log N(ε; 0, I) + log q(z | μ_k + L_k ε) + const, its mode m_k
//! and precision V_k⁻¹ = I + L_kᵀ W L_k (W the Fisher information of z about λ there), and its share
//! ρ_k ∝ π_k q(z | m_k) N(m_k) |V_k|^½. Then r(k, ε | z) = ρ_k N(ε; m_k, V_k) on the noise, Σ_k ρ_k N(λ; …) on λ.
//!
//! It has no parameters and is held fixed in θ (any density may serve as r, so a gradient that treats it as constant is the
//! gradient of a valid bound). It does not split by latent: O(K d³) per draw, for small λ.

use super::same_as_prior::{HALF_LN_2_PI, pick};
use super::{Cache, Recursive, Space, Surroundings};
use crate::error::{Error, Result};
use crate::likelihood::{Kind, Likelihood};
use crate::prior::{Prior, Start};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector::{add_scaled, log_sum_exp_columns};
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// Newton's steps at most; a draw that has not settled by then still gives a density, only a less apt one.
const STEPS_MAX: usize = 25;
/// A step in λ longer than this is cut: the log of a rate cannot be trusted further than that.
const STEP_LENGTH_MAX: f64 = 2.0;
/// A draw whose step in ε is below this has settled.
const SETTLED: f64 = 1e-9;

/// The analytic r for Gaussian and mixture priors.
#[derive(Clone, Debug)]
pub struct MixtureLaplace {
    space: Space,
    components_len: usize,
    lambda_len: usize,
    given: usize,
    /// The latents it covers, with their places among the covered parameters.
    covered: Vec<(usize, Range<usize>)>,
}

/// What [`Recursive::forward`] leaves in the cache: log shares, modes and Cholesky factors of the precisions.
mod held {
    pub const SHARES: usize = 0;
    pub const MODES: usize = 1;
    pub const PRECISIONS: usize = 2;
    /// On λ: each component's log share plus log density, and their log sum.
    pub const JOINT: usize = 3;
    /// log r.
    pub const LOG_R: usize = 4;
    pub const LEN: usize = 5;
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

impl MixtureLaplace {
    /// For this likelihood and prior.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the prior is not made of Gaussians, where a factor is differentiated pathwise (its draw
    /// would move the mode), or where r is on λ beside point masses.
    pub fn new(likelihood: &dyn Likelihood, prior: &dyn Prior, space: Space) -> Result<Self> {
        let mismatch = |second: String, reason: &str| Error::Mismatch {
            first: "the mixture-Laplace approximation".to_owned(),
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
        Ok(Self { space, components_len: prior.components_len(), lambda_len: prior.lambda_len(), given, covered })
    }

    fn covered_len(&self) -> usize {
        self.lambda_len - self.given
    }

    /// Where λ_d's component-k location is before ε_d moves it, μ_d + L_dc ε_c, and log N(λ_c; k), given λ_c.
    fn offset(&self, pieces: &Pieces, lambda_c: &Batch, offset: &mut Batch, log_given: &mut [f64], scratch: &mut Scratch) {
        let draws_len = offset.draws_len();
        log_given.fill(0.0);
        let mut eps_c = scratch.take_batch(self.given, draws_len);
        for c in 0..self.given {
            for (e, l) in eps_c.column_mut(c).iter_mut().zip(lambda_c.column(c)) {
                *e = l - pieces.mean[c];
            }
        }
        linalg::lower_solve(&pieces.scale[..packed_len(self.given)], eps_c.as_mut_slice(), draws_len);
        for c in 0..self.given {
            let log_scale = pieces.scale[packed(c, c)].ln();
            for (o, e) in log_given.iter_mut().zip(eps_c.column(c)) {
                *o -= 0.5 * e * e + log_scale + HALF_LN_2_PI;
            }
        }
        for j in 0..self.covered_len() {
            let column = offset.column_mut(j);
            column.fill(pieces.mean[self.given + j]);
            for c in 0..self.given {
                add_scaled(pieces.scale[packed(self.given + j, c)], eps_c.column(c), column);
            }
        }
        scratch.give_batch(eps_c);
    }

    /// The mode, the Cholesky factor of the precision there, and log q(z | mode) − ½|mode|² − ½ log|precision|.
    fn solve(
        &self,
        at: Surroundings,
        block: &[f64],
        offset: &Batch,
        z: &Batch,
        mode: &mut [f64],
        precision: &mut [f64],
        evidence: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.covered_len(), z.draws_len());
        let mut lambda = scratch.take_batch(self.lambda_len, draws_len);
        let mut d_lambda = scratch.take_batch(self.lambda_len, draws_len);
        let mut step = scratch.take(n * draws_len);
        let mut move_lambda = scratch.take(n * draws_len);
        let mut log_q = scratch.take(draws_len);
        let mut active = scratch.take(draws_len);
        let mut ones = scratch.take(draws_len);
        mode.fill(0.0);
        active.fill(1.0);
        ones.fill(1.0);
        for turn in 0..=STEPS_MAX {
            lambda.columns_mut(self.given..self.lambda_len).copy_from_slice(offset.as_slice());
            let covered = lambda.columns_mut(self.given..self.lambda_len);
            linalg::lower_multiply(block, mode, covered, draws_len);
            self.precision(at.likelihood, &lambda, block, precision, scratch);
            linalg::cholesky_each(precision, n, draws_len);
            if turn == STEPS_MAX || active.iter().all(|a| *a == 0.0) {
                break;
            }
            // The gradient −ε + Lᵀ ∇_λ log q(z | λ), then Newton's step.
            d_lambda.as_mut_slice().fill(0.0);
            for (i, _) in &self.covered {
                at.likelihood.score(*i, &lambda, z.column(*i), &ones, &mut d_lambda);
            }
            for (s, m) in step.iter_mut().zip(mode.iter()) {
                *s = -m;
            }
            let score = d_lambda.columns(self.given..self.lambda_len);
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
                // Not settled draws keep going alone, so that a draw's r depends on its own z and nothing else. A step that
                // is not a number ends here too.
                if !(longest(&step) > SETTLED) {
                    active[s] = 0.0;
                }
            }
        }
        evidence.fill(0.0);
        for (i, _) in &self.covered {
            at.likelihood.log_density_of(*i, &lambda, z.column(*i), &mut log_q);
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
    fn precision(
        &self,
        likelihood: &dyn Likelihood,
        lambda: &Batch,
        block: &[f64],
        precision: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.covered_len(), lambda.draws_len());
        precision.fill(0.0);
        for j in 0..n {
            precision[packed(j, j) * draws_len..(packed(j, j) + 1) * draws_len].fill(1.0);
        }
        let entry = |i: usize, j: usize| if j <= i { block[packed(i, j)] } else { 0.0 };
        for (i, range) in &self.covered {
            let p = range.len();
            let mut own = scratch.take(p * p * draws_len);
            likelihood.information(*i, lambda, &mut own);
            for (a, b) in (0..p).flat_map(|a| (0..p).map(move |b| (a, b))) {
                let w = &own[(a * p + b) * draws_len..(a * p + b + 1) * draws_len];
                let (row, column) = (range.start + a, range.start + b);
                for j in 0..=row {
                    for k in 0..=j.min(column) {
                        let factor = entry(row, j) * entry(column, k);
                        if factor != 0.0 {
                            add_scaled(factor, w, &mut precision[packed(j, k) * draws_len..(packed(j, k) + 1) * draws_len]);
                        }
                    }
                }
            }
            scratch.give(own);
        }
    }

    /// λ_c of these draws, from x: the leading noise through its own component, or λ itself.
    fn lambda_c(&self, at: Surroundings, x: &Batch, lambda_c: &mut Batch, scratch: &mut Scratch) {
        if self.given == 0 {
            return;
        }
        let pieces = Pieces::take(at, at.component, self.given, scratch);
        for c in 0..self.given {
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
        let (n, draws_len) = (self.covered_len(), z.draws_len());
        shares.reshape(self.components_len, draws_len);
        modes.reshape(self.components_len * n, draws_len);
        precisions.reshape(self.components_len * packed_len(n), draws_len);
        let mut log_pi = scratch.take(self.components_len);
        at.prior.log_weights(at.theta, &mut log_pi);
        let mut lambda_c = scratch.take_batch(self.given, draws_len);
        self.lambda_c(at, x, &mut lambda_c, scratch);
        let mut offset = scratch.take_batch(n, draws_len);
        let mut log_given = scratch.take(draws_len);
        for k in 0..self.components_len {
            let pieces = Pieces::take(at, k, self.given, scratch);
            self.offset(&pieces, &lambda_c, &mut offset, &mut log_given, scratch);
            let mode = modes.columns_mut(k * n..(k + 1) * n);
            let precision = precisions.columns_mut(k * packed_len(n)..(k + 1) * packed_len(n));
            let share = shares.column_mut(k);
            self.solve(at, &pieces.block, &offset, z, mode, precision, share, scratch);
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
    fn log_normal(&self, eps: &[f64], mode: &[f64], precision: &[f64], white: &mut [f64], out: &mut [f64], scratch: &mut Scratch) {
        let (n, draws_len) = (self.covered_len(), out.len());
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
        -(0..self.lambda_len).map(|i| pieces.scale[packed(i, i)].ln()).sum::<f64>()
    }

    /// log r at these draws, from solved modes; on λ the components' terms are left in `joint`.
    fn log_density(
        &self,
        at: Surroundings,
        x: &Batch,
        solved: (&Batch, &Batch, &Batch),
        joint: &mut Batch,
        out: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.covered_len(), x.draws_len());
        let (shares, modes, precisions) = solved;
        let mode = |k: usize| modes.columns(k * n..(k + 1) * n);
        let precision = |k: usize| precisions.columns(k * packed_len(n)..(k + 1) * packed_len(n));
        let mut white = scratch.take(n * draws_len);
        match self.space {
            Space::Noise => {
                let k = at.component;
                let eps = x.columns(self.given..x.columns_len());
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

impl Recursive for MixtureLaplace {
    fn name(&self) -> String {
        if self.space == Space::Lambda { "mixture-Laplace on λ".to_owned() } else { "mixture-Laplace".to_owned() }
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

    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        z: &Batch,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    ) {
        let [shares, modes, precisions, joint, log_r] = cache.reserve(held::LEN) else { unreachable!() };
        self.solve_all(at, x, z, shares, modes, precisions, scratch);
        self.log_density(at, x, (shares, modes, precisions), joint, out, scratch);
        log_r.reshape(1, out.len());
        log_r.as_mut_slice().copy_from_slice(out);
    }

    fn local(&self, _at: Surroundings, _i: usize, _x: &Batch, _z: &Batch, out: &mut [f64], cache: &Cache) {
        out.copy_from_slice(cache.batches[held::LOG_R].as_slice());
    }

    fn conditional(
        &self,
        at: Surroundings,
        i: usize,
        x: &Batch,
        z: &Batch,
        values: &[f64],
        out: &mut Batch,
        _cache: &Cache,
        scratch: &mut Scratch,
    ) {
        let draws_len = z.draws_len();
        let n = self.covered_len();
        let mut moved = scratch.take_batch(z.columns_len(), draws_len);
        moved.copy_from(z);
        let mut shares = scratch.take_batch(self.components_len, draws_len);
        let mut modes = scratch.take_batch(self.components_len * n, draws_len);
        let mut precisions = scratch.take_batch(self.components_len * packed_len(n), draws_len);
        let mut joint = scratch.take_batch(self.components_len, draws_len);
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            self.solve_all(at, x, &moved, &mut shares, &mut modes, &mut precisions, scratch);
            let solved = (&shares, &modes, &precisions);
            self.log_density(at, x, solved, &mut joint, out.column_mut(v), scratch);
        }
        for batch in [joint, precisions, modes, shares, moved] {
            scratch.give_batch(batch);
        }
    }

    fn pullback(
        &self,
        at: Surroundings,
        x: &Batch,
        _z: &Batch,
        d_log_r: &[f64],
        d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        cache: &Cache,
        scratch: &mut Scratch,
    ) {
        if self.space == Space::Noise {
            // The noise is fixed and r is held fixed in θ: nothing moves.
            return;
        }
        let (n, draws_len) = (self.covered_len(), x.draws_len());
        let [_, modes, precisions, joint, _] = &cache.batches[..held::LEN] else { unreachable!() };
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
        z: &Batch,
        streams: &mut [Stream],
        x: &mut Batch,
        components: &mut [usize],
        scratch: &mut Scratch,
    ) {
        let (n, draws_len) = (self.covered_len(), z.draws_len());
        let mut shares = scratch.take_batch(self.components_len, draws_len);
        let mut modes = scratch.take_batch(self.components_len * n, draws_len);
        let mut precisions = scratch.take_batch(self.components_len * packed_len(n), draws_len);
        self.solve_all(at, x, z, &mut shares, &mut modes, &mut precisions, scratch);
        let mut log_p = scratch.take(self.components_len);
        let mut eps = scratch.take(n);
        let mut factor = scratch.take(packed_len(n));
        let all: Vec<Pieces> = (0..self.components_len).map(|k| Pieces::take(at, k, self.given, scratch)).collect();
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
                let noise = eps.clone();
                eps.copy_from_slice(&all[k].mean);
                linalg::lower_multiply(&all[k].scale, &noise, &mut eps, 1);
            }
            for (j, e) in eps.iter().enumerate() {
                x.set(self.given + j, s, *e);
            }
        }
        for pieces in all {
            pieces.give(scratch);
        }
        for buffer in [factor, eps, log_p] {
            scratch.give(buffer);
        }
        for batch in [precisions, modes, shares] {
            scratch.give_batch(batch);
        }
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}

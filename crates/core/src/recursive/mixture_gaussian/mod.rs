//! The analytic recursive approximations: a Gaussian per component of the prior, fitted to q(λ | k, z) for every draw.
//!
//! With λ = μ_k + L_k ε, the posterior of the noise behind a draw is log q(ε | k, z) = log N(ε; 0, I) +
//! log q(z | μ_k + L_k ε) + const. It is approximated by N(m_k, V_k), and its evidence gives the component's share ρ_k. Then
//! r(k, ε | z) = ρ_k N(ε; m_k, V_k) on the noise, and Σ_k ρ_k N(λ; …) on λ.
//!
//! Two methods fit the Gaussian: [mode and curvature](laplace), called mixture-Laplace, accurate enough for counts; and
//! [matched moments](propagation), called mixture-EP, for binary latents with wide λ, whose posteriors are skewed and have
//! their mean far from the mode.
//!
//! Neither has parameters, and both are held fixed in θ (any density may serve as r, so a gradient that treats it as
//! constant is the gradient of a valid bound). They do not split by latent: O(K d³) per draw, for small λ.

mod component;
mod laplace;
mod layout;
mod propagation;

pub use layout::{GaussianFit, MixtureGaussian};

use self::component::Pieces;
use self::layout::{PREPARED, Shape};
use super::same_as_prior::pick;
use super::{Cache, Known, MadeFor, Recursive, Space, Surroundings};
use crate::error::{Error, Result};
use crate::likelihood::{Kind, Likelihood};
use crate::prior::{Prior, Start};
use crate::recursive::RecursivePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{self, packed, packed_len};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector::{add_scaled, log_sum_exp_columns};
use rand_distr::{Distribution, StandardNormal};

/// What [`Recursive::forward`] stores: on λ each component's log share plus log density; and log r.
const HELD: usize = 2;

fn fit_name(fit: GaussianFit) -> &'static str {
    match fit {
        GaussianFit::Laplace => "mixture-Laplace",
        GaussianFit::ExpectationPropagation => "mixture-EP",
    }
}

impl MixtureGaussian {
    /// For this likelihood and prior.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the prior does not consist of Gaussians, if a factor is differentiated pathwise (the Gaussian would
    /// depend on its draw), if r is on λ and there are point masses, or if moments are to be matched for a factor of several
    /// parameters.
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
        if !likelihood.is_factorised() {
            return Err(mismatch("the likelihood".to_owned(), "it is not a product of factors; use an inverse flow"));
        }
        let given = likelihood.point_mass_len();
        if given > 0 && space == Space::Lambda {
            return Err(mismatch("point masses".to_owned(), "put it on the noise instead of on λ"));
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

    fn matches_moments(&self) -> bool {
        self.fit == GaussianFit::ExpectationPropagation
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

    fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch) {
        let RecursivePass { at, x, z, .. } = pass;
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
        pass: RecursivePass,
        d_log_r: &[f64],
        d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let RecursivePass { at, x, known, .. } = pass;
        if self.space == Space::Noise {
            // The noise and r are both held fixed in θ.
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

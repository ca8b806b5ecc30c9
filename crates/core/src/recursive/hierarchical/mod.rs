//! The hierarchical r, with the same levels as q: the top of the noise given all of z, the rest given each z_i and the top.
//!
//! For a prior with switches b, with normals u above and normals ε_j behind each λ_j:
//! r(b, u, ε | z) = Π_m Bernoulli(b_m; c_m + C_m·t(z)) · Π N(u; a + A·t(z), e^{2e}) · Π_j N(ε_j; a_j + b_j·t(z_i) + g_j·(u, b),
//! exp(e_j + f_j·t(z_i))²). The bottom depends on the top through g, as in q itself. O(d (M + p)) for M switches and p
//! normals above.

mod layout;

pub use layout::HierarchicalRecursive;

use super::{Cache, Known, Recursive, Space, Surroundings};
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::prior::{Prior, Start, log_bernoulli};
use crate::recursive::RecursivePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::{HALF_LN_2_PI, sigmoid};
use hyperprior_math::vector::{add_scaled, dot};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// What [`Recursive::prepare`] stores: t(z), the switches' logits, the means of the normals above.
mod prepared {
    pub const LEN: usize = 3;
}

/// What [`Recursive::forward`] stores: the term of each latent and, last, the term they share; each ε standardised, and the
/// inverse of its scale.
mod held {
    pub const TERMS: usize = 0;
    pub const STANDARD: usize = 1;
    pub const INVERSE: usize = 2;
    pub const LEN: usize = 3;
}

impl HierarchicalRecursive {
    /// out ← c + C·t.
    fn affine(&self, coefficients: &[f64], features: &Batch, out: &mut [f64]) {
        out.fill(coefficients[0]);
        for (f, c) in coefficients[1..=self.table.len].iter().enumerate() {
            add_scaled(*c, features.column(f), out);
        }
    }

    /// The mean and the log scale of ε behind coordinate `c` of latent `i`; `t` holds the latent's features.
    fn bottom(&self, phi: &[f64], i: usize, c: usize, t: &[f64], x: &Batch, mean: &mut [f64], log_scale: &mut [f64]) {
        let (n, draws_len) = (self.table.range(i).len(), mean.len());
        let own = &phi[self.coordinate(i, c)];
        mean.fill(own[0]);
        log_scale.fill(own[1 + n]);
        for (f, t) in t.chunks_exact(draws_len).enumerate() {
            add_scaled(own[1 + f], t, mean);
            add_scaled(own[2 + n + f], t, log_scale);
        }
        for (g, column) in own[2 + 2 * n..].iter().zip(self.top()) {
            add_scaled(*g, x.column(column), mean);
        }
    }

    /// out += the log densities of the switches and of the normals above.
    fn add_top(&self, phi: &[f64], x: &Batch, logits: &Batch, means: &Batch, out: &mut [f64]) {
        for m in 0..self.switches_len {
            let switch = x.column(self.top().start + self.upper_len + m);
            for ((o, b), logit) in out.iter_mut().zip(switch).zip(logits.column(m)) {
                *o += log_bernoulli(*logit, *b);
            }
        }
        for u in 0..self.upper_len {
            let log_scale = phi[self.upper(u).end - 1];
            let inverse = (-log_scale).exp();
            for ((o, x), mean) in out.iter_mut().zip(x.column(self.lower_len + u)).zip(means.column(u)) {
                let t = (x - mean) * inverse;
                *o -= 0.5 * t * t + log_scale + HALF_LN_2_PI;
            }
        }
    }
}

impl Recursive for HierarchicalRecursive {
    fn name(&self) -> String {
        "hierarchical r".to_owned()
    }

    fn space(&self) -> Space {
        Space::Noise
    }

    fn parameters_len(&self) -> usize {
        self.parameters_len
    }

    fn is_local(&self) -> bool {
        true
    }

    fn check(&self, prior: &dyn Prior, likelihood: &dyn Likelihood) -> Result<()> {
        let mismatch = |second: String, reason: String| {
            Err(Error::Mismatch { first: format!("the recursive approximation `{}`", self.name()), second, reason })
        };
        let prior_name = format!("the prior `{}`", prior.name());
        if prior.columns_len() == 0 {
            return mismatch(prior_name, "a point has no noise to approximate; use r = prior".to_owned());
        }
        if prior.components_len() > 1 {
            return mismatch(prior_name, "it does not cover a mixture's component; use switches instead".to_owned());
        }
        if likelihood.point_mass_len() > 0 {
            return mismatch("the likelihood".to_owned(), "it does not support point masses".to_owned());
        }
        let own = (self.lambda_len, self.lower_len + self.upper_len, self.switches_len, self.latents.len());
        let found = (likelihood.lambda_len(), prior.noise_len(), prior.switches_len(), likelihood.latents_len());
        if own != found {
            let reason = format!(
                "it was made for {} latents, {} parameters, {} normals and {} switches, they have {}, {}, {} and {}; build \
                 it from them",
                own.3, own.0, own.1, own.2, found.3, found.0, found.1, found.2
            );
            return mismatch("the other two".to_owned(), reason);
        }
        Ok(())
    }

    fn prepare(&self, at: Surroundings, _x: &Batch, z: &Batch, prepared: &mut Cache, _scratch: &mut Scratch) {
        let [features, logits, means] = prepared.reserve(prepared::LEN) else { unreachable!() };
        self.table.write(z, features);
        logits.reshape(self.switches_len, z.draws_len());
        for m in 0..self.switches_len {
            self.affine(&at.phi[self.switch(m)], features, logits.column_mut(m));
        }
        means.reshape(self.upper_len, z.draws_len());
        for u in 0..self.upper_len {
            self.affine(&at.phi[self.upper(u)], features, means.column_mut(u));
        }
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
        let draws_len = x.draws_len();
        let [features, logits, means] = &prepared.batches[..prepared::LEN] else { unreachable!() };
        let [terms, standard, inverse] = cache.reserve(held::LEN) else { unreachable!() };
        terms.reset(self.latents.len() + 1, draws_len);
        standard.reshape(self.lower_len, draws_len);
        inverse.reshape(self.lower_len, draws_len);
        self.add_top(at.phi, x, logits, means, terms.column_mut(self.latents.len()));
        let mut log_scale = scratch.take(draws_len);
        let mut mean = scratch.take(draws_len);
        for i in 0..if self.lower_len > 0 { self.latents.len() } else { 0 } {
            let t = features.columns(self.table.range(i));
            for (c, j) in self.latents[i].0.clone().enumerate() {
                self.bottom(at.phi, i, c, t, x, &mut mean, &mut log_scale);
                let (standard, inverse) = (standard.column_mut(j), inverse.column_mut(j));
                let term = terms.column_mut(i);
                for s in 0..draws_len {
                    inverse[s] = (-log_scale[s]).exp();
                    standard[s] = (x.get(j, s) - mean[s]) * inverse[s];
                    term[s] -= 0.5 * standard[s] * standard[s] + log_scale[s] + HALF_LN_2_PI;
                }
            }
        }
        out.fill(0.0);
        for i in 0..terms.columns_len() {
            add_scaled(1.0, terms.column(i), out);
        }
        scratch.give(mean);
        scratch.give(log_scale);
    }

    fn local(&self, _at: Surroundings, i: usize, known: Known, out: &mut [f64]) {
        let terms = &known.cache.batches[held::TERMS];
        out.copy_from_slice(terms.column(i));
        add_scaled(1.0, terms.column(self.latents.len()), out);
    }

    fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch) {
        let RecursivePass { at, x, known, .. } = pass;
        let draws_len = x.draws_len();
        let [features, logits, means] = &known.prepared.batches[..prepared::LEN] else { unreachable!() };
        let (range, kind) = (self.table.range(i), self.table.latents[i].0);
        let mut t = scratch.take(range.len() * draws_len);
        let mut change = scratch.take(range.len() * draws_len);
        let mut moved_logits = scratch.take_batch(self.switches_len, draws_len);
        let mut moved_means = scratch.take_batch(self.upper_len, draws_len);
        let mut mean = scratch.take(draws_len);
        let mut log_scale = scratch.take(draws_len);
        for (v, value) in values.iter().enumerate() {
            let out = out.column_mut(v);
            out.fill(0.0);
            for f in 0..range.len() {
                t[f * draws_len..(f + 1) * draws_len].fill(kind.value(f, *value));
            }
            for ((change, new), old) in change.iter_mut().zip(&t).zip(features.columns(range.clone())) {
                *change = new - old;
            }
            let shift = |coefficients: &[f64], column: &mut [f64]| {
                for (f, change) in change.chunks_exact(draws_len).enumerate() {
                    add_scaled(coefficients[1 + range.start + f], change, column);
                }
            };
            moved_logits.copy_from(logits);
            for m in 0..self.switches_len {
                shift(&at.phi[self.switch(m)], moved_logits.column_mut(m));
            }
            moved_means.copy_from(means);
            for u in 0..self.upper_len {
                shift(&at.phi[self.upper(u)], moved_means.column_mut(u));
            }
            self.add_top(at.phi, x, &moved_logits, &moved_means, out);
            for (c, j) in self.latents[i].0.clone().enumerate().filter(|_| self.lower_len > 0) {
                self.bottom(at.phi, i, c, &t, x, &mut mean, &mut log_scale);
                for s in 0..draws_len {
                    let standard = (x.get(j, s) - mean[s]) * (-log_scale[s]).exp();
                    out[s] -= 0.5 * standard * standard + log_scale[s] + HALF_LN_2_PI;
                }
            }
        }
        for buffer in [log_scale, mean, change, t] {
            scratch.give(buffer);
        }
        scratch.give_batch(moved_means);
        scratch.give_batch(moved_logits);
    }

    fn pullback(
        &self,
        pass: RecursivePass,
        d_log_r: &[f64],
        d_x: &mut Batch,
        d_z: &mut Batch,
        d_phi: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let RecursivePass { at, x, z, known } = pass;
        let draws_len = x.draws_len();
        let [features, logits, means] = &known.prepared.batches[..prepared::LEN] else { unreachable!() };
        let (standard, inverse) = (&known.cache.batches[held::STANDARD], &known.cache.batches[held::INVERSE]);
        let needs_features = self.is_pathwise.contains(&true);
        let mut d_features = scratch.take_batch(if needs_features { self.table.len } else { 0 }, draws_len);
        let mut d = scratch.take(draws_len);
        let mut d_scale = scratch.take(draws_len);
        for m in 0..self.switches_len {
            let column = self.top().start + self.upper_len + m;
            for s in 0..draws_len {
                d[s] = counted(d_log_r[s], x.get(column, s) - sigmoid(logits.get(m, s)));
                d_x.column_mut(column)[s] += counted(d_log_r[s], logits.get(m, s));
            }
            self.affine_pullback(&at.phi[self.switch(m)], features, &d, &mut d_phi[self.switch(m)], &mut d_features);
        }
        for u in 0..self.upper_len {
            let (column, range) = (self.lower_len + u, self.upper(u));
            let inverse = (-at.phi[range.end - 1]).exp();
            for s in 0..draws_len {
                let t = (x.get(column, s) - means.get(u, s)) * inverse;
                d[s] = counted(d_log_r[s], t * inverse);
                d_x.column_mut(column)[s] -= d[s];
                d_phi[range.end - 1] += counted(d_log_r[s], t * t - 1.0);
            }
            self.affine_pullback(&at.phi[range.clone()], features, &d, &mut d_phi[range], &mut d_features);
        }
        for i in 0..if self.lower_len > 0 { self.latents.len() } else { 0 } {
            let t = self.table.range(i);
            let n = t.len();
            for (c, j) in self.latents[i].0.clone().enumerate() {
                let (standard, inverse) = (standard.column(j), inverse.column(j));
                for s in 0..draws_len {
                    d[s] = counted(d_log_r[s], standard[s] * inverse[s]);
                    d_scale[s] = counted(d_log_r[s], standard[s] * standard[s] - 1.0);
                }
                add_scaled(-1.0, &d, d_x.column_mut(j));
                let own = &at.phi[self.coordinate(i, c)];
                let d_own = &mut d_phi[self.coordinate(i, c)];
                d_own[0] += d.iter().sum::<f64>();
                d_own[1 + n] += d_scale.iter().sum::<f64>();
                for (f, column) in t.clone().enumerate() {
                    d_own[1 + f] += dot(&d, features.column(column));
                    d_own[2 + n + f] += dot(&d_scale, features.column(column));
                    if self.is_pathwise[i] {
                        add_scaled(own[1 + f], &d, d_features.column_mut(column));
                        add_scaled(own[2 + n + f], &d_scale, d_features.column_mut(column));
                    }
                }
                for (g, column) in self.top().enumerate() {
                    d_own[2 + 2 * n + g] += dot(&d, x.column(column));
                    add_scaled(own[2 + 2 * n + g], &d, d_x.column_mut(column));
                }
            }
        }
        for i in (0..self.latents.len()).filter(|&i| self.is_pathwise[i]) {
            self.table.pullback(i, z, &d_features, d_z);
        }
        scratch.give(d_scale);
        scratch.give(d);
        scratch.give_batch(d_features);
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
        let draws_len = x.draws_len();
        components.fill(at.component);
        let [features, logits, means] = &prepared.batches[..prepared::LEN] else { unreachable!() };
        for (s, rng) in streams.iter_mut().enumerate() {
            for m in 0..self.switches_len {
                let u: f64 = rng.random();
                x.set(self.top().start + self.upper_len + m, s, f64::from(u < sigmoid(logits.get(m, s))));
            }
            for u in 0..self.upper_len {
                let normal: f64 = StandardNormal.sample(rng);
                x.set(self.lower_len + u, s, means.get(u, s) + at.phi[self.upper(u).end - 1].exp() * normal);
            }
        }
        let mut mean = scratch.take(draws_len);
        let mut log_scale = scratch.take(draws_len);
        for i in 0..if self.lower_len > 0 { self.latents.len() } else { 0 } {
            let t = features.columns(self.table.range(i));
            for (c, j) in self.latents[i].0.clone().enumerate() {
                self.bottom(at.phi, i, c, t, x, &mut mean, &mut log_scale);
                for (s, rng) in streams.iter_mut().enumerate() {
                    let normal: f64 = StandardNormal.sample(rng);
                    x.set(j, s, mean[s] + log_scale[s].exp() * normal);
                }
            }
        }
        scratch.give(log_scale);
        scratch.give(mean);
    }

    /// Zero: every switch has probability one half, every normal is standard.
    fn initialize(&self, _start: &Start, _rng: &mut Stream, phi: &mut [f64]) {
        phi.fill(0.0);
    }
}

/// weight · value; an invalid draw has weight 0 and is left out whatever its value is.
fn counted(weight: f64, value: f64) -> f64 {
    if weight == 0.0 { 0.0 } else { weight * value }
}

impl HierarchicalRecursive {
    /// The pullback of [`affine`](Self::affine).
    fn affine_pullback(
        &self,
        coefficients: &[f64],
        features: &Batch,
        d: &[f64],
        d_coefficients: &mut [f64],
        d_features: &mut Batch,
    ) {
        d_coefficients[0] += d.iter().sum::<f64>();
        for f in 0..self.table.len {
            d_coefficients[1 + f] += dot(d, features.column(f));
            if d_features.columns_len() > 0 {
                add_scaled(coefficients[1 + f], d, d_features.column_mut(f));
            }
        }
    }
}

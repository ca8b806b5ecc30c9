//! The inverse flow: r is a factorised Gaussian under planar layers whose inverse has the parametric form.
//!
//! `eq:r-base-dist`: r(λ₀ | z) = Π_j N(λ₀_j; a_j + b_j·t(z_i), exp(e_j + f_j·t(z_i))²), λ₀ = g₁⁻¹ ∘ … ∘ g_K⁻¹(λ), and
//! log r(λ | z) = log r(λ₀ | z) + Σ_k log|det ∂g_k⁻¹/∂λ_k|. Here t(z_i) are a few features of the latent that parameter j
//! belongs to, so every z_i appears only in its own terms: the locality that keeps the gradient's variance low. O(Kd).
//!
//! A flow of length 0 is the *factorised* approximation. On the noise of a mixture every component has its own flow and
//! base, and r(k | z) = softmax_k(c_k + Σ_i a_ki·t(z_i)).

mod base;
mod class;
mod layout;

pub use layout::InverseFlow;

use self::base::{base_pullback, base_term, base_terms, write_count_features};
use self::layout::{held, prepared};
use super::features::Features;
use super::same_as_prior::pick;
use super::{Cache, Known, MadeFor, Recursive, Space, Surroundings};
use crate::prior::Start;
use crate::recursive::RecursivePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector::add_scaled;
use rand_distr::{Distribution, StandardNormal};

impl InverseFlow {
    fn write_features(&self, z: &Batch, out: &mut Batch) {
        write_count_features(self, z, out);
        for covered in self.covered.iter().filter(|c| c.features != Features::Count) {
            for f in 0..covered.features_len {
                let column = out.column_mut(covered.first_feature + f);
                for (o, z) in column.iter_mut().zip(z.column(covered.latent)) {
                    *o = covered.features.value(f, *z);
                }
            }
        }
    }
}

impl Recursive for InverseFlow {
    fn name(&self) -> String {
        let flow = match self.flow.layers_len {
            0 => "factorised".to_owned(),
            layers => format!("inverse flow of {layers}"),
        };
        if self.space == Space::Lambda { flow + " on λ" } else { flow }
    }

    fn space(&self) -> Space {
        self.space
    }

    fn parameters_len(&self) -> usize {
        let class = if self.components_len > 1 { self.components_len * (1 + self.features_len) } else { 0 };
        self.components_len * self.component_len() + class
    }

    fn is_local(&self) -> bool {
        true
    }

    fn made_for(&self) -> Option<MadeFor> {
        Some(MadeFor {
            latents_len: self.by_latent.len(),
            lambda_len: self.given + self.flow.len,
            point_mass_len: self.given,
            components_len: (self.space == Space::Noise).then_some(self.components_len),
        })
    }

    fn prepare(&self, at: Surroundings, _x: &Batch, z: &Batch, prepared: &mut Cache, _scratch: &mut Scratch) {
        let draws_len = z.draws_len();
        let [features, logits] = prepared.reserve(prepared::LEN) else { unreachable!() };
        features.reshape(self.features_len, draws_len);
        self.write_features(z, features);
        if self.components_len > 1 {
            logits.reshape(self.components_len + 1, draws_len);
            self.write_logits(at.phi, features, logits);
        }
    }

    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        _scratch: &mut Scratch,
    ) {
        let draws_len = x.draws_len();
        let k = self.component(at);
        let (layers, base) = self.split(at.phi, k);
        let features = &prepared.batches[prepared::FEATURES];
        let [x0, tanh, terms, standard, inverse] = cache.reserve(held::LEN) else { unreachable!() };
        x0.reshape(self.flow.len, draws_len);
        x0.as_mut_slice().copy_from_slice(x.columns(self.given..x.columns_len()));
        tanh.reshape(self.flow.layers_len, draws_len);
        terms.reset(self.covered.len(), draws_len);
        standard.reshape(self.flow.len, draws_len);
        inverse.reshape(self.flow.len, draws_len);
        out.fill(0.0);
        self.flow.forward(layers, x0, out, tanh.as_mut_slice());
        let given = x.columns(0..self.condition_len);
        base_terms(self, base, features, given, x0, (terms, standard, inverse), out);
        self.add_class(k, prepared, out);
    }

    fn local(&self, at: Surroundings, i: usize, known: Known, out: &mut [f64]) {
        out.fill(0.0);
        let Some(place) = self.by_latent[i] else { return };
        out.copy_from_slice(known.cache.batches[held::TERMS].column(place));
        self.add_class(self.component(at), known.prepared, out);
    }

    fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch) {
        let RecursivePass { at, x, known, .. } = pass;
        out.as_mut_slice().fill(0.0);
        let Some(place) = self.by_latent[i] else { return };
        let covered = &self.covered[place];
        let k = self.component(at);
        let (_, base) = self.split(at.phi, k);
        let draws_len = x.draws_len();
        let x0 = &known.cache.batches[held::BASE];
        let given = x.columns(0..self.condition_len);
        let mut t = scratch.take(covered.features_len * draws_len);
        let mut moved = scratch.take_batch(self.components_len + 1, draws_len);
        for (v, value) in values.iter().enumerate() {
            for f in 0..covered.features_len {
                t[f * draws_len..(f + 1) * draws_len].fill(covered.features.value(f, *value));
            }
            let out = out.column_mut(v);
            for (c, j) in covered.coordinates.clone().enumerate() {
                base_term(self.coordinate(base, covered, c), &t, given, x0.column(j), out);
            }
            if self.components_len > 1 {
                self.move_logits(at.phi, covered, &t, known.prepared, &mut moved);
                add_scaled(1.0, moved.column(k), out);
                add_scaled(-1.0, moved.column(self.components_len), out);
            }
        }
        scratch.give_batch(moved);
        scratch.give(t);
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
        let k = self.component(at);
        let (layers, base) = self.split(at.phi, k);
        let (component_len, layers_len) = (self.component_len(), self.flow.parameters_len());
        let features = &known.prepared.batches[prepared::FEATURES];
        let mut x0 = scratch.take_batch(self.flow.len, draws_len);
        x0.copy_from(&known.cache.batches[held::BASE]);
        let mut d_x0 = scratch.take_batch(self.flow.len, draws_len);
        let mut d_mean = scratch.take(draws_len);
        let mut d_log_sd = scratch.take(draws_len);
        let needs_features = self.components_len > 1 || self.covered.iter().any(|c| c.is_pathwise);
        let mut d_features = scratch.take_batch(if needs_features { self.features_len } else { 0 }, draws_len);
        let d_base = &mut d_phi[k * component_len + layers_len..(k + 1) * component_len];
        let (columns, to) = ((&mut *d_mean, &mut *d_log_sd), (&mut d_x0, &mut d_features, &mut *d_x));
        base_pullback(self, base, (features, known.cache), x, d_log_r, columns, to, d_base);
        let d_layers = &mut d_phi[k * component_len..k * component_len + layers_len];
        let tanh = known.cache.batches[held::TANH].as_slice();
        self.flow.pullback(layers, &mut x0, &mut d_x0, d_log_r, tanh, d_layers, scratch);
        add_scaled(1.0, d_x0.as_slice(), d_x.columns_mut(self.given..self.given + self.flow.len));
        if self.components_len > 1 {
            self.class_pullback(at.phi, k, d_log_r, known.prepared, &mut d_mean, &mut d_features, d_phi);
        }
        for covered in self.covered.iter().filter(|c| c.is_pathwise) {
            for f in 0..covered.features_len {
                let d_t = d_features.column(covered.first_feature + f);
                let d_z = d_z.column_mut(covered.latent);
                for ((d_z, d_t), z) in d_z.iter_mut().zip(d_t).zip(z.column(covered.latent)) {
                    *d_z += d_t * covered.features.derivative(f, *z);
                }
            }
        }
        scratch.give_batch(d_features);
        scratch.give(d_log_sd);
        scratch.give(d_mean);
        scratch.give_batch(d_x0);
        scratch.give_batch(x0);
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
        let [features, logits] = &prepared.batches[..prepared::LEN] else { unreachable!() };
        let mut log_p = scratch.take(self.components_len);
        let mut one = scratch.take_batch(self.flow.len, 1);
        for (s, rng) in streams.iter_mut().enumerate() {
            components[s] = if self.components_len > 1 {
                logits.read_draw(s, &mut log_p);
                let total = log_sum_exp(&log_p);
                log_p.iter_mut().for_each(|l| *l -= total);
                pick(&log_p, rng)
            } else {
                at.component
            };
            let k = if self.components_len > 1 { components[s] } else { 0 };
            let (layers, base) = self.split(at.phi, k);
            for covered in &self.covered {
                for (c, j) in covered.coordinates.clone().enumerate() {
                    let coordinate = self.coordinate(base, covered, c);
                    let (mut mean, mut log_sd) = (coordinate.location[0], coordinate.log_scale[0]);
                    for f in 0..covered.features_len {
                        let t = features.get(covered.first_feature + f, s);
                        mean += coordinate.location[1 + f] * t;
                        log_sd += coordinate.log_scale[1 + f] * t;
                    }
                    for (g, weight) in coordinate.condition.iter().enumerate() {
                        mean += weight * x.get(g, s);
                    }
                    let normal: f64 = StandardNormal.sample(rng);
                    one.set(j, 0, mean + log_sd.exp() * normal);
                }
            }
            self.flow.invert(layers, &mut one, &mut [0.0]);
            for j in 0..self.flow.len {
                x.set(self.given + j, s, one.get(j, 0));
            }
        }
        scratch.give_batch(one);
        scratch.give(log_p);
    }

    fn initialize(&self, start: &Start, rng: &mut Stream, phi: &mut [f64]) {
        phi.fill(0.0);
        for k in 0..self.components_len {
            let first = k * self.component_len();
            let base = first + self.flow.parameters_len();
            self.flow.identity(1.0, rng, &mut phi[first..base]);
            if self.space == Space::Noise {
                continue;
            }
            // On λ, r starts at the prior's start.
            for covered in &self.covered {
                for (c, j) in covered.coordinates.clone().enumerate() {
                    let at = base + covered.first_parameter + c * covered.coordinate_len;
                    let locations: f64 = start.locations.iter().map(|l| l[self.given + j]).sum();
                    let scales: f64 = start.scales.iter().map(|l| l[self.given + j]).sum();
                    phi[at] = locations / start.locations.len() as f64;
                    phi[at + 1 + covered.features_len] = (scales / start.scales.len() as f64).max(1e-6).ln();
                }
            }
        }
    }
}

//! The inverse flow: r is a factorised Gaussian seen through planar layers whose inverse has the parametric form.
//!
//! `eq:r-base-dist`: r(λ₀ | z) = Π_j N(λ₀_j; a_j + b_j·t(z_i), exp(e_j + f_j·t(z_i))²), λ₀ = g₁⁻¹ ∘ … ∘ g_K⁻¹(λ), and
//! log r(λ | z) = log r(λ₀ | z) + Σ_k log|det ∂g_k⁻¹/∂λ_k|. Here t(z_i) are a few functions of the latent whose parameter j
//! is, so every z_i sits in terms of its own: the locality that keeps the gradient's variance low. O(Kd).
//!
//! A flow of length 0 is the *factorised* approximation. On the noise of a mixture every component has its own flow and
//! base, and r(k | z) = softmax_k(c_k + Σ_i a_ki·t(z_i)).

use super::features::Features;
use super::same_as_prior::pick;
use super::{Cache, Known, MadeFor, Recursive, Space, Surroundings};
use crate::likelihood::{Kind, Likelihood};
use crate::prior::Start;
use hyperprior_math::batch::Batch;
use hyperprior_math::flow::Planar;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::simd::{self, LANES, Simd, load, prelude::*, splat, store, sums};
use hyperprior_math::special::{HALF_LN_2_PI, log_sum_exp};
use hyperprior_math::vector::{add_scaled, dot, log_sum_exp_columns};
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// Up to how many point-mass parameters the base's means depend on; beyond, they are left out to keep the cost O(Kd).
const CONDITION_MAX: usize = 32;

/// A latent that r covers.
#[derive(Clone, Debug)]
struct Covered {
    latent: usize,
    /// Its parameters, counted from the first covered one.
    coordinates: Range<usize>,
    features: Features,
    features_len: usize,
    /// Where its features are among all features.
    first_feature: usize,
    /// Where its coordinates' base parameters start.
    first_parameter: usize,
    /// How many base parameters a coordinate has.
    coordinate_len: usize,
    is_pathwise: bool,
}

/// The inverse flow over a factorised base; φ is, per component, the layers' parameters and then each coordinate's
/// a, b, e, f and weights on the point masses' parameters; last, the logits of r(k | z).
#[derive(Clone, Debug)]
pub struct InverseFlow {
    flow: Planar,
    space: Space,
    components_len: usize,
    /// How many leading coordinates are given, and how many of them the means look at.
    given: usize,
    condition_len: usize,
    covered: Vec<Covered>,
    /// For each latent, its place in `covered`.
    by_latent: Vec<Option<usize>>,
    features_len: usize,
    base_len: usize,
    /// How many features each latent has, where all have as many, one coordinate each and nothing to look at besides: then
    /// everything lies in the latents' order, and a loop need not ask where.
    plain: Option<usize>,
}

/// The batches that [`Recursive::prepare`] leaves: t(z), and the logits of r(k | z) with their log sum.
mod prepared {
    pub const FEATURES: usize = 0;
    pub const LOGITS: usize = 1;
    pub const LEN: usize = 2;
}

/// The batches that [`Recursive::forward`] leaves: λ₀, the layers' tanh, each covered latent's base term, and each
/// coordinate's standardised λ₀ with the inverse of its scale.
mod held {
    pub const BASE: usize = 0;
    pub const TANH: usize = 1;
    pub const TERMS: usize = 2;
    pub const STANDARD: usize = 3;
    pub const INVERSE: usize = 4;
    pub const LEN: usize = 5;
}

impl InverseFlow {
    /// An inverse flow of `layers_len` layers for this likelihood. On the noise, `components_len` is the prior's number of
    /// components; on λ it is not looked at.
    pub fn new(likelihood: &dyn Likelihood, components_len: usize, layers_len: usize, space: Space) -> Self {
        let given = likelihood.point_mass_len();
        let condition_len = if given <= CONDITION_MAX { given } else { 0 };
        let mut covered = Vec::new();
        let mut by_latent = vec![None; likelihood.latents_len()];
        let (mut features_len, mut base_len) = (0, 0);
        for i in 0..likelihood.latents_len() {
            if likelihood.kind(i) == Kind::PointMass {
                continue;
            }
            let range = likelihood.lambda_range(i);
            let features = Features::for_support(likelihood.support(i));
            let coordinates = range.start - given..range.end - given;
            let coordinate_len = 2 + 2 * features.len() + condition_len;
            let parameters = coordinates.len() * coordinate_len;
            by_latent[i] = Some(covered.len());
            covered.push(Covered {
                latent: i,
                coordinates,
                features,
                features_len: features.len(),
                first_feature: features_len,
                first_parameter: base_len,
                coordinate_len,
                is_pathwise: likelihood.kind(i) == Kind::Pathwise,
            });
            features_len += features.len();
            base_len += parameters;
        }
        let len = likelihood.lambda_len() - given;
        let components_len = if space == Space::Noise { components_len } else { 1 };
        let flow = Planar { len, layers_len };
        let features_of_first = covered.first().map_or(0, |c: &Covered| c.features_len);
        let is_plain = |c: &Covered| c.coordinates.len() == 1 && c.features_len == features_of_first;
        let plain = (condition_len == 0 && covered.iter().all(is_plain)).then_some(features_of_first);
        Self { flow, space, components_len, given, condition_len, covered, by_latent, features_len, base_len, plain }
    }

    /// The factorised approximation: an inverse flow of length 0.
    pub fn factorised(likelihood: &dyn Likelihood, components_len: usize, space: Space) -> Self {
        Self::new(likelihood, components_len, 0, space)
    }

    fn component_len(&self) -> usize {
        self.flow.parameters_len() + self.base_len
    }

    fn component(&self, at: Surroundings) -> usize {
        if self.components_len > 1 { at.component } else { 0 }
    }

    /// The layers' and the base's parameters of component `k`.
    fn split<'a>(&self, phi: &'a [f64], k: usize) -> (&'a [f64], &'a [f64]) {
        phi[k * self.component_len()..(k + 1) * self.component_len()].split_at(self.flow.parameters_len())
    }

    /// c_k and a_k.
    fn class<'a>(&self, phi: &'a [f64], k: usize) -> &'a [f64] {
        let first = self.components_len * self.component_len() + k * (1 + self.features_len);
        &phi[first..first + 1 + self.features_len]
    }

    /// The parameters of coordinate `c` of a latent, c counted within the latent.
    #[inline(always)]
    fn coordinate<'a>(&self, base: &'a [f64], covered: &Covered, c: usize) -> Coordinate<'a> {
        let first = covered.first_parameter + c * covered.coordinate_len;
        let (location, rest) = base[first..first + covered.coordinate_len].split_at(1 + covered.features_len);
        let (log_scale, condition) = rest.split_at(1 + covered.features_len);
        Coordinate { location, log_scale, condition }
    }

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

    fn features<'a>(&self, features: &'a Batch, covered: &Covered) -> &'a [f64] {
        features.columns(covered.first_feature..covered.first_feature + covered.features_len)
    }

    /// The logits c_k + a_k·t(z), a column each, and their log sum as one more column.
    fn write_logits(&self, phi: &[f64], features: &Batch, logits: &mut Batch) {
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
}

#[inline(always)]
fn count_features_kernel<S: Simd>(s: S, r: &InverseFlow, z: &Batch, out: &mut Batch) {
    let draws_len = z.draws_len();
    for covered in &r.covered {
        if covered.features != Features::Count {
            continue;
        }
        let z = z.column(covered.latent);
        let columns = out.columns_mut(covered.first_feature..covered.first_feature + 2);
        for at in (0..draws_len).step_by(LANES) {
            let z = load(s, z, at, 0.0);
            let (logs, eighths) = columns.split_at_mut(draws_len);
            // A count plus one is exact, so its logarithm loses nothing.
            store(simd::ln(s, z.max(splat(s, 0.0)) + 1.0), logs, at);
            store(z * 0.125, eighths, at);
        }
    }
}
hyperprior_math::simd_fn!(
    /// [`Features::Count`] of every count, ln(1 + z) and z/8, without a scalar logarithm each.
    fn write_count_features(r: &InverseFlow, z: &Batch, out: &mut Batch) = count_features_kernel
);

/// One coordinate's base: N(a + b·t + g·x_c, exp(e + f·t)²).
#[derive(Clone, Copy)]
struct Coordinate<'a> {
    /// a, b.
    location: &'a [f64],
    /// e, f.
    log_scale: &'a [f64],
    /// g.
    condition: &'a [f64],
}

#[inline(always)]
fn affine<S: Simd>(s: S, n: usize, coefficients: &[f64], columns: &[f64], draws_len: usize, at: usize) -> simd::V<S> {
    let mut sum = splat(s, coefficients[0]);
    for f in 0..n {
        let column = &columns[f * draws_len..(f + 1) * draws_len];
        sum = splat(s, coefficients[1 + f]).mul_add(load(s, column, at, 0.0), sum);
    }
    sum
}

#[inline(always)]
fn condition<S: Simd>(s: S, g: &[f64], given: &[f64], draws_len: usize, at: usize) -> simd::V<S> {
    let mut sum = splat(s, 0.0);
    for (c, g) in g.iter().enumerate() {
        sum = splat(s, *g).mul_add(load(s, &given[c * draws_len..(c + 1) * draws_len], at, 0.0), sum);
    }
    sum
}

/// Eight draws of one coordinate: x₀ standardised, the inverse of its scale, and log N. `n` is the number of features, which
/// the compiler should know where it is small.
#[inline(always)]
fn standardise<S: Simd>(
    s: S,
    n: usize,
    c: Coordinate,
    features: &[f64],
    given: &[f64],
    x: &[f64],
    at: usize,
) -> [simd::V<S>; 3] {
    let draws_len = x.len();
    let mean = affine(s, n, c.location, features, draws_len, at) + condition(s, c.condition, given, draws_len, at);
    let log_sd = affine(s, n, c.log_scale, features, draws_len, at);
    let inverse = simd::exp(s, -log_sd);
    let t = (load(s, x, at, 0.0) - mean) * inverse;
    [t, inverse, (t * t).mul_add(splat(s, -0.5), -log_sd) - HALF_LN_2_PI]
}

#[inline(always)]
fn base_term_kernel<S: Simd>(s: S, c: Coordinate, features: &[f64], given: &[f64], x: &[f64], out: &mut [f64]) {
    for at in (0..x.len()).step_by(LANES) {
        let [_, _, term] = standardise(s, c.location.len() - 1, c, features, given, x, at);
        store(load(s, out, at, 0.0) + term, out, at);
    }
}
hyperprior_math::simd_fn!(
    /// out += log N(x; the coordinate's mean, its scale).
    fn base_term(c: Coordinate, features: &[f64], given: &[f64], x: &[f64], out: &mut [f64]) = base_term_kernel
);

/// Adds one coordinate's base term to `term` and `out`, and keeps x₀ standardised and the inverse of its scale.
#[inline(always)]
fn coordinate_term<S: Simd>(
    s: S,
    n: usize,
    c: Coordinate,
    (features, given): (&[f64], &[f64]),
    x: &[f64],
    [term, standard, inverse]: [&mut [f64]; 3],
    out: &mut [f64],
) {
    for at in (0..x.len()).step_by(LANES) {
        let [t, i, log_n] = standardise(s, n, c, features, given, x, at);
        store(t, standard, at);
        store(i, inverse, at);
        store(load(s, term, at, 0.0) + log_n, term, at);
        store(load(s, out, at, 0.0) + log_n, out, at);
    }
}

/// [`base_terms`] where r is plain; `n` is known to the compiler.
#[inline(always)]
fn plain_terms<S: Simd>(
    s: S,
    n: usize,
    base: &[f64],
    features: &Batch,
    x0: &Batch,
    (terms, standard, inverse): (&mut Batch, &mut Batch, &mut Batch),
    out: &mut [f64],
) {
    let draws_len = out.len();
    let known = base.chunks_exact(2 + 2 * n).zip(features.as_slice().chunks_exact(n * draws_len));
    let terms = terms.as_mut_slice().chunks_exact_mut(draws_len);
    let standard = standard.as_mut_slice().chunks_exact_mut(draws_len);
    let inverse = inverse.as_mut_slice().chunks_exact_mut(draws_len);
    let columns = x0.as_slice().chunks_exact(draws_len).zip(terms).zip(standard).zip(inverse);
    for ((parameters, t), (((x, term), standard), inverse)) in known.zip(columns) {
        let (location, log_scale) = parameters.split_at(1 + n);
        let c = Coordinate { location, log_scale, condition: &[] };
        coordinate_term(s, n, c, (t, &[]), x, [term, standard, inverse], out);
    }
}

#[inline(always)]
fn base_terms_kernel<S: Simd>(
    s: S,
    r: &InverseFlow,
    base: &[f64],
    features: &Batch,
    given: &[f64],
    x0: &Batch,
    held: (&mut Batch, &mut Batch, &mut Batch),
    out: &mut [f64],
) {
    match r.plain {
        Some(1) => return plain_terms(s, 1, base, features, x0, held, out),
        Some(2) => return plain_terms(s, 2, base, features, x0, held, out),
        _ => {}
    }
    let (terms, standard, inverse) = held;
    for (place, covered) in r.covered.iter().enumerate() {
        let t = r.features(features, covered);
        for (c, j) in covered.coordinates.clone().enumerate() {
            let to = [terms.column_mut(place), standard.column_mut(j), inverse.column_mut(j)];
            let coordinate = r.coordinate(base, covered, c);
            coordinate_term(s, covered.features_len, coordinate, (t, given), x0.column(j), to, out);
        }
    }
}
hyperprior_math::simd_fn!(
    /// Adds every covered latent's base term to its column of `terms` and to `out`; fills the other two of `held`.
    fn base_terms(
        r: &InverseFlow,
        base: &[f64],
        features: &Batch,
        given: &[f64],
        x0: &Batch,
        held: (&mut Batch, &mut Batch, &mut Batch),
        out: &mut [f64],
    ) = base_terms_kernel
);

/// The cotangents of one coordinate's base, a column each.
struct Cotangents<'a> {
    x: &'a mut [f64],
    mean: &'a mut [f64],
    log_sd: &'a mut [f64],
}

/// Half a vector: the sums of a coordinate's mean fill one half, those of its log scale the other.
const HALF: usize = LANES / 2;

/// Fills the cotangents and adds the sums over draws to `d`, which is laid out as the coordinate's location and log scale.
#[inline(always)]
fn coordinate_pullback<S: Simd>(
    s: S,
    n: usize,
    features: &[f64],
    (standard, inverse): (&[f64], &[f64]),
    weight: &[f64],
    to: Cotangents,
    d: &mut [f64],
) {
    let draws_len = weight.len();
    let mut v = [splat(s, 0.0); LANES];
    for at in (0..draws_len).step_by(LANES) {
        let (t, w) = (load(s, standard, at, 0.0), load(s, weight, at, 0.0));
        let d_mean = w * t * load(s, inverse, at, 0.0);
        let d_log_sd = w * (t * t - 1.0);
        store(-d_mean, to.x, at);
        store(d_mean, to.mean, at);
        store(d_log_sd, to.log_sd, at);
        v[0] += d_mean;
        v[HALF] += d_log_sd;
        for f in 0..n.min(HALF - 1) {
            let t = load(s, &features[f * draws_len..(f + 1) * draws_len], at, 0.0);
            v[1 + f] = d_mean.mul_add(t, v[1 + f]);
            v[HALF + 1 + f] = d_log_sd.mul_add(t, v[HALF + 1 + f]);
        }
    }
    let mut lanes = [0.0; LANES];
    store(sums(v), &mut lanes, 0);
    for f in 0..(1 + n).min(HALF) {
        d[f] += lanes[f];
        d[1 + n + f] += lanes[HALF + f];
    }
    // Features beyond those that share a vector, which only tables have.
    for f in HALF - 1..n {
        let t = &features[f * draws_len..(f + 1) * draws_len];
        d[1 + f] += dot(to.mean, t);
        d[2 + n + f] += dot(to.log_sd, t);
    }
}

/// [`base_pullback`] where r is plain and no latent is differentiated; `n` is known to the compiler.
#[inline(always)]
fn plain_pullback<S: Simd>(
    s: S,
    n: usize,
    (features, cache): (&Batch, &Cache),
    weight: &[f64],
    (d_mean, d_log_sd): (&mut [f64], &mut [f64]),
    d_x0: &mut Batch,
    d_base: &mut [f64],
) {
    let draws_len = weight.len();
    let known = cache.batches[held::STANDARD].as_slice().chunks_exact(draws_len);
    let known = known.zip(cache.batches[held::INVERSE].as_slice().chunks_exact(draws_len));
    let features = features.as_slice().chunks_exact(n * draws_len);
    let to = d_x0.as_mut_slice().chunks_exact_mut(draws_len).zip(d_base.chunks_exact_mut(2 + 2 * n));
    for ((known, t), (x, d)) in known.zip(features).zip(to) {
        coordinate_pullback(s, n, t, known, weight, Cotangents { x, mean: d_mean, log_sd: d_log_sd }, d);
    }
}

#[inline(always)]
fn base_pullback_kernel<S: Simd>(
    s: S,
    r: &InverseFlow,
    base: &[f64],
    (features, cache): (&Batch, &Cache),
    x: &Batch,
    weight: &[f64],
    (d_mean, d_log_sd): (&mut [f64], &mut [f64]),
    (d_x0, d_features, d_x): (&mut Batch, &mut Batch, &mut Batch),
    d_base: &mut [f64],
) {
    match r.plain {
        _ if r.covered.iter().any(|c| c.is_pathwise) => {}
        Some(1) => return plain_pullback(s, 1, (features, cache), weight, (d_mean, d_log_sd), d_x0, d_base),
        Some(2) => return plain_pullback(s, 2, (features, cache), weight, (d_mean, d_log_sd), d_x0, d_base),
        _ => {}
    }
    let (standard, inverse) = (&cache.batches[held::STANDARD], &cache.batches[held::INVERSE]);
    for covered in &r.covered {
        let t = r.features(features, covered);
        let n = covered.features_len;
        for (c, j) in covered.coordinates.clone().enumerate() {
            let first = covered.first_parameter + c * covered.coordinate_len;
            let (d, d_condition) = d_base[first..first + covered.coordinate_len].split_at_mut(2 + 2 * n);
            let to = Cotangents { x: d_x0.column_mut(j), mean: d_mean, log_sd: d_log_sd };
            let known = (standard.column(j), inverse.column(j));
            coordinate_pullback(s, n, t, known, weight, to, d);
            if covered.is_pathwise {
                let coordinate = r.coordinate(base, covered, c);
                for f in 0..n {
                    let d_t = d_features.column_mut(covered.first_feature + f);
                    add_scaled(coordinate.location[1 + f], d_mean, d_t);
                    add_scaled(coordinate.log_scale[1 + f], d_log_sd, d_t);
                }
            }
            for g in 0..r.condition_len {
                d_condition[g] += dot(d_mean, x.column(g));
                add_scaled(r.coordinate(base, covered, c).condition[g], d_mean, d_x.column_mut(g));
            }
        }
    }
}
hyperprior_math::simd_fn!(
    /// The pullback of [`base_terms`].
    fn base_pullback(
        r: &InverseFlow,
        base: &[f64],
        known: (&Batch, &Cache),
        x: &Batch,
        weight: &[f64],
        columns: (&mut [f64], &mut [f64]),
        to: (&mut Batch, &mut Batch, &mut Batch),
        d_base: &mut [f64],
    ) = base_pullback_kernel
);

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

    fn conditional(
        &self,
        at: Surroundings,
        i: usize,
        x: &Batch,
        _z: &Batch,
        values: &[f64],
        known: Known,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) {
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
        at: Surroundings,
        x: &Batch,
        z: &Batch,
        d_log_r: &[f64],
        known: Known,
        d_x: &mut Batch,
        d_z: &mut Batch,
        d_phi: &mut [f64],
        scratch: &mut Scratch,
    ) {
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
            // On λ, r starts where the prior starts.
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

impl InverseFlow {
    /// out += log r(k | z).
    fn add_class(&self, k: usize, prepared: &Cache, out: &mut [f64]) {
        if self.components_len > 1 {
            let logits = &prepared.batches[prepared::LOGITS];
            add_scaled(1.0, logits.column(k), out);
            add_scaled(-1.0, logits.column(self.components_len), out);
        }
    }

    /// The logits with one latent's features replaced by `t`.
    fn move_logits(&self, phi: &[f64], covered: &Covered, t: &[f64], prepared: &Cache, moved: &mut Batch) {
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
    fn class_pullback(
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

//! Kernels of the factorised base: features of counts, the log density of every coordinate, and its pullback.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use super::layout::{Coordinate, InverseFlow, held};
use crate::recursive::Cache;
use crate::recursive::features::Features;
use hyperprior_math::batch::Batch;
use hyperprior_math::simd::{self, LANES, Simd, load, prelude::*, splat, store, sums};
use hyperprior_math::special::HALF_LN_2_PI;
use hyperprior_math::vector::{add_scaled, dot};

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
    /// [`Features::Count`] of every count, ln(1 + z) and z/8, vectorised.
    pub(super) fn write_count_features(r: &InverseFlow, z: &Batch, out: &mut Batch) = count_features_kernel
);

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
/// should be a compile-time constant if it is small.
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
    pub(super) fn base_term(c: Coordinate, features: &[f64], given: &[f64], x: &[f64], out: &mut [f64]) = base_term_kernel
);

/// Adds one coordinate's base term to `term` and `out`, and stores x₀ standardised and the inverse of its scale.
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

/// [`base_terms`] if r is plain; `n` is a compile-time constant.
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
    pub(super) fn base_terms(
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
        // An invalid draw has weight 0 and is left out even if its scale is zero.
        let counts = w.simd_eq(splat(s, 0.0));
        let d_mean = counts.select(splat(s, 0.0), w * t * load(s, inverse, at, 0.0));
        let d_log_sd = counts.select(splat(s, 0.0), w * (t * t - 1.0));
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
    // Features beyond those that fit in one vector; only tables have them.
    for f in HALF - 1..n {
        let t = &features[f * draws_len..(f + 1) * draws_len];
        d[1 + f] += dot(to.mean, t);
        d[2 + n + f] += dot(to.log_sd, t);
    }
}

/// [`base_pullback`] if r is plain and no latent is differentiated; `n` is a compile-time constant.
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
    pub(super) fn base_pullback(
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

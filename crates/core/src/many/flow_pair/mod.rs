//! A planar flow as prior and an inverse planar flow as recursive approximation, for one of many posteriors.

mod layout;

pub use layout::{Cotangents, FlowPair, Work};

use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::planar::{self, Into};
use hyperprior_math::single::simd::{self, load, load_draws, splat, sums};
use hyperprior_math::single::{DRAWS, Lanes, Tile, clear_padding};
use hyperprior_math::special::HALF_LN_2_PI;
use layout::{BASE_ROWS, FEATURES};

impl FlowPair {
    /// λ from the noise `eps`, stored in `work`; returns log q(λ) of each draw. Beyond the last latent `eps` must be zero.
    pub fn transform(&self, theta: &[Lanes], eps: &[Tile], work: &mut Work) -> [f32; DRAWS] {
        transform(self, theta, eps, work)
    }

    /// log r(λ | z) of each draw, for the λ of [`transform`](Self::transform). `features` holds the tiles of t₁(z), then those of
    /// t₂(z), zero beyond the last latent.
    pub fn log_r(&self, phi: &[Lanes], features: &[Tile], work: &mut Work) -> [f32; DRAWS] {
        log_r(self, phi, features, work)
    }

    /// Adds to `out` the change of log r(λ | z), latent by latent, as its features go from the first to the second; call after
    /// [`log_r`](Self::log_r).
    pub fn log_r_changes(&self, phi: &[Lanes], features: (&[Tile], &[Tile]), work: &Work, out: &mut [Tile]) {
        log_r_changes(self, phi, features, work, out);
    }

    /// The gradient along θ and φ of Σ_s d_log_q·log q + d_log_r·log r + d_λ·λ; call after [`log_r`](Self::log_r) with the same
    /// arguments.
    pub fn pullback(
        &self,
        (theta, phi): (&[Lanes], &[Lanes]),
        (eps, features): (&[Tile], &[Tile]),
        d: Cotangents,
        work: &mut Work,
        into: Into,
        (d_theta, d_phi): (&mut [Lanes], &mut [Lanes]),
    ) {
        pullback(self, (theta, phi), (eps, features), d, work, into, (d_theta, d_phi));
    }
}

#[inline(always)]
fn count_features_kernel<S: Simd>(s: S, z: &[Tile], features: &mut [Tile]) {
    let (logs, eighths) = features.split_at_mut(z.len());
    for ((z, log), eighth) in z.iter().zip(logs).zip(eighths) {
        for q in 0..DRAWS {
            let z = load(s, &z.0[q]).max(splat(s, 0.0));
            simd::ln_normal(s, z + 1.0).store_slice(&mut log.0[q]);
            (z * 0.125).store_slice(&mut eighth.0[q]);
        }
    }
}
simd_fn!(
    /// The features of counts: ln(1 + z) and z/8.
    pub fn count_features(z: &[Tile], features: &mut [Tile]) = count_features_kernel
);

#[inline(always)]
fn transform_kernel<S: Simd>(s: S, pair: &FlowPair, theta: &[Lanes], eps: &[Tile], work: &mut Work) -> [f32; DRAWS] {
    let n = pair.tiles_len();
    let (base, layers) = theta.split_at(2 * n);
    let (means, log_scales) = base.split_at(n);
    let mut sum = [splat(s, 0.0); DRAWS];
    let mut log_scale_sum = splat(s, 0.0);
    for (((mean, log_scale), eps), lambda) in means.iter().zip(log_scales).zip(eps).zip(&mut work.lambda) {
        let (mean, log_scale) = (load(s, &mean.0), load(s, &log_scale.0));
        let scale = simd::exp(s, log_scale);
        log_scale_sum += log_scale;
        for q in 0..DRAWS {
            let e = load(s, &eps.0[q]);
            sum[q] = (e * 0.5).mul_add(e, sum[q]);
            scale.mul_add(e, mean).store_slice(&mut lambda.0[q]);
        }
    }
    let (bends, tanh) = (&mut work.bends[..pair.flow.layers_len], &mut work.tanh[..pair.flow.layers_len]);
    planar::bends(s, pair.flow, layers, bends);
    let log_det = planar::forward(s, pair.flow, layers, bends, &mut work.lambda, tanh);
    let constant = log_scale_sum.reduce_sum() + pair.flow.len as f32 * HALF_LN_2_PI as f32;
    let squares = sums(s, sum);
    std::array::from_fn(
        #[inline(always)]
        |q| -(squares[q] + constant + log_det[q]),
    )
}
simd_fn!(
    fn transform(pair: &FlowPair, theta: &[Lanes], eps: &[Tile], work: &mut Work) -> [f32; DRAWS] = transform_kernel
);

/// The base of sixteen latents: a, b, e and f.
#[derive(Clone, Copy)]
struct Base<S: Simd> {
    location: [simd::V<S>; 1 + FEATURES],
    log_scale: [simd::V<S>; 1 + FEATURES],
}

impl<S: Simd> Base<S> {
    #[inline(always)]
    fn load(s: S, rows: &[Lanes], n: usize, i: usize) -> Self {
        let mut v = [splat(s, 0.0); BASE_ROWS];
        for r in 0..BASE_ROWS {
            v[r] = load(s, &rows[r * n + i].0);
        }
        Self { location: [v[0], v[1], v[2]], log_scale: [v[3], v[4], v[5]] }
    }

    /// λ₀ standardised, the inverse of its scale, and the log scale.
    #[inline(always)]
    fn standardise(self, s: S, t: [simd::V<S>; FEATURES], x: simd::V<S>) -> [simd::V<S>; 3] {
        let log_scale = affine(self.log_scale, t);
        let inverse = simd::exp(s, -log_scale);
        [(x - affine(self.location, t)) * inverse, inverse, log_scale]
    }
}

#[inline(always)]
fn affine<S: Simd>(c: [simd::V<S>; 1 + FEATURES], t: [simd::V<S>; FEATURES]) -> simd::V<S> {
    c[2].mul_add(t[1], c[1].mul_add(t[0], c[0]))
}

#[inline(always)]
fn log_r_kernel<S: Simd>(s: S, pair: &FlowPair, phi: &[Lanes], features: &[Tile], work: &mut Work) -> [f32; DRAWS] {
    let n = pair.tiles_len();
    let (base, layers) = phi.split_at(BASE_ROWS * n);
    let (bends, tanh) = (&mut work.bends[pair.flow.layers_len..], &mut work.tanh[pair.flow.layers_len..]);
    planar::bends(s, pair.inverse, layers, bends);
    let log_det = planar::forward(s, pair.inverse, layers, bends, &mut work.lambda, tanh);
    let (first, second) = features.split_at(n);
    let mut sum = [splat(s, 0.0); DRAWS];
    let held = work.standard.iter_mut().zip(&mut work.inverse);
    for (i, (((x, t1), t2), (standards, inverses))) in work.lambda.iter().zip(first).zip(second).zip(held).enumerate() {
        let base = Base::load(s, base, n, i);
        for q in 0..DRAWS {
            let t = [load(s, &t1.0[q]), load(s, &t2.0[q])];
            let [standard, inverse, log_scale] = base.standardise(s, t, load(s, &x.0[q]));
            standard.store_slice(&mut standards.0[q]);
            inverse.store_slice(&mut inverses.0[q]);
            sum[q] += (standard * 0.5).mul_add(standard, log_scale);
        }
    }
    let constant = pair.flow.len as f32 * HALF_LN_2_PI as f32;
    let misses = sums(s, sum);
    std::array::from_fn(
        #[inline(always)]
        |q| log_det[q] - misses[q] - constant,
    )
}
simd_fn!(
    fn log_r(pair: &FlowPair, phi: &[Lanes], features: &[Tile], work: &mut Work) -> [f32; DRAWS] = log_r_kernel
);

#[inline(always)]
fn log_r_changes_kernel<S: Simd>(
    s: S,
    pair: &FlowPair,
    phi: &[Lanes],
    (from, to): (&[Tile], &[Tile]),
    work: &Work,
    out: &mut [Tile],
) {
    let n = pair.tiles_len();
    for (i, (x, out)) in work.lambda.iter().zip(out).enumerate() {
        let base = Base::load(s, phi, n, i);
        for q in 0..DRAWS {
            let x = load(s, &x.0[q]);
            let miss = |features: &[Tile]| {
                let t = [load(s, &features[i].0[q]), load(s, &features[n + i].0[q])];
                let [standard, _, log_scale] = base.standardise(s, t, x);
                (standard * 0.5).mul_add(standard, log_scale)
            };
            (load(s, &out.0[q]) + miss(from) - miss(to)).store_slice(&mut out.0[q]);
        }
    }
}
simd_fn!(
    fn log_r_changes(pair: &FlowPair, phi: &[Lanes], features: (&[Tile], &[Tile]), work: &Work, out: &mut [Tile])
        = log_r_changes_kernel
);

/// The pullback of r's base: fills d_λ₀ and the gradient along the base's rows.
#[inline(always)]
fn base_pullback<S: Simd>(
    s: S,
    (standard, inverse): (&[Tile], &[Tile]),
    features: &[Tile],
    d_log_r: &[f32; DRAWS],
    d_x: &mut [Tile],
    into: Into,
    d_base: &mut [Lanes],
) {
    let n = d_x.len();
    let (first, second) = features.split_at(n);
    let known = standard.iter().zip(inverse).zip(first.iter().zip(second));
    for (i, (((standard, inverse), (t1, t2)), d_x)) in known.zip(d_x).enumerate() {
        let mut d = [splat(s, 0.0); BASE_ROWS];
        for q in 0..DRAWS {
            let t = [load(s, &t1.0[q]), load(s, &t2.0[q])];
            let (standard, weight) = (load(s, &standard.0[q]), splat(s, d_log_r[q]));
            let d_mean = standard * load(s, &inverse.0[q]) * weight;
            let d_log_scale = standard.mul_add(standard, splat(s, -1.0)) * weight;
            (-d_mean).store_slice(&mut d_x.0[q]);
            d[0] += d_mean;
            d[1] = d_mean.mul_add(t[0], d[1]);
            d[2] = d_mean.mul_add(t[1], d[2]);
            d[3] += d_log_scale;
            d[4] = d_log_scale.mul_add(t[0], d[4]);
            d[5] = d_log_scale.mul_add(t[1], d[5]);
        }
        for r in 0..BASE_ROWS {
            into.store(s, d[r], &mut d_base[r * n + i]);
        }
    }
}

#[inline(always)]
fn pullback_kernel<S: Simd>(
    s: S,
    pair: &FlowPair,
    (theta, phi): (&[Lanes], &[Lanes]),
    (eps, features): (&[Tile], &[Tile]),
    d: Cotangents,
    work: &mut Work,
    into: Into,
    (d_theta, d_phi): (&mut [Lanes], &mut [Lanes]),
) {
    let (n, len, layers_len) = (pair.tiles_len(), pair.flow.len, pair.flow.layers_len);
    let Work { lambda, d_lambda, standard, inverse, bends, tanh, rows } = work;
    let ((bends, inverse_bends), (tanh, inverse_tanh)) = (bends.split_at(layers_len), tanh.split_at(layers_len));
    // Back through r, from λ₀ to λ.
    let layers = &phi[BASE_ROWS * n..];
    let (d_base, d_layers) = d_phi.split_at_mut(BASE_ROWS * n);
    base_pullback(s, (standard, inverse), features, d.log_r, d_lambda, into, d_base);
    // Beyond the last latent the log scale would have a gradient too.
    clear_padding(len, &mut d_base[(1 + FEATURES) * n..(2 + FEATURES) * n]);
    let known = (layers, inverse_bends, inverse_tanh);
    let d_log_r = load_draws(s, d.log_r);
    planar::pullback(s, pair.inverse, known, lambda, d_lambda, d_log_r, rows, into, d_layers);
    for (d_lambda, given) in d_lambda.iter_mut().zip(d.lambda) {
        for q in 0..DRAWS {
            (load(s, &d_lambda.0[q]) + load(s, &given.0[q])).store_slice(&mut d_lambda.0[q]);
        }
    }
    // Back through q, from λ to the noise.
    let (base, layers) = theta.split_at(2 * n);
    let (d_base, d_layers) = d_theta.split_at_mut(2 * n);
    let d_log_det = -load_draws(s, d.log_q);
    planar::pullback(s, pair.flow, (layers, bends, tanh), lambda, d_lambda, d_log_det, rows, into, d_layers);
    let (d_means, d_log_scales) = d_base.split_at_mut(n);
    let d_entropy = -load_draws(s, d.log_q).reduce_sum();
    let gradients = d_means.iter_mut().zip(d_log_scales.iter_mut());
    for (((log_scale, eps), d_lambda), (d_mean, d_log_scale)) in
        base[n..].iter().zip(eps).zip(&*d_lambda).zip(gradients)
    {
        let (mut to_mean, mut to_scale) = (splat(s, 0.0), splat(s, 0.0));
        for q in 0..DRAWS {
            let g = load(s, &d_lambda.0[q]);
            to_mean += g;
            to_scale = g.mul_add(load(s, &eps.0[q]), to_scale);
        }
        let scale = simd::exp(s, load(s, &log_scale.0));
        into.store(s, to_mean, d_mean);
        into.store(s, to_scale.mul_add(scale, splat(s, d_entropy)), d_log_scale);
    }
    clear_padding(len, d_log_scales);
}
simd_fn!(
    fn pullback(
        pair: &FlowPair,
        parameters: (&[Lanes], &[Lanes]),
        known: (&[Tile], &[Tile]),
        d: Cotangents,
        work: &mut Work,
        into: Into,
        gradients: (&mut [Lanes], &mut [Lanes]),
    ) = pullback_kernel
);

//! The words of a document given the lowest layer: x_v ~ Poisson(b_v + Σ_k W_vk z_k), at the cost of the words that occur. An occurrence
//! that comes in a burst has a larger background.
//!
//! Words that do not occur enter only through Σ_v W_vk, which is computed once for all documents.

use super::row;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{V, exp, ln, ln_normal, load, splat, split, sums};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};

/// A document's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) terms: &'a [u32],
    pub(crate) counts: &'a [f32],
    /// If words come in bursts: the number of earlier occurrences, and how much each adds to the background of every term. Otherwise empty.
    pub(crate) earlier: &'a [f32],
    pub(crate) bursts: &'a [f32],
}

impl<'a> Words<'a> {
    /// The counts of a document whose words are independent of each other.
    pub(crate) fn of((terms, counts): (&'a [u32], &'a [f32])) -> Self {
        Self { terms, counts, earlier: &[], bursts: &[] }
    }

    /// What is added to the background of an entry.
    #[inline(always)]
    pub(crate) fn added(&self, entry: usize) -> f32 {
        self.earlier.get(entry).map_or(0.0, |earlier| earlier * self.bursts[self.terms[entry] as usize])
    }
}

/// The weights as documents use them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// Rows of W, one for each term.
    pub(crate) weights: &'a [Lanes],
    /// b.
    pub(crate) background: &'a [f32],
    /// Σ_v W_vk.
    pub(crate) sums: &'a [Lanes],
}

/// The least rate, so that its logarithm is finite.
pub(crate) const RATE_MIN: f32 = 1e-12;

#[inline(always)]
fn dots<S: Simd, const TERMS: usize, const COUNT: usize>(
    s: S,
    words: &Words,
    seen: &Seen,
    z: &[Tile],
    inverse: &mut [[f32; DRAWS]],
) {
    let n = z.len();
    for first in (0..words.terms.len()).step_by(TERMS) {
        let mut sum = [splat(s, 0.0); DRAWS];
        let rows: [&[Lanes]; TERMS] = std::array::from_fn(
            #[inline(always)]
            |t| &seen.weights[words.terms[(first + t).min(words.terms.len() - 1)] as usize * n..][..n],
        );
        for j in 0..n {
            for q in 0..COUNT {
                let z = row(s, &z[j], q);
                for t in 0..TERMS {
                    sum[t * COUNT + q] = load(s, &rows[t][j].0).mul_add(z, sum[t * COUNT + q]);
                }
            }
        }
        let sum = sums(s, sum);
        for t in 0..TERMS.min(words.terms.len() - first) {
            let b = seen.background[words.terms[first + t] as usize] + words.added(first + t);
            for q in 0..COUNT {
                inverse[first + t][q] = sum[t * COUNT + q] + b;
            }
            inverse[first + t][COUNT..].fill(1.0);
        }
    }
}

#[inline(always)]
fn rates_kernel<S: Simd>(
    s: S,
    words: &Words,
    seen: &Seen,
    [z, mean]: [&[Tile]; 2],
    draws: usize,
    inverse: &mut [[f32; DRAWS]],
) -> [f32; DRAWS] {
    match draws {
        1 => dots::<S, 8, 1>(s, words, seen, z, inverse),
        2 => dots::<S, 4, 2>(s, words, seen, z, inverse),
        4 => dots::<S, 2, 4>(s, words, seen, z, inverse),
        _ => dots::<S, 1, 8>(s, words, seen, z, inverse),
    }
    // Two words with eight draws each at a time.
    let mut total = splat(s, 0.0);
    let mut pairs = inverse.chunks_exact_mut(2);
    let mut at = 0;
    for pair in &mut pairs {
        let mut x = [words.counts[at]; LANES];
        x[DRAWS..].fill(words.counts[at + 1]);
        let flat: &mut [f32] = pair.as_flattened_mut();
        let rate = V::from_slice(s, flat).max(splat(s, RATE_MIN));
        total = load(s, &x).mul_add(ln(s, rate), total);
        (splat(s, 1.0) / rate).store_slice(flat);
        at += 2;
    }
    let mut out = Lanes::default();
    total.store_slice(&mut out.0);
    let mut value: [f32; DRAWS] = std::array::from_fn(
        #[inline(always)]
        |q| out.0[q] + out.0[q + DRAWS],
    );
    if let [last] = pairs.into_remainder() {
        for q in 0..DRAWS {
            let rate = last[q].max(RATE_MIN);
            value[q] += words.counts[at] * rate.ln();
            last[q] = 1.0 / rate;
        }
    }
    let mut expected = [splat(s, 0.0); DRAWS];
    for (mean, sums) in mean.iter().zip(seen.sums) {
        let less = load(s, &sums.0);
        for q in 0..draws {
            expected[q] = row(s, mean, q).mul_add(less, expected[q]);
        }
    }
    for (value, expected) in value.iter_mut().zip(sums(s, expected)) {
        *value -= expected;
    }
    value
}

simd_fn!(
    /// Σ_v x_v ln R_v of each draw, less the expected number of words given the latents' means; writes 1/R of each word and draw to
    /// `inverse`.
    pub(crate) fn rates(
        words: &Words,
        seen: &Seen,
        drawn: [&[Tile]; 2],
        draws: usize,
        inverse: &mut [[f32; DRAWS]],
    ) -> [f32; DRAWS] = rates_kernel
);

/// The number of factors that are multiplied before their exponent is split off, and the largest factor.
const FACTORS: u32 = 4;
const FACTOR_MAX: f32 = 1e9;
/// A rate without a latent is at least this share of the rate with it.
const SHARE_MIN: f32 = 1e-6;

/// Products of many factors, one product for each draw, so that only one logarithm is needed.
struct Products<S: Simd, const COUNT: usize> {
    mantissa: [V<S>; COUNT],
    exponent: [V<S>; COUNT],
    factors: u32,
}

impl<S: Simd, const COUNT: usize> Products<S, COUNT> {
    #[inline(always)]
    fn new(s: S) -> Self {
        Self { mantissa: [splat(s, 1.0); COUNT], exponent: [splat(s, 0.0); COUNT], factors: 0 }
    }

    /// Makes room for `factors` more factors.
    #[inline(always)]
    fn reserve(&mut self, s: S, factors: u32) {
        if self.factors + factors > FACTORS {
            for q in 0..COUNT {
                let (mantissa, exponent) = split(s, self.mantissa[q]);
                self.mantissa[q] = mantissa;
                self.exponent[q] += exponent;
            }
            self.factors = 0;
        }
        self.factors += factors;
    }

    #[inline(always)]
    fn ln(&self, s: S, q: usize) -> V<S> {
        self.exponent[q].mul_add(splat(s, std::f32::consts::LN_2), ln_normal(s, self.mantissa[q]))
    }
}

#[inline(always)]
fn differences_of<S: Simd, const COUNT: usize>(
    s: S,
    words: &Words,
    seen: &Seen,
    z: &[Tile],
    is_binary: bool,
    inverse: &[[f32; DRAWS]],
    out: &mut [Tile],
) {
    let n = z.len();
    let one = splat(s, 1.0);
    for j in 0..n {
        let mut sum = [splat(s, 0.0); COUNT];
        let mut products = Products::<S, COUNT>::new(s);
        // For a binary latent that is 1 the factor is 1 / (1 − share), otherwise 1 + share; the logarithm's sign is applied later.
        let mut sign = [one; COUNT];
        if is_binary {
            for q in 0..COUNT {
                sign[q] = row(s, &z[j], q).simd_gt(splat(s, 0.5)).select(-one, one);
            }
        }
        for (i, (term, x)) in words.terms.iter().zip(words.counts).enumerate() {
            let w = load(s, &seen.weights[*term as usize * n + j].0);
            let mut factor = [one; COUNT];
            for q in 0..COUNT {
                let share = w * inverse[i][q];
                factor[q] = share.mul_add(sign[q], one).max(splat(s, SHARE_MIN)).min(splat(s, FACTOR_MAX));
            }
            // Logarithms are expensive: the factors of small counts are multiplied.
            if *x > FACTORS as f32 {
                for q in 0..COUNT {
                    sum[q] = splat(s, *x).mul_add(ln_normal(s, factor[q]), sum[q]);
                }
                continue;
            }
            products.reserve(s, *x as u32);
            for _ in 0..*x as u32 {
                for q in 0..COUNT {
                    products.mantissa[q] *= factor[q];
                }
            }
        }
        let less = load(s, &seen.sums[j].0);
        for q in 0..COUNT {
            ((sum[q] + products.ln(s, q)) * sign[q] - less).store_slice(&mut out[j].0[q]);
        }
    }
}

#[inline(always)]
fn differences_kernel<S: Simd>(
    s: S,
    words: &Words,
    seen: &Seen,
    z: &[Tile],
    is_binary: bool,
    draws: usize,
    inverse: &[[f32; DRAWS]],
    out: &mut [Tile],
) {
    match draws {
        1 => differences_of::<S, 1>(s, words, seen, z, is_binary, inverse, out),
        2 => differences_of::<S, 2>(s, words, seen, z, is_binary, inverse, out),
        4 => differences_of::<S, 4>(s, words, seen, z, is_binary, inverse, out),
        _ => differences_of::<S, 8>(s, words, seen, z, is_binary, inverse, out),
    }
}

simd_fn!(
    /// For each latent of the lowest layer and each draw, the change of ln p(x | z): from z_k to z_k + 1 for counts, from 0 to 1
    /// for binary latents.
    pub(crate) fn differences(
        words: &Words,
        seen: &Seen,
        z: &[Tile],
        is_binary: bool,
        draws: usize,
        inverse: &[[f32; DRAWS]],
        out: &mut [Tile],
    ) = differences_kernel
);

#[inline(always)]
fn slopes_kernel<S: Simd>(
    s: S,
    words: &Words,
    seen: &Seen,
    z: &[Tile],
    draws: usize,
    inverse: &[[f32; DRAWS]],
    out: &mut [Tile],
) {
    let n = z.len();
    for j in 0..n {
        let mut sum = [splat(s, 0.0); DRAWS];
        for (i, (term, x)) in words.terms.iter().zip(words.counts).enumerate() {
            let w = load(s, &seen.weights[*term as usize * n + j].0);
            for q in 0..draws {
                sum[q] = w.mul_add(splat(s, x * inverse[i][q]), sum[q]);
            }
        }
        for q in 0..draws {
            (sum[q] * row(s, &z[j], q)).store_slice(&mut out[j].0[q]);
        }
    }
}

simd_fn!(
    /// For each latent of a gamma layer and each draw, the derivative of Σ_v x_v ln R_v along ln z_k.
    pub(crate) fn slopes(
        words: &Words,
        seen: &Seen,
        z: &[Tile],
        draws: usize,
        inverse: &[[f32; DRAWS]],
        out: &mut [Tile],
    ) = slopes_kernel
);

#[inline(always)]
fn allocate_kernel<S: Simd>(s: S, x: f32, inverse: &[f32; DRAWS], z: &[Tile], draws: usize, out: &mut [Lanes]) {
    for (z, out) in z.iter().zip(out) {
        let mut sum = load(s, &out.0);
        for q in 0..draws {
            sum = row(s, z, q).mul_add(splat(s, x * inverse[q]), sum);
        }
        sum.store_slice(&mut out.0);
    }
}

simd_fn!(
    /// Adds x Σ_s z_k / R of one word to `out`: times W_k this is the part of the word's count that latent k explains.
    pub(crate) fn allocate(x: f32, inverse: &[f32; DRAWS], z: &[Tile], draws: usize, out: &mut [Lanes]) = allocate_kernel
);

#[inline(always)]
fn geometric_kernel<S: Simd>(s: S, shape: &[Lanes], rate: &[Lanes], out: &mut [Lanes]) {
    let n = rate.len();
    for (i, (a, out)) in shape.iter().zip(out).enumerate() {
        let a = load(s, &a.0);
        // ψ(a) = ψ(a + 6) − Σ 1/(a + i), and e^ψ(x) = x − 1/2 + 1/(24 x) + 1/(48 x²) − 23/(5760 x³) + …
        // The last five of those fractions are (5 + (10u + 24) / (u (u + 3))) / (a + 3) with u = (a + 1) (a + 5).
        let u = (a + 1.0) * (a + 5.0);
        let rest = u.mul_add(splat(s, 10.0), splat(s, 24.0)) / (u * (u + 3.0)) + 5.0;
        let lost = splat(s, 1.0) / a + rest / (a + 3.0);
        let x = a + 6.0;
        let y = splat(s, 1.0) / x;
        let series = y.mul_add(splat(s, -23.0 / 5760.0), splat(s, 1.0 / 48.0));
        let series = series.mul_add(y, splat(s, 1.0 / 24.0));
        let top = series.mul_add(y, x - 0.5);
        (top * exp(s, -lost) / load(s, &rate[i % n].0)).store_slice(&mut out.0);
    }
}

simd_fn!(
    /// exp E ln W of gamma variables with these shapes, row by row, and one rate for each lane of a row.
    pub(crate) fn geometric(shape: &[Lanes], rate: &[Lanes], out: &mut [Lanes]) = geometric_kernel
);

#[inline(always)]
fn tempered_kernel<S: Simd>(s: S, shape: &[Lanes], rate: &[Lanes], sharpness: f32, out: &mut [Lanes]) {
    let n = rate.len();
    for (i, (a, out)) in shape.iter().zip(out).enumerate() {
        let mean = load(s, &a.0) / load(s, &rate[i % n].0);
        let share = (load(s, &out.0) / mean).max(splat(s, f32::MIN_POSITIVE));
        (mean * exp(s, ln(s, share) * sharpness)).store_slice(&mut out.0);
    }
}

simd_fn!(
    /// Interpolates between the means a/b (sharpness 0) and `out` (sharpness 1) on the log scale.
    pub(crate) fn tempered(shape: &[Lanes], rate: &[Lanes], sharpness: f32, out: &mut [Lanes]) = tempered_kernel
);

//! Elementary functions on sixteen lanes of single precision; [`simd_fn!`](crate::simd_fn) dispatches here too.

use super::{DRAWS, LANES, Lanes};
use crate::simd::fearless_simd::{Simd, f32x16, prelude::*, u32x16};

/// Sixteen numbers.
pub type V<S> = f32x16<S>;

/// Sixteen copies of `x`.
#[inline(always)]
pub fn splat<S: Simd>(s: S, x: f32) -> V<S> {
    V::splat(s, x)
}

/// The numbers of a row.
#[inline(always)]
pub fn load<S: Simd>(s: S, x: &[f32; LANES]) -> V<S> {
    V::from_slice(s, x)
}

/// One number per draw; the other lanes are zero.
#[inline(always)]
pub fn load_draws<S: Simd>(s: S, x: &[f32; DRAWS]) -> V<S> {
    let mut lanes = Lanes::default();
    lanes.0[..DRAWS].copy_from_slice(x);
    load(s, &lanes.0)
}

/// The sums of eight vectors, as the first lanes of one.
#[inline(always)]
pub fn sums<S: Simd>(s: S, mut v: [V<S>; DRAWS]) -> [f32; DRAWS] {
    let mut n = DRAWS;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            let (a, b) = (v[2 * i], v[2 * i + 1]);
            v[i] = a.unzip_low(b) + a.unzip_high(b);
        }
    }
    let zero = splat(s, 0.0);
    let total = v[0].unzip_low(zero) + v[0].unzip_high(zero);
    std::array::from_fn(
        #[inline(always)]
        |q| total[q],
    )
}

#[inline(always)]
fn horner<S: Simd, const N: usize>(s: S, x: V<S>, coefficients: [f32; N]) -> V<S> {
    let mut p = splat(s, coefficients[0]);
    for c in &coefficients[1..] {
        p = p.mul_add(x, splat(s, *c));
    }
    p
}

const LN_2_HIGH: f32 = 6.931_457_5e-1;
const LN_2_LOW: f32 = 1.428_606_8e-6;
/// 1.5 · 2²³: adding it rounds to a whole number and leaves that number in the low bits.
const ROUND: f32 = 12_582_912.0;

/// eˣ; 0 below −86.99, ∞ above 88.72.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: V<S>) -> V<S> {
    let inside = x.max(splat(s, -87.0)).min(splat(s, 89.0));
    let shifted = inside.mul_add(splat(s, std::f32::consts::LOG2_E), splat(s, ROUND));
    let n = shifted - ROUND;
    let r = n.mul_add(splat(s, -LN_2_HIGH), inside);
    let r = n.mul_add(splat(s, -LN_2_LOW), r);
    // The Taylor polynomial of degree 7; |r| ≤ ln 2 / 2, so the remainder is below 6e-9.
    let p = horner(s, r, [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]);
    let y = p.mul_add(r * r, r) + 1.0;
    // 2ⁿ as 2 · 2ⁿ⁻¹, since 2¹²⁸ is not a number though eˣ may still be one.
    let bits: u32x16<S> = shifted.bitcast();
    let half_scale: V<S> = ((bits << 23) + 0x3f00_0000_u32).bitcast();
    let y = y * half_scale * 2.0;
    let y = x.simd_lt(splat(s, -87.0)).select(splat(s, 0.0), y);
    x.simd_eq(x).select(y, x)
}

/// A normal positive number as m · 2ᵉ with m in [√½, √2).
#[inline(always)]
pub fn split<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
    let bits: u32x16<S> = x.bitcast();
    // Subtracting the bits of √½ leaves the exponent of the number that lies in [√½, √2).
    let b = bits - 0x3f35_04f3_u32;
    let mantissa: V<S> = ((b & 0x007f_ffff_u32) + 0x3f35_04f3_u32).bitcast();
    // A signed exponent from an unsigned shift: 128 is added before the shift and subtracted after it.
    let raised: V<S> = (((b + 0x4000_0000_u32) >> 23) | 0x4b00_0000_u32).bitcast();
    (mantissa, raised - splat(s, 8_388_608.0 + 128.0))
}

/// The natural logarithm of a normal positive number.
#[inline(always)]
pub fn ln_normal<S: Simd>(s: S, x: V<S>) -> V<S> {
    let (mantissa, e) = split(s, x);
    let f = mantissa - 1.0;
    let t = f / (f + 2.0);
    let t2 = t * t;
    // 2 atanh(t) = 2t (1 + t²/3 + t⁴/5 + …), |t| ≤ 0.1716.
    let p = horner(s, t2, [2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0]);
    let y = (p * t2).mul_add(t, t * 2.0);
    e.mul_add(splat(s, LN_2_HIGH), e.mul_add(splat(s, LN_2_LOW), y))
}

/// The natural logarithm; −∞ at 0, NaN below.
#[inline(always)]
pub fn ln<S: Simd>(s: S, x: V<S>) -> V<S> {
    let tiny = x.simd_lt(splat(s, f32::MIN_POSITIVE));
    let y = ln_normal(s, tiny.select(x * 33_554_432.0, x));
    let y = tiny.select(y - 17.328_68, y);
    let y = x.simd_eq(splat(s, 0.0)).select(splat(s, f32::NEG_INFINITY), y);
    let y = x.simd_lt(splat(s, 0.0)).select(splat(s, f32::NAN), y);
    let y = x.simd_eq(splat(s, f32::INFINITY)).select(x, y);
    x.simd_eq(x).select(y, x)
}

/// ln(1 + eˣ) and its derivative 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn softplus_sigmoid<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
    let e = exp(s, -x.abs());
    let u = e + 1.0;
    let inverse = splat(s, 1.0) / u;
    let sigmoid = x.simd_ge(splat(s, 0.0)).select(inverse, e * inverse);
    // The rounding error of 1 + e, so that small e keeps its digits.
    let ln_1p = (e - (u - 1.0)).mul_add(inverse, ln(s, u));
    (x.max(splat(s, 0.0)) + ln_1p, sigmoid)
}

/// The hyperbolic tangent, to 2e-7 absolute.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: V<S>) -> V<S> {
    let e = exp(s, x.abs() * -2.0);
    ((splat(s, 1.0) - e) / (e + 1.0)).copysign(x)
}

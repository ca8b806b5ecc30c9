//! Elementary functions on eight lanes, and the macro that dispatches to SIMD at run time.
//!
//! A kernel is a generic `#[inline(always)] fn k<S: Simd>(s: S, …)`; [`simd_fn!`](crate::simd_fn) wraps it in an ordinary
//! function that picks AVX-512, AVX2 or SSE2 (on other processors what they have) when it is called, so that a binary built
//! without special flags is fast.

pub use fearless_simd::{self, Level, Simd, f64x8, prelude, u64x8};
use prelude::*;

/// How many numbers a vector holds.
pub const LANES: usize = 8;

/// Eight numbers.
pub type V<S> = f64x8<S>;

/// The SIMD level of this machine, detected once.
pub fn level() -> Level {
    static LEVEL: std::sync::LazyLock<Level> = std::sync::LazyLock::new(Level::new);
    *LEVEL
}

/// Defines a function that runs a SIMD kernel at the machine's level.
#[macro_export]
macro_rules! simd_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident : $type:ty),* $(,)?) $(-> $out:ty)? = $kernel:ident) => {
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) $(-> $out)? {
            // SSE4.2 would be a fourth copy of every kernel, for processors made before 2013.
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::simd::Simd as _;
                let level = $crate::simd::level();
                if let Some(s) = level.as_avx512() {
                    s.vectorize(#[inline(always)] || $kernel(s, $($arg),*))
                } else if let Some(s) = level.as_avx2() {
                    s.vectorize(#[inline(always)] || $kernel(s, $($arg),*))
                } else {
                    let s = level.as_sse2().expect("every x86-64 processor has SSE2");
                    s.vectorize(#[inline(always)] || $kernel(s, $($arg),*))
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            $crate::simd::fearless_simd::dispatch!($crate::simd::level(), s => $kernel(s, $($arg),*))
        }
    };
}

/// Eight copies of `x`.
#[inline(always)]
pub fn splat<S: Simd>(s: S, x: f64) -> V<S> {
    V::splat(s, x)
}

/// The numbers from `at`; if fewer than eight are left, the rest are `fill`.
#[inline(always)]
pub fn load<S: Simd>(s: S, x: &[f64], at: usize, fill: f64) -> V<S> {
    if at + LANES <= x.len() { V::from_slice(s, &x[at..at + LANES]) } else { V::from_slice(s, &load_rest(x, at, fill)) }
}

// Inlined, so that the loops around `load` and `store` keep their registers.
#[inline(always)]
fn load_rest(x: &[f64], at: usize, fill: f64) -> [f64; LANES] {
    let mut lanes = [fill; LANES];
    for j in 0..LANES - 1 {
        if at + j < x.len() {
            lanes[j] = x[at + j];
        }
    }
    lanes
}

/// Writes the lanes that fit from `at`.
#[inline(always)]
pub fn store<S: Simd>(v: V<S>, x: &mut [f64], at: usize) {
    if at + LANES <= x.len() {
        v.store_slice(&mut x[at..at + LANES]);
    } else {
        let mut lanes = [0.0; LANES];
        v.store_slice(&mut lanes);
        store_rest(&lanes, x, at);
    }
}

#[inline(always)]
fn store_rest(lanes: &[f64; LANES], x: &mut [f64], at: usize) {
    for j in 0..LANES - 1 {
        if at + j < x.len() {
            x[at + j] = lanes[j];
        }
    }
}

/// The sums of eight vectors, as the lanes of one.
#[inline(always)]
pub fn sums<S: Simd>(mut v: [V<S>; LANES]) -> V<S> {
    let mut n = LANES;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            let (a, b) = (v[2 * i], v[2 * i + 1]);
            v[i] = a.unzip_low(b) + a.unzip_high(b);
        }
    }
    v[0]
}

/// Transposes eight vectors of eight.
#[inline(always)]
pub fn transpose<S: Simd>(mut v: [V<S>; LANES]) -> [V<S>; LANES] {
    // Each round moves the lowest bit of the lane to the top of the row and every other bit one place down; after three
    // rounds lane and row are exchanged.
    for _ in 0..3 {
        let old = v;
        for i in 0..LANES / 2 {
            v[i] = old[2 * i].unzip_low(old[2 * i + 1]);
            v[i + LANES / 2] = old[2 * i].unzip_high(old[2 * i + 1]);
        }
    }
    v
}

#[inline(always)]
fn horner<S: Simd, const N: usize>(s: S, x: V<S>, coefficients: [f64; N]) -> V<S> {
    let mut p = splat(s, coefficients[0]);
    for c in &coefficients[1..] {
        p = p.mul_add(x, splat(s, *c));
    }
    p
}

const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// 1.5 · 2⁵²: adding it rounds to a whole number and leaves that number in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// eˣ; 0 below −708, ∞ above 709.78.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: V<S>) -> V<S> {
    let inside = x.max(splat(s, -708.0)).min(splat(s, 710.0));
    let shifted = inside.mul_add(splat(s, std::f64::consts::LOG2_E), splat(s, ROUND));
    let n = shifted - ROUND;
    let r = n.mul_add(splat(s, -LN_2_HIGH), inside);
    let r = n.mul_add(splat(s, -LN_2_LOW), r);
    // The Taylor polynomial of degree 13; |r| ≤ ln 2 / 2, so the remainder is below 5e-18. Its terms are combined in pairs,
    // then fours, then all: one chain of twelve would stall the processor.
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let high = fours(s, r, r2, [1.0 / 6_227_020_800.0, 1.0 / 479_001_600.0, 1.0 / 39_916_800.0, 1.0 / 3_628_800.0]);
    let middle = fours(s, r, r2, [1.0 / 362_880.0, 1.0 / 40_320.0, 1.0 / 5_040.0, 1.0 / 720.0]);
    let low = fours(s, r, r2, [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]);
    let p = high.mul_add(r4, middle).mul_add(r4, low);
    let y = p.mul_add(r2, r) + 1.0;
    // 2ⁿ as 2 · 2ⁿ⁻¹, since 2¹⁰²⁴ is not a number though eˣ may still be one.
    let bits: u64x8<S> = shifted.bitcast();
    let half_scale: V<S> = ((bits << 52) + 0x3fe0_0000_0000_0000_u64).bitcast();
    let y = y * half_scale * 2.0;
    let y = x.simd_lt(splat(s, -708.0)).select(splat(s, 0.0), y);
    x.simd_eq(x).select(y, x)
}

/// c₀ x³ + c₁ x² + c₂ x + c₃, given x².
#[inline(always)]
fn fours<S: Simd>(s: S, x: V<S>, x2: V<S>, c: [f64; 4]) -> V<S> {
    let high = x.mul_add(splat(s, c[0]), splat(s, c[1]));
    high.mul_add(x2, x.mul_add(splat(s, c[2]), splat(s, c[3])))
}

/// The natural logarithm; −∞ at 0, NaN below.
#[inline(always)]
pub fn ln<S: Simd>(s: S, x: V<S>) -> V<S> {
    let tiny = x.simd_lt(splat(s, f64::MIN_POSITIVE));
    let scaled = tiny.select(x * 18_014_398_509_481_984.0, x);
    let bits: u64x8<S> = scaled.bitcast();
    // Subtracting the bits of √½ leaves the exponent of the number that lies in [√½, √2).
    let b = bits - 0x3fe6_a09e_667f_3bcd_u64;
    let mantissa: V<S> = ((b & 0x000f_ffff_ffff_ffff_u64) + 0x3fe6_a09e_667f_3bcd_u64).bitcast();
    // A signed exponent from an unsigned shift: 2048 is added before the shift and subtracted after it.
    let raised: V<S> = (((b + 0x4000_0000_0000_0000_u64) >> 52) | 0x4330_0000_0000_0000_u64).bitcast();
    let e = raised - (4_503_599_627_370_496.0 + 1024.0);
    let e = tiny.select(e - 54.0, e);
    let f = mantissa - 1.0;
    let t = f / (f + 2.0);
    let y = twice_atanh(s, t);
    let y = e.mul_add(splat(s, LN_2_HIGH), e.mul_add(splat(s, LN_2_LOW), y));
    let y = x.simd_eq(splat(s, 0.0)).select(splat(s, f64::NEG_INFINITY), y);
    let y = x.simd_lt(splat(s, 0.0)).select(splat(s, f64::NAN), y);
    let y = x.simd_eq(splat(s, f64::INFINITY)).select(x, y);
    x.simd_eq(x).select(y, x)
}

/// 2 atanh(t) = 2t (1 + t²/3 + t⁴/5 + …), for |t| ≤ 0.1716.
#[inline(always)]
fn twice_atanh<S: Simd>(s: S, t: V<S>) -> V<S> {
    let t2 = t * t;
    let p = horner(
        s,
        t2,
        [
            2.0 / 23.0,
            2.0 / 21.0,
            2.0 / 19.0,
            2.0 / 17.0,
            2.0 / 15.0,
            2.0 / 13.0,
            2.0 / 11.0,
            2.0 / 9.0,
            2.0 / 7.0,
            2.0 / 5.0,
            2.0 / 3.0,
        ],
    );
    (p * t2).mul_add(t, t * 2.0)
}

/// ln(1 + x), accurate near 0; −∞ at −1, NaN below.
#[inline(always)]
pub fn ln_1p<S: Simd>(s: S, x: V<S>) -> V<S> {
    let u = x + 1.0;
    let lost = (x - (u - 1.0)) / u;
    let y = ln(s, u);
    // At −1 and ∞ the correction is 0/0 or ∞ − ∞, and y alone is the answer.
    lost.simd_eq(lost).select(y + lost, y)
}

/// ln(1 + eˣ) and its derivative 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn softplus_sigmoid<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
    let e = exp(s, -x.abs());
    // 1 + e is 1 + f or, above √2, twice that: ln(1 + e) = ln(1 + f), plus ln 2 where it was halved.
    let halved = e.simd_gt(splat(s, std::f64::consts::SQRT_2 - 1.0));
    let f = halved.select((e - 1.0) * 0.5, e);
    // One division for 1 / (1 + e) and f / (2 + f).
    let (u, v) = (e + 1.0, f + 2.0);
    let both = splat(s, 1.0) / (u * v);
    let inverse = both * v;
    let y = twice_atanh(s, f * (both * u));
    let log = halved.select(y + std::f64::consts::LN_2, y);
    let sigmoid = x.simd_ge(splat(s, 0.0)).select(inverse, e * inverse);
    (x.max(splat(s, 0.0)) + log, sigmoid)
}

/// The hyperbolic tangent, to 5e-16 absolute.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: V<S>) -> V<S> {
    let e = exp(s, x.abs() * -2.0);
    ((splat(s, 1.0) - e) / (e + 1.0)).copysign(x)
}

//! Elementary functions on eight lanes, and the one way in which this project dispatches to SIMD at run time.
//!
//! A kernel is a generic `#[inline(always)] fn k<S: Simd>(s: S, …)`; [`simd_fn!`](crate::simd_fn) wraps it in an ordinary
//! function that picks AVX-512, AVX2, NEON or plain code when it is called, so that a binary built without special flags
//! is fast.

pub use fearless_simd::{self, Level, Simd, f64x8, prelude, u64x8};
use prelude::*;

/// How many numbers a vector holds.
pub const LANES: usize = 8;

/// Eight numbers.
pub type V<S> = f64x8<S>;

/// The SIMD level of this machine, found once.
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
            $crate::simd::fearless_simd::dispatch!($crate::simd::level(), s => $kernel(s, $($arg),*))
        }
    };
}

/// Eight copies of `x`.
#[inline(always)]
pub fn splat<S: Simd>(s: S, x: f64) -> V<S> {
    V::splat(s, x)
}

/// The numbers from `at`; where fewer than eight are left, the rest are `fill`.
#[inline(always)]
pub fn load<S: Simd>(s: S, x: &[f64], at: usize, fill: f64) -> V<S> {
    if at + LANES <= x.len() {
        V::from_slice(s, &x[at..at + LANES])
    } else {
        let mut lanes = [fill; LANES];
        lanes[..x.len() - at].copy_from_slice(&x[at..]);
        V::from_slice(s, &lanes)
    }
}

/// Writes the lanes that fit from `at`.
#[inline(always)]
pub fn store<S: Simd>(v: V<S>, x: &mut [f64], at: usize) {
    if at + LANES <= x.len() {
        v.store_slice(&mut x[at..at + LANES]);
    } else {
        let mut lanes = [0.0; LANES];
        v.store_slice(&mut lanes);
        let left = x.len() - at;
        x[at..].copy_from_slice(&lanes[..left]);
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
    let inside = x.max(splat(s, -708.0)).min(splat(s, 709.0));
    let shifted = inside.mul_add(splat(s, std::f64::consts::LOG2_E), splat(s, ROUND));
    let n = shifted - ROUND;
    let r = n.mul_add(splat(s, -LN_2_HIGH), inside);
    let r = n.mul_add(splat(s, -LN_2_LOW), r);
    // The Taylor polynomial of degree 13; |r| ≤ ln 2 / 2, so what is left out is below 5e-18.
    let p = horner(
        s,
        r,
        [
            1.0 / 6_227_020_800.0,
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
        ],
    );
    let y = (p * r).mul_add(r, r) + 1.0;
    let bits: u64x8<S> = shifted.bitcast();
    let scale: V<S> = ((bits << 52) + 0x3ff0_0000_0000_0000_u64).bitcast();
    let y = y * scale;
    let y = x.simd_lt(splat(s, -708.0)).select(splat(s, 0.0), y);
    let y = x.simd_gt(splat(s, 709.0)).select((x - 709.0).max(splat(s, 0.0)).mul_add(y, y), y);
    let y = x.simd_gt(splat(s, 709.78)).select(splat(s, f64::INFINITY), y);
    x.simd_eq(x).select(y, x)
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
    // A signed exponent from an unsigned shift: 2048 is added below the shift and taken off after it.
    let raised: V<S> = (((b + 0x4000_0000_0000_0000_u64) >> 52) | 0x4330_0000_0000_0000_u64).bitcast();
    let e = raised - (4_503_599_627_370_496.0 + 1024.0);
    let e = tiny.select(e - 54.0, e);
    let f = mantissa - 1.0;
    let t = f / (f + 2.0);
    let t2 = t * t;
    // 2 atanh(t) = 2t (1 + t²/3 + t⁴/5 + …), |t| ≤ 0.1716.
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
    let y = (p * t2).mul_add(t, t * 2.0);
    let y = e.mul_add(splat(s, LN_2_HIGH), e.mul_add(splat(s, LN_2_LOW), y));
    let y = x.simd_eq(splat(s, 0.0)).select(splat(s, f64::NEG_INFINITY), y);
    let y = x.simd_lt(splat(s, 0.0)).select(splat(s, f64::NAN), y);
    let y = x.simd_eq(splat(s, f64::INFINITY)).select(x, y);
    x.simd_eq(x).select(y, x)
}

/// ln(1 + x) for x > −1, accurate near 0.
#[inline(always)]
pub fn ln_1p<S: Simd>(s: S, x: V<S>) -> V<S> {
    let u = x + 1.0;
    let lost = (x - (u - 1.0)) / u;
    let y = ln(s, u);
    u.simd_lt(splat(s, 1e300)).select(y + lost, y)
}

/// ln(1 + eˣ) and its derivative 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn softplus_sigmoid<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
    let e = exp(s, -x.abs());
    let inverse = splat(s, 1.0) / (e + 1.0);
    let sigmoid = x.simd_ge(splat(s, 0.0)).select(inverse, e * inverse);
    (x.max(splat(s, 0.0)) + ln_1p(s, e), sigmoid)
}

/// The hyperbolic tangent, to 2e-16 absolute.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: V<S>) -> V<S> {
    let e = exp(s, x.abs() * -2.0);
    ((splat(s, 1.0) - e) / (e + 1.0)).copysign(x)
}

//! Natural-gradient steps of discrete latents (Amari, 1998). If the derivative of the bound along a mean is s, the natural
//! parameter, ln m of a count or the log odds of a binary latent, moves by a share of s. With the other latents held fixed, a step
//! of s takes a binary latent to its optimum. For a count s itself falls with m: near the optimum by about Σ_v W_v, the words that
//! one more of it brings, for each unit of ln m, if no other latent explains those words. Its share is reduced accordingly;
//! otherwise it would overshoot.

use crate::kernel::layer::RATE_MIN;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::Lanes;
use hyperprior_math::single::simd::{V, exp, ln, load, softplus_sigmoid, splat};

/// The largest step, and the largest |λ|.
const STEP_MAX: f32 = 0.5;
const FAR: f32 = 12.0;

/// How fast s falls with ln m of a count, relative to the case that no other latent explains its words.
const STIFF: f32 = 1.0 / 3.0;

/// λ for the mean m = ln(1 + e^λ) + the least rate.
#[inline(always)]
fn parameter<S: Simd>(s: S, m: V<S>) -> V<S> {
    let x = (m - RATE_MIN).max(splat(s, 6.2e-6));
    // ln(e^x − 1), by its series if x is small.
    let small = ln(s, x.mul_add(x * 0.5, x));
    let large = x + ln(s, splat(s, 1.0) - exp(s, -x));
    x.simd_lt(splat(s, 0.01)).select(small, large)
}

/// A step of the natural parameter, given its share of the gradient.
#[inline(always)]
fn step<S: Simd>(s: S, gradient: V<S>, slope: V<S>, share: V<S>) -> V<S> {
    let g = gradient.abs().simd_lt(splat(s, f32::INFINITY)).select(gradient, splat(s, 0.0));
    (g * share / slope.max(splat(s, 1e-9))).max(splat(s, -STEP_MAX)).min(splat(s, STEP_MAX))
}

#[inline(always)]
fn bits_kernel<S: Simd>(s: S, at: &mut [Lanes], gradient: &[Lanes], share: f32) {
    for (at, gradient) in at.iter_mut().zip(gradient) {
        let lambda = load(s, &at.0);
        let (_, sigmoid) = softplus_sigmoid(s, lambda);
        let slope = sigmoid * (splat(s, 1.0) - sigmoid);
        let lambda = lambda + step(s, load(s, &gradient.0), slope, splat(s, share));
        lambda.max(splat(s, -FAR)).min(splat(s, FAR)).store_slice(&mut at.0);
    }
}

simd_fn!(
    /// Moves λ of binary latents by a share of the natural gradient.
    pub(crate) fn ascend_bits(at: &mut [Lanes], gradient: &[Lanes], share: f32) = bits_kernel
);

#[inline(always)]
fn counts_kernel<S: Simd>(s: S, at: &mut [Lanes], gradient: &[Lanes], words: &[Lanes], share: f32) {
    for (i, (at, gradient)) in at.iter_mut().zip(gradient).enumerate() {
        let lambda = load(s, &at.0);
        let (soft, sigmoid) = softplus_sigmoid(s, lambda);
        let stiff = match words.get(i) {
            Some(words) => (load(s, &words.0) + 1.0) * STIFF,
            None => splat(s, 1.0),
        };
        let step = step(s, load(s, &gradient.0), sigmoid, splat(s, share) / stiff);
        let moved = parameter(s, (soft + RATE_MIN) * exp(s, step));
        // A zero gradient leaves λ exactly where it is.
        step.simd_eq(splat(s, 0.0)).select(lambda, moved).store_slice(&mut at.0);
    }
}

simd_fn!(
    /// The same for counts; `words` are the words that each brings, empty for layers above the lowest.
    pub(crate) fn ascend_counts(at: &mut [Lanes], gradient: &[Lanes], words: &[Lanes], share: f32) = counts_kernel
);

#[inline(always)]
fn log_counts_kernel<S: Simd>(s: S, at: &mut [Lanes], gradient: &[Lanes], words: &[Lanes], share: f32) {
    for (i, (at, gradient)) in at.iter_mut().zip(gradient).enumerate() {
        let eta = load(s, &at.0);
        let stiff = match words.get(i) {
            Some(words) => (load(s, &words.0) + 1.0) * STIFF,
            None => splat(s, 1.0),
        };
        let eta = eta + step(s, load(s, &gradient.0), exp(s, eta), splat(s, share) / stiff);
        eta.max(splat(s, -FAR)).min(splat(s, FAR)).store_slice(&mut at.0);
    }
}

simd_fn!(
    /// The same for counts whose parameter is the log of their mean.
    pub(crate) fn ascend_log_counts(at: &mut [Lanes], gradient: &[Lanes], words: &[Lanes], share: f32) = log_counts_kernel
);

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::single::LANES;

    #[test]
    fn a_whole_step_of_a_binary_latent_arrives() {
        let from: [f32; LANES] = std::array::from_fn(|i| i as f32 - 9.0);
        for shift in [-0.4_f32, 0.0, 0.3] {
            let slope = |l: f32| 1.0 / (2.0 + l.exp() + (-l).exp());
            let mut at = [Lanes(from)];
            ascend_bits(&mut at, &[Lanes(from.map(|l| shift * slope(l)))], 1.0);
            for (l, after) in from.iter().zip(at[0].0) {
                assert!((after - l - shift).abs() < 1e-4, "{l} to {after}");
            }
        }
    }

    #[test]
    fn counts_of_many_words_converge() {
        // x words of one type and a weight W: the optimal mean is near x/W, and the steps reach it from anywhere.
        for (words, brought) in [(50.0_f32, 10.0_f32), (2500.0, 500.0), (60.0, 20.0), (40.0, 5.0)] {
            for start in [-9.0_f32, 0.5, 30.0] {
                let mut at = [Lanes([start; LANES])];
                let mean = |l: f32| if l > 20.0 { l } else { l.exp().ln_1p() } + RATE_MIN;
                let signal = |m: f32| {
                    // E of Δ(x ln(1 + W z)) over a Poisson, less the words brought, with a prior of mean 1.
                    let (mut p, mut sum) = (f64::from(-m).exp(), 0.0);
                    for z in 0..400 {
                        let rate = 1.0 + f64::from(brought) * f64::from(z);
                        sum += p * f64::from(words) * ((rate + f64::from(brought)) / rate).ln();
                        p *= f64::from(m) / f64::from(z + 1);
                    }
                    sum as f32 - brought - m.ln()
                };
                for _ in 0..300 {
                    let l = at[0].0[0];
                    let slope = 1.0 / (1.0 + (-l).exp());
                    ascend_counts(&mut at, &[Lanes([signal(mean(l)) * slope; LANES])], &[Lanes([brought; LANES])], 0.3);
                }
                let left = signal(mean(at[0].0[0]));
                assert!(
                    left.abs() < 0.02 * (1.0 + brought),
                    "{words} words, {brought} each: {left} left at {}",
                    mean(at[0].0[0])
                );
            }
        }
    }

    #[test]
    fn counts_move_alike_in_both_parameterisations() {
        for (mean, signal) in [(0.02_f32, 3.0_f32), (1.3, -0.4), (7.0, 0.2)] {
            let softplus = (f64::from(mean - RATE_MIN)).exp_m1().ln() as f32;
            let (mut one, mut other) = ([Lanes([softplus; LANES])], [Lanes([mean.ln(); LANES])]);
            // The derivatives along both parameters, of a bound whose derivative along the mean is the signal.
            let slope = 1.0 / (1.0 + (-softplus).exp());
            let words = [Lanes([4.0; LANES])];
            ascend_counts(&mut one, &[Lanes([signal * slope; LANES])], &words, 0.3);
            ascend_log_counts(&mut other, &[Lanes([signal * mean; LANES])], &words, 0.3);
            let (one, other) = (one[0].0[3].exp().ln_1p() + RATE_MIN, other[0].0[3].exp());
            assert!((one / other - 1.0).abs() < 1e-4, "{mean}: {one} and {other}");
        }
    }
}

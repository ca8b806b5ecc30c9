//! Steps along the natural gradient (Amari, 1998) of discrete latents: where the bound's derivative along a mean is s, the natural
//! parameter, ln m of a count or the log odds of a binary latent, goes up by a share of s. With the other latents as they are, a
//! whole s is the way to the best.

use crate::kernel::between::RATE_MIN;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::Lanes;
use hyperprior_math::single::simd::{V, exp, ln, load, softplus_sigmoid, splat};

/// How far a step goes at most, and how far from 0 λ.
const STEP_MAX: f32 = 0.5;
const FAR: f32 = 12.0;

/// λ for the mean m = ln(1 + e^λ) + the least.
#[inline(always)]
fn parameter<S: Simd>(s: S, m: V<S>) -> V<S> {
    let x = (m - RATE_MIN).max(splat(s, 6.2e-6));
    // ln(e^x − 1), where x is small by its series.
    let small = ln(s, x.mul_add(x * 0.5, x));
    let large = x + ln(s, splat(s, 1.0) - exp(s, -x));
    x.simd_lt(splat(s, 0.01)).select(small, large)
}

#[inline(always)]
fn ascend_kernel<S: Simd>(s: S, is_binary: bool, at: &mut [Lanes], gradient: &[Lanes], share: f32) {
    let (low, high) = (splat(s, -STEP_MAX), splat(s, STEP_MAX));
    for (at, gradient) in at.iter_mut().zip(gradient) {
        let (lambda, g) = (load(s, &at.0), load(s, &gradient.0));
        let g = g.abs().simd_lt(splat(s, f32::INFINITY)).select(g, splat(s, 0.0));
        let (soft, sigmoid) = softplus_sigmoid(s, lambda);
        let slope = if is_binary { sigmoid * (splat(s, 1.0) - sigmoid) } else { sigmoid };
        let step = (g * share / slope.max(splat(s, 1e-9))).max(low).min(high);
        let lambda = if is_binary {
            (lambda + step).max(splat(s, -FAR)).min(splat(s, FAR))
        } else {
            // Where there is nothing to climb nothing moves.
            step.simd_eq(splat(s, 0.0)).select(lambda, parameter(s, (soft + RATE_MIN) * exp(s, step)))
        };
        lambda.store_slice(&mut at.0);
    }
}

simd_fn!(
    /// Takes λ that share of the way that its gradient asks for.
    pub(crate) fn ascend(is_binary: bool, at: &mut [Lanes], gradient: &[Lanes], share: f32) = ascend_kernel
);

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::single::LANES;

    #[test]
    fn a_whole_step_arrives() {
        // The bound a·m − (m ln m − m) of a count, and a·m + H(m) of a binary latent, are best at m = e^a and at 1/(1 + e^−a).
        let from: [f32; LANES] = std::array::from_fn(|i| i as f32 - 9.0);
        for is_binary in [false, true] {
            for shift in [-0.4_f32, 0.0, 0.3] {
                let mean = |l: f32| if is_binary { 1.0 / (1.0 + (-l).exp()) } else { l.exp().ln_1p() + RATE_MIN };
                let natural = |l: f32| if is_binary { l } else { mean(l).ln() };
                let slope = |l: f32| if is_binary { mean(l) * (1.0 - mean(l)) } else { 1.0 / (1.0 + (-l).exp()) };
                let mut at = [Lanes(from)];
                ascend(is_binary, &mut at, &[Lanes(from.map(|l| shift * slope(l)))], 1.0);
                for (l, after) in from.iter().zip(at[0].0) {
                    let wanted = natural(*l) + shift;
                    // Below the least a count cannot go.
                    if is_binary || wanted > (1.2 * RATE_MIN).ln() {
                        assert!(
                            (natural(after) - wanted).abs() < 2e-3,
                            "{l} to {after}, {} not {wanted}",
                            natural(after)
                        );
                    }
                }
            }
        }
    }
}

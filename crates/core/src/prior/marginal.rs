//! Marginal distributions of a Gaussian copula.

use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V, exp, ln, load, splat, store};
use hyperprior_math::simd_fn;
use std::f64::consts::LN_2;

/// A marginal distribution of one λ, as an increasing map of a standard normal.
///
/// ```
/// use hyperprior::prior::{Marginal, NormalMarginal};
/// let (lambda, log_slope) = NormalMarginal.forward(&[2.0, 0.0], 0.5);
/// assert_eq!((lambda, log_slope), (2.5, 0.0));
/// assert_eq!(NormalMarginal.inverse(&[2.0, 0.0], lambda), 0.5);
/// ```
pub trait Marginal: std::fmt::Debug + Send + Sync {
    /// A short name.
    fn name(&self) -> &'static str;

    /// How many parameters it has.
    fn parameters_len(&self) -> usize;

    /// h(x) and log h'(x).
    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64);

    /// Given the cotangents of h(x) and of log h'(x): adds to those of the parameters and returns that of x.
    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64;

    /// Replaces each x by h(x), and writes log h'(x).
    fn forward_each(&self, parameters: &[f64], x: &mut [f64], log_slopes: &mut [f64]) {
        for (x, log_slope) in x.iter_mut().zip(log_slopes) {
            (*x, *log_slope) = self.forward(parameters, *x);
        }
    }

    /// Replaces each x by its cotangent, and adds to those of the parameters.
    fn pullback_each(
        &self,
        parameters: &[f64],
        x: &mut [f64],
        d_values: &[f64],
        d_log_slopes: &[f64],
        d_parameters: &mut [f64],
    ) {
        for ((x, d_value), d_log_slope) in x.iter_mut().zip(d_values).zip(d_log_slopes) {
            *x = self.pullback(parameters, *x, *d_value, *d_log_slope, d_parameters);
        }
    }

    /// The x with h(x) = λ.
    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64;

    /// Parameters of the normal with this mean and standard deviation, or the closest available.
    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]);
}

/// N(m, e^{2l}): h(x) = m + e^l x. See [`Marginal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NormalMarginal;

impl Marginal for NormalMarginal {
    fn name(&self) -> &'static str {
        "normal"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64) {
        (parameters[0] + parameters[1].exp() * x, parameters[1])
    }

    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64 {
        let scale = parameters[1].exp();
        d_parameters[0] += d_value;
        d_parameters[1] += d_value * scale * x + d_log_slope;
        d_value * scale
    }

    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64 {
        (lambda - parameters[0]) * (-parameters[1]).exp()
    }

    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]) {
        parameters.copy_from_slice(&[mean, deviation.ln()]);
    }
}

/// The sinh–arcsinh distribution (Jones and Pewsey, 2009): h(x) = m + e^l sinh((asinh x + a) e^b), skewed by a, with tails
/// heavier than the normal's where b > 0 and lighter where b < 0. See [`Copula`](super::Copula).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinhArcsinh;

impl Marginal for SinhArcsinh {
    fn name(&self) -> &'static str {
        "sinh-arcsinh"
    }

    fn parameters_len(&self) -> usize {
        4
    }

    fn forward(&self, parameters: &[f64], x: f64) -> (f64, f64) {
        let &[m, l, a, b] = parameters else { return (f64::NAN, f64::NAN) };
        let w = (x.asinh() + a) * b.exp();
        (m + l.exp() * w.sinh(), l + log_cosh(w) + b - 0.5 * (x * x).ln_1p())
    }

    fn pullback(&self, parameters: &[f64], x: f64, d_value: f64, d_log_slope: f64, d_parameters: &mut [f64]) -> f64 {
        let &[_, l, a, b] = parameters else { return f64::NAN };
        let (tail, scale) = (b.exp(), l.exp());
        let w = (x.asinh() + a) * tail;
        let d_w = d_value * scale * w.cosh() + d_log_slope * w.tanh();
        d_parameters[0] += d_value;
        d_parameters[1] += d_value * scale * w.sinh() + d_log_slope;
        d_parameters[2] += d_w * tail;
        d_parameters[3] += d_w * w + d_log_slope;
        d_w * tail / (1.0 + x * x).sqrt() - d_log_slope * x / (1.0 + x * x)
    }

    fn forward_each(&self, parameters: &[f64], x: &mut [f64], log_slopes: &mut [f64]) {
        forward_each(parameters, x, log_slopes);
    }

    fn pullback_each(
        &self,
        parameters: &[f64],
        x: &mut [f64],
        d_values: &[f64],
        d_log_slopes: &[f64],
        d_parameters: &mut [f64],
    ) {
        pullback_each(parameters, x, d_values, d_log_slopes, d_parameters);
    }

    fn inverse(&self, parameters: &[f64], lambda: f64) -> f64 {
        let &[m, l, a, b] = parameters else { return f64::NAN };
        (((lambda - m) * (-l).exp()).asinh() * (-b).exp() - a).sinh()
    }

    fn start(&self, mean: f64, deviation: f64, parameters: &mut [f64]) {
        parameters.copy_from_slice(&[mean, deviation.ln(), 0.0, 0.0]);
    }
}

fn log_cosh(w: f64) -> f64 {
    w.abs() + (-2.0 * w.abs()).exp().ln_1p() - LN_2
}

simd_fn!(fn forward_each(parameters: &[f64], x: &mut [f64], log_slopes: &mut [f64]) = forward_kernel);
simd_fn!(fn pullback_each(parameters: &[f64], x: &mut [f64], d_values: &[f64], d_log_slopes: &[f64], d_parameters: &mut [f64]) = pullback_kernel);

/// x with the sign of another number.
#[inline(always)]
fn signed<S: Simd>(s: S, x: V<S>, as_of: V<S>) -> V<S> {
    as_of.simd_ge(splat(s, 0.0)).select(x, -x)
}

/// (asinh x + a) tail, and its sinh, cosh and log cosh.
#[inline(always)]
fn bent<S: Simd>(s: S, x: V<S>, a: f64, tail: f64) -> [V<S>; 4] {
    let root = x.mul_add(x, splat(s, 1.0)).sqrt();
    let w = (signed(s, ln(s, x.abs() + root), x) + a) * tail;
    let grown = exp(s, w.abs());
    let shrunk = splat(s, 1.0) / grown;
    let log_cosh = w.abs() + ln(s, shrunk.mul_add(shrunk, splat(s, 1.0))) - LN_2;
    [w, signed(s, (grown - shrunk) * 0.5, w), (grown + shrunk) * 0.5, log_cosh]
}

#[inline(always)]
fn forward_kernel<S: Simd>(s: S, parameters: &[f64], x: &mut [f64], log_slopes: &mut [f64]) {
    let &[m, l, a, b] = parameters else { return x.fill(f64::NAN) };
    let (tail, scale) = (b.exp(), l.exp());
    for at in (0..x.len()).step_by(LANES) {
        let own = load(s, x, at, 0.0);
        let [_, sinh, _, log_cosh] = bent(s, own, a, tail);
        let log_root = ln(s, own.mul_add(own, splat(s, 1.0))) * 0.5;
        store(sinh * scale + m, x, at);
        store(log_cosh - log_root + (l + b), log_slopes, at);
    }
}

#[inline(always)]
fn pullback_kernel<S: Simd>(
    s: S,
    parameters: &[f64],
    x: &mut [f64],
    d_values: &[f64],
    d_log_slopes: &[f64],
    d_parameters: &mut [f64],
) {
    let &[_, l, a, b] = parameters else { return x.fill(f64::NAN) };
    let (tail, scale) = (b.exp(), l.exp());
    let mut sums = [splat(s, 0.0); 4];
    for at in (0..x.len()).step_by(LANES) {
        let (own, d_value, d_log_slope) =
            (load(s, x, at, 0.0), load(s, d_values, at, 0.0), load(s, d_log_slopes, at, 0.0));
        let [w, sinh, cosh, _] = bent(s, own, a, tail);
        let d_w = d_value * scale * cosh + d_log_slope * (sinh / cosh);
        sums[0] += d_value;
        sums[1] += d_value * scale * sinh + d_log_slope;
        sums[2] += d_w * tail;
        sums[3] += d_w * w + d_log_slope;
        let squared = own.mul_add(own, splat(s, 1.0));
        store(d_w * tail / squared.sqrt() - d_log_slope * own / squared, x, at);
    }
    for (d, sum) in d_parameters.iter_mut().zip(sums) {
        *d += sum.reduce_sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a vectorised marginal that differs from the formula, also where a number is left over or far out.
    #[test]
    fn many_numbers_are_mapped_as_one_is() {
        let x: Vec<f64> = (0..21).map(|k| f64::from(k - 10) * 0.7).chain([0.0, -0.0, 1e-9, 40.0, -300.0]).collect();
        let (d_values, d_log_slopes): (Vec<f64>, Vec<f64>) =
            (0..x.len()).map(|k| (f64::from(k as u32 % 5) - 2.0, f64::from(k as u32 % 3) * 0.4)).unzip();
        for parameters in [[0.3, -0.4, 0.2, 0.1], [-2.0, 1.0, -0.7, -0.5], [0.0, 0.0, 0.0, 0.0]] {
            let (mut values, mut log_slopes) = (x.clone(), vec![0.0; x.len()]);
            SinhArcsinh.forward_each(&parameters, &mut values, &mut log_slopes);
            let (mut d_x, mut d_parameters, mut expected) = (x.clone(), [1.0; 4], [1.0; 4]);
            SinhArcsinh.pullback_each(&parameters, &mut d_x, &d_values, &d_log_slopes, &mut d_parameters);
            let is_near = |x: f64, y: f64| assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{x} is not {y}");
            for (k, x) in x.iter().enumerate() {
                let (value, log_slope) = SinhArcsinh.forward(&parameters, *x);
                is_near(values[k], value);
                is_near(log_slopes[k], log_slope);
                let d = SinhArcsinh.pullback(&parameters, *x, d_values[k], d_log_slopes[k], &mut expected);
                is_near(d_x[k], d);
            }
            d_parameters.iter().zip(expected).for_each(|(d, expected)| is_near(*d, expected));
        }
    }
}

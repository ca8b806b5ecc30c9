//! Models for tests whose latents are coupled in few pairs.

use crate::error::Result;
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;

/// A model with the log density of a draw, which adds its gradient to zeros.
#[derive(Debug)]
pub(super) struct Coupled {
    latents: Latents,
    pairs: Vec<[u32; 2]>,
    density: fn(&[f64], &mut [f64]) -> f64,
    /// Places where a latent is larger than this are said to cost more.
    ordinary: f64,
}

impl Coupled {
    fn new(len: usize, pairs: Vec<[u32; 2]>, density: fn(&[f64], &mut [f64]) -> f64) -> Self {
        let latents = Latents::new().vector("z", len, Support::Real).expect("a vector");
        Self { latents, pairs, density, ordinary: f64::INFINITY }
    }

    /// A random walk of this many log rates, with an unknown precision and a count at each time: latents that are coupled in a chain, and
    /// all with one.
    pub(super) fn walk(len: usize) -> Self {
        let pairs = (1..=len as u32).flat_map(|t| [[0, t], [t, (t + 1).min(len as u32)]]).collect();
        Self::new(len + 1, pairs, walk)
    }

    /// A random walk of this many levels with an unknown precision, each observed with an error: Gaussian given the precision.
    pub(super) fn levels(len: usize) -> Self {
        let pairs = (1..=len as u32).flat_map(|t| [[0, t], [t, (t + 1).min(len as u32)]]).collect();
        Self::new(len + 1, pairs, levels)
    }

    /// This many effects on the logit of a probability, with an unknown mean: latents that are coupled with that one only. The first has
    /// no success in four trials, the next one, and so on.
    pub(super) fn effects(len: usize) -> Self {
        Self::new(len + 1, (1..=len as u32).map(|j| [0, j]).collect(), effects)
    }

    /// A standard normal latent, and one that is normal around three times its value.
    pub(super) fn steep() -> Self {
        let density: fn(&[f64], &mut [f64]) -> f64 = |x, d| {
            let off = x[1] - 3.0 * x[0];
            d[0] += 3.0 * off - x[0];
            d[1] -= off;
            -0.5 * (x[0] * x[0] + off * off)
        };
        Self::new(2, vec![[0, 1]], density)
    }

    /// Two latents of which only the product is observed: each has two modes, together a hyperbola.
    pub(super) fn product() -> Self {
        Self::new(2, vec![[0, 1]], product)
    }

    /// This many independent latents of which only the squares are observed.
    pub(super) fn squares(len: usize) -> Self {
        Self::new(len, Vec::new(), squares)
    }

    /// This many independent standard normal latents, but for one value in a hundred, which has a standard deviation of 30.
    pub(super) fn rare(len: usize) -> Self {
        Self::new(len, Vec::new(), rare)
    }

    /// The log rate of a count of one, with a flat prior.
    pub(super) fn log_rate() -> Self {
        let density: fn(&[f64], &mut [f64]) -> f64 = |x, d| {
            d[0] = 1.0 - x[0].exp();
            x[0] - x[0].exp()
        };
        Self::new(1, Vec::new(), density)
    }

    /// The same model, said to cost more where a latent is larger than this.
    pub(super) fn costly_beyond(self, ordinary: f64) -> Self {
        Self { ordinary, ..self }
    }

    /// Normal latents, all coupled with each other, with a precision of 1.5 each and of 0.5 between any two, and a mean of 0.7.
    pub(super) fn normal(len: usize) -> Self {
        let pairs = (0..len as u32).flat_map(|i| (0..i).map(move |j| [j, i])).collect();
        Self::new(len, pairs, normal)
    }

    /// The same with the integral, beside as large a mode of standard deviations 0.3 where the first is 9 standard deviations away and the
    /// others are at their means.
    pub(super) fn normal_and_narrow(len: usize) -> Self {
        Self { density: normal_and_narrow, ..Self::normal(len) }
    }

    /// Seven narrow normal distributions far apart, of four latents: a density whose integral is 1.
    pub(super) fn spots() -> Self {
        Self::new(4, (0..4).flat_map(|i| (0..i).map(move |j| [j, i])).collect(), spots)
    }

    /// As many latents, each from a normal distribution or, once in ten times, from a wider one: a density whose integral is 1.
    pub(super) fn contaminated(len: usize) -> Self {
        Self { density: contaminated, ..Self::normal(len) }
    }

    /// Normal latents after [`bent`], so that none is Gaussian given others.
    pub(super) fn bent(len: usize) -> Self {
        Self { density: bent_normal, ..Self::normal(len) }
    }
}

/// The share of a spot and where it is.
pub(super) fn spot(k: usize) -> (f64, [f64; 4]) {
    let at = |i: usize| 4.0 * (1.0 + 2.3 * k as f64 + 1.7 * i as f64 + 0.9 * (k * i) as f64).sin();
    ((k + 2) as f64 / 35.0, [0, 1, 2, 3].map(at))
}

/// The number of spots, and their standard deviation.
pub(super) const SPOTS: usize = 7;
const SPOT_SD: f64 = 0.3;

fn spots(z: &[f64], d: &mut [f64]) -> f64 {
    let log_norm = -4.0 * (SPOT_SD.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln());
    let log_p = |k: usize| {
        let (share, at) = spot(k);
        let squared: f64 = z.iter().zip(at).map(|(x, at)| ((x - at) / SPOT_SD).powi(2)).sum();
        share.ln() + log_norm - 0.5 * squared
    };
    let each: Vec<f64> = (0..SPOTS).map(log_p).collect();
    let total = hyperprior_math::special::log_sum_exp(&each);
    for (k, log_p) in each.into_iter().enumerate() {
        let at = spot(k).1;
        let of = (log_p - total).exp() / (SPOT_SD * SPOT_SD);
        d.iter_mut().zip(z.iter().zip(at)).for_each(|(d, (x, at))| *d -= of * (x - at));
    }
    total
}

/// The log integral of as many normal latents, and the mean and the variance of each, by the formula of Sherman and Morrison.
pub(super) fn of_normal(n: usize) -> (f64, (f64, f64)) {
    let determinant = 1.0 + 0.5 * n as f64;
    let log_integral = 0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() - determinant.ln());
    (log_integral, (0.7, 1.0 - 0.5 / determinant))
}

/// Where the narrow mode is, and its standard deviation.
pub(super) fn narrow(n: usize) -> (Vec<f64>, f64) {
    let (_, (mean, variance)) = of_normal(n);
    let mut at = vec![mean; n];
    at[0] += 9.0 * variance.sqrt();
    (at, 0.3)
}

fn normal_and_narrow(z: &[f64], d: &mut [f64]) -> f64 {
    let (n, mut of_wide) = (z.len(), vec![0.0; z.len()]);
    let wide = normal(z, &mut of_wide);
    let (at, sd) = narrow(n);
    let squared: f64 = z.iter().zip(&at).map(|(x, at)| ((x - at) / sd).powi(2)).sum();
    let constant = of_normal(n).0 - n as f64 * (sd.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln());
    let narrow = constant - 0.5 * squared;
    let top = wide.max(narrow);
    let total = top + ((wide - top).exp() + (narrow - top).exp()).ln();
    for (i, d) in d.iter_mut().enumerate() {
        *d += (wide - total).exp() * of_wide[i] - (narrow - total).exp() * (z[i] - at[i]) / (sd * sd);
    }
    total
}

fn contaminated(z: &[f64], d: &mut [f64]) -> f64 {
    of_two(z, d, [(0.9, 1.0), (0.1, 2.2)])
}

fn rare(z: &[f64], d: &mut [f64]) -> f64 {
    of_two(z, d, [(0.99, 1.0), (0.01, 30.0)])
}

/// Independent mixtures of two normal distributions, each with its share and its standard deviation.
fn of_two(z: &[f64], d: &mut [f64], parts: [(f64, f64); 2]) -> f64 {
    let mut log_p = 0.0;
    for (x, d) in z.iter().zip(d) {
        let each = parts.map(|(share, sd)| {
            let density = share / sd * (-0.5 * (x / sd).powi(2)).exp() / (2.0 * std::f64::consts::PI).sqrt();
            (density, density / (sd * sd))
        });
        let total = each[0].0 + each[1].0;
        log_p += total.ln();
        *d -= x * (each[0].1 + each[1].1) / total;
    }
    log_p
}

/// An increasing function.
pub(super) fn bent(x: f64) -> f64 {
    x + 0.2 * x * x * x
}

fn bent_normal(z: &[f64], d: &mut [f64]) -> f64 {
    let u: Vec<f64> = z.iter().map(|x| bent(*x)).collect();
    let mut log_p = normal(&u, d);
    for (x, d) in z.iter().zip(d) {
        let slope = 1.0 + 0.6 * x * x;
        log_p += slope.ln();
        *d = *d * slope + 1.2 * x / slope;
    }
    log_p
}

fn product(z: &[f64], d: &mut [f64]) -> f64 {
    let (a, b) = (z[0], z[1]);
    let off = 3.0 - a * b;
    d[0] += 25.0 * off * b - 0.25 * (a - 0.5);
    d[1] += 25.0 * off * a - 0.25 * b;
    -12.5 * off * off - 0.125 * (a - 0.5).powi(2) - 0.125 * b * b
}

fn squares(z: &[f64], d: &mut [f64]) -> f64 {
    let one = |(x, d): (&f64, &mut f64)| {
        let off = 1.3 - x * x;
        *d += 50.0 * off * x - (x - 0.3);
        -12.5 * off * off - 0.5 * (x - 0.3).powi(2)
    };
    z.iter().zip(d).map(one).sum()
}

fn normal(z: &[f64], d: &mut [f64]) -> f64 {
    let sum: f64 = z.iter().map(|x| x - 0.7).sum();
    z.iter().zip(d).for_each(|(x, d)| *d -= (x - 0.7) + 0.5 * sum);
    -0.5 * (z.iter().map(|x| (x - 0.7).powi(2)).sum::<f64>() + 0.5 * sum * sum)
}

fn walk(z: &[f64], d: &mut [f64]) -> f64 {
    let mut total = steps(z, d, 3.0);
    for t in 0..z.len() - 1 {
        let (x, count) = (z[t + 1], f64::from((t * 7 % 5) as u32));
        total += count * x - x.exp();
        d[t + 1] += count - x.exp();
    }
    total
}

fn levels(z: &[f64], d: &mut [f64]) -> f64 {
    let mut total = steps(z, d, 0.0);
    for t in 0..z.len() - 1 {
        let off = f64::from((t * 7 % 5) as u32) - 2.0 - z[t + 1];
        total -= off * off;
        d[t + 1] += 2.0 * off;
    }
    total
}

/// The log density of the steps of a walk, with this mean of the log precision.
fn steps(z: &[f64], d: &mut [f64], mean: f64) -> f64 {
    let log_precision = z[0];
    let mut total = -0.5 * (log_precision - mean).powi(2);
    d[0] -= log_precision - mean;
    for t in 0..z.len() - 1 {
        let x = z[t + 1];
        let (precision, before) = if t == 0 { (1.0, 0.0) } else { (log_precision.exp(), z[t]) };
        total -= 0.5 * precision * (x - before).powi(2);
        d[t + 1] -= precision * (x - before);
        if t > 0 {
            total += 0.5 * log_precision;
            d[0] += 0.5 - 0.5 * precision * (x - before).powi(2);
            d[t] += precision * (x - before);
        }
    }
    total
}

fn effects(z: &[f64], d: &mut [f64]) -> f64 {
    let mean = z[0];
    let mut total = -0.5 * mean * mean;
    d[0] -= mean;
    for j in 1..z.len() {
        let (x, successes) = (z[j], f64::from((j as u32 - 1) % 5));
        total += -0.5 * (x - mean).powi(2) + successes * x - 4.0 * x.exp().ln_1p();
        d[0] += x - mean;
        d[j] += mean - x + successes - 4.0 / (1.0 + (-x).exp());
    }
    total
}

impl Model for Coupled {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        let mut d_z = Batch::zeros(z.columns_len(), z.draws_len());
        self.log_joint_gradient(z, out, &mut d_z)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        Some(&self.pairs)
    }

    fn is_ordinary(&self, z: &Batch, out: &mut [bool]) {
        let within = |s: usize| (0..z.columns_len()).all(|i| z.get(i, s).abs() < self.ordinary);
        out.iter_mut().enumerate().for_each(|(s, out)| *out = within(s));
    }
}

impl Gradient for Coupled {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let own: Vec<f64> = (0..z.columns_len()).map(|i| z.get(i, s)).collect();
            let mut d = vec![0.0; own.len()];
            *out = (self.density)(&own, &mut d);
            d.iter().enumerate().for_each(|(i, d)| d_z.set(i, s, *d));
        }
        Ok(())
    }
}

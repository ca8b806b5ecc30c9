//! The Conway–Maxwell–Poisson family on a finite range of counts.

use super::{
    Family, LOG_LIMIT, Support, add_weighted, cover_windows, map_draws, map_information, parameters, sample_draws,
    shape,
};
use crate::random::Stream;
use crate::special::ln_factorial;
use rand::RngExt;
use std::cell::Cell;

/// The largest upper end: a draw may sum over this many counts.
const LARGEST_UPPER: u64 = 1_000_000;

/// Terms that together are below this share of the largest are left out of every sum.
const LEFT_OUT: f64 = 1e-16;

/// Why a [`ConwayMaxwell`] or a [`TruncatedPoisson`](super::TruncatedPoisson) could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConwayMaxwellError {
    /// Zero alone would be a constant.
    #[error("counts from 0 to 0 are a constant; use an upper end of at least 1")]
    NoRange,
    /// Every draw sums over the range, so it must be short.
    #[error("counts up to {upper} are too many to sum over at every draw; use an upper end of at most 1000000")]
    TooLarge {
        /// The requested upper end.
        upper: u64,
    },
}

/// Counts from 0 to `upper`, under- or over-dispersed relative to the Poisson: λ = (a, b) with
/// log q(z | λ) = a z − eᵇ ln z! − ln Z(a, b).
///
/// With b = 0 it is the Poisson with log rate a, truncated at `upper`; with b above zero it is less dispersed, with b below
/// zero more, up to the geometric (on this finite range every a gives a distribution). The mode is near exp(a e⁻ᵇ).
///
/// a is clamped to ±700 and b to ±300. A density, a score and a draw each cost a sum over the counts that have a
/// share of at least 1e-16: O(`upper`) at most, usually a few standard deviations.
///
/// ```
/// use hyperprior_math::family::{ConwayMaxwell, Family};
/// let mut log_q = [0.0];
/// // With e^b = 1 and rate 2 on 0, 1, 2 the weights are 1, 2 and 2²/2! = 2.
/// ConwayMaxwell::new(2)?.log_density(&[2f64.ln(), 0.0], &[1.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.4).abs() < 1e-15);
/// # Ok::<(), hyperprior_math::family::ConwayMaxwellError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConwayMaxwell {
    upper: u64,
}

impl ConwayMaxwell {
    /// Counts from 0 to `upper`.
    ///
    /// # Errors
    /// If `upper` is 0 or above a million.
    pub fn new(upper: u64) -> Result<Self, ConwayMaxwellError> {
        Ok(Self { upper: checked_upper(upper)? })
    }

    /// The largest count.
    pub fn upper(&self) -> u64 {
        self.upper
    }

    fn member(&self, [a, b]: [f64; 2]) -> Member {
        Member::new(a, shape(b), self.upper as f64)
    }
}

/// `upper`, if there is a range to sum over and it is short enough.
pub(super) fn checked_upper(upper: u64) -> Result<u64, ConwayMaxwellError> {
    match upper {
        0 => Err(ConwayMaxwellError::NoRange),
        upper if upper > LARGEST_UPPER => Err(ConwayMaxwellError::TooLarge { upper }),
        upper => Ok(upper),
    }
}

/// One distribution, in the form that the formulas use.
#[derive(Clone, Copy)]
pub(super) struct Member {
    a: f64,
    /// eᵇ, the factor of every ln z!.
    nu: f64,
    upper: f64,
    /// The most likely count m. Everything is measured from it, so that nothing overflows.
    mode: f64,
}

/// One count k, with its probability relative to the mode's and ln k! − ln m!.
#[derive(Clone, Copy)]
struct Term {
    count: f64,
    weight: f64,
    ln_factorials: f64,
}

/// A distribution with the sum of its weights, and the means of z − m and ln z! − ln m!.
#[derive(Clone, Copy)]
pub(super) struct Summed {
    member: Member,
    total: f64,
    distance: f64,
    ln_factorials: f64,
}

/// The last distribution summed: neighbouring draws often share their parameters.
#[derive(Default)]
pub(super) struct Last<const P: usize>(Cell<Option<([f64; P], Summed)>>);

impl<const P: usize> Last<P> {
    pub(super) fn summed(&self, lambda: [f64; P], member: impl Fn([f64; P]) -> Member) -> Summed {
        match self.0.get() {
            Some((last, summed)) if last == lambda => summed,
            _ => {
                let summed = member(lambda).summed();
                self.0.set(Some((lambda, summed)));
                summed
            }
        }
    }
}

impl Summed {
    pub(super) fn mean(&self) -> f64 {
        self.member.mode + self.distance
    }

    /// ln z! − ln m!.
    fn ln_factorials_at(&self, z: f64) -> f64 {
        ln_factorial(z) - ln_factorial(self.member.mode)
    }

    pub(super) fn log_density(&self, z: f64) -> f64 {
        let Member { a, nu, mode, .. } = self.member;
        a * (z - mode) - nu * self.ln_factorials_at(z) - self.total.ln()
    }

    /// Along a and b.
    pub(super) fn score(&self, z: f64) -> [f64; 2] {
        let along_b = -self.member.nu * (self.ln_factorials_at(z) - self.ln_factorials);
        [z - self.member.mode - self.distance, along_b]
    }
}

impl Member {
    pub(super) fn new(a: f64, nu: f64, upper: f64) -> Self {
        let a = a.clamp(-LOG_LIMIT, LOG_LIMIT);
        // The weight of k over that of k − 1 is eᵃ / kᵛ, which is at least one up to k = exp(a/ν).
        let mode = if a < 0.0 { 0.0 } else { (a / nu).exp().floor().min(upper) };
        Self { a, nu, upper, mode }
    }

    /// The counts that matter, from the mode up and then from the mode down.
    ///
    /// The weights are log-concave: beyond a count with weight w, whose neighbour has weight w ρ, lies less than
    /// w ρ / (1 − ρ). A side ends where that is negligible.
    fn terms(&self) -> impl Iterator<Item = Term> {
        let walk = |above: bool| {
            let first = Term { count: self.mode, weight: 1.0, ln_factorials: 0.0 };
            std::iter::successors(Some(first), move |term| {
                let (edge, count) = if above { (self.upper, term.count + 1.0) } else { (0.0, term.count - 1.0) };
                let ln_factor = if above { count.ln() } else { -term.count.ln() };
                let direction = if above { self.a } else { -self.a };
                let ratio = (direction - self.nu * ln_factor).exp();
                let ends = term.count == edge || (ratio < 1.0 && term.weight * ratio < LEFT_OUT * (1.0 - ratio));
                let ln_factorials = term.ln_factorials + ln_factor;
                (!ends).then_some(Term { count, weight: term.weight * ratio, ln_factorials })
            })
        };
        walk(true).chain(walk(false).skip(1))
    }

    pub(super) fn summed(&self) -> Summed {
        let mut summed = Summed { member: *self, total: 0.0, distance: 0.0, ln_factorials: 0.0 };
        for term in self.terms() {
            summed.total += term.weight;
            summed.distance += term.weight * (term.count - self.mode);
            summed.ln_factorials += term.weight * term.ln_factorials;
        }
        summed.distance /= summed.total;
        summed.ln_factorials /= summed.total;
        summed
    }

    /// The covariance of the score, as a sum.
    pub(super) fn information(&self) -> [[f64; 2]; 2] {
        let summed = self.summed();
        let mut sums = [0.0; 3];
        for term in self.terms() {
            let first = term.count - self.mode - summed.distance;
            let second = -self.nu * (term.ln_factorials - summed.ln_factorials);
            for (sum, product) in sums.iter_mut().zip([first * first, first * second, second * second]) {
                *sum += term.weight / summed.total * product;
            }
        }
        let [first, cross, second] = sums;
        [[first, cross], [cross, second]]
    }

    /// By inversion of the table, ordered from the mode outwards so that most draws end early.
    pub(super) fn sample(&self, rng: &mut Stream) -> f64 {
        let total: f64 = self.terms().map(|term| term.weight).sum();
        let mut left = total * rng.random::<f64>();
        // Rounding may leave some probability after the last term; the mode takes it.
        let drawn = self.terms().find(|term| {
            left -= term.weight;
            left < 0.0
        });
        drawn.map_or(self.mode, |term| term.count)
    }

    /// From the first to the last count that matters.
    pub(super) fn window(&self) -> (f64, f64) {
        self.terms().fold((self.mode, self.mode), |(l, u), term| (l.min(term.count), u.max(term.count)))
    }
}

/// The a at which the truncated Poisson has its mean at `z`, kept half a count inside the ends: by bisection, since the
/// mean grows with a.
pub(super) fn poisson_start(z: f64, upper: f64) -> f64 {
    let mean = upper * (z + 0.5) / (upper + 1.0);
    let (mut low, mut high) = (-5.0, upper.ln() + 5.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if Member::new(middle, 1.0, upper).summed().mean() < mean { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Family for ConwayMaxwell {
    fn name(&self) -> &'static str {
        "conway-maxwell"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        Support::Integers { lower: 0.0, upper: self.upper as f64 }
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        let last = Last::default();
        map_draws(self.support(), f64::NEG_INFINITY, lambda, z, out, |lambda, z| {
            last.summed(lambda, |lambda| self.member(lambda)).log_density(z)
        });
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        let last = Last::default();
        add_weighted(lambda, z, signal, d_lambda, |lambda, z| {
            last.summed(lambda, |lambda| self.member(lambda)).score(z)
        });
    }

    fn log_densities(&self, lambda: &[f64], values: &[f64], z: &mut [f64], out: &mut [f64]) {
        let last = Last::default();
        for s in 0..z.len() {
            let summed = last.summed(parameters(lambda, s), |lambda| self.member(lambda));
            for (v, value) in values.iter().enumerate() {
                let inside = self.support().contains(*value);
                out[v * z.len() + s] = if inside { summed.log_density(*value) } else { f64::NEG_INFINITY };
            }
        }
    }

    fn scores(&self, lambda: &[f64], values: &[f64], z: &mut [f64], signal: &[f64], d_lambda: &mut [f64]) {
        let (draws_len, last) = (z.len(), Last::default());
        for s in 0..draws_len {
            let summed = last.summed(parameters(lambda, s), |lambda| self.member(lambda));
            for (v, value) in values.iter().enumerate().filter(|(v, _)| signal[v * draws_len + s] != 0.0) {
                for (p, score) in summed.score(*value).into_iter().enumerate() {
                    d_lambda[p * draws_len + s] += signal[v * draws_len + s] * score;
                }
            }
        }
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| self.member(lambda).sample(rng));
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |lambda| self.member(lambda).information());
    }

    /// The truncated Poisson with its mean at z, kept half a count inside the ends.
    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = poisson_start(self.support().nearest(z), self.upper as f64);
        out[1] = 0.0;
    }

    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        Some(cover_windows(lambda, |lambda| self.member(lambda).window()))
    }
}

//! The Poisson family truncated at an upper end.

use super::conway_maxwell::{Last, Member, checked_upper, poisson_start};
use super::{
    ConwayMaxwellError, Family, Support, add_weighted, cover_windows, map_draws, map_information, sample_draws,
};
use crate::random::Stream;

/// Counts from 0 to `upper`: q(z | λ) = e^{zλ} / z! / Σₖ e^{kλ} / k!, where λ is the log rate before truncation; the
/// [`ConwayMaxwell`](super::ConwayMaxwell) with b = 0.
///
/// λ is clamped to ±700. A density, a score and a draw each cost a sum over the counts that have a share of at least
/// 1e-16, O(`upper`) at most.
///
/// ```
/// use hyperprior_math::family::{Family, TruncatedPoisson};
/// let mut log_q = [0.0];
/// TruncatedPoisson::new(2)?.log_density(&[2f64.ln()], &[1.0], &mut log_q);
/// assert!((log_q[0].exp() - 0.4).abs() < 1e-15); // the weights are 1, 2, 2
/// # Ok::<(), hyperprior_math::family::ConwayMaxwellError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedPoisson {
    upper: u64,
}

impl TruncatedPoisson {
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

    fn member(&self, [log_rate]: [f64; 1]) -> Member {
        Member::new(log_rate, 1.0, self.upper as f64)
    }
}

impl Family for TruncatedPoisson {
    fn name(&self) -> &'static str {
        "truncated-poisson"
    }

    fn parameters_len(&self) -> usize {
        1
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
            [z - last.summed(lambda, |lambda| self.member(lambda)).mean()]
        });
    }

    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| self.member(lambda).sample(rng));
    }

    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |lambda| [[self.member(lambda).information()[0][0]]]);
    }

    /// The mean is at z, kept half a count inside the ends.
    fn start_at(&self, z: f64, out: &mut [f64]) {
        out[0] = poisson_start(self.support().nearest(z), self.upper as f64);
    }

    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        Some(cover_windows(lambda, |lambda| self.member(lambda).window()))
    }
}

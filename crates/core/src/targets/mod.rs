//! Posteriors with known answers, for measuring the error of a method exactly.
//!
//! | target | latents | what is known |
//! | --- | --- | --- |
//! | [`CorrelatedCounts`] | 2 counts | everything, on a grid |
//! | [`Ising`] on a ring, a grid or any graph | spins | everything, by enumeration, up to 22 spins |
//! | [`Switchboard`] | 20 spins, 32 modes | everything, by enumeration |
//! | [`Banana`], [`Funnel`], [`GaussianMixture`] | real numbers | the density, with evidence 1 |
//! | [`LogisticRegression`] | 5 real numbers | the coefficients that made the data |

mod banana;
mod correlated_counts;
mod funnel;
mod gaussian_mixture;
mod ising;
mod logistic_regression;
mod switchboard;

pub use banana::Banana;
pub use correlated_counts::{CorrelatedCounts, CountTarget};
pub use funnel::Funnel;
pub use gaussian_mixture::GaussianMixture;
pub use ising::{Coupling, Ising};
pub use logistic_regression::LogisticRegression;
pub use switchboard::Switchboard;

use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;

/// Continuous targets from which independent draws are easy. See [`Banana`].
pub trait ExactDraws {
    /// Independent draws.
    fn exact_draws(&self, draws_len: usize, rng: &mut Stream) -> Batch;
}

/// Evaluates a log density of D real numbers and its gradient at every draw.
fn at_each_draw<const D: usize>(
    z: &Batch,
    out: &mut [f64],
    mut d_z: Option<&mut Batch>,
    log_density: impl Fn([f64; D]) -> (f64, [f64; D]),
) {
    for (s, out) in out.iter_mut().enumerate() {
        let gradient;
        (*out, gradient) = log_density(std::array::from_fn(|i| z.get(i, s)));
        if let Some(d_z) = &mut d_z {
            gradient.into_iter().enumerate().for_each(|(i, d)| d_z.set(i, s, d));
        }
    }
}

/// log N(x; mean, scale²), and its derivative along x.
fn log_normal_density(x: f64, mean: f64, scale: f64) -> (f64, f64) {
    let standard = (x - mean) / scale;
    let log_density = -0.5 * standard * standard - scale.ln() - hyperprior_math::special::HALF_LN_2_PI;
    (log_density, -standard / scale)
}

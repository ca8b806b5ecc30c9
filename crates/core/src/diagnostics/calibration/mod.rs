//! Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman, 2018): do intervals have the coverage they claim?
//!
//! Draw the latents from the prior and data given them, and fit the data. Over many such rounds, the rank of a latent's true value
//! among L draws of its posterior is uniform on 0, …, L for any model, if the draws come from the posterior. [`rank`] computes that
//! rank, [`uniformity`] tests many ranks of one quantity, and [`assess`] those of many quantities, with a description of the error.

mod assess;
mod uniformity;

pub use assess::{Assessed, BINS, Shape, assess};
pub use uniformity::uniformity;

use hyperprior_math::random::Stream;
use rand::RngExt;

/// The number of draws below the truth. Draws equal to it, which discrete ones can be, are counted below at random, so that the
/// rank is uniform if the truth and the draws have the same distribution.
///
/// ```
/// use hyperprior::diagnostics::calibration::rank;
///
/// let mut rng = hyperprior::math::random::stream(1, 0, 0, 0);
/// assert_eq!(rank(2.5, &[1.0, 2.0, 3.0], &mut rng), 2);
/// assert!((1..=3).contains(&rank(2.0, &[1.0, 2.0, 2.0], &mut rng)));
/// ```
pub fn rank(truth: f64, draws: &[f64], rng: &mut Stream) -> usize {
    let below = draws.iter().filter(|x| **x < truth).count();
    let equal = draws.iter().filter(|x| **x == truth).count();
    below + rng.random_range(0..=equal)
}

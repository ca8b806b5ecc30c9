//! Simulation-based calibration: do intervals hold what they promise? (Talts, Betancourt, Simpson, Vehtari and Gelman, 2018.)
//!
//! Draw the latents from their laws, data from theirs, and fit the data. Over many such rounds the rank of a latent's true value
//! among L draws of its posterior is uniform on 0, …, L, whatever the model is, if the draws are what they should be. [`rank`]
//! is that rank, [`uniformity`] a test of many, [`assess`] the same for many quantities at once, with a word for what is wrong.

mod assess;
mod uniformity;

pub use assess::{Assessed, BINS, Shape, assess};
pub use uniformity::uniformity;

use hyperprior_math::random::Stream;
use rand::RngExt;

/// How many draws are below the truth; those that equal it, as discrete ones do, are put on either side at random, so that the
/// rank is uniform where truth and draws have one law.
///
/// ```
/// use hyperprior::posterior::calibration::rank;
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

//! Four Gaussians on the corners of a square.

use super::{ExactDraws, at_each_draw, log_normal_density};
use crate::error::Result;
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::special::log_sum_exp;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Two numbers around one of four corners: Σ_k π_k N(z; m_k, I) with m_k = (±3, ±3), normalised: the evidence is 1.
///
/// The corners are six standard deviations apart, so that a fit that loses one does not recover it.
///
/// ```
/// use hyperprior::targets::GaussianMixture;
/// hyperprior::check(&GaussianMixture::new(), 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GaussianMixture {
    latents: Latents,
}

impl Default for GaussianMixture {
    fn default() -> Self {
        Self::new()
    }
}

impl GaussianMixture {
    /// Each corner with its weight.
    pub const COMPONENTS: [([f64; 2], f64); 4] =
        [([-3.0, -3.0], 0.1), ([-3.0, 3.0], 0.2), ([3.0, -3.0], 0.3), ([3.0, 3.0], 0.4)];

    /// The model.
    ///
    /// # Panics
    /// Never: its latents are declared correctly.
    pub fn new() -> Self {
        Self { latents: Latents::new().vector("z", 2, Support::Real).expect("two numbers are a valid declaration") }
    }
}

impl ExactDraws for GaussianMixture {
    fn exact_draws(&self, draws_len: usize, rng: &mut Stream) -> Batch {
        let mut z = Batch::zeros(2, draws_len);
        for s in 0..draws_len {
            let mut u: f64 = rng.random();
            let mut corner = Self::COMPONENTS[3].0;
            for (at, weight) in Self::COMPONENTS {
                if u < weight {
                    corner = at;
                    break;
                }
                u -= weight;
            }
            for (i, at) in corner.into_iter().enumerate() {
                let away: f64 = StandardNormal.sample(rng);
                z.set(i, s, at + away);
            }
        }
        z
    }
}

fn log_density([z1, z2]: [f64; 2]) -> (f64, [f64; 2]) {
    let parts = GaussianMixture::COMPONENTS.map(|([m1, m2], weight)| {
        let ((first, d_first), (second, d_second)) = (log_normal_density(z1, m1, 1.0), log_normal_density(z2, m2, 1.0));
        (weight.ln() + first + second, [d_first, d_second])
    });
    let log_total = log_sum_exp(&parts.map(|(log_part, _)| log_part));
    let mut gradient = [0.0; 2];
    for (log_part, slopes) in parts {
        let responsibility = (log_part - log_total).exp();
        gradient.iter_mut().zip(slopes).for_each(|(d, slope)| *d += responsibility * slope);
    }
    (log_total, gradient)
}

impl Model for GaussianMixture {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        at_each_draw(z, out, None, log_density);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for GaussianMixture {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        at_each_draw(z, out, Some(d_z), log_density);
        Ok(())
    }
}

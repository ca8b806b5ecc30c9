//! A banana: a Gaussian bent along a parabola.

use super::{ExactDraws, at_each_draw, log_normal_density};
use crate::error::Result;
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand_distr::{Distribution, StandardNormal};

/// Its curvature.
const BEND: f64 = 1.0;

/// Its width.
const WIDTH: f64 = 0.5;

/// z_1 ~ N(0, 1) and z_2 | z_1 ~ N(z_1² − 1, ½²), normalised: the evidence is 1.
///
/// Both have mean 0 and they are uncorrelated, so that no Gaussian captures how the second depends on the first.
///
/// ```
/// use hyperprior::targets::Banana;
/// hyperprior::check(&Banana::new(), 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Banana {
    latents: Latents,
}

impl Default for Banana {
    fn default() -> Self {
        Self::new()
    }
}

impl Banana {
    /// The model.
    ///
    /// # Panics
    /// Never: its latents are declared correctly.
    pub fn new() -> Self {
        Self { latents: Latents::new().vector("z", 2, Support::Real).expect("two numbers are a valid declaration") }
    }
}

impl ExactDraws for Banana {
    fn exact_draws(&self, draws_len: usize, rng: &mut Stream) -> Batch {
        let mut z = Batch::zeros(2, draws_len);
        for s in 0..draws_len {
            let (z1, across): (f64, f64) = (StandardNormal.sample(rng), StandardNormal.sample(rng));
            z.set(0, s, z1);
            z.set(1, s, BEND * (z1 * z1 - 1.0) + WIDTH * across);
        }
        z
    }
}

fn log_density([z1, z2]: [f64; 2]) -> (f64, [f64; 2]) {
    let (along, d_along) = log_normal_density(z1, 0.0, 1.0);
    let (across, d_across) = log_normal_density(z2, BEND * (z1 * z1 - 1.0), WIDTH);
    (along + across, [d_along - d_across * 2.0 * BEND * z1, d_across])
}

impl Model for Banana {
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

impl Gradient for Banana {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        at_each_draw(z, out, Some(d_z), log_density);
        Ok(())
    }
}

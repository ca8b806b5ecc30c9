//! Neal's funnel: one number that sets the scale of all the others.

use super::{ExactDraws, log_normal_density};
use crate::error::{Error, Result};
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand_distr::{Distribution, StandardNormal};

/// The standard deviation of v.
const SPREAD: f64 = 3.0;

/// v ~ N(0, 3²) and x_i | v ~ N(0, eᵛ), normalised: the evidence is 1. Latent 0 is v.
///
/// The x are as narrow as e^−4 in the neck and as wide as e⁴ in the mouth, so that no single scale fits.
///
/// ```
/// use hyperprior::targets::Funnel;
/// hyperprior::check(&Funnel::default(), 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Funnel {
    latents: Latents,
}

impl Default for Funnel {
    /// In five dimensions.
    fn default() -> Self {
        Self::new(5).expect("five dimensions are enough for a funnel")
    }
}

impl Funnel {
    /// The funnel of v and `dimensions_len` − 1 numbers x.
    ///
    /// # Errors
    /// [`Error::BadLatent`] for fewer than two dimensions.
    pub fn new(dimensions_len: usize) -> Result<Self> {
        if dimensions_len < 2 {
            let reason = format!("a funnel has at least 2 dimensions, v and one x, not {dimensions_len}");
            return Err(Error::BadLatent { name: "x".to_owned(), reason });
        }
        let latents = Latents::new().scalar("v", Support::Real)?.vector("x", dimensions_len - 1, Support::Real)?;
        Ok(Self { latents })
    }

    fn evaluate(&self, z: &Batch, out: &mut [f64], mut d_z: Option<&mut Batch>) {
        for (s, out) in out.iter_mut().enumerate() {
            let v = z.get(0, s);
            let scale = (0.5 * v).exp();
            let (mut log_density, mut d_v) = log_normal_density(v, 0.0, SPREAD);
            for i in 1..self.latents.len() {
                let (log_x, d_x) = log_normal_density(z.get(i, s), 0.0, scale);
                log_density += log_x;
                // −x d_x is (x / scale)², and the log scale moves with v by one half.
                d_v += 0.5 * (-z.get(i, s) * d_x - 1.0);
                if let Some(d_z) = &mut d_z {
                    d_z.set(i, s, d_x);
                }
            }
            if let Some(d_z) = &mut d_z {
                d_z.set(0, s, d_v);
            }
            *out = log_density;
        }
    }
}

impl ExactDraws for Funnel {
    fn exact_draws(&self, draws_len: usize, rng: &mut Stream) -> Batch {
        let mut z = Batch::zeros(self.latents.len(), draws_len);
        for s in 0..draws_len {
            let standard: f64 = StandardNormal.sample(rng);
            z.set(0, s, SPREAD * standard);
            for i in 1..self.latents.len() {
                let x: f64 = StandardNormal.sample(rng);
                z.set(i, s, (0.5 * SPREAD * standard).exp() * x);
            }
        }
        z
    }
}

impl Model for Funnel {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.evaluate(z, out, None);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for Funnel {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.evaluate(z, out, Some(d_z));
        Ok(())
    }
}

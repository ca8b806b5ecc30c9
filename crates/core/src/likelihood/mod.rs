//! The variational likelihood q(z | λ): the distribution of the latent variables given their parameters.
//!
//! `eq:mean-field`: q(z | λ) = Π_i q(z_i | λ_i). Any other family with a score works too; [`Tree`] has dependence within the
//! likelihood itself.

mod mean_field;
mod tree;

pub use mean_field::{Factor, MeanField};
pub use tree::Tree;

use hyperprior_math::batch::Batch;
use hyperprior_math::family::Support;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use std::ops::Range;

/// How the randomness of a latent given λ is differentiated. See [`Likelihood`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drawn from a family without a pathwise derivative: score or local expectation.
    Sampled,
    /// Drawn from a family whose draw is differentiable in λ: the reparameterisation gradient.
    Pathwise,
    /// Not random given λ: z = T(λ).
    PointMass,
}

/// The draws of one latent with the derivative along them. See [`Likelihood::pathwise`].
#[derive(Clone, Copy, Debug)]
pub struct PathwisePass<'a> {
    /// The draws.
    pub z: &'a [f64],
    /// The derivative of the log joint along them, times the weight.
    pub d_z: &'a [f64],
    /// The weight of each draw.
    pub weight: &'a [f64],
}

/// q(z | λ) over a batch of draws.
///
/// λ_i occupies neighbouring columns, [`lambda_range`](Self::lambda_range). Those of point-mass latents come first, so that
/// λ = (λ_c, λ_d): the recursive approximation covers only λ_d, since z determines λ_c.
///
/// ```
/// use hyperprior::likelihood::{Kind, Likelihood, MeanField};
/// use hyperprior::model::{Latents, Support};
/// let latents = Latents::new().scalar("z", Support::BINARY)?.scalar("x", Support::Real)?;
/// let q = MeanField::for_latents(&latents)?;
/// assert_eq!((q.kind(0), q.kind(1)), (Kind::Sampled, Kind::PointMass));
/// assert_eq!((q.lambda_len(), q.point_mass_len()), (2, 1));
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait Likelihood: std::fmt::Debug + Send + Sync {
    /// How many latents there are.
    fn latents_len(&self) -> usize;

    /// How many parameters λ has.
    fn lambda_len(&self) -> usize;

    /// How many of the leading parameters belong to point masses.
    fn point_mass_len(&self) -> usize;

    /// The columns of λ_i.
    fn lambda_range(&self, i: usize) -> Range<usize>;

    /// The values that the factor of latent i covers; a point mass counts as real, whatever its interval.
    fn support(&self, i: usize) -> Support;

    /// Whether all values of the factor of latent i lie in `support`; for a point mass those of T(λ).
    fn is_within(&self, i: usize, support: &Support) -> bool {
        self.support(i).is_within(support)
    }

    /// How latent i is differentiated.
    fn kind(&self, i: usize) -> Kind;

    /// Whether it is a product of one factor per latent. If not, the methods for a single latent (its density, score and window
    /// at other values) are not available, and gradients come from the score of whole draws.
    fn is_factorised(&self) -> bool {
        true
    }

    /// z ~ q(· | λ); a point mass is set to T(λ).
    fn sample(&self, lambda: &Batch, streams: &mut [Stream], z: &mut Batch, scratch: &mut Scratch);

    /// out\[i, s\] = log q(z_i | λ_i), the latents adding up to log q(z | λ); for a point mass −log|dT/dλ|, which turns the
    /// density of λ_i into that of z_i.
    fn log_density(&self, lambda: &Batch, z: &Batch, out: &mut Batch, scratch: &mut Scratch);

    /// out\[s\] = log q(z_i | λ_i) for one latent at the given values.
    fn log_density_of(&self, i: usize, lambda: &Batch, z_i: &[f64], out: &mut [f64]);

    /// d_lambda\[λ_i, s\] += signal\[s\] · ∇ log q(z_i | λ_i).
    fn score(&self, i: usize, lambda: &Batch, z_i: &[f64], signal: &[f64], d_lambda: &mut Batch);

    /// The same as [`score`](Self::score), at the draws z themselves.
    fn score_drawn(
        &self,
        i: usize,
        lambda: &Batch,
        z: &Batch,
        signal: &[f64],
        d_lambda: &mut Batch,
        scratch: &mut Scratch,
    ) {
        let _ = scratch;
        self.score(i, lambda, z.column(i), signal, d_lambda);
    }

    /// out\[v, s\] = log q(z_i = values\[v\] | λ_i), a table; `z_i` is scratch space for a column.
    fn log_densities_of(&self, i: usize, lambda: &Batch, values: &[f64], z_i: &mut [f64], out: &mut Batch) {
        for (v, value) in values.iter().enumerate() {
            z_i.fill(*value);
            self.log_density_of(i, lambda, z_i, out.column_mut(v));
        }
    }

    /// d_lambda\[λ_i, s\] += Σ_v signal\[v, s\] · ∇ log q(z_i = values\[v\] | λ_i).
    fn scores(&self, i: usize, lambda: &Batch, values: &[f64], z_i: &mut [f64], signal: &Batch, d_lambda: &mut Batch) {
        for (v, value) in values.iter().enumerate() {
            z_i.fill(*value);
            self.score(i, lambda, z_i, signal.column(v), d_lambda);
        }
    }

    /// The values a sum over z_i needs, for all draws of the batch at once; `None` for continuous latents.
    fn window(&self, i: usize, lambda: &Batch) -> Option<(f64, f64)>;

    /// If ∂E\[f\]/∂λ_i = rate · E\[f(z_i + 1) − f(z_i)\], as for the Poisson, writes the rate and returns true.
    fn difference_rate(&self, i: usize, lambda: &Batch, out: &mut [f64]) -> bool {
        let _ = (i, lambda, out);
        false
    }

    /// Adds to d_lambda the derivative along λ_i of Σ_s d_z\[s\] z_i − weight\[s\] log q(z_i | λ_i), z_i moving with λ_i: the
    /// reparameterisation gradient. For a pathwise factor log q is differentiated along z alone (its direct derivative has
    /// mean zero), for a point mass completely.
    fn pathwise(&self, i: usize, lambda: &Batch, pass: PathwisePass, d_lambda: &mut Batch, scratch: &mut Scratch);

    /// out\[s\] = ∂ log q(z_i | λ_i)/∂z_i of a [pathwise](Kind::Pathwise) factor; others leave it.
    fn d_log_density_d_z(&self, i: usize, lambda: &Batch, z_i: &[f64], out: &mut [f64]) {
        let _ = (i, lambda, z_i, out);
    }

    /// out\[p · P + q, s\] = the Fisher information of z_i about λ_i, P = the length of λ_i.
    fn information(&self, i: usize, lambda: &Batch, out: &mut [f64]);

    /// The parameters λ_i of a factor centred at `z`.
    fn start_at(&self, i: usize, z: f64, out: &mut [f64]);

    /// The name of the factor of latent i.
    fn factor_name(&self, i: usize) -> &'static str;
}

//! The variational likelihood q(z | λ): how the latent variables are drawn once their parameters are known.
//!
//! `eq:mean-field`: q(z | λ) = Π_i q(z_i | λ_i). Any other family whose density can be scored serves too; [`Tree`] keeps
//! dependence within the likelihood itself.

mod mean_field;
mod tree;

pub use mean_field::{Factor, MeanField};
pub use tree::Tree;

use hyperprior_math::batch::Batch;
use hyperprior_math::family::Support;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use std::ops::Range;

/// How a latent's own randomness is differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drawn from a family that cannot be differentiated along its draw: score or local expectation.
    Sampled,
    /// Drawn from a family whose draw moves smoothly with λ: the reparameterisation gradient.
    Pathwise,
    /// No randomness of its own: z = T(λ).
    PointMass,
}

/// q(z | λ) over a batch of draws.
///
/// λ of latent i is a run of neighbouring columns, [`lambda_range`](Self::lambda_range). Those of point-mass latents come
/// first, so that λ = (λ_c, λ_d): the recursive approximation covers only λ_d, since λ_c can be read off z.
pub trait Likelihood: std::fmt::Debug + Send + Sync {
    /// How many latents there are.
    fn latents_len(&self) -> usize;

    /// How many parameters λ has.
    fn lambda_len(&self) -> usize;

    /// How many of the leading parameters belong to point masses.
    fn point_mass_len(&self) -> usize;

    /// Where λ_i is.
    fn lambda_range(&self, i: usize) -> Range<usize>;

    /// The values latent i's factor covers; a point mass counts as real, whatever interval it is mapped onto.
    fn support(&self, i: usize) -> Support;

    /// Whether all values of latent i's factor lie in `support`; for a point mass those of T(λ).
    fn is_within(&self, i: usize, support: &Support) -> bool {
        self.support(i).is_within(support)
    }

    /// How latent i is differentiated.
    fn kind(&self, i: usize) -> Kind;

    /// Whether it is a product of one factor per latent. If not, what is said of one latent alone (its density, score and window
    /// at other values) is not available, and gradients come from the score of whole draws.
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

    /// out\[v, s\] = log q(z_i = values\[v\] | λ_i), a table; `z_i` is room for a column.
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

    /// Where ∂E\[f\]/∂λ_i = rate · E\[f(z_i + 1) − f(z_i)\], writes that rate and says so (the Poisson).
    fn difference_rate(&self, i: usize, lambda: &Batch, out: &mut [f64]) -> bool {
        let _ = (i, lambda, out);
        false
    }

    /// Adds to d_lambda the derivative along λ_i of Σ_s d_z\[s\] z_i − weight\[s\] log q(z_i | λ_i), z_i moving with λ_i: the
    /// reparameterisation gradient. A pathwise factor's log q is differentiated along z alone (its direct derivative has
    /// mean zero), a point mass's whole.
    fn pathwise(
        &self,
        i: usize,
        lambda: &Batch,
        z_i: &[f64],
        d_z: &[f64],
        weight: &[f64],
        d_lambda: &mut Batch,
        scratch: &mut Scratch,
    );

    /// out\[p · P + q, s\] = the Fisher information of z_i about λ_i, P = the length of λ_i.
    fn information(&self, i: usize, lambda: &Batch, out: &mut [f64]);

    /// The parameters λ_i of a factor centred at `z`.
    fn start_at(&self, i: usize, z: f64, out: &mut [f64]);

    /// A name for each latent's factor.
    fn factor_name(&self, i: usize) -> &'static str;
}

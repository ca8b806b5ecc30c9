//! Linear response: covariances of the posterior from a mean-field approximation that has none (Giordano, Broderick and Jordan,
//! 2018).
//!
//! A covariance says how the mean of one quantity moves when the log density is tilted along another, and a mean-field optimum
//! knows how it would move. With H = ∂²ELBO/∂λ² and J = ∂E_q\[g\]/∂λ at the optimum,
//!
//! Cov(g) ≈ J (−H)⁻¹ Jᵀ.
//!
//! It is exact where the posterior is Gaussian, and wherever the means of a mean-field approximation are right also when the
//! density is tilted.

mod base;
mod curvature;

use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::Model;
use crate::variational::Variational;
use base::Base;
use curvature::{Jacobians, jacobians};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, lower_solve};
use serde::{Deserialize, Serialize};

/// More parameters than this are refused: the curvature has that many columns, and a gradient or two go into each.
pub const PARAMETERS_MAX: usize = 600;

/// How the curvature is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseSettings {
    /// Draws that every gradient is a mean over, the same for all of them.
    pub draws: usize,
    /// The seed.
    pub seed: u64,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self { draws: 512, seed: 1 }
    }
}

/// Means under q, and covariances by linear response, of some quantities.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearResponse {
    /// E_q\[g\].
    pub means: Vec<f64>,
    /// J (−H)⁻¹ Jᵀ, row by row.
    pub covariance: Vec<f64>,
}

impl LinearResponse {
    /// The standard deviation of a quantity.
    pub fn sd(&self, i: usize) -> f64 {
        self.covariance[i * self.means.len() + i].sqrt()
    }

    /// The correlation of two quantities.
    pub fn correlation(&self, i: usize, j: usize) -> f64 {
        self.covariance[i * self.means.len() + j] / (self.sd(i) * self.sd(j))
    }
}

/// The covariances of quantities by linear response around a fitted mean-field approximation.
///
/// `quantities` gives a column per quantity for a batch of draws of the model's latents. It must be smooth along the continuous
/// ones, and draw nothing itself.
///
/// ```
/// use hyperprior::model::{Gradient, Latents, Model, Support};
/// use hyperprior::posterior::{ResponseSettings, linear_response};
/// use hyperprior::prior::{Covariance, Gaussian};
/// use hyperprior::recursive::SameAsPrior;
/// use hyperprior::{Batch, Variational, likelihood::MeanField};
///
/// /// Two normals with precision [[2, −1], [−1, 2]], so that each has variance 2/3.
/// struct Pair(Latents);
/// impl Model for Pair {
///     fn latents(&self) -> &Latents {
///         &self.0
///     }
///     fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
///         for (s, out) in out.iter_mut().enumerate() {
///             let (a, b) = (z.get(0, s), z.get(1, s));
///             *out = a * b - a * a - b * b;
///         }
///         Ok(())
///     }
///     fn gradient(&self) -> Option<&dyn Gradient> {
///         Some(self)
///     }
/// }
/// impl Gradient for Pair {
///     fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> hyperprior::Result<()> {
///         self.log_joint(z, out)?;
///         for s in 0..out.len() {
///             d_z.set(0, s, z.get(1, s) - 2.0 * z.get(0, s));
///             d_z.set(1, s, z.get(0, s) - 2.0 * z.get(1, s));
///         }
///         Ok(())
///     }
/// }
///
/// let model = Pair(Latents::new().vector("z", 2, Support::Real)?);
/// let likelihood = MeanField::for_latents(model.latents())?;
/// let q = Variational::new(likelihood, Gaussian::new(2, Covariance::Diagonal)?, SameAsPrior)?;
/// // The optimum has the means 0 and the variances 1/2: too narrow.
/// let log_sd = -0.5 * 2f64.ln();
/// let theta = [0.0, 0.0, log_sd, log_sd];
/// let own = |z: &Batch| Ok(z.clone());
/// let response = linear_response(&model, &q, &theta, &ResponseSettings::default(), &own)?;
/// assert!((response.sd(0).powi(2) - 2.0 / 3.0).abs() < 1e-6);
/// assert!((response.correlation(0, 1) - 0.5).abs() < 1e-6);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// [`Error::Mismatch`] where q is no mean-field approximation or a factor cannot be differentiated so, [`Error::BadSetting`] for
/// no draws, [`Error::NotAnOptimum`] where −H is not positive definite, and what the model returns.
pub fn linear_response(
    model: &dyn Model,
    q: &Variational,
    theta: &[f64],
    settings: &ResponseSettings,
    quantities: &(dyn Fn(&Batch) -> Result<Batch> + Sync),
) -> Result<LinearResponse> {
    check(model, q, theta, settings)?;
    let base = Base::new(model, q, theta, settings)?;
    let Jacobians { curvature, means, response } = jacobians(model, q, &base, quantities)?;
    let n = theta.len();
    let not_an_optimum = Error::NotAnOptimum { parameters: n };
    let minus: Vec<f64> = (0..n * n).map(|e| -0.5 * (curvature[e] + curvature[e % n * n + e / n])).collect();
    if minus.iter().any(|x| !x.is_finite()) {
        return Err(not_an_optimum);
    }
    let Some(factor) = cholesky(&minus, n) else { return Err(not_an_optimum) };
    // Cov = (L⁻¹ Jᵀ)ᵀ (L⁻¹ Jᵀ); the columns of Jᵀ are solved for as if they were draws.
    let count = means.len();
    let mut solved = response;
    if count > 0 {
        lower_solve(&factor, &mut solved, count);
    }
    let product = |i: usize, j: usize| (0..n).map(|p| solved[p * count + i] * solved[p * count + j]).sum();
    let covariance = (0..count * count).map(|e| product(e / count, e % count)).collect();
    Ok(LinearResponse { means, covariance })
}

fn check(model: &dyn Model, q: &Variational, theta: &[f64], settings: &ResponseSettings) -> Result<()> {
    q.check(model)?;
    q.check_parameters(theta, &vec![0.0; q.phi_len()])?;
    let mismatch =
        |second: String, reason: String| Err(Error::Mismatch { first: "linear response".to_owned(), second, reason });
    if settings.draws == 0 {
        let reason = "at least one draw is needed";
        return Err(Error::BadSetting { field: "draws", value: "0".to_owned(), reason });
    }
    if theta.len() > PARAMETERS_MAX {
        let reason = format!(
            "it has {} parameters, and the curvature is measured for at most {PARAMETERS_MAX}; sum discrete latents out, or \
             take a method that keeps dependence",
            theta.len()
        );
        return mismatch("the approximation".to_owned(), reason);
    }
    let is_point = q.prior().columns_len() == 0;
    if !is_point && (q.has_recursion() || q.prior().components_len() > 1) {
        let reason = "it is for mean-field: a point λ, or one Gaussian over point masses".to_owned();
        return mismatch(format!("the prior `{}`", q.prior().name()), reason);
    }
    for i in 0..model.latents().len() {
        let name = q.likelihood().factor_name(i);
        let factor = format!("the factor `{name}` of {}", model.latents().name(i));
        match q.likelihood().kind(i) {
            Kind::Pathwise if name != "normal" => {
                return mismatch(
                    factor,
                    "its draws cannot be moved at fixed noise; use a normal on the line".to_owned(),
                );
            }
            Kind::Sampled if model.conditionals().is_none() || !q.likelihood().is_factorised() => {
                return mismatch(factor, "it needs the model's conditionals, and a factor of its own".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

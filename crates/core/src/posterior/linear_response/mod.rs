//! Linear response: covariances of the posterior from a mean-field approximation, which has none (Giordano, Broderick and Jordan,
//! 2018).
//!
//! The covariance of two quantities is the derivative of the mean of one when the log density is tilted along the other, and for a
//! mean-field optimum that derivative is known. With H = ∂²ELBO/∂λ² and J = ∂E_q\[g\]/∂λ at the optimum,
//!
//! Cov(g) ≈ J (−H)⁻¹ Jᵀ.
//!
//! It is exact if the posterior is Gaussian, or whenever the means of the mean-field approximation remain exact as the density is
//! tilted.

mod base;
mod curvature;
mod settings;

pub use settings::LinearResponseSettings;

use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::Model;
use crate::variational::Variational;
use base::Base;
use curvature::{Jacobians, jacobians};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, lower_solve};

/// The maximum number of parameters: each column of the curvature takes a gradient or two.
pub const PARAMETERS_MAX: usize = 600;

/// Means under q and covariances by linear response. See [`linear_response`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
/// `quantities` computes a column per quantity for a batch of draws of the model's latents. It must be deterministic, and smooth
/// along the continuous latents.
///
/// ```
/// use hyperprior::model::{Gradient, Latents, Model, Support};
/// use hyperprior::posterior::{LinearResponseSettings, linear_response};
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
/// // The optimum has means 0 and variances 1/2, which are too small.
/// let log_sd = -0.5 * 2f64.ln();
/// let theta = [0.0, 0.0, log_sd, log_sd];
/// let own = |z: &Batch| Ok(z.clone());
/// let response = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &own)?;
/// assert!((response.sd(0).powi(2) - 2.0 / 3.0).abs() < 1e-6);
/// assert!((response.correlation(0, 1) - 0.5).abs() < 1e-6);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// [`Error::Mismatch`] if q is not a mean-field approximation or a factor is not supported, [`Error::BadSetting`] for no draws,
/// [`Error::NotAnOptimum`] if −H is not positive definite, and errors of the model.
pub fn linear_response(
    model: &dyn Model,
    q: &Variational,
    theta: &[f64],
    settings: &LinearResponseSettings,
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
    // Cov = (L⁻¹ Jᵀ)ᵀ (L⁻¹ Jᵀ); the columns of Jᵀ are treated as draws.
    let count = means.len();
    let mut solved = response;
    if count > 0 {
        lower_solve(&factor, &mut solved, count);
    }
    let product = |i: usize, j: usize| (0..n).map(|p| solved[p * count + i] * solved[p * count + j]).sum();
    let covariance = (0..count * count).map(|e| product(e / count, e % count)).collect();
    Ok(LinearResponse { means, covariance })
}

fn check(model: &dyn Model, q: &Variational, theta: &[f64], settings: &LinearResponseSettings) -> Result<()> {
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
            "it has {} parameters, and at most {PARAMETERS_MAX} are supported; marginalise discrete latents, or use a method that \
             models dependence",
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
                    "its draws are not a smooth function of fixed noise; use a normal on the real line".to_owned(),
                );
            }
            Kind::Sampled if model.conditionals().is_none() || !q.likelihood().is_factorised() => {
                return mismatch(factor, "it needs the model's conditionals and a factorised likelihood".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

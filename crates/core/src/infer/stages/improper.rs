//! Improper posteriors: densities whose integral is infinite, because a flat prior leaves a latent undetermined.
//!
//! A latent with a flat prior is fixed ever farther from its mean, at distances t that double, and the other latents are integrated out
//! by Laplace's method. The result M(t) is proportional to the latent's marginal density. In ln t the integrand is t M(t), so the
//! posterior is improper if t M(t) does not fall.

use super::curvature::{climb, laplace};
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;

/// The distances, in standard deviations.
const DISTANCES: [f64; 8] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// The first distance that is tried: nearly all marginals are negligible there.
const FIRST: f64 = 8.0;
/// t M(t) is negligible below this share of M(0). It falls if its logarithm does by more than this at twice the distance, and must not
/// fall at so many distances in a row, the last ones.
const NEGLIGIBLE: f64 = 1e-3;
const FALL: f64 = 0.1;
const RISES: usize = 2;
/// The cost, in additions, within which latents are examined.
const WORK: f64 = 2e10;

/// The latents along which the posterior is improper, of those that may have flat priors. Empty if the curvature of the density is
/// unknown or has too many latents.
pub(in crate::infer) fn improper_latents(model: &dyn Model, z: &Batch) -> Result<Vec<String>> {
    let flat = model.flat_priors();
    if flat.is_empty() || model.gradient().is_none() {
        return Ok(Vec::new());
    }
    let latents = model.latents();
    let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
    let (mean, variance): (Vec<f64>, Vec<f64>) = continuous.iter().map(|i| moments(z.column(*i))).unzip();
    let sd: Vec<f64> = variance.iter().map(|x| x.sqrt()).collect();
    if !sd.iter().all(|sd| *sd > 0.0 && sd.is_finite()) {
        return Ok(Vec::new());
    }
    let scaled = WhitenedModel::new(model, mean, Whitening::Diagonal(sd));
    let u = scaled.whiten(z);
    let each = 100.0 * continuous.len() as f64 * model.work() as f64;
    let most = ((WORK / each) as usize).max(1);
    let mut found = Vec::new();
    for latent in flat.into_iter().take(most) {
        let others: Vec<usize> = continuous.iter().copied().filter(|i| *i != latent).collect();
        let marginal = Marginal { model: &scaled, latent, others, u: &u };
        if marginal.is_improper(1.0)? || marginal.is_improper(-1.0)? {
            found.push(latents.name(latent));
        }
    }
    Ok(found)
}

/// The marginal density of a latent with mean 0 and variance 1, at a distance from the draws.
struct Marginal<'a> {
    model: &'a WhitenedModel<'a, dyn Model + 'a>,
    latent: usize,
    /// The other continuous latents.
    others: Vec<usize>,
    /// The draws.
    u: &'a Batch,
}

impl Marginal<'_> {
    /// Whether the integral of the marginal is infinite on this side of the mean.
    fn is_improper(&self, side: f64) -> Result<bool> {
        // The discrete latents stay at the values that they have in the farthest draw.
        let x = |s: &usize| side * self.u.get(self.latent, *s);
        let Some(far) = (0..self.u.draws_len()).max_by(|a, b| x(a).total_cmp(&x(b))) else { return Ok(false) };
        let mut point: Vec<f64> = (0..self.u.columns_len()).map(|i| self.u.get(i, far)).collect();
        let Some(centre) = self.log_density(0.0, &mut point)? else { return Ok(false) };
        let is_negligible = |log_tm: f64| log_tm < NEGLIGIBLE.ln();
        let log_tm = |distance: f64, point: &mut Vec<f64>| -> Result<Option<f64>> {
            Ok(self.log_density(side * distance, point)?.map(|log_m| distance.ln() + log_m - centre))
        };
        if log_tm(FIRST, &mut point.clone())?.is_none_or(is_negligible) {
            return Ok(false);
        }
        let (mut rises, mut before) = (0, None);
        for distance in DISTANCES {
            // Far away the density may overflow.
            let Some(here) = log_tm(distance, &mut point)? else { break };
            if is_negligible(here) {
                return Ok(false);
            }
            rises = if before.is_some_and(|before| here >= before - FALL) { rises + 1 } else { 0 };
            before = Some(here);
        }
        Ok(rises >= RISES)
    }

    /// The log of the marginal density, by Laplace's method at the mode of the other latents. The search for it starts from the given
    /// point, or from where the others are expected given the latent, and the point becomes the mode.
    fn log_density(&self, at: f64, point: &mut Vec<f64>) -> Result<Option<f64>> {
        let Some(gradient) = self.model.gradient() else { return Ok(None) };
        let mut expected = point.clone();
        let x = self.u.column(self.latent);
        for i in &self.others {
            let slope = x.iter().zip(self.u.column(*i)).map(|(x, y)| x * y).sum::<f64>() / x.len() as f64;
            expected[*i] = slope * at;
        }
        (point[self.latent], expected[self.latent]) = (at, at);
        let mut log_p = [0.0, 0.0];
        let mut both = Batch::zeros(point.len(), 2);
        for i in 0..point.len() {
            both.column_mut(i).copy_from_slice(&[point[i], expected[i]]);
        }
        self.model.log_joint(&both, &mut log_p)?;
        if !(log_p[0] >= log_p[1]) {
            *point = expected;
        }
        climb(gradient, &self.others, point)?;
        laplace(self.model, gradient, &self.others, point)
    }
}

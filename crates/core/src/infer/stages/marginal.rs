//! The marginal density of one latent, away from the draws: the others are integrated out near their mode given that latent.

use super::curvature::{LocalGaussian, LogDensity, climb, laplace};
use super::sparse_curvature::SparseCurvature;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use hyperprior_math::vector::dot;

/// A model whose continuous latents are scaled to mean 0 and variance 1 over draws.
pub(super) struct Scaled<'a> {
    pub(super) model: WhitenedModel<'a, dyn Model + 'a>,
    /// The draws.
    pub(super) u: Batch,
}

impl<'a> Scaled<'a> {
    /// `None` if the draws of a latent are all the same.
    pub(super) fn new(model: &'a (dyn Model + 'a), z: &Batch) -> Option<Self> {
        let latents = model.latents();
        let continuous = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete());
        let (mean, variance): (Vec<f64>, Vec<f64>) = continuous.map(|i| moments(z.column(i))).unzip();
        let sd: Vec<f64> = variance.iter().map(|x| x.sqrt()).collect();
        let is_spread = sd.iter().all(|sd| *sd > 0.0 && sd.is_finite());
        let model = WhitenedModel::new(model, mean, Whitening::Diagonal(sd));
        is_spread.then(|| Self { u: model.whiten(z), model })
    }

    /// The marginal of a continuous latent.
    pub(super) fn marginal(&self, latent: usize) -> Marginal<'_> {
        let others: Vec<usize> = self.model.continuous().iter().copied().filter(|i| *i != latent).collect();
        let sparse = SparseCurvature::of_many(&self.model, &others);
        let x = self.u.column(latent);
        let slopes = others.iter().map(|i| dot(x, self.u.column(*i)) / x.len() as f64).collect();
        Marginal { scaled: self, latent, others, slopes, sparse }
    }
}

/// The marginal density of a latent.
pub(super) struct Marginal<'a> {
    scaled: &'a Scaled<'a>,
    latent: usize,
    /// The other continuous latents, and how their curvature is found if they are many.
    others: Vec<usize>,
    sparse: Option<SparseCurvature>,
    /// By how much each of the others is expected to change with it.
    slopes: Vec<f64>,
}

impl Marginal<'_> {
    /// The farthest draw on one side of the mean: the discrete latents stay at its values.
    pub(super) fn farthest(&self, side: f64) -> Vec<f64> {
        let u = &self.scaled.u;
        let x = |s: &usize| side * u.get(self.latent, *s);
        let far = (0..u.draws_len()).max_by(|a, b| x(a).total_cmp(&x(b))).unwrap_or(0);
        (0..u.columns_len()).map(|i| u.get(i, far)).collect()
    }

    /// The log of the marginal density at `at` by Laplace's method; the point becomes the mode of the others there.
    pub(super) fn laplace(&self, at: f64, point: &mut Vec<f64>) -> Result<Option<f64>> {
        let Some(density) = self.density() else { return Ok(None) };
        self.to_mode(at, point)?;
        laplace(density, point)
    }

    /// The same by importance sampling from a Gaussian at that mode: a lower bound, up to its Monte Carlo error.
    pub(super) fn log_mass(&self, at: f64, point: &mut Vec<f64>, seed: u64) -> Result<Option<f64>> {
        let Some(density) = self.density() else { return Ok(None) };
        self.to_mode(at, point)?;
        if self.others.is_empty() {
            return laplace(density, point);
        }
        let local = LocalGaussian::new(density, point, seed)?;
        Ok(local.and_then(|local| local.log_mass()))
    }

    /// Whether the model takes its usual time at a point.
    pub(super) fn is_ordinary(&self, point: &[f64]) -> bool {
        let mut is_ordinary = [true];
        self.scaled.model.is_ordinary(&Batch::from_columns(point.to_vec(), 1), &mut is_ordinary);
        is_ordinary[0]
    }

    /// Moves the other latents to their mode given this one. The search starts from the given point, or from where they are expected.
    fn to_mode(&self, at: f64, point: &mut Vec<f64>) -> Result<()> {
        let model = &self.scaled.model;
        let Some(density) = self.density() else { return Ok(()) };
        let mut expected = point.clone();
        for (i, slope) in self.others.iter().zip(&self.slopes) {
            expected[*i] = slope * at;
        }
        (point[self.latent], expected[self.latent]) = (at, at);
        let mut log_p = [0.0, 0.0];
        let mut both = Batch::zeros(point.len(), 2);
        for i in 0..point.len() {
            both.column_mut(i).copy_from_slice(&[point[i], expected[i]]);
        }
        model.log_joint(&both, &mut log_p)?;
        if !(log_p[0] >= log_p[1]) {
            *point = expected;
        }
        climb(density, point)?;
        Ok(())
    }

    /// The log density as a function of the other latents.
    fn density(&self) -> Option<LogDensity<'_>> {
        let model = &self.scaled.model;
        let sparse = self.sparse.as_ref();
        model.gradient().map(|gradient| LogDensity { sparse, ..LogDensity::new(model, gradient, &self.others) })
    }
}

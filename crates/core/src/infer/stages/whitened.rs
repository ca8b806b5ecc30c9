//! A model in whitened coordinates: continuous latents z = m + L u, with m and L guesses of the posterior's location and scale.
//!
//! In u the same step sizes work whatever the scale of z, and an approximation that starts at the standard normal starts at the
//! guess.

use super::whitening::Whitening;
use crate::error::Result;
use crate::model::{Conditionals, Fault, Gradient, Latents, Locals, Model};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::sparse::SparseCholesky;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A model in whitened coordinates. Its discrete latents are unchanged.
///
/// ```
/// use hyperprior::infer::{WhitenedModel, Whitening};
/// use hyperprior::{Batch, targets::Banana};
/// let banana = Banana::new();
/// let whitened = WhitenedModel::new(&banana, vec![1.0, 0.0], Whitening::Diagonal(vec![0.5, 2.0]));
/// let mut z = Batch::zeros(2, 1);
/// whitened.restore(&Batch::from_columns(vec![2.0, 1.0], 1), &mut z);
/// assert_eq!(z.as_slice(), [2.0, 2.0]); // 1 + 0.5 · 2 and 0 + 2 · 1
/// ```
#[derive(Debug)]
pub struct WhitenedModel<'a, M: Model + ?Sized> {
    model: &'a M,
    /// The columns of the continuous latents.
    continuous: Vec<usize>,
    location: Vec<f64>,
    whitening: Whitening,
    waiting: Mutex<Vec<[Batch; 2]>>,
}

impl<'a, M: Model + ?Sized> WhitenedModel<'a, M> {
    /// The model with this whitening of its continuous latents, which must be on the whole line.
    ///
    /// # Panics
    /// If the location or the whitening is not for as many latents as are continuous.
    pub fn new(model: &'a M, location: Vec<f64>, whitening: Whitening) -> Self {
        let latents = model.latents();
        let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
        let n = continuous.len();
        assert!(location.len() == n && whitening.is_for(n), "a whitening of another size");
        Self { model, continuous, location, whitening, waiting: Mutex::new(Vec::new()) }
    }

    /// z = m + L u.
    pub fn restore(&self, u: &Batch, z: &mut Batch) {
        let mut flat = self.take(u.draws_len());
        self.restore_with(u, z, &mut flat);
        self.give(flat);
    }

    /// m + L (μ + M u): the location and whitening of a Gaussian that was fitted in these coordinates.
    pub(in crate::infer) fn compose(&self, q: &Variational, theta: &[f64]) -> (Vec<f64>, Whitening) {
        let n = self.continuous.len();
        let Some(gaussians) = q.prior().gaussians() else { return (self.location.clone(), self.whitening.clone()) };
        if let (Whitening::Diagonal(outer), true) = (&self.whitening, gaussians.is_diagonal()) {
            let (mean, log_scale) = (&theta[..n], &theta[n..2 * n]);
            let moved = (0..n).map(|i| self.location[i] + outer[i] * mean[i]).collect();
            return (moved, Whitening::Diagonal((0..n).map(|i| outer[i] * log_scale[i].exp()).collect()));
        }
        if let (Whitening::Sparse(outer), true) = (&self.whitening, gaussians.is_diagonal()) {
            let factors: Vec<f64> = theta[n..2 * n].iter().map(|log_scale| (-log_scale).exp()).collect();
            return (self.shifted(&theta[..n]), scaled(outer, &factors));
        }
        let (mut mean, mut inner) = (vec![0.0; n], vec![0.0; n * (n + 1) / 2]);
        gaussians.component(theta, 0, &mut mean, &mut inner);
        (self.shifted(&mean), self.product(&inner))
    }

    /// m + L u.
    fn shifted(&self, u: &[f64]) -> Vec<f64> {
        let (u, mut z) = (Batch::from_columns(u.to_vec(), 1), Batch::zeros(u.len(), 1));
        self.whitening.multiply(&u, &mut z);
        self.location.iter().zip(z.as_slice()).map(|(m, x)| m + x).collect()
    }

    /// u = L⁻¹ (z − m).
    pub fn whiten(&self, z: &Batch) -> Batch {
        let mut u = z.clone();
        for s in 0..z.draws_len() {
            let mut x: Vec<f64> = self.continuous.iter().zip(&self.location).map(|(i, m)| z.get(*i, s) - m).collect();
            self.whitening.solve(&mut x);
            for (i, x) in self.continuous.iter().zip(x) {
                u.set(*i, s, x);
            }
        }
        u
    }

    fn take(&self, draws_len: usize) -> [Batch; 2] {
        let mut flat = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        for batch in &mut flat {
            batch.reset(self.continuous.len(), draws_len);
        }
        flat
    }

    fn give(&self, flat: [Batch; 2]) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(flat);
    }

    fn restore_with(&self, u: &Batch, z: &mut Batch, [from, to]: &mut [Batch; 2]) {
        z.copy_from(u);
        for (k, i) in self.continuous.iter().enumerate() {
            from.column_mut(k).copy_from_slice(u.column(*i));
        }
        self.whitening.multiply(from, to);
        for (k, i) in self.continuous.iter().enumerate() {
            for (z, x) in z.column_mut(*i).iter_mut().zip(to.column(k)) {
                *z = self.location[k] + x;
            }
        }
    }

    /// The location m and the whitening L.
    pub(in crate::infer) fn place(&self) -> (&[f64], &Whitening) {
        (&self.location, &self.whitening)
    }

    /// log |L|, the difference between the log densities of u and of z.
    fn log_volume(&self) -> f64 {
        self.whitening.log_volume(self.continuous.len())
    }

    /// The same model with another location and whitening.
    pub(in crate::infer) fn placed(&self, location: Vec<f64>, whitening: Whitening) -> Self {
        Self::new(self.model, location, whitening)
    }

    /// Coordinates in which these draws, given in the present ones, have mean 0 and covariance I. The identity counts for `prior` draws
    /// and one for each latent, so that few draws change little.
    pub(in crate::infer) fn rewhitened(&self, u: &Batch, prior: f64) -> Self {
        let (n, draws_len) = (self.continuous.len(), u.draws_len() as f64);
        let column = |k: usize| u.column(self.continuous[k]);
        let mean: Vec<f64> = (0..n).map(|k| column(k).iter().sum::<f64>() / draws_len).collect();
        let is_full = matches!(self.whitening, Whitening::Full(_));
        let prior = prior + if is_full { n as f64 } else { 0.0 };
        let covariance = |i: usize, j: usize| {
            let sum: f64 = column(i).iter().zip(column(j)).map(|(x, y)| (x - mean[i]) * (y - mean[j])).sum();
            (sum + if i == j { prior } else { 0.0 }) / (draws_len + prior)
        };
        let location = self.shifted(&mean);
        match &self.whitening {
            Whitening::Diagonal(scale) => {
                let scale = (0..n).map(|i| scale[i] * covariance(i, i).sqrt()).collect();
                return self.placed(location, Whitening::Diagonal(scale));
            }
            Whitening::Sparse(factor) => {
                let factors: Vec<f64> = (0..n).map(|i| 1.0 / covariance(i, i).sqrt()).collect();
                return self.placed(location, scaled(factor, &factors));
            }
            Whitening::Full(_) => {}
        }
        let entries: Vec<f64> = (0..n * n).into_par_iter().map(|at| covariance(at / n, at % n)).collect();
        let whitening = cholesky(&entries, n).map_or_else(|| self.whitening.clone(), |inner| self.product(&inner));
        self.placed(location, whitening)
    }

    /// L times a lower triangle.
    fn product(&self, inner: &[f64]) -> Whitening {
        let n = self.continuous.len();
        let mut product = vec![0.0; n * (n + 1) / 2];
        for i in 0..n {
            for j in 0..=i {
                product[packed(i, j)] = (j..=i).map(|k| self.whitening.get(i, k) * inner[packed(k, j)]).sum();
            }
        }
        Whitening::Full(product)
    }

    /// The model in its own coordinates.
    pub(in crate::infer) fn model(&self) -> &'a M {
        self.model
    }

    /// The columns of the continuous latents.
    pub(in crate::infer) fn continuous(&self) -> &[usize] {
        &self.continuous
    }

    /// z = m + L u, in a batch of its own.
    pub(in crate::infer) fn restored(&self, u: &Batch) -> Batch {
        let mut z = Batch::zeros(u.columns_len(), u.draws_len());
        self.restore(u, &mut z);
        z
    }
}

/// The whitening by a sparse triangle whose columns are multiplied.
fn scaled(factor: &SparseCholesky, factors: &[f64]) -> Whitening {
    let mut factor = factor.clone();
    factor.scale_columns(factors);
    Whitening::Sparse(factor)
}

impl<M: Model + ?Sized> Model for WhitenedModel<'_, M> {
    fn latents(&self) -> &Latents {
        self.model.latents()
    }

    fn log_joint(&self, u: &Batch, out: &mut [f64]) -> Result<()> {
        self.model.log_joint(&self.restored(u), out)?;
        let volume = self.log_volume();
        out.iter_mut().for_each(|o| *o += volume);
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        self.model.locals().map(|_| self as &dyn Locals)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        self.model.conditionals().map(|_| self as &dyn Conditionals)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        self.model.gradient().map(|_| self as &dyn Gradient)
    }

    fn flat_priors(&self) -> Vec<usize> {
        self.model.flat_priors()
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        // Other whitenings couple latents that were not.
        if matches!(self.whitening, Whitening::Diagonal(_)) { self.model.coupled() } else { None }
    }

    fn fault(&self, u: &Batch, s: usize) -> Option<Fault> {
        self.model.fault(&self.restored(u), s)
    }

    fn is_ordinary(&self, u: &Batch, out: &mut [bool]) {
        self.model.is_ordinary(&self.restored(u), out);
    }

    fn work(&self) -> usize {
        self.model.work() + self.whitening.work()
    }
}

impl<M: Model + ?Sized> Locals for WhitenedModel<'_, M> {
    fn log_local(&self, u: &Batch, out: &mut Batch) -> Result<()> {
        match self.model.locals() {
            Some(locals) => locals.log_local(&self.restored(u), out),
            None => Ok(()),
        }
    }
}

impl<M: Model + ?Sized> Conditionals for WhitenedModel<'_, M> {
    fn log_conditional(&self, i: usize, u: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        match self.model.conditionals() {
            Some(conditionals) => conditionals.log_conditional(i, &self.restored(u), values, out),
            None => Ok(()),
        }
    }
}

impl<M: Model + ?Sized> Gradient for WhitenedModel<'_, M> {
    fn log_joint_gradient(&self, u: &Batch, out: &mut [f64], d_u: &mut Batch) -> Result<()> {
        let Some(gradient) = self.model.gradient() else { return Ok(()) };
        let mut flat = self.take(u.draws_len());
        let mut z = Batch::zeros(u.columns_len(), u.draws_len());
        self.restore_with(u, &mut z, &mut flat);
        gradient.log_joint_gradient(&z, out, d_u)?;
        let volume = self.log_volume();
        out.iter_mut().for_each(|o| *o += volume);
        let [from, to] = &mut flat;
        for (k, i) in self.continuous.iter().enumerate() {
            from.column_mut(k).copy_from_slice(d_u.column(*i));
        }
        to.as_mut_slice().fill(0.0);
        self.whitening.transpose_multiply(from, to);
        for (k, i) in self.continuous.iter().enumerate() {
            d_u.column_mut(*i).copy_from_slice(to.column(k));
        }
        self.give(flat);
        Ok(())
    }
}

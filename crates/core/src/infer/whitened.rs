//! A model seen in the units of its own posterior: continuous latents z = m + L u, with m and L a first guess.
//!
//! Step sizes that suit u suit it whatever the scale of z is, and an approximation of u that starts at the standard normal
//! starts at the guess.

use super::units::Units;
use crate::error::Result;
use crate::model::{Conditionals, Fault, Gradient, Latents, Locals, Model};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::packed;
use std::sync::{Mutex, PoisonError};

/// A model in other units. Its discrete latents are as they were.
#[derive(Debug)]
pub struct Whitened<'a, M: Model + ?Sized> {
    model: &'a M,
    /// The columns of the continuous latents.
    continuous: Vec<usize>,
    location: Vec<f64>,
    units: Units,
    waiting: Mutex<Vec<[Batch; 2]>>,
}

impl<'a, M: Model + ?Sized> Whitened<'a, M> {
    /// With these units for the continuous latents, which must be on the whole line.
    ///
    /// # Panics
    /// Where location and units are not as long as there are continuous latents.
    pub fn new(model: &'a M, location: Vec<f64>, units: Units) -> Self {
        let latents = model.latents();
        let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
        let n = continuous.len();
        assert!(location.len() == n && units.is_for(n), "units of another size");
        Self { model, continuous, location, units, waiting: Mutex::new(Vec::new()) }
    }

    /// The latents in the model's own units.
    pub fn restore(&self, u: &Batch, z: &mut Batch) {
        let mut flat = self.take(u.draws_len());
        self.restore_with(u, z, &mut flat);
        self.give(flat);
    }

    /// m + L (μ + M u): location and units of a Gaussian that was fitted to the continuous latents in these units.
    pub fn compose(&self, q: &Variational, theta: &[f64]) -> (Vec<f64>, Units) {
        let n = self.continuous.len();
        let Some(gaussians) = q.prior().gaussians() else { return (self.location.clone(), self.units.clone()) };
        if let (Units::Diagonal(outer), true) = (&self.units, gaussians.is_diagonal()) {
            let (mean, log_scale) = (&theta[..n], &theta[n..2 * n]);
            let moved = (0..n).map(|i| self.location[i] + outer[i] * mean[i]).collect();
            return (moved, Units::Diagonal((0..n).map(|i| outer[i] * log_scale[i].exp()).collect()));
        }
        let (mut mean, mut inner) = (vec![0.0; n], vec![0.0; n * (n + 1) / 2]);
        gaussians.component(theta, 0, &mut mean, &mut inner);
        let outer = |i: usize, j: usize| self.units.get(i, j);
        let moved = (0..n).map(|i| self.location[i] + (0..=i).map(|j| outer(i, j) * mean[j]).sum::<f64>()).collect();
        let mut product = vec![0.0; n * (n + 1) / 2];
        for i in 0..n {
            for j in 0..=i {
                product[packed(i, j)] = (j..=i).map(|k| outer(i, k) * inner[packed(k, j)]).sum();
            }
        }
        (moved, Units::Full(product))
    }

    /// The latents in these units.
    pub fn whiten(&self, z: &Batch) -> Batch {
        let mut u = z.clone();
        for s in 0..z.draws_len() {
            let mut x: Vec<f64> = self.continuous.iter().zip(&self.location).map(|(i, m)| z.get(*i, s) - m).collect();
            self.units.solve(&mut x);
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
        self.units.multiply(from, to);
        for (k, i) in self.continuous.iter().enumerate() {
            for (z, x) in z.column_mut(*i).iter_mut().zip(to.column(k)) {
                *z = self.location[k] + x;
            }
        }
    }

    /// Where u = 0 is, and the units.
    pub fn place(&self) -> (&[f64], &Units) {
        (&self.location, &self.units)
    }

    /// The log of the units' volume, which the density in u has more than that in z.
    fn log_volume(&self) -> f64 {
        self.units.log_volume(self.continuous.len())
    }

    fn restored(&self, u: &Batch) -> Batch {
        let mut z = Batch::zeros(u.columns_len(), u.draws_len());
        self.restore(u, &mut z);
        z
    }
}

impl<M: Model + ?Sized> Model for Whitened<'_, M> {
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

    fn fault(&self, u: &Batch, s: usize) -> Option<Fault> {
        self.model.fault(&self.restored(u), s)
    }

    fn work(&self) -> usize {
        let n = self.continuous.len();
        self.model.work() + if matches!(self.units, Units::Full(_)) { n * n } else { 2 * n }
    }
}

impl<M: Model + ?Sized> Locals for Whitened<'_, M> {
    fn log_local(&self, u: &Batch, out: &mut Batch) -> Result<()> {
        match self.model.locals() {
            Some(locals) => locals.log_local(&self.restored(u), out),
            None => Ok(()),
        }
    }
}

impl<M: Model + ?Sized> Conditionals for Whitened<'_, M> {
    fn log_conditional(&self, i: usize, u: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        match self.model.conditionals() {
            Some(conditionals) => conditionals.log_conditional(i, &self.restored(u), values, out),
            None => Ok(()),
        }
    }
}

impl<M: Model + ?Sized> Gradient for Whitened<'_, M> {
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
        self.units.transpose_multiply(from, to);
        for (k, i) in self.continuous.iter().enumerate() {
            d_u.column_mut(*i).copy_from_slice(to.column(k));
        }
        self.give(flat);
        Ok(())
    }
}

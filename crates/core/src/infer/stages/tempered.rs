//! A model between a simple distribution and the posterior: log p_β = (1 − β) log p₀ + β log p.

use super::base::Base;
use crate::error::Result;
use crate::model::{Conditionals, Gradient, Latents, Model};
use hyperprior_math::batch::Batch;

/// A tempered model.
pub(super) struct Tempered<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) base: &'a Base,
    /// The inverse temperature β, from 0 to 1.
    pub(super) power: f64,
}

impl Tempered<'_> {
    /// Replaces what belongs to log p with what belongs to log p_β.
    fn mix(&self, base: &[f64], of_p: &mut [f64]) {
        // Where p₀ is 0, that says nothing of p.
        if self.power == 1.0 {
            return;
        }
        of_p.iter_mut().zip(base).for_each(|(p, base)| *p = (1.0 - self.power) * base + self.power * *p);
    }
}

impl Model for Tempered<'_> {
    fn latents(&self) -> &Latents {
        self.model.latents()
    }

    fn log_joint(&self, u: &Batch, out: &mut [f64]) -> Result<()> {
        self.model.log_joint(u, out)?;
        let mut base = vec![0.0; out.len()];
        self.base.log_density(u, &mut base);
        self.mix(&base, out);
        Ok(())
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        self.model.conditionals().map(|_| self as &dyn Conditionals)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        self.model.gradient().map(|_| self as &dyn Gradient)
    }

    fn work(&self) -> usize {
        self.model.work()
    }
}

impl Conditionals for Tempered<'_> {
    fn log_conditional(&self, i: usize, u: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let Some(conditionals) = self.model.conditionals() else { return Ok(()) };
        conditionals.log_conditional(i, u, values, out)?;
        let mut base = Batch::zeros(out.columns_len(), out.draws_len());
        self.base.log_conditional(i, u, values, &mut base);
        self.mix(base.as_slice(), out.as_mut_slice());
        Ok(())
    }
}

impl Gradient for Tempered<'_> {
    fn log_joint_gradient(&self, u: &Batch, out: &mut [f64], d_u: &mut Batch) -> Result<()> {
        let Some(gradient) = self.model.gradient() else { return Ok(()) };
        gradient.log_joint_gradient(u, out, d_u)?;
        let (mut base, mut d_base) = (vec![0.0; out.len()], Batch::zeros(u.columns_len(), u.draws_len()));
        self.base.log_density_gradient(u, &mut base, &mut d_base);
        self.mix(&base, out);
        self.mix(d_base.as_slice(), d_u.as_mut_slice());
        Ok(())
    }
}

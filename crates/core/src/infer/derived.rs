//! Missing capabilities of a model, derived from its log joint: the gradient along continuous latents by central differences, and
//! the conditionals of discrete latents by evaluation at each value.

use crate::error::Result;
use crate::model::{Conditionals, Fault, Gradient, Latents, Locals, Model};
use hyperprior_math::batch::Batch;

/// The cube root of the machine precision, which balances the rounding and the truncation error of a central difference.
const STEP: f64 = 6.055e-6;

/// A model with every capability that inference uses.
pub(super) struct Derived<'a> {
    model: &'a dyn Model,
    continuous: Vec<usize>,
    has_discrete: bool,
}

impl<'a> Derived<'a> {
    pub(super) fn new(model: &'a dyn Model) -> Self {
        let latents = model.latents();
        let is_discrete = |i: &usize| latents.support(*i).is_discrete();
        let (discrete, continuous): (Vec<usize>, Vec<usize>) = (0..latents.len()).partition(is_discrete);
        Self { model, continuous, has_discrete: !discrete.is_empty() }
    }

    fn derives_gradient(&self) -> bool {
        self.model.gradient().is_none() && !self.continuous.is_empty()
    }

    fn derives_conditionals(&self) -> bool {
        self.model.conditionals().is_none() && self.has_discrete
    }

    /// Whether the model lacks a capability.
    pub(super) fn is_needed(&self) -> bool {
        self.derives_gradient() || self.derives_conditionals()
    }
}

impl Model for Derived<'_> {
    fn latents(&self) -> &Latents {
        self.model.latents()
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.model.log_joint(z, out)
    }

    fn locals(&self) -> Option<&dyn Locals> {
        self.model.locals()
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        if self.derives_conditionals() { Some(self) } else { self.model.conditionals() }
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        if self.derives_gradient() { Some(self) } else { self.model.gradient() }
    }

    fn work(&self) -> usize {
        let times = if self.derives_gradient() { 1 + 2 * self.continuous.len() } else { 1 };
        self.model.work().saturating_mul(times)
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        self.model.coupled()
    }

    fn flat_priors(&self) -> Vec<usize> {
        self.model.flat_priors()
    }

    fn fault(&self, z: &Batch, s: usize) -> Option<Fault> {
        self.model.fault(z, s)
    }

    fn is_ordinary(&self, z: &Batch, out: &mut [bool]) {
        self.model.is_ordinary(z, out);
    }
}

impl Conditionals for Derived<'_> {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let mut at = z.clone();
        for (v, value) in values.iter().enumerate() {
            at.column_mut(i).fill(*value);
            self.model.log_joint(&at, out.column_mut(v))?;
        }
        Ok(())
    }
}

impl Gradient for Derived<'_> {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.model.log_joint(z, out)?;
        let draws_len = z.draws_len();
        let mut at = z.clone();
        let (mut above, mut below) = (vec![0.0; draws_len], vec![0.0; draws_len]);
        for &i in &self.continuous {
            let step = |s: usize| STEP * z.get(i, s).abs().max(1.0);
            (0..draws_len).for_each(|s| at.set(i, s, z.get(i, s) + step(s)));
            self.model.log_joint(&at, &mut above)?;
            (0..draws_len).for_each(|s| at.set(i, s, z.get(i, s) - step(s)));
            self.model.log_joint(&at, &mut below)?;
            at.column_mut(i).copy_from_slice(z.column(i));
            for s in 0..draws_len {
                d_z.set(i, s, (above[s] - below[s]) / (2.0 * step(s)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Support;

    /// A coin and a normal whose mean depends on it, with nothing but a log density.
    struct Bare(Latents);

    impl Model for Bare {
        fn latents(&self) -> &Latents {
            &self.0
        }

        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            for s in 0..out.len() {
                let (coin, x) = (z.get(0, s), z.get(1, s));
                out[s] = -0.5 * (x - 2.0 * coin).powi(2) + 0.3 * coin * x;
            }
            Ok(())
        }
    }

    #[test]
    fn capabilities_agree_with_the_log_joint() {
        let latents = Latents::new().scalar("coin", Support::BINARY).and_then(|l| l.scalar("x", Support::Real));
        let bare = Bare(latents.expect("latents"));
        let derived = Derived::new(&bare);
        assert!(derived.is_needed());
        crate::check(&derived, 3).expect("capabilities that agree");
        let z = Batch::from_columns(vec![1.0, 0.0, 0.5, -40.0], 2);
        let (mut out, mut d_z) = (vec![0.0; 2], Batch::zeros(2, 2));
        derived.log_joint_gradient(&z, &mut out, &mut d_z).expect("a gradient");
        for (s, exact) in [1.5 + 0.3, 40.0].into_iter().enumerate() {
            assert!((d_z.get(1, s) - exact).abs() < 1e-7, "{} for {exact}", d_z.get(1, s));
        }
    }
}

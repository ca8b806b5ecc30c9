//! Models with few discrete latents and no others: every state is evaluated, and the draws are exact.

use super::resample::{MIDDLE, systematic};
use crate::error::{Error, Result};
use crate::exact::Grid;
use crate::infer::method::Method;
use crate::infer::parts::Parts;
use crate::infer::settings::{Correction, InferSettings};
use crate::model::{Model, Support};
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::special::log_sum_exp;
use rayon::prelude::*;

/// The most work: the number of states times the work of each.
const WORK_MAX: f64 = 6e10;
/// States that are evaluated together, and how many of these groups between two reports of progress.
const GROUP: usize = 1024;
const GROUPS: usize = 64;

/// Draws from an exact posterior. See [`enumerated`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Enumerated {
    /// The draws: a column for each latent.
    pub z: Batch,
    /// log p(x).
    pub log_evidence: f64,
}

/// Draws from the exact posterior, if all latents are discrete and every state can be evaluated; nothing if not, if the settings
/// ask for a certain approximation, or if no state is possible.
///
/// ```
/// use hyperprior::Quiet;
/// use hyperprior::infer::{InferSettings, enumerated};
/// use hyperprior::targets::Ising;
/// let found = enumerated(&Ising::ring(3, 0.5)?, &InferSettings::default(), &mut Quiet)?.unwrap();
/// // Two states with all spins equal, six with two unequal pairs.
/// let exact = (2.0 * f64::exp(1.5) + 6.0 * f64::exp(-0.5)).ln();
/// assert!((found.log_evidence - exact).abs() < 1e-12);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model, and [`Error::Stopped`] if the observer stops it.
pub fn enumerated<'s>(
    model: &dyn Model,
    settings: &InferSettings,
    session: impl Into<Session<'s>>,
) -> Result<Option<Enumerated>> {
    let latents = model.latents();
    let is_free =
        settings.method == Method::Auto && settings.parts == Parts::default() && settings.importance.is_none();
    let is_plain = settings.correct == Correction::default() && settings.steps.is_none() && settings.moves.is_none();
    let is_finite = (0..latents.len()).all(|i| matches!(latents.support(i), Support::Integers { .. }));
    if !(is_free && is_plain && is_finite) || latents.is_empty() {
        return Ok(None);
    }
    let Ok(grid) = Grid::new(latents, 0) else { return Ok(None) };
    if grid.len() as f64 * model.work() as f64 > WORK_MAX {
        return Ok(None);
    }
    let session = &mut session.into();
    let mut log_joint = vec![0.0; grid.len()];
    let each = GROUP * GROUPS;
    for (number, part) in log_joint.chunks_mut(each).enumerate() {
        if session.advance("enumeration", number * each, grid.len()).is_break() {
            return Err(Error::Stopped { step: number as u64 });
        }
        part.par_chunks_mut(GROUP).enumerate().try_for_each(|(group, out)| {
            let first = number * each + group * GROUP;
            model.log_joint(&grid.states_in(first..first + out.len()), out)
        })?;
    }
    let log_evidence = log_sum_exp(&log_joint);
    if !log_evidence.is_finite() {
        return Ok(None);
    }
    // Mixed by a stride, so that any part of the draws is like the whole.
    let mut z = Batch::zeros(latents.len(), settings.draws);
    let stride = stride(settings.draws);
    for (s, state) in systematic(&log_joint, log_evidence, settings.draws, MIDDLE).enumerate() {
        let one = grid.states_in(state..state + 1);
        for i in 0..latents.len() {
            z.set(i, s * stride % settings.draws, one.get(i, 0));
        }
    }
    Ok(Some(Enumerated { z, log_evidence }))
}

/// A number near the golden section of `len` without a common divisor.
fn stride(len: usize) -> usize {
    let is_coprime = |k: &usize| {
        let (mut a, mut b) = (*k, len);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    ((0.618 * len as f64) as usize..len).find(is_coprime).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Quiet;
    use crate::targets::Ising;

    #[test]
    fn frequencies_are_the_probabilities() {
        let model = Ising::ring(10, 0.7).unwrap();
        let found = enumerated(&model, &InferSettings::default(), &mut Quiet).unwrap().unwrap();
        // Transfer matrix: eigenvalues 2 cosh β and 2 sinh β; E s₀ s₁ = (c⁹ s + s⁹ c) / (c¹⁰ + s¹⁰).
        let (c, s) = (0.7_f64.cosh(), 0.7_f64.sinh());
        let exact = 10.0 * 2.0_f64.ln() + (c.powi(10) + s.powi(10)).ln();
        assert!((found.log_evidence - exact).abs() < 1e-10, "{} {exact}", found.log_evidence);
        let z = &found.z;
        let equal = (0..z.draws_len()).filter(|d| z.get(0, *d) == z.get(1, *d)).count() as f64 / z.draws_len() as f64;
        let correlation = (c.powi(9) * s + s.powi(9) * c) / (c.powi(10) + s.powi(10));
        assert!((equal - (1.0 + correlation) / 2.0).abs() < 0.01, "{equal}");
    }

    #[test]
    fn a_chosen_method_is_not_replaced() {
        let model = Ising::ring(4, 0.7).unwrap();
        let settings = InferSettings::default().method(Method::Hvm);
        assert!(enumerated(&model, &settings, &mut Quiet).unwrap().is_none());
        let large = Ising::ring(40, 0.7).unwrap();
        assert!(enumerated(&large, &InferSettings::default(), &mut Quiet).unwrap().is_none());
    }
}

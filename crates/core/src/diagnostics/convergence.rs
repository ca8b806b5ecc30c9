//! Convergence of a fit: whether its bound was still rising.
//!
//! Decreasing step sizes raise the bound on their own, since θ fluctuates less. So the rise is measured while the step size is
//! constant: from the second quarter of that part to its last.

use crate::fit::{Fitted, RISE_MAX};

/// The share of a fit's steps with a constant step size, during which a rising bound has not converged.
pub(crate) const FLAT: f64 = 0.5;

/// With fewer steps than this in a quarter, convergence cannot be judged.
const PART_MIN: usize = 20;

/// The bound at each step of a fit whose step size was constant over the share `flat`.
pub(crate) struct ElboTrace<'a> {
    pub(crate) elbo: &'a [f64],
    pub(crate) flat: f64,
}

impl<'a> ElboTrace<'a> {
    /// The trace of a fit.
    pub(crate) fn of(fitted: &'a Fitted) -> Self {
        Self { elbo: &fitted.history, flat: FLAT }
    }

    /// The mean bound over the last fifth of the steps.
    pub(crate) fn last(&self) -> f64 {
        moments(&self.elbo[self.elbo.len() - self.elbo.len().div_ceil(5)..]).0
    }

    /// Whether the bound had converged; `None` if there were too few steps to tell.
    pub(crate) fn has_converged(&self) -> Option<bool> {
        let end = (self.flat * self.elbo.len() as f64) as usize;
        let part = end / 4;
        if part < PART_MIN {
            return None;
        }
        let (before, now) = (moments(&self.elbo[part..2 * part]), moments(&self.elbo[end - part..end]));
        Some(now.0 - before.0 <= RISE_MAX + 3.0 * ((now.1 + before.1) / part as f64).sqrt())
    }
}

/// The mean and the variance.
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0))
}

/// R̂ from the mean and the variance of each group: the spread within groups, compared with that of all draws.
pub(crate) fn rhat(of_groups: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (means, variances): (Vec<f64>, Vec<f64>) = of_groups.into_iter().unzip();
    let (between, within) = (moments(&means).1, moments(&variances).0);
    if between == 0.0 { 1.0 } else { (1.0 + between / within).sqrt() }
}

/// Whether a fit's bound had converged, by its stages if it had a stopping rule; `None` if there were too few steps to tell.
pub(crate) fn has_converged(fitted: &Fitted) -> Option<bool> {
    match fitted.stages.last() {
        Some(stage) => stage.has_converged,
        None => ElboTrace::of(fitted).has_converged(),
    }
}

/// The bound that a fit reached.
pub(crate) fn reached(fitted: &Fitted) -> f64 {
    fitted.stages.last().map_or_else(|| ElboTrace::of(fitted).last(), |stage| stage.elbo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_converged(elbo: impl Fn(f64) -> f64, steps: usize) -> Option<bool> {
        let elbo: Vec<f64> = (0..steps).map(|i| elbo(i as f64 / steps as f64)).collect();
        ElboTrace { elbo: &elbo, flat: 0.5 }.has_converged()
    }

    #[test]
    fn rhat_compares_groups_with_their_draws() {
        assert_eq!(rhat([(1.0, 2.0), (1.0, 3.0)]), 1.0);
        assert!((rhat([(0.0, 1.0), (2.0, 1.0)]) - 3.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_rise_from_decreasing_step_sizes_is_not_a_lack_of_convergence() {
        // Three nats of fluctuation, which disappear with the step size in the second half.
        let fluctuating = |t: f64| if t < 0.5 { -3.0 } else { -6.0 * (1.0 - t) };
        assert_eq!(has_converged(fluctuating, 400), Some(true));
        assert_eq!(has_converged(|t| 10.0 * t, 400), Some(false));
        assert_eq!(has_converged(|t| 10.0 * t, 100), None);
    }
}

//! The way of a bound during a fit: whether it has settled, or was still rising.
//!
//! Steps that shrink make a bound rise by themselves, since a θ that trembles less is a better one. So the rise is looked for
//! while they are of one size: from the second quarter of that part to its last.

use crate::fit::{Fitted, RISE_MAX};

/// Fewer steps than this in a quarter tell nothing.
const PART_MIN: usize = 20;

/// The bound at each step of a fit whose step size was the same over that share of them.
pub(super) struct Way<'a> {
    pub(super) elbo: &'a [f64],
    pub(super) flat: f64,
}

impl<'a> Way<'a> {
    /// Of a fit.
    pub(super) fn of(fitted: &'a Fitted) -> Self {
        Self { elbo: &fitted.history, flat: super::settle::FLAT }
    }

    /// The mean bound over the last fifth of the way.
    pub(super) fn last(&self) -> f64 {
        moments(&self.elbo[self.elbo.len() - self.elbo.len().div_ceil(5)..]).0
    }

    /// Whether the bound had settled; nothing where there were too few steps to tell.
    pub(super) fn has_settled(&self) -> Option<bool> {
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
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0))
}

/// Whether a fit's bound had settled, by its rounds where it ended by itself; nothing where there were too few steps to tell.
pub(super) fn has_settled(fitted: &Fitted) -> Option<bool> {
    match fitted.rounds.last() {
        Some(round) => round.is_settled,
        None => Way::of(fitted).has_settled(),
    }
}

/// The bound that a fit reached.
pub(super) fn reached(fitted: &Fitted) -> f64 {
    fitted.rounds.last().map_or_else(|| Way::of(fitted).last(), |round| round.elbo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(elbo: impl Fn(f64) -> f64, steps: usize) -> Option<bool> {
        let elbo: Vec<f64> = (0..steps).map(|i| elbo(i as f64 / steps as f64)).collect();
        Way { elbo: &elbo, flat: 0.5 }.has_settled()
    }

    #[test]
    fn a_rise_from_shrinking_steps_is_not_a_way_still_to_go() {
        // Three nats of trembling, gone with the step size in the second half.
        let trembling = |t: f64| if t < 0.5 { -3.0 } else { -6.0 * (1.0 - t) };
        assert_eq!(settled(trembling, 400), Some(true));
        assert_eq!(settled(|t| 10.0 * t, 400), Some(false));
        assert_eq!(settled(|t| 10.0 * t, 100), None);
    }
}

//! Which few latents θ describe the others: those on which the curvature of the log density depends. Given θ the others are Gaussian.

use super::curvature::curvature;
use crate::error::Result;
use crate::model::Model;

/// How far a latent is moved to see which curvature changes, in standard deviations.
const MOVES: [f64; 2] = [1.0, -8.0];
/// The change of a curvature that counts, in units of the standard deviations; and of one that leaves the others nearly Gaussian, when a
/// latent is moved by one standard deviation.
const CHANGED: f64 = 1e-3;
const CHANGED_MUCH: f64 = 0.5;
/// How many times wider than the draws a latent may be.
const WIDER_MAX: f64 = 100.0;

/// A model as θ and the others.
pub(super) struct Described {
    pub(super) theta: Vec<usize>,
    pub(super) others: Vec<usize>,
    /// Whether the others are Gaussian given θ; if not, the density of some is curved along themselves, as with counts.
    pub(super) is_gaussian: bool,
}

/// The evaluations that this takes for so many latents.
pub(super) fn evaluations(n: usize) -> f64 {
    // A gradient is as expensive as three.
    3.0 * 2.0 * (n * (MOVES.len() * n + 1)) as f64
}

/// Few latents that describe the others, at most so many, by taking the one on which the curvature depends most again and again. If too
/// many would leave the others Gaussian, those are taken that leave them nearly so. The latents have these means and standard deviations.
pub(super) fn described(model: &dyn Model, middle: &[f64], scales: &[f64], most: usize) -> Result<Option<Described>> {
    let n = middle.len();
    let Some(changes) = changes(model, middle, scales)? else { return Ok(None) };
    let is_changed = |i: usize, at: usize| changes[i][at].iter().any(|change| *change > CHANGED);
    if let Some((theta, others)) = taken(n, most, &is_changed) {
        let is_gaussian = others.iter().all(|i| !is_changed(*i, i * n + i));
        return Ok((!others.is_empty()).then_some(Described { theta, others, is_gaussian }));
    }
    let found = taken(n, most, &|i, at| changes[i][at][0] > CHANGED_MUCH);
    Ok(found.filter(|(_, others)| !others.is_empty()).map(|(theta, others)| Described {
        theta,
        others,
        is_gaussian: false,
    }))
}

/// How much each entry of the curvature changes when a latent is moved, in units of the standard deviations, for each latent.
fn changes(model: &dyn Model, middle: &[f64], scales: &[f64]) -> Result<Option<Vec<Vec<[f64; MOVES.len()]>>>> {
    let (n, all) = (middle.len(), (0..middle.len()).collect::<Vec<_>>());
    let Some(gradient) = model.gradient() else { return Ok(None) };
    let Some(before) = curvature(gradient, &all, middle)? else { return Ok(None) };
    // Draws may be too narrow, and the curvature knows.
    let own = |i: usize| before[i * n + i].abs().sqrt().recip().min(WIDER_MAX * scales[i]);
    let scales: Vec<f64> = (0..n).map(|i| scales[i].max(own(i))).collect();
    let of_latent = |i: usize| {
        let mut changes = vec![[f64::INFINITY; MOVES.len()]; n * n];
        for (number, sds) in MOVES.iter().enumerate() {
            let mut point = middle.to_vec();
            point[i] += sds * scales[i];
            let Some(after) = curvature(gradient, &all, &point)? else { continue };
            for (at, changes) in changes.iter_mut().enumerate() {
                changes[number] = (after[at] - before[at]).abs() * scales[at / n] * scales[at % n];
            }
        }
        Ok(changes)
    };
    (0..n).map(of_latent).collect::<Result<_>>().map(Some)
}

/// θ and the others, so that among the others no entry depends on a latent, but for the one of that latent itself. `None` if there are
/// too many θ.
fn taken(n: usize, most: usize, depends: &dyn Fn(usize, usize) -> bool) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut is_theta = vec![false; n];
    loop {
        let others: Vec<usize> = (0..n).filter(|i| !is_theta[*i]).collect();
        let len_of = |i: usize| {
            let is_open = |at: &usize| !is_theta[at / n] && !is_theta[at % n] && *at != i * n + i && depends(i, *at);
            (0..n * n).filter(is_open).count()
        };
        match others.iter().map(|i| (len_of(*i), *i)).max() {
            Some((1.., first)) => is_theta[first] = true,
            _ => return Some(((0..n).filter(|i| is_theta[*i]).collect(), others)),
        }
        if is_theta.iter().filter(|is| **is).count() > most {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;

    /// θ, and whether the others are Gaussian given it.
    fn of(model: &Coupled) -> Option<(Vec<usize>, bool)> {
        let n = model.latents().len();
        let found = described(model, &vec![0.3; n], &vec![0.5; n], 4).expect("no fault")?;
        assert_eq!(found.theta.len() + found.others.len(), n);
        Some((found.theta, found.is_gaussian))
    }

    /// Catches a scale that is taken for Gaussian, and effects that are not: the precision describes a walk, whose counts curve each state;
    /// without counts the states are Gaussian, and so is everything without an unknown scale.
    #[test]
    fn the_precision_describes_a_walk() {
        assert_eq!(of(&Coupled::walk(9)), Some((vec![0], false)));
        assert_eq!(of(&Coupled::levels(9)), Some((vec![0], true)));
        assert_eq!(of(&Coupled::normal(5)), Some((vec![], true)));
        assert_eq!(of(&Coupled::effects(6)), Some((vec![], false)));
    }

    /// Catches a product that is taken for Gaussian: given one factor, the other is.
    #[test]
    fn one_factor_describes_the_other() {
        let Some((theta, _)) = of(&Coupled::product()) else { panic!("a description") };
        assert_eq!(theta.len(), 1);
    }
}

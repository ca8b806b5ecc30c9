//! Where latents are, by the draws, the modes and the chains so far.

use crate::model::Model;
use hyperprior_math::batch::Batch;

/// The most values that a latent is known to have.
const KNOWN_MAX: usize = 16;

/// The distance at which a model is asked whether it takes its usual time, in standard deviations.
const FAR: f64 = 64.0;

/// What is known of a latent.
pub(super) struct Place {
    pub(super) middle: f64,
    pub(super) scale: f64,
    pub(super) known: Vec<f64>,
}

/// Where the posterior is known to be.
pub(in crate::infer) struct Seen<'a> {
    /// Draws.
    pub(in crate::infer) z: &'a Batch,
    /// The ends of chains from elsewhere, if there are some.
    pub(in crate::infer) chains: Option<&'a Batch>,
    /// Modes.
    pub(in crate::infer) modes: &'a Batch,
    /// Where ascents ended.
    pub(in crate::infer) ends: &'a Batch,
}

/// Where a latent is, by the draws, and other values that it may have.
pub(super) fn place(seen: &Seen, i: usize) -> Option<Place> {
    let own = seen.z.column(i);
    let middle = own.iter().sum::<f64>() / own.len() as f64;
    let scale = (own.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / own.len() as f64).sqrt();
    let scale = if scale > 0.0 { scale } else { 1.0 };
    let mut known = seen.modes.column(i).to_vec();
    for x in seen.ends.column(i) {
        if known.len() < KNOWN_MAX && known.iter().all(|other| (x - other).abs() > 0.01 * scale) {
            known.push(*x);
        }
    }
    (middle.is_finite() && scale.is_finite()).then_some(Place { middle, scale, known })
}

/// Whether the model takes its usual time far from the middle as well.
pub(super) fn is_ordinary(model: &dyn Model, places: &[Place]) -> bool {
    let n = places.len();
    let mut far = Batch::zeros(n, 2 * n);
    for (i, place) in places.iter().enumerate() {
        far.column_mut(i).fill(place.middle);
        far.set(i, 2 * i, place.middle - FAR * place.scale);
        far.set(i, 2 * i + 1, place.middle + FAR * place.scale);
    }
    let mut is_ordinary = vec![true; 2 * n];
    model.is_ordinary(&far, &mut is_ordinary);
    !is_ordinary.contains(&false)
}

//! Draws of (ε, λ, z) from the variational model.

use crate::recursive::Space;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;

/// The draws of a batch, all from one component of the prior. Machinery of [`Pass`](super::Pass).
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Draws {
    /// The prior's component.
    pub component: usize,
    /// The noise.
    pub eps: Batch,
    /// The variational parameters.
    pub lambda: Batch,
    /// The latents.
    pub z: Batch,
}

/// The noise or λ of these draws, whichever r is a density of.
pub(crate) fn covered_by<'a>(q: &Variational, draws: &'a Draws) -> &'a Batch {
    match q.recursive().space() {
        Space::Noise => &draws.eps,
        Space::Lambda => &draws.lambda,
    }
}

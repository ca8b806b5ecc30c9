//! A planar flow over a learnable diagonal Gaussian: λ = f_L ∘ … ∘ f_1(λ₀), O(Ld).

use super::FlowPrior;
use crate::error::Result;
use hyperprior_math::flow::Planar;

/// The paper's normalizing-flow prior; θ is the base's [`Gaussian`](super::Gaussian) parameters, then the layers'.
///
/// ```
/// use hyperprior::prior::{PlanarFlow, Prior};
/// let prior = PlanarFlow::new(5, 2)?;
/// assert_eq!(prior.parameters_len(), 10 + 2 * 11);
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub type PlanarFlow = FlowPrior<Planar>;

impl PlanarFlow {
    /// A flow of `layers_len` layers over `lambda_len` numbers.
    ///
    /// # Errors
    /// [`Error::BadPart`](crate::Error::BadPart) for length 0.
    pub fn new(lambda_len: usize, layers_len: usize) -> Result<Self> {
        Self::over_gaussian(Planar { len: lambda_len, layers_len })
    }
}

//! A coupling flow over a learnable diagonal Gaussian: every layer keeps some λ and transforms the others as a function of those.
//!
//! O(L d · hidden). A planar layer acts along one direction; a coupling layer transforms half of the λ at once, each as a network
//! of the other half determines. A few layers reach shapes that would need dozens of planar layers.

use super::FlowPrior;
use crate::error::{Error, Result};
use hyperprior_math::flow::{Bend, Coupling};

/// A coupling flow, affine (RealNVP) or by splines; θ is the base's [`Gaussian`](super::Gaussian) parameters, then the
/// layers' networks.
///
/// Four layers transform every λ twice, given different λ each time; one layer leaves half of them unchanged.
///
/// ```
/// use hyperprior::prior::{Bend, CouplingFlow, Prior};
/// let prior = CouplingFlow::new(6, 4, 16, Bend::Spline { bins: 8 })?;
/// assert_eq!(prior.name(), "spline coupling flow of 4 (8 bins)");
/// // A network from 3 numbers through 16 to the 23 that define the spline of each of 3 others.
/// assert_eq!(prior.parameters_len(), 12 + 4 * (4 * 16 + 17 * 3 * 23));
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub type CouplingFlow = FlowPrior<Coupling>;

impl CouplingFlow {
    /// A flow of `layers_len` layers over `lambda_len` numbers, each with a network of `hidden_len` hidden units.
    ///
    /// # Errors
    /// [`Error::BadPart`] without parameters or hidden units, or for a spline with fewer than two bins.
    pub fn new(lambda_len: usize, layers_len: usize, hidden_len: usize, bend: Bend) -> Result<Self> {
        let bad =
            |reason: &str| Err(Error::BadPart { part: "a coupling-flow prior".to_owned(), reason: reason.to_owned() });
        if hidden_len == 0 {
            return bad("its networks would have no hidden units; use at least 1");
        }
        if matches!(bend, Bend::Spline { bins: 0 | 1 }) {
            return bad("a spline with fewer than two bins is the identity; use at least 2");
        }
        Self::over_gaussian(Coupling { len: lambda_len, layers_len, hidden_len, bend })
    }
}

//! A coupling flow over a learnable diagonal Gaussian: every layer keeps some λ and bends the others by what those say.
//!
//! O(L d · hidden). Where a planar layer bends one direction, a coupling layer bends half of the λ at once, each in a way that
//! a network of the other half decides; a few layers reach shapes that planar flows would need dozens for.

use super::FlowPrior;
use crate::error::{Error, Result};
use hyperprior_math::flow::{Bend, Coupling};

/// A coupling flow, affine (RealNVP) or by splines; θ is the base's [`Gaussian`](super::Gaussian) parameters, then the
/// layers' networks.
///
/// Four layers move every λ twice, by others each time; one layer leaves half of them as the base has them.
///
/// ```
/// use hyperprior::prior::{Bend, CouplingFlow, Prior};
/// let prior = CouplingFlow::new(6, 4, 16, Bend::Spline { bins: 8 })?;
/// assert_eq!(prior.name(), "spline coupling flow of 4 (8 bins)");
/// // A network from 3 numbers over 16 to the 23 that make the shape of each of 3 others.
/// assert_eq!(prior.parameters_len(), 12 + 4 * (4 * 16 + 17 * 3 * 23));
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub type CouplingFlow = FlowPrior<Coupling>;

impl CouplingFlow {
    /// A flow of `layers_len` layers over `lambda_len` numbers, each with a network of `hidden_len` hidden numbers.
    ///
    /// # Errors
    /// [`Error::BadPart`] over nothing, without hidden numbers, or for a spline of fewer than two bins.
    pub fn new(lambda_len: usize, layers_len: usize, hidden_len: usize, bend: Bend) -> Result<Self> {
        let bad =
            |reason: &str| Err(Error::BadPart { part: "a coupling-flow prior".to_owned(), reason: reason.to_owned() });
        if hidden_len == 0 {
            return bad("its networks would have no hidden numbers; ask for at least 1");
        }
        if matches!(bend, Bend::Spline { bins: 0 | 1 }) {
            return bad("a spline of fewer than two bins bends nothing; ask for at least 2");
        }
        Self::over_gaussian(Coupling { len: lambda_len, layers_len, hidden_len, bend })
    }
}

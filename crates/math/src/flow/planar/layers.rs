//! The layers of a planar chain: how their parameters are laid out, and the part that all draws share.

use crate::simd::{self, LANES, Simd, load, prelude::*, splat, store, sums};
use std::ops::Range;

/// A chain of planar layers over `len` numbers; layer by layer its parameters are u (`len`), w (`len`) and b.
///
/// A chain of no layers is the identity.
///
/// ```
/// use hyperprior_math::{batch::Batch, flow::Planar};
/// let flow = Planar { len: 2, layers_len: 1 };
/// let parameters = [1.0, -2.0, 0.5, 1.5, 0.1];
/// let mut x = Batch::from_columns(vec![0.3, -0.7], 1);
/// let (mut log_det, mut tanh) = ([0.0], [0.0]);
/// flow.forward(&parameters, &mut x, &mut log_det, &mut tanh);
/// assert!((log_det[0] + 0.723506).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planar {
    /// How many numbers are transformed.
    pub len: usize,
    /// How many layers there are.
    pub layers_len: usize,
}

impl Planar {
    /// How many parameters the chain has.
    pub fn parameters_len(&self) -> usize {
        self.layers_len * self.layer_len()
    }

    pub(super) fn layer_len(&self) -> usize {
        2 * self.len + 1
    }

    pub(super) fn layer<'a>(&self, parameters: &'a [f64], l: usize) -> (&'a [f64], &'a [f64], f64) {
        let layer = &parameters[l * self.layer_len()..(l + 1) * self.layer_len()];
        (&layer[..self.len], &layer[self.len..2 * self.len], layer[2 * self.len])
    }
}

/// The part of a layer shared by all draws: the slope of softplus at w·u, w·û, the bend (û = u + bend·w) and |w|².
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bend {
    pub(super) slope: f64,
    pub(super) w_uhat: f64,
    pub(super) bend: f64,
    pub(super) w_w: f64,
}

/// The bends of up to eight layers, with one vectorised softplus.
#[inline(always)]
pub(super) fn bends_kernel<S: Simd>(s: S, flow: Planar, parameters: &[f64], layers: Range<usize>) -> [Bend; LANES] {
    let (mut u_sums, mut w_sums) = ([splat(s, 0.0); LANES], [splat(s, 0.0); LANES]);
    let (mut w_u, mut w_w) = ([0.0; LANES], [0.0; LANES]);
    for (i, l) in layers.enumerate() {
        let (u, w, _) = flow.layer(parameters, l);
        let (mut with_u, mut with_w) = ([splat(s, 0.0); 2], [splat(s, 0.0); 2]);
        let ((u2, u1), (w2, w1)) = (u.as_chunks::<{ 2 * LANES }>(), w.as_chunks::<{ 2 * LANES }>());
        for (u, w) in u2.iter().zip(w2) {
            for j in 0..2 {
                let (u, w) = (load(s, u, j * LANES, 0.0), load(s, w, j * LANES, 0.0));
                with_u[j] = u.mul_add(w, with_u[j]);
                with_w[j] = w.mul_add(w, with_w[j]);
            }
        }
        u_sums[i] = with_u[0] + with_u[1];
        w_sums[i] = with_w[0] + with_w[1];
        for (u, w) in u1.iter().zip(w1) {
            w_u[i] += u * w;
            w_w[i] += w * w;
        }
    }
    let total = sums(u_sums) + load(s, &w_u, 0, 0.0);
    let (softplus, slope) = simd::softplus_sigmoid(s, total);
    store(total, &mut w_u, 0);
    store(sums(w_sums) + load(s, &w_w, 0, 0.0), &mut w_w, 0);
    std::array::from_fn(
        #[inline(always)]
        |i| {
            if w_w[i] < 1e-280 {
                // If w = 0 the layer is the shift x + u tanh b, whose determinant is 1.
                return Bend::default();
            }
            let w_uhat = softplus[i] - 1.0;
            Bend { slope: slope[i], w_uhat, bend: (w_uhat - w_u[i]) / w_w[i], w_w: w_w[i] }
        },
    )
}
crate::simd_fn!(
    pub(super) fn bends(flow: Planar, parameters: &[f64], layers: Range<usize>) -> [Bend; LANES] = bends_kernel
);

/// The layers in groups of up to eight.
pub(super) fn groups(layers_len: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    (0..layers_len.div_ceil(LANES)).map(move |g| g * LANES..(g * LANES + LANES).min(layers_len))
}

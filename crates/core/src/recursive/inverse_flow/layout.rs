//! What an inverse flow covers, and the layout of its parameters φ.

use crate::likelihood::{Kind, Likelihood};
use crate::recursive::features::Features;
use crate::recursive::{Space, Surroundings};
use hyperprior_math::batch::Batch;
use hyperprior_math::flow::Planar;
use std::ops::Range;

/// The base's means depend on up to this many point-mass parameters; with more, on none, to keep the cost O(Kd).
const CONDITION_MAX: usize = 32;

/// A latent that r covers.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    pub(super) latent: usize,
    /// Its parameters, counted from the first covered one.
    pub(super) coordinates: Range<usize>,
    pub(super) features: Features,
    pub(super) features_len: usize,
    /// The index of its first feature.
    pub(super) first_feature: usize,
    /// Where its coordinates' base parameters start.
    pub(super) first_parameter: usize,
    /// How many base parameters a coordinate has.
    pub(super) coordinate_len: usize,
    pub(super) is_pathwise: bool,
}

/// The inverse flow over a factorised base; φ is, per component, the layers' parameters and then each coordinate's
/// a, b, e, f and weights on the point masses' parameters; last, the logits of r(k | z).
///
/// ```
/// use hyperprior::likelihood::MeanField;
/// use hyperprior::math::family::Bernoulli;
/// use hyperprior::recursive::{InverseFlow, Recursive, Space};
/// let r = InverseFlow::new(&MeanField::of(Bernoulli, 3)?, 1, 2, Space::Noise);
/// assert_eq!(r.parameters_len(), 2 * (3 + 3 + 1) + 3 * 4);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InverseFlow {
    pub(super) flow: Planar,
    pub(super) space: Space,
    pub(super) components_len: usize,
    /// How many leading coordinates are given, and how many of them the means depend on.
    pub(super) given: usize,
    pub(super) condition_len: usize,
    pub(super) covered: Vec<Covered>,
    /// For each latent, its index in `covered`.
    pub(super) by_latent: Vec<Option<usize>>,
    pub(super) features_len: usize,
    pub(super) base_len: usize,
    /// The number of features of each latent, if all have the same number, one coordinate each and means that depend on no given
    /// coordinate: then everything lies in the latents' order, and loops need no indices.
    pub(super) plain: Option<usize>,
}

/// The batches that [`prepare`](crate::recursive::Recursive::prepare) stores: t(z), and the logits of r(k | z) with their log
/// sum.
pub(super) mod prepared {
    pub const FEATURES: usize = 0;
    pub const LOGITS: usize = 1;
    pub const LEN: usize = 2;
}

/// The batches that [`forward`](crate::recursive::Recursive::forward) stores: λ₀, the layers' tanh, each covered latent's base
/// term, and each coordinate's standardised λ₀ with the inverse of its scale.
pub(super) mod held {
    pub const BASE: usize = 0;
    pub const TANH: usize = 1;
    pub const TERMS: usize = 2;
    pub const STANDARD: usize = 3;
    pub const INVERSE: usize = 4;
    pub const LEN: usize = 5;
}

/// One coordinate's base: N(a + b·t + g·x_c, exp(e + f·t)²).
#[derive(Clone, Copy)]
pub(super) struct Coordinate<'a> {
    /// a, b.
    pub(super) location: &'a [f64],
    /// e, f.
    pub(super) log_scale: &'a [f64],
    /// g.
    pub(super) condition: &'a [f64],
}

impl InverseFlow {
    /// An inverse flow of `layers_len` layers for this likelihood. On the noise, `components_len` is the prior's number of
    /// components; on λ it is ignored.
    pub fn new(likelihood: &dyn Likelihood, components_len: usize, layers_len: usize, space: Space) -> Self {
        let given = likelihood.point_mass_len();
        let condition_len = if given <= CONDITION_MAX { given } else { 0 };
        let mut covered = Vec::new();
        let mut by_latent = vec![None; likelihood.latents_len()];
        let (mut features_len, mut base_len) = (0, 0);
        for i in 0..likelihood.latents_len() {
            if likelihood.kind(i) == Kind::PointMass {
                continue;
            }
            let range = likelihood.lambda_range(i);
            let features = Features::for_support(likelihood.support(i));
            let coordinates = range.start - given..range.end - given;
            let coordinate_len = 2 + 2 * features.len() + condition_len;
            let parameters = coordinates.len() * coordinate_len;
            by_latent[i] = Some(covered.len());
            covered.push(Covered {
                latent: i,
                coordinates,
                features,
                features_len: features.len(),
                first_feature: features_len,
                first_parameter: base_len,
                coordinate_len,
                is_pathwise: likelihood.kind(i) == Kind::Pathwise,
            });
            features_len += features.len();
            base_len += parameters;
        }
        let len = likelihood.lambda_len() - given;
        let components_len = if space == Space::Noise { components_len } else { 1 };
        let flow = Planar { len, layers_len };
        let features_of_first = covered.first().map_or(0, |c: &Covered| c.features_len);
        let is_plain = |c: &Covered| c.coordinates.len() == 1 && c.features_len == features_of_first;
        let plain = (condition_len == 0 && covered.iter().all(is_plain)).then_some(features_of_first);
        Self { flow, space, components_len, given, condition_len, covered, by_latent, features_len, base_len, plain }
    }

    /// The factorised approximation: an inverse flow of length 0.
    pub fn factorised(likelihood: &dyn Likelihood, components_len: usize, space: Space) -> Self {
        Self::new(likelihood, components_len, 0, space)
    }

    pub(super) fn component_len(&self) -> usize {
        self.flow.parameters_len() + self.base_len
    }

    pub(super) fn component(&self, at: Surroundings) -> usize {
        if self.components_len > 1 { at.component } else { 0 }
    }

    /// The layers' and the base's parameters of component `k`.
    pub(super) fn split<'a>(&self, phi: &'a [f64], k: usize) -> (&'a [f64], &'a [f64]) {
        phi[k * self.component_len()..(k + 1) * self.component_len()].split_at(self.flow.parameters_len())
    }

    /// The parameters of coordinate `c` of a latent, c counted within the latent.
    #[inline(always)]
    pub(super) fn coordinate<'a>(&self, base: &'a [f64], covered: &Covered, c: usize) -> Coordinate<'a> {
        let first = covered.first_parameter + c * covered.coordinate_len;
        let (location, rest) = base[first..first + covered.coordinate_len].split_at(1 + covered.features_len);
        let (log_scale, condition) = rest.split_at(1 + covered.features_len);
        Coordinate { location, log_scale, condition }
    }

    pub(super) fn features<'a>(&self, features: &'a Batch, covered: &Covered) -> &'a [f64] {
        features.columns(covered.first_feature..covered.first_feature + covered.features_len)
    }
}

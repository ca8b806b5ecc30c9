//! Which latents adaptive quadrature integrates out given which others.

use super::conditional_laplace::Parts;
use super::describing::{Described, described, evaluations};
use super::gaussian_check::is_gaussian_everywhere;
use super::given_theta::Rest;
use super::independent::divided;
use super::places::{Place, Seen};
use super::sparse_curvature::SparseCurvature;
use crate::error::Result;
use crate::model::Model;

/// The most θ that are integrated out on lines, and by importance sampling.
pub(super) const LINES_MAX: usize = 2;
const OUTER_MAX: usize = 8;
/// The most latents that are integrated out given θ.
const INNER_MAX: usize = 100;
/// How often the curvature of latents that are Gaussian given θ is found.
const CURVATURES: f64 = 2.5;
/// The share of the work that it may take to see which latents describe the others.
const DESCRIBING: f64 = 0.2;
/// The nodes that a line is expected to need.
const NODES: f64 = 70.0;
/// The most values of the first θ that the draws have, if there are one or two θ; and how many of θ for each of them.
pub(super) const DRAWN: [(usize, usize); 2] = [(4096, 1), (1024, 4)];
/// The work of placing a node, in additions, beside that of the density there.
const PLACING: f64 = 1000.0;
/// The values of θ in a round of importance sampling, and those that are kept.
pub(super) const LEARNT: usize = 512;
pub(super) const KEPT: usize = 2048;
/// Whether a model has few enough latents, and no discrete ones.
pub(in crate::infer) fn may_suit(model: &dyn Model) -> bool {
    let n = model.latents().len();
    n <= INNER_MAX + OUTER_MAX && !(0..n).any(|i| model.latents().support(i).is_discrete())
}

/// The evaluations for so many θ, on lines or by importance sampling, if each value takes this many.
fn evaluations_of(outer: usize, is_on_lines: bool, each: f64) -> f64 {
    let values = match outer {
        _ if !is_on_lines => (LEARNT * 2 + KEPT * 2) as f64,
        0 => 2.0,
        1 => NODES + DRAWN[0].0 as f64,
        _ => NODES * (NODES + DRAWN[1].0 as f64) + (DRAWN[1].0 * DRAWN[1].1) as f64,
    };
    values * each
}

/// The work of an evaluation.
fn work_of(model: &dyn Model) -> f64 {
    model.work() as f64 + PLACING
}

/// The parts of a model, and how they are integrated out.
pub(super) struct Division<'a> {
    pub(super) outer: Vec<usize>,
    pub(super) inner: Vec<usize>,
    pub(super) rest: Rest<'a>,
    /// Whether θ is integrated out on lines as well.
    pub(super) is_on_lines: bool,
    /// The evaluations that a value of θ takes.
    pub(super) each: f64,
}

impl Division<'_> {
    pub(super) fn evaluations(&self) -> f64 {
        evaluations_of(self.outer.len(), self.is_on_lines, self.each)
    }

    /// Whether every latent is integrated out, as far as can be told.
    fn is_exact(&self) -> bool {
        self.is_on_lines && !matches!(self.rest, Rest::Gaussian { is_exact: false, .. })
    }

    /// Whether it takes no more than this work.
    fn suits(&self, model: &dyn Model, work_max: f64) -> bool {
        self.outer.len() <= OUTER_MAX
            && self.inner.len() <= INNER_MAX
            && self.evaluations() * work_of(model) <= work_max
    }
}

/// The latents as θ and others that are independent given θ.
fn independent<'a>(model: &dyn Model) -> Division<'a> {
    let (outer, inner) = divided(model);
    let (is_on_lines, each) = (outer.len() <= LINES_MAX, NODES * inner.len() as f64);
    Division { outer, inner, rest: Rest::Independent, is_on_lines, each }
}

/// The latents as θ and others that are Gaussian given θ.
fn gaussian<'a>(model: &'a dyn Model, places: &[Place], seen: &Seen, work_max: f64) -> Result<Option<Division<'a>>> {
    let (n, work) = (places.len(), work_of(model));
    // A model that does not know what is coupled may not have a gradient of its own.
    if model.coupled().is_none() || evaluations(n) * work > DESCRIBING * work_max {
        return Ok(None);
    }
    let middle: Vec<f64> = places.iter().map(|place| place.middle).collect();
    let scales: Vec<f64> = places.iter().map(|place| place.scale).collect();
    let Some(Described { theta, others, is_gaussian }) = described(model, &middle, &scales, OUTER_MAX)? else {
        return Ok(None);
    };
    let Some(curvature) = SparseCurvature::of_few(model, &others) else { return Ok(None) };
    // A gradient is as expensive as three evaluations.
    let each = CURVATURES * (3 * curvature.gradients_len() + 4) as f64;
    let is_on_lines = theta.len() <= LINES_MAX && evaluations_of(theta.len(), true, each) * work <= work_max;
    let parts = Box::new(Parts::at(model, (theta.clone(), others.clone()), curvature, middle));
    // Importance sampling is not exact anyway, and its weights make up for what is not quite Gaussian.
    let is_exact = is_gaussian && is_on_lines && is_gaussian_everywhere(&parts, places, seen)?;
    Ok(Some(Division { outer: theta, inner: others, rest: Rest::Gaussian { parts, is_exact }, is_on_lines, each }))
}

/// How a model is divided, if that takes no more than this work.
pub(super) fn chosen<'a>(
    model: &'a dyn Model,
    places: &[Place],
    seen: &Seen,
    allows_gaussian: bool,
    work_max: f64,
) -> Result<Option<Division<'a>>> {
    let suits = |division: &Division| division.suits(model, work_max);
    let lines = Some(independent(model)).filter(suits);
    if !allows_gaussian || lines.as_ref().is_some_and(|lines| lines.outer.is_empty()) {
        return Ok(lines);
    }
    // Lines find what a Gaussian that is not exact does not know of.
    let is_better = |other: &Division| {
        suits(other) && lines.as_ref().is_none_or(|lines| other.is_exact() && other.outer.len() < lines.outer.len())
    };
    let gaussian = gaussian(model, places, seen, work_max)?.filter(is_better);
    Ok(gaussian.or(lines))
}

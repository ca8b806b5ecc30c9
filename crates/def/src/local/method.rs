//! The variational models to choose from, and what each needs during a fit.

use super::flow::Flow;
use crate::adam::Units;
use crate::error::{Error, Result};
use crate::shape::{Family, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{LANES, Lanes};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The variational model of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Method {
    /// λ is a point.
    MeanField,
    /// λ is a point, and counts have Conway–Maxwell factors, which can be narrower than a Poisson.
    ConwayMaxwell,
    /// λ is Gaussian, with a covariance of this rank.
    LowRank(usize),
    /// λ is one of 2, 4 or 8 points, with weights.
    Mixture(usize),
    /// The same, and counts have Conway–Maxwell factors.
    ConwayMaxwellMixture(usize),
    /// The paper's model: a planar flow of the first length for λ, an inverse planar flow of the second for r.
    Flow(usize, usize),
    /// The method that describes or predicts new documents best: mean-field, or a hierarchical variational model that gains over it
    /// on validation documents half way through the training. Until then, it is mean-field.
    #[default]
    Hvm,
}

/// The largest rank.
const RANK_MAX: usize = 16;
/// The lengths of the paper's flows, and the largest.
const FLOW: (usize, usize) = (2, 10);
const FLOW_MAX: usize = 64;
/// The rank and the number of points of the candidates of [`Method::Hvm`].
const RANK: usize = 8;
const POINTS: usize = 8;

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::MeanField => f.write_str("mean-field"),
            Self::ConwayMaxwell => f.write_str("conway-maxwell"),
            Self::LowRank(rank) => write!(f, "low-rank:{rank}"),
            Self::Mixture(points) => write!(f, "mixture:{points}"),
            Self::ConwayMaxwellMixture(points) => write!(f, "conway-maxwell-mixture:{points}"),
            Self::Flow(flow, inverse) => write!(f, "flow:{flow},{inverse}"),
            Self::Hvm => f.write_str("hvm"),
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let rank = text.strip_prefix("low-rank:").and_then(|rank| rank.parse().ok());
        let points = |prefix: &str| {
            let points = text.strip_prefix(prefix).and_then(|points| points.parse().ok());
            points.filter(|points| [2, 4, 8].contains(points))
        };
        let flow = text.strip_prefix("flow:").and_then(|flow| flow.split_once(','));
        let flow = flow.and_then(|(flow, inverse)| Some((flow.parse().ok()?, inverse.parse().ok()?)));
        if let Some(points) = points("mixture:") {
            return Ok(Self::Mixture(points));
        }
        if let Some(points) = points("conway-maxwell-mixture:") {
            return Ok(Self::ConwayMaxwellMixture(points));
        }
        match (text, rank, flow) {
            ("mean-field", ..) => Ok(Self::MeanField),
            ("conway-maxwell" | "tight", ..) => Ok(Self::ConwayMaxwell),
            ("hvm", ..) => Ok(Self::Hvm),
            ("flow", ..) => Ok(Self::Flow(FLOW.0, FLOW.1)),
            (_, Some(rank @ 1..=RANK_MAX), _) => Ok(Self::LowRank(rank)),
            (_, _, Some((flow @ 0..=FLOW_MAX, inverse @ 0..=FLOW_MAX))) => Ok(Self::Flow(flow, inverse)),
            _ => Err(Error::BadSetting {
                field: "method",
                value: text.to_owned(),
                reason: "use mean-field, conway-maxwell, hvm, mixture:J or conway-maxwell-mixture:J with J 2, 4 or 8, low-rank:R with R \
                         from 1 to 16, or flow:L,M with lengths up to 64",
            }),
        }
    }
}

impl From<Method> for String {
    /// The name in files, where Conway–Maxwell counts keep their earlier name.
    fn from(method: Method) -> Self {
        match method {
            Method::ConwayMaxwell => "tight".to_owned(),
            method => method.to_string(),
        }
    }
}

impl TryFrom<String> for Method {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Method {
    /// The rank of a Gaussian; 0 for other models.
    pub(super) fn rank(self) -> usize {
        match self {
            Self::LowRank(rank) => rank,
            _ => 0,
        }
    }

    /// What may be better than mean-field for these layers: dependence, and narrower factors for counts.
    pub(crate) fn candidates(shape: &Shape) -> Vec<Self> {
        if shape.is_continuous() {
            return vec![Self::LowRank(RANK)];
        }
        let mut all = vec![Self::Mixture(POINTS)];
        if shape.layers().iter().any(|layer| layer.family == Family::Poisson) {
            all.push(Self::ConwayMaxwell);
        }
        all
    }

    /// The method of documents whose parameters a network computes, if `self` is wanted: there is no choice among methods then.
    pub(crate) fn with_network(self) -> Self {
        if self == Self::Hvm { Self::LowRank(RANK) } else { self }
    }

    /// The points of a mixture.
    fn points(self) -> Option<usize> {
        match self {
            Self::Mixture(points) | Self::ConwayMaxwellMixture(points) => Some(points),
            _ => None,
        }
    }

    /// Whether counts have Conway–Maxwell factors, which have a scale.
    pub(crate) fn is_conway_maxwell(self) -> bool {
        matches!(self, Self::ConwayMaxwell | Self::ConwayMaxwellMixture(_))
    }

    /// The number of vectors of lanes of a document's parameters. Those of μ come first: the locations, then the log scales of
    /// latents that have one.
    pub(crate) fn parameters_len(self, shape: &Shape) -> usize {
        match self {
            Self::Flow(flow, inverse) => {
                let pair = Flow::pair((flow, inverse), shape);
                pair.theta_len() + pair.phi_len() + shape.lambda_len() - shape.tiles_len()
            }
            _ => match self.points() {
                Some(points) => points * shape.lambda_len() + 1,
                None => shape.lambda_len() + self.rank() * shape.tiles_len(),
            },
        }
    }

    /// The model that is fitted when this share of the steps is done. Mixtures and flows start from a mean-field fit, and so do
    /// Gaussians if a network gives the parameters; if documents have their own parameters, the dependence of these is added last,
    /// see [`Method::adds_dependence`]. A network gives the points of a mixture from the start.
    pub(crate) fn at(self, done: f32, has_network: bool) -> Self {
        let is_whole = done >= ALONE || (has_network && self.points().is_some());
        if is_whole && !self.adds_dependence(has_network) && self != Self::Hvm { self } else { Self::MeanField }
    }

    /// The step of `steps` at which [`Method::Hvm`] chooses: half way, where all methods begin to differ from mean-field.
    pub(crate) fn chooses(steps: u32) -> u32 {
        (ALONE * steps as f32).ceil() as u32
    }

    /// How many of `steps` steps are mean-field before those of a mixture, a flow or Conway–Maxwell counts, whose parameters do not
    /// move until then.
    pub(crate) fn begins(self, steps: u32) -> u32 {
        let waits = matches!(self, Self::Flow(..)) || self.is_conway_maxwell() || self.points().is_some();
        if waits { Self::chooses(steps) } else { 0 }
    }

    /// Prepares the parameters for the first step that is not mean-field.
    pub(crate) fn begin(self, shape: &Shape, rng: &mut Stream, parameters: &mut [Lanes]) {
        if let Self::Flow(flow, inverse) = self {
            Flow::begin((flow, inverse), shape, parameters);
        }
        self.spread(shape, rng, parameters);
    }

    /// Puts the points of a mixture around the first, with equal weights.
    pub(crate) fn spread(self, shape: &Shape, rng: &mut Stream, out: &mut [Lanes]) {
        let Some(points) = self.points() else { return };
        let (n, len, mask) = (shape.tiles_len(), shape.lambda_len(), shape.lambda_mask());
        for i in 1..points {
            for j in 0..len {
                for lane in 0..LANES {
                    let apart = if j < n { APART * normal(rng) * mask[j].0[lane] } else { 0.0 };
                    out[i * len + j].0[lane] = out[j].0[lane] + apart;
                }
            }
        }
        out[points * len] = Lanes::default();
    }

    /// Whether dependence is added after mean-field and the weights have converged.
    pub(crate) fn adds_dependence(self, has_network: bool) -> bool {
        self.rank() > 0 && !has_network
    }

    /// The model of a document with these parameters: without dependence it is mean-field, including its random numbers.
    pub(crate) fn of(self, shape: &Shape, parameters: &[Lanes]) -> Self {
        let is_flat = |u: &Lanes| u.0.iter().all(|u| *u == 0.0);
        match self.dependence(shape) {
            Some(range) if parameters[range.clone()].iter().all(is_flat) => Self::MeanField,
            _ if self == Self::Hvm => Self::MeanField,
            _ => self,
        }
    }

    /// Whether a document is finished once the training steps are.
    pub(crate) fn has_nothing_to_add(self) -> bool {
        !self.adds_dependence(false) && self.points().is_none()
    }

    /// The number of draws of a step if `wanted` are asked for: at least one for each point of a mixture, and two if draws come in
    /// pairs.
    pub(crate) fn draws(self, wanted: usize) -> usize {
        match self.points() {
            Some(points) => points.max(wanted),
            None if self.rank() > 0 => wanted.max(2),
            None => wanted,
        }
    }

    /// The parameters that scale the dependence, if there are any.
    pub(crate) fn dependence(self, shape: &Shape) -> Option<std::ops::RangeFrom<usize>> {
        (self.rank() > 0).then(|| shape.lambda_len()..)
    }

    /// The second moments that normalise each parameter's Adam steps, and the sizes of the steps. Near mean-field the gradient
    /// along U is small and nearly all noise; normalised by its own moments, U would move as far as any other parameter.
    pub(crate) fn units(self, shape: &Shape, size: f32, size_beyond: f32) -> Units {
        let (n, len) = (shape.tiles_len(), shape.lambda_len());
        if self.rank() == 0 {
            return Units::own(self.parameters_len(shape), size);
        }
        Units { own: len, by: n, size, size_beyond: size_beyond * STEP }
    }

    /// The kind of steps of a document's parameters.
    pub(crate) fn step_kind(self, shape: &Shape) -> StepKind {
        // Before Conway–Maxwell counts begin, they are Poisson.
        let has_scales = shape.is_continuous() || (self != Self::MeanField && shape.lambda_len() > shape.tiles_len());
        if has_scales || matches!(self, Self::Flow(..)) {
            return StepKind::Adam;
        }
        if self.rank() > 0 { StepKind::Both } else { StepKind::Natural }
    }

    /// The number of points of λ.
    pub(crate) fn points_len(self) -> usize {
        self.points().unwrap_or(1)
    }

    /// Initial parameters: all latents at the given mean, and nearly mean-field. A mixture has one point until [`Method::begin`].
    pub(crate) fn start(self, shape: &Shape, mean: f32, rng: &mut Stream, out: &mut [Lanes]) {
        let (n, len) = (shape.tiles_len(), shape.lambda_len());
        let mask = shape.lambda_mask();
        let mut scaled = |size: f32, j: usize, lane: usize| size * normal(rng) * mask[j].0[lane];
        // μ first, so that all methods start from the same μ.
        for (l, layer) in shape.layers().iter().enumerate() {
            let at = shape.parameter(l, mean);
            for j in shape.tiles(l) {
                for lane in 0..LANES {
                    out[j].0[lane] = at * mask[j].0[lane] + scaled(0.1, j, lane);
                }
            }
            for j in shape.scales(l) {
                out[j].0 = mask[j].0.map(|mask| layer.family.log_scale() * mask);
            }
        }
        for i in 0..self.rank() * n {
            for lane in 0..LANES {
                out[len + i].0[lane] = scaled(SPREAD / (self.rank() as f32).sqrt(), i % n, lane);
            }
        }
        // The other points of a mixture wait.
        if let Some(points) = self.points() {
            out[points * len].0[1..points].fill(WAITING);
        }
        if let Self::Flow(flow, inverse) = self {
            Flow::start((flow, inverse), shape, rng, out);
        }
    }
}

fn normal(rng: &mut Stream) -> f32 {
    StandardNormal.sample(rng)
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Natural gradient: all latents are discrete, and λ is a point or one of a few.
    Natural,
    /// Adam.
    Adam,
    /// Natural gradient for the location of λ, Adam for its spread.
    Both,
}

/// The share of the steps that are mean-field.
const ALONE: f32 = 0.5;
/// The log weight of a point of a mixture that is not used yet.
const WAITING: f32 = -1e30;
/// The spread of the points of a mixture at the start.
const APART: f32 = 0.5;
/// The spread of λ at the start: enough for the directions to differ.
const SPREAD: f32 = 0.02;
/// The size of the steps of U relative to those of μ.
const STEP: f32 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a change of the names on disk, or of those that are accepted.
    #[test]
    fn conway_maxwell_keeps_its_earlier_name_in_files() {
        let method = Method::ConwayMaxwell;
        assert_eq!(method.to_string(), "conway-maxwell");
        assert_eq!(["conway-maxwell", "tight"].map(|name| name.parse::<Method>().ok()), [Some(method); 2]);
        assert_eq!(serde_json::to_string(&method).ok().as_deref(), Some("\"tight\""));
    }
}

//! The variational model of one document: q(z | λ) with a factor for each latent, and what λ is drawn from.
//!
//! With mean-field λ is a point. Otherwise the latents of a document depend on each other through λ, and r(λ | z) stands for what is
//! known of λ once z is. λ has a location for each latent, and after these a log scale for each continuous one.

mod flow;
mod low_rank;
mod mixture;

use crate::adam::Units;
use crate::error::{Error, Result};
use crate::kernel::conway::Counts;
use crate::shape::Shape;
use flow::Flow;
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use low_rank::LowRank;
use mixture::Mixture;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which variational model a document has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Method {
    /// λ is a point.
    MeanField,
    /// λ is a point, and counts may keep closer to their mode than a Poisson's.
    Tight,
    /// λ has a Gaussian law whose covariance has that rank.
    LowRank(usize),
    /// λ is one of that many points, with weights: 2, 4 or 8.
    Mixture(usize),
    /// The paper's: λ by a planar flow of the first length, r by an inverse planar flow of the second.
    Flow(usize, usize),
    /// The hierarchical variational model that did best: a Gaussian of rank 8.
    #[default]
    Hvm,
}

/// The largest rank.
const RANK_MAX: usize = 16;
/// The lengths of the paper's flows, and the largest.
const FLOW: (usize, usize) = (2, 10);
const FLOW_MAX: usize = 64;
/// The rank of [`Method::Hvm`].
const RANK: usize = 8;

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::MeanField => f.write_str("mean-field"),
            Self::Tight => f.write_str("tight"),
            Self::LowRank(rank) => write!(f, "low-rank:{rank}"),
            Self::Mixture(points) => write!(f, "mixture:{points}"),
            Self::Flow(flow, inverse) => write!(f, "flow:{flow},{inverse}"),
            Self::Hvm => f.write_str("hvm"),
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let rank = text.strip_prefix("low-rank:").and_then(|rank| rank.parse().ok());
        let points = text.strip_prefix("mixture:").and_then(|points| points.parse().ok());
        let flow = text.strip_prefix("flow:").and_then(|flow| flow.split_once(','));
        let flow = flow.and_then(|(flow, inverse)| Some((flow.parse().ok()?, inverse.parse().ok()?)));
        match (text, rank, flow) {
            ("mean-field", ..) => Ok(Self::MeanField),
            ("tight", ..) => Ok(Self::Tight),
            _ if matches!(points, Some(2 | 4 | 8)) => Ok(Self::Mixture(points.unwrap_or(2))),
            ("hvm", ..) => Ok(Self::Hvm),
            ("flow", ..) => Ok(Self::Flow(FLOW.0, FLOW.1)),
            (_, Some(rank @ 1..=RANK_MAX), _) => Ok(Self::LowRank(rank)),
            (_, _, Some((flow @ 0..=FLOW_MAX, inverse @ 0..=FLOW_MAX))) => Ok(Self::Flow(flow, inverse)),
            _ => Err(Error::BadSetting {
                field: "method",
                value: text.to_owned(),
                reason: "use mean-field, tight, hvm, mixture:J with J 2, 4 or 8, low-rank:R with R from 1 to 16, or flow:L,M with lengths up to 64",
            }),
        }
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.to_string()
    }
}

impl TryFrom<String> for Method {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Method {
    /// The rank of a Gaussian.
    fn rank(self) -> usize {
        match self {
            Self::LowRank(rank) => rank,
            Self::Hvm => RANK,
            _ => 0,
        }
    }

    /// The points of a mixture.
    fn points(self) -> Option<usize> {
        match self {
            Self::Mixture(points) => Some(points),
            _ => None,
        }
    }

    /// Whether counts have a scale of their own in q.
    pub(crate) fn is_tight(self) -> bool {
        self == Self::Tight
    }

    /// How many vectors of lanes a document's parameters take, those of μ first: the locations, and the log scales of continuous
    /// latents.
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

    /// What is fitted when this share of the steps is done. The points of a mixture go their own ways from the beginning. Flows are
    /// added to where mean-field has settled, and so are Gaussians where a network gives the parameters; to parameters that documents
    /// have of their own they come last, see [`Method::joins`].
    pub(crate) fn at(self, done: f32, has_network: bool) -> Self {
        let is_alone = self.joins(has_network) || (done < ALONE && self.points().is_none());
        if is_alone { Self::MeanField } else { self }
    }

    /// How many of so many steps are mean-field's before those of a flow, whose parameters have not moved until then.
    pub(crate) fn begins(self, steps: u32) -> u32 {
        if matches!(self, Self::Flow(..)) { (ALONE * steps as f32).ceil() as u32 } else { 0 }
    }

    /// Makes the parameters ready for the first step that is not mean-field's.
    pub(crate) fn begin(self, shape: &Shape, parameters: &mut [Lanes]) {
        if let Self::Flow(flow, inverse) = self {
            Flow::begin((flow, inverse), shape, parameters);
        }
    }

    /// Whether dependence is added when the weights are there and mean-field has settled.
    pub(crate) fn joins(self, has_network: bool) -> bool {
        self.rank() > 0 && !has_network
    }

    /// What a document with these parameters has: where it was left no dependence, mean-field, down to the random numbers.
    pub(crate) fn of(self, shape: &Shape, parameters: &[Lanes]) -> Self {
        let is_flat = |u: &Lanes| u.0.iter().all(|u| *u == 0.0);
        match self.dependence(shape) {
            Some(range) if parameters[range.clone()].iter().all(is_flat) => Self::MeanField,
            _ => self,
        }
    }

    /// Whether a document is done with when its weights and its steps are.
    pub(crate) fn has_nothing_to_add(self) -> bool {
        !self.joins(false) && self.points().is_none()
    }

    /// How many draws a step takes where so many are asked for: every point of a mixture has one, and where draws come in pairs there
    /// are two.
    pub(crate) fn draws(self, wanted: usize) -> usize {
        match self.points() {
            Some(points) => points.max(wanted),
            None if self.rank() > 0 => wanted.max(2),
            None => wanted,
        }
    }

    /// Whether less dependence than was fitted can be had by scaling parameters, and which those are.
    pub(crate) fn dependence(self, shape: &Shape) -> Option<std::ops::RangeFrom<usize>> {
        (self.rank() > 0).then(|| shape.lambda_len()..)
    }

    /// Whose gradients a parameter's steps are measured by, and how large they are in those units. Near mean-field the gradient along
    /// U is small and nearly all noise; measured by itself it would move as far as any other.
    pub(crate) fn units(self, shape: &Shape, size: f32, size_beyond: f32) -> Units {
        let (n, len) = (shape.tiles_len(), shape.lambda_len());
        if self.rank() == 0 {
            return Units::own(self.parameters_len(shape), size);
        }
        Units { own: len, by: n, size, size_beyond: size_beyond * STEP }
    }

    /// What steps of a document's parameters are measured by.
    pub(crate) fn pace(self, shape: &Shape) -> Pace {
        if shape.lambda_len() > shape.tiles_len() || matches!(self, Self::Flow(..)) {
            return Pace::Measured;
        }
        if self.rank() > 0 { Pace::Both } else { Pace::Natural }
    }

    /// How many points λ has.
    pub(crate) fn points_len(self) -> usize {
        self.points().unwrap_or(1)
    }

    /// Parameters to start from: all latents at the given mean, and nearly mean-field.
    pub(crate) fn start(self, shape: &Shape, mean: f32, rng: &mut Stream, out: &mut [Lanes]) {
        let (n, len) = (shape.tiles_len(), shape.lambda_len());
        let mask = shape.lambda_mask();
        let mut normal = |size: f32, j: usize, lane: usize| {
            let normal: f32 = StandardNormal.sample(rng);
            size * normal * mask[j].0[lane]
        };
        // μ first, so that all methods start from the same.
        for (l, layer) in shape.layers().iter().enumerate() {
            let at = shape.parameter(l, mean);
            for j in shape.tiles(l) {
                for lane in 0..LANES {
                    out[j].0[lane] = at * mask[j].0[lane] + normal(0.1, j, lane);
                }
            }
            for j in shape.scales(l) {
                out[j].0 = mask[j].0.map(|mask| layer.family.log_scale() * mask);
            }
        }
        for i in 0..self.rank() * n {
            for lane in 0..LANES {
                out[len + i].0[lane] = normal(SPREAD / (self.rank() as f32).sqrt(), i % n, lane);
            }
        }
        if let Some(points) = self.points() {
            for i in 1..points {
                for j in 0..len {
                    for lane in 0..LANES {
                        let apart = if j < n { normal(APART, j, lane) } else { 0.0 };
                        out[i * len + j].0[lane] = out[j].0[lane] + apart;
                    }
                }
            }
        }
        if let Self::Flow(flow, inverse) = self {
            Flow::start((flow, inverse), shape, rng, out);
        }
    }
}

/// What steps are measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The curvature of q: all latents are discrete, and λ is a point or one of a few.
    Natural,
    /// The gradients before them, as Adam's.
    Measured,
    /// The one for where λ lies, the other for how it spreads.
    Both,
}

/// The share of the steps that mean-field takes alone.
const ALONE: f32 = 0.5;
/// How far apart the points of a mixture start.
const APART: f32 = 1.0;
/// How far λ spreads at the start: enough for the directions to differ.
const SPREAD: f32 = 0.02;
/// The steps of U in units of those of μ.
const STEP: f32 = 1.0;

/// What λ is drawn from.
#[derive(Clone, Debug)]
pub(crate) enum Noise {
    Point,
    LowRank(Box<LowRank>),
    Mixture(Box<Mixture>),
    Flow(Box<Flow>),
}

impl Noise {
    pub(crate) fn new(method: Method, shape: &Shape) -> Self {
        match method {
            Method::MeanField | Method::Tight => Self::Point,
            Method::LowRank(_) | Method::Hvm => Self::LowRank(Box::new(LowRank::new(method.rank(), shape))),
            Method::Mixture(points) => Self::Mixture(Box::new(Mixture::new(points, shape))),
            Method::Flow(flow, inverse) => Self::Flow(Box::new(Flow::new((flow, inverse), shape))),
        }
    }

    /// The noise of a low-rank Gaussian.
    #[cfg(test)]
    pub(crate) fn eps(&self) -> &[[f32; DRAWS]] {
        match self {
            Self::LowRank(noise) => noise.eps(),
            _ => &[],
        }
    }

    /// Whether draws come in pairs of opposite noise. Latents that are drawn from the same random numbers in both then differ by
    /// what the noise does alone, and the noise of the gradient along U vanishes with U.
    pub(crate) fn is_paired(&self) -> bool {
        matches!(self, Self::LowRank(_))
    }

    /// How many draws differ in λ; the others repeat them in turn.
    pub(crate) fn distinct(&self, draws: usize) -> usize {
        match self {
            Self::Point => 1,
            Self::Mixture(noise) => noise.points().min(draws),
            _ => draws,
        }
    }

    /// Draws λ, and says how much each draw counts.
    pub(crate) fn draw(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        draws: usize,
        rng: &mut Stream,
        lambda: &mut [Tile],
        shares: &mut [f32; DRAWS],
    ) {
        shares[..draws].fill(1.0 / draws as f32);
        match self {
            Self::Point => {
                for (lambda, mu) in lambda.iter_mut().zip(parameters) {
                    lambda.0[..draws].fill(mu.0);
                }
            }
            Self::LowRank(noise) => noise.draw(shape, parameters, draws, rng, lambda),
            Self::Mixture(noise) => noise.draw(parameters, draws, lambda, shares),
            Self::Flow(noise) => noise.draw(shape, parameters, draws, rng, lambda),
        }
    }

    /// Adds ln r(λ | z) − ln q(λ) of each draw to `value`, and to `signal` by how much ln r changes as a latent goes up by one, or
    /// from 0 to 1. Of a continuous latent what is normal in q stands for z, and its signal is the derivative along that.
    pub(crate) fn recursive(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        [lambda, mean, z]: [&[Tile]; 3],
        counts: Option<&Counts>,
        draws: usize,
        signal: &mut [Tile],
        value: &mut [f32; DRAWS],
    ) {
        match self {
            Self::Point => {}
            Self::LowRank(noise) => noise.recursive(shape, parameters, z, draws, signal, value),
            Self::Mixture(noise) => noise.recursive(shape, [lambda, mean, z], counts, draws, signal, value),
            Self::Flow(noise) => noise.recursive(shape, parameters, z, draws, signal, value),
        }
    }

    /// Takes note of the values of the last draws.
    pub(crate) fn note(&mut self, value: &[f32; DRAWS], draws: usize) {
        if let Self::Mixture(noise) = self {
            noise.note(value, draws);
        }
    }

    /// What the bound of the last draws would have the logarithms of a mixture's weights be, but for a constant.
    pub(crate) fn level(&self) -> Option<&[f32]> {
        match self {
            Self::Mixture(noise) => Some(noise.level()),
            _ => None,
        }
    }

    /// ln w of a point of a mixture.
    pub(crate) fn log_weight(&self, point: usize) -> f32 {
        match self {
            Self::Mixture(noise) => noise.log_weight(point),
            _ => 0.0,
        }
    }

    /// The derivatives along the parameters, given λ and those along it, averaged over the draws.
    pub(crate) fn pullback(
        &mut self,
        shape: &Shape,
        parameters: &[Lanes],
        [lambda, d_lambda]: [&[Tile]; 2],
        draws: usize,
        gradient: &mut [Lanes],
    ) {
        gradient.fill(Lanes::default());
        match self {
            Self::Point => {
                let share = 1.0 / draws as f32;
                for (to, from) in gradient.iter_mut().zip(d_lambda) {
                    for d in &from.0[..draws] {
                        to.0.iter_mut().zip(d).for_each(|(to, d)| *to += share * d);
                    }
                }
            }
            Self::LowRank(noise) => noise.pullback(shape, parameters, d_lambda, draws, gradient),
            Self::Mixture(noise) => noise.pullback(d_lambda, draws, gradient),
            Self::Flow(noise) => noise.pullback(shape, parameters, [lambda, d_lambda], draws, gradient),
        }
    }
}

//! Draws of λ, and their contribution to the bound and its gradient.

use super::flow::Flow;
use super::low_rank::LowRank;
use super::method::Method;
use super::mixture::Mixture;
use crate::kernel::conway_maxwell::Counts;
use crate::shape::Shape;
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, Lanes, Tile};

/// The distribution of λ.
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
            Method::MeanField | Method::ConwayMaxwell | Method::Hvm => Self::Point,
            Method::LowRank(_) => Self::LowRank(Box::new(LowRank::new(method.rank(), shape))),
            Method::Mixture(points) | Method::ConwayMaxwellMixture(points) => {
                Self::Mixture(Box::new(Mixture::new(points, shape)))
            }
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

    /// Whether draws come in antithetic pairs. The latents of a pair use the same random numbers, so they differ only through the
    /// noise, and the noise of the gradient along U vanishes with U.
    pub(crate) fn is_paired(&self) -> bool {
        matches!(self, Self::LowRank(_))
    }

    /// The number of draws with a different λ; the others repeat them in turn.
    pub(crate) fn distinct(&self, draws: usize) -> usize {
        match self {
            Self::Point => 1,
            Self::Mixture(noise) => noise.points().min(draws),
            _ => draws,
        }
    }

    /// Draws λ, and sets the weight of each draw.
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

    /// Adds ln r(λ | z) − ln q(λ) of each draw to `value`, and to `signal` the change of ln r as a latent goes up by one, or from 0
    /// to 1. For a continuous latent z is on the scale on which q is normal, and the signal is the derivative along it.
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

    /// Records the values of the last draws, which a mixture needs for its weights.
    pub(crate) fn record(&mut self, value: &[f32; DRAWS], draws: usize) {
        if let Self::Mixture(noise) = self {
            noise.record(value, draws);
        }
    }

    /// The optimal log weights of a mixture, estimated from the last draws, up to a constant.
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

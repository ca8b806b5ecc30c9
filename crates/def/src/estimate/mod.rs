//! The bound of one document and its gradient, from a few draws.
//!
//! The gradient along the mean m_k of a count is E[f(z + e_k) − f(z)], that of a binary latent E[f with z_k = 1 − f with z_k = 0],
//! for f = ln p(x, z) − ln q(z | λ) + ln r(ε | z) − ln q(ε). Both are exact over z_k, so one draw of the other latents gives little
//! noise. The gradient of a continuous latent is pathwise: E[∂f/∂z ∂z/∂λ].

mod ascend;
mod dependence;
mod draw;
mod evaluate;
#[cfg(test)]
mod exact;

use crate::kernel::conway_maxwell::Counts;
use crate::kernel::layer::{Link, gradient};
use crate::kernel::words::{Seen, Words};
use crate::local::{Method, Noise};
use crate::shape::Shape;
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};

/// Working memory, used for one document after another.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    noise: Noise,
    /// A location for each latent, then a log scale for each latent that has one.
    pub(crate) lambda: Vec<Tile>,
    pub(crate) mean: Vec<Tile>,
    slope: Vec<Tile>,
    pub(crate) z: Vec<Tile>,
    /// If some latents are continuous: their values on the scale on which q is normal, and z of the others.
    y: Vec<Tile>,
    /// If some latents have a scale: the derivatives along λ that need no draw.
    exact: Vec<Tile>,
    /// The derivative along each number in λ; for a latent, before multiplication by its slope, the change of the bound with z or
    /// y.
    signal: Vec<Tile>,
    /// The moments of Conway–Maxwell counts.
    counts: Option<Box<Counts>>,
    above: Vec<Tile>,
    d_above: Vec<Tile>,
    /// 1/R of each word and draw.
    pub(crate) inverse: Vec<[f32; DRAWS]>,
    pub(crate) gradient: Vec<Lanes>,
    /// The weight of each draw.
    pub(crate) shares: [f32; DRAWS],
}

/// What a document's latents are fitted to: its words, the words' weights, and the weights between layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) words: Words<'a>,
    pub(crate) seen: Seen<'a>,
    pub(crate) links: &'a [Link<'a>],
}

/// The step size of Adam relative to that of the natural gradient.
pub(crate) const ADAM_SIZE: f32 = 0.5;

/// What to compute of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Value,
    Gradient,
}

impl Estimator {
    pub(crate) fn new(shape: &Shape, method: Method) -> Self {
        let tiles = || vec![Tile::default(); shape.tiles_len()];
        let lambda = || vec![Tile::default(); shape.lambda_len()];
        let is_conway_maxwell = (0..shape.layers().len()).any(|l| shape.is_conway_maxwell(l));
        // The signal of Conway–Maxwell counts is multiplied by t instead.
        let mut slope = tiles();
        for l in (0..shape.layers().len()).filter(|l| shape.is_conway_maxwell(*l)) {
            slope[shape.tiles(l)].fill(Tile([[1.0; LANES]; DRAWS]));
        }
        let continuous = || if shape.is_continuous() { tiles() } else { Vec::new() };
        Self {
            noise: Noise::new(method, shape),
            lambda: lambda(),
            mean: tiles(),
            slope,
            z: tiles(),
            y: continuous(),
            exact: if shape.lambda_len() > shape.tiles_len() { tiles() } else { Vec::new() },
            counts: is_conway_maxwell.then(|| Box::new(Counts::new(shape.tiles_len()))),
            signal: lambda(),
            above: tiles(),
            d_above: tiles(),
            inverse: Vec::new(),
            gradient: vec![Lanes::default(); method.parameters_len(shape)],
            shares: [0.0; DRAWS],
        }
    }

    /// Switches to another variational model.
    pub(crate) fn set_method(&mut self, method: Method, shape: &Shape) {
        let len = method.parameters_len(shape);
        if self.gradient.len() != len {
            self.noise = Noise::new(method, shape);
            self.gradient = vec![Lanes::default(); len];
        }
    }

    /// The noise of the last draws.
    #[cfg(test)]
    pub(crate) fn noise(&self) -> &[[f32; DRAWS]] {
        self.noise.eps()
    }

    /// The estimate from the last draws of the optimal log weights of a mixture.
    #[cfg(test)]
    pub(crate) fn level(&self) -> &[f32] {
        self.noise.level().unwrap_or_default()
    }

    /// An estimate of the bound of a document, up to terms that do not depend on its latents. Leaves the gradient along the
    /// parameters in `gradient`, and the derivatives along the activations in `d_above`.
    pub(crate) fn step(&mut self, given: &Given, parameters: &[Lanes], draws: usize, rng: &mut Stream) -> f32 {
        self.draw(given.shape, parameters, draws, rng);
        self.evaluate(given, parameters, draws, Wanted::Gradient)
    }

    /// The same estimate from eight draws, without the gradient.
    pub(crate) fn value(&mut self, given: &Given, parameters: &[Lanes], rng: &mut Stream) -> f32 {
        self.draw(given.shape, parameters, DRAWS, rng);
        self.evaluate(given, parameters, DRAWS, Wanted::Value)
    }

    /// The mean of `rounds` estimates of the bound, of eight draws each.
    pub(crate) fn bound(&mut self, given: &Given, parameters: &[Lanes], rounds: u64, rng: &mut Stream) -> f64 {
        let one = |_| f64::from(self.value(given, parameters, rng));
        (0..rounds).map(one).sum::<f64>() / rounds as f64
    }

    /// Adds the derivatives along the weights between layers at the last step's draws.
    pub(crate) fn layer_weights_gradient(&self, shape: &Shape, draws: usize, d_weights: &mut [Vec<Lanes>]) {
        for (l, out) in d_weights.iter_mut().enumerate() {
            let tiles = shape.tiles(l);
            let (up, up_len) = shape.above(l);
            let (d_rows, d_bias) = out.split_at_mut(up_len * tiles.len());
            gradient(&self.z[up], up_len, &self.d_above[tiles], draws, &self.shares, d_rows, d_bias);
        }
    }
}

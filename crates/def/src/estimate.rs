//! The bound of one document and its gradient, from a few draws.
//!
//! The gradient along the mean m_k of a count is E[f(z + e_k) − f(z)], that of a binary latent E[f with z_k = 1 − f with z_k = 0],
//! for f = ln p(x, z) − ln q(z | λ) + ln r(ε | z) − ln q(ε): exact over z_k, and so with little noise from one draw of the others.
//! That of a continuous latent is pathwise: E[∂f/∂z ∂z/∂λ].

use crate::adam;
use crate::heldout::FitSettings;
use crate::kernel::between::{Link, activations, gradient, means, own, parents};
use crate::kernel::continuous;
use crate::kernel::conway::{self, Counts};
use crate::kernel::draw;
use crate::kernel::words::{Seen, Words, differences, rates, slopes};
use crate::local::{Method, Noise, Pace};
use crate::natural;
use crate::shape::{Family, Layer, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile};
use rand_distr::{Distribution, StandardNormal};

/// Working memory for one document after another.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    noise: Noise,
    /// A location for each latent, then a log scale for each continuous one.
    pub(crate) lambda: Vec<Tile>,
    pub(crate) mean: Vec<Tile>,
    slope: Vec<Tile>,
    pub(crate) z: Vec<Tile>,
    /// What is normal in q of continuous latents, z of the others, and derivatives along λ that no draw is needed for: where some
    /// latents are continuous.
    y: Vec<Tile>,
    exact: Vec<Tile>,
    /// Of each number in λ; of a latent, before it is multiplied by its slope, by how much the bound changes with z, or with y.
    signal: Vec<Tile>,
    /// Of counts that have a scale.
    counts: Option<Box<Counts>>,
    above: Vec<Tile>,
    d_above: Vec<Tile>,
    /// 1/R of each word and draw.
    pub(crate) inverse: Vec<[f32; DRAWS]>,
    pub(crate) gradient: Vec<Lanes>,
    /// How much each draw counts.
    pub(crate) shares: [f32; DRAWS],
}

/// What a document's latents are fitted to: its words, what it sees of the words' weights, and the weights between layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) words: Words<'a>,
    pub(crate) seen: Seen<'a>,
    pub(crate) links: &'a [Link<'a>],
}

/// Steps that are measured by the gradients before them, over shares of the natural gradient.
pub(crate) const MEASURED: f32 = 0.5;

/// What of a bound is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Value,
    Gradient,
}

/// The shares of the dependence that are tried, on how many times eight draws, and on how many the one that is chosen.
const SCALES: [f32; 2] = [0.5, 1.0];
const TRIED: usize = 32;
const AGAIN: usize = 128;
/// How many standard errors it has to gain.
const SURE: f64 = 2.0;
/// On how many times eight draws a mixture is weighed.
const WEIGHED: usize = 64;
/// How often a mixture's weights are reconsidered: r follows them.
const REWEIGHED: usize = 3;
/// How much of its way to what the last draws say a weight's logarithm goes, at least.
const FOLLOWED: f32 = 0.01;

/// Parameters with that share of their dependence; with none, what they were before there was any.
fn shrunk(before: &[Lanes], after: &[Lanes], scale: f32, to: &mut [Lanes]) {
    let (own, dependence) = to.split_at_mut(before.len());
    own.copy_from_slice(if scale > 0.0 { &after[..before.len()] } else { before });
    for (to, after) in dependence.iter_mut().zip(&after[before.len()..]) {
        to.0 = after.0.map(|x| scale * x);
    }
}

/// By how much some values are larger than others from the same random numbers, and the standard error of that.
fn gain(with: &[f64], without: &[f64]) -> (f64, f64) {
    let gains: Vec<f64> = with.iter().zip(without).map(|(with, without)| with - without).collect();
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

impl Estimator {
    pub(crate) fn new(shape: &Shape, method: Method) -> Self {
        let tiles = || vec![Tile::default(); shape.tiles_len()];
        let lambda = || vec![Tile::default(); shape.lambda_len()];
        let is_tight = (0..shape.layers().len()).any(|l| shape.is_tight(l));
        // Counts that have a scale are multiplied by t instead.
        let mut slope = tiles();
        for l in (0..shape.layers().len()).filter(|l| shape.is_tight(*l)) {
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
            counts: is_tight.then(|| Box::new(Counts::new(shape.tiles_len()))),
            signal: lambda(),
            above: tiles(),
            d_above: tiles(),
            inverse: Vec::new(),
            gradient: vec![Lanes::default(); method.parameters_len(shape)],
            shares: [0.0; DRAWS],
        }
    }

    /// Goes over to another variational model.
    pub(crate) fn put(&mut self, method: Method, shape: &Shape) {
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

    /// What the last draws would have the logarithms of a mixture's weights be.
    #[cfg(test)]
    pub(crate) fn level(&self) -> &[f32] {
        self.noise.level().unwrap_or_default()
    }

    /// Draws λ, its means and z.
    pub(crate) fn draw(&mut self, shape: &Shape, parameters: &[Lanes], draws: usize, rng: &mut Stream) {
        self.noise.draw(shape, parameters, draws, rng, &mut self.lambda, &mut self.shares);
        for (l, layer) in shape.layers().iter().enumerate() {
            let tiles = shape.tiles(l);
            if layer.family.is_continuous() {
                self.draw_continuous(shape, l, draws, rng);
                continue;
            }
            if shape.is_tight(l) {
                self.draw_counts(shape, l, draws, rng);
                continue;
            }
            let is_binary = layer.family == Family::Bernoulli;
            let (mean, z) = (&mut self.mean[tiles.clone()], &mut self.z[tiles.clone()]);
            means(is_binary, &self.lambda[tiles.clone()], draws, mean, &mut self.slope[tiles]);
            draw::uniform(layer.width, draws, self.noise.is_paired(), rng, z);
            if is_binary {
                draw::bits(mean, draws, z);
            } else {
                draw::counts(mean, draws, rng, z);
            }
        }
    }

    /// The same of counts that have a scale, whose λ is there.
    fn draw_counts(&mut self, shape: &Shape, l: usize, draws: usize, rng: &mut Stream) {
        let width = shape.layers()[l].width;
        draw::uniform(width, draws, self.noise.is_paired(), rng, &mut self.z[shape.tiles(l)]);
        self.count(shape, l, draws, false);
    }

    fn count(&mut self, shape: &Shape, l: usize, draws: usize, is_given: bool) {
        let (tiles, distinct) = (shape.tiles(l), self.noise.distinct(draws));
        if let Some(counts) = &mut self.counts {
            let lambda = [&self.lambda[tiles.clone()], &self.lambda[shape.scales(l)]];
            let (mean, z) = (&mut self.mean[tiles.clone()], &mut self.z[tiles.clone()]);
            conway::counts(counts, lambda, tiles.start, draws, distinct, is_given, mean, z);
        }
    }

    /// Makes what depends on z follow one that was put there.
    #[cfg(test)]
    pub(crate) fn follow(&mut self, shape: &Shape, draws: usize) {
        for l in (0..shape.layers().len()).filter(|l| shape.is_tight(*l)) {
            self.count(shape, l, draws, true);
        }
    }

    /// The same of a continuous layer, whose λ is there.
    fn draw_continuous(&mut self, shape: &Shape, l: usize, draws: usize, rng: &mut Stream) {
        let (Layer { family, width }, tiles, scales) = (shape.layers()[l], shape.tiles(l), shape.scales(l));
        let (lambda, log_scale) = (&self.lambda[tiles.clone()], &self.lambda[scales]);
        let (mean, slope) = (&mut self.mean[tiles.clone()], &mut self.slope[tiles.clone()]);
        continuous::means(family, lambda, log_scale, draws, mean, slope);
        let is_paired = self.noise.is_paired();
        for k in 0..width {
            let (tile, lane) = (k / LANES, k % LANES);
            let mut eps = 0.0;
            for q in 0..draws {
                if !is_paired || q % 2 == 0 {
                    eps = StandardNormal.sample(rng);
                }
                let z = continuous::point(family, lambda[tile].0[q][lane], log_scale[tile].0[q][lane], eps);
                self.z[tiles.start + tile].0[q][lane] = z;
            }
        }
    }

    /// An estimate of the bound of a document, but for what does not depend on its latents; its gradient along the parameters is
    /// left in `gradient`, the derivatives along the activations in `d_above`.
    pub(crate) fn step(&mut self, given: &Given, parameters: &[Lanes], draws: usize, rng: &mut Stream) -> f32 {
        self.draw(given.shape, parameters, draws, rng);
        self.evaluate(given, parameters, draws, Wanted::Gradient)
    }

    /// The same from eight draws, without the gradient.
    pub(crate) fn value(&mut self, given: &Given, parameters: &[Lanes], rng: &mut Stream) -> f32 {
        self.draw(given.shape, parameters, DRAWS, rng);
        self.evaluate(given, parameters, DRAWS, Wanted::Value)
    }

    /// The estimate at the draws that are there.
    pub(crate) fn evaluate(&mut self, given: &Given, parameters: &[Lanes], draws: usize, wanted: Wanted) -> f32 {
        let Given { shape, words, seen, links } = given;
        let lowest = shape.tiles(0);
        self.inverse.resize(words.terms.len(), [0.0; DRAWS]);
        let drawn = [&self.z[lowest.clone()], &self.mean[lowest.clone()]];
        let mut value = rates(words, seen, drawn, draws, &mut self.inverse);
        let family = |l: usize| shape.layers()[l].family;
        let is_binary = |l: usize| family(l) == Family::Bernoulli;
        if wanted == Wanted::Gradient && family(0).is_continuous() {
            let signal = &mut self.signal[lowest.clone()];
            slopes(words, seen, &self.z[lowest.clone()], draws, &self.inverse, signal);
        } else if wanted == Wanted::Gradient {
            differences(
                words,
                seen,
                &self.z[lowest.clone()],
                is_binary(0),
                draws,
                &self.inverse,
                &mut self.signal[lowest.clone()],
            );
        }
        for tile in &mut self.signal[lowest.end..] {
            *tile = Tile::default();
        }
        for (l, link) in links.iter().enumerate() {
            let tiles = shape.tiles(l);
            let (up, up_len) = shape.above(l);
            activations(link, &self.z[up.clone()], up_len, draws, &mut self.above[tiles.clone()]);
            let (mean, above) = (&self.mean[tiles.clone()], &self.above[tiles.clone()]);
            if family(l).is_continuous() {
                let scales = shape.scales(l);
                continuous::own(
                    link,
                    [&self.lambda[tiles.clone()], &self.lambda[scales.clone()], mean, above],
                    if l == 0 { seen.sums } else { &[] },
                    draws,
                    &mut self.exact[tiles.clone()],
                    &mut self.signal[scales],
                    &mut self.d_above[tiles.clone()],
                    &mut value,
                );
            } else if let Some(counts) = self.counts.as_ref().filter(|_| shape.is_tight(l)) {
                conway::own(
                    link,
                    counts,
                    tiles.start,
                    mean,
                    above,
                    draws,
                    &mut self.exact[tiles.clone()],
                    &mut self.signal[shape.scales(l)],
                    &mut self.d_above[tiles.clone()],
                    &mut value,
                );
            } else {
                own(
                    link,
                    &self.lambda[tiles.clone()],
                    mean,
                    above,
                    draws,
                    &mut self.signal[tiles.clone()],
                    &mut self.d_above[tiles.clone()],
                    &mut value,
                );
            }
            if up_len == 0 || wanted == Wanted::Value {
                continue;
            }
            if family(l + 1).is_continuous() {
                let (d_a, z) = (&self.d_above[tiles], &self.z[up.clone()]);
                continuous::parents(link.rows, d_a, z, up_len, family(l + 1), draws, &mut self.signal[up]);
            } else {
                parents(
                    link,
                    &self.mean[tiles.clone()],
                    &self.above[tiles],
                    &self.z[up.clone()],
                    up_len,
                    is_binary(l + 1),
                    draws,
                    &mut self.signal[up],
                );
            }
        }
        for (l, link) in links.iter().enumerate().filter(|_| shape.is_continuous()) {
            let tiles = shape.tiles(l);
            continuous::coordinates(link.family, link.mask, &self.z[tiles.clone()], draws, &mut self.y[tiles]);
        }
        let seen_of_z = if shape.is_continuous() { &self.y } else { &self.z };
        let drawn = [self.lambda.as_slice(), &self.mean, seen_of_z];
        self.noise.recursive(shape, parameters, drawn, self.counts.as_deref(), draws, &mut self.signal, &mut value);
        self.noise.note(&value, draws);
        if wanted == Wanted::Value {
            return self.mean_of(&value, draws);
        }
        for (signal, slope) in self.signal.iter_mut().zip(&self.slope) {
            for q in 0..draws {
                for lane in 0..LANES {
                    signal.0[q][lane] *= slope.0[q][lane];
                }
            }
        }
        if let Some(counts) = &self.counts {
            for l in (0..links.len()).filter(|l| shape.is_tight(*l)) {
                let (tiles, scales) = (shape.tiles(l), shape.scales(l));
                let (signal, d_nu) = self.signal.split_at_mut(scales.start);
                let exact = &self.exact[tiles.clone()];
                conway::combine(counts, tiles.start, draws, exact, &mut signal[tiles], &mut d_nu[..scales.len()]);
            }
        }
        for l in (0..links.len()).filter(|l| family(*l).is_continuous()) {
            let (tiles, scales) = (shape.tiles(l), shape.scales(l));
            let (signal, d_scale) = self.signal.split_at_mut(scales.start);
            let known = [&self.lambda, &self.y, &self.exact].map(|all| &all[tiles.clone()]);
            continuous::combine(known, draws, &mut signal[tiles], &mut d_scale[..scales.len()]);
        }
        self.noise.pullback(shape, parameters, [&self.lambda, &self.signal], draws, &mut self.gradient);
        self.mean_of(&value, draws)
    }

    fn mean_of(&self, value: &[f32; DRAWS], draws: usize) -> f32 {
        value[..draws].iter().zip(self.shares).map(|(value, share)| value * share).sum()
    }

    /// The mean of so many estimates of the bound, of eight draws each.
    pub(crate) fn bound(&mut self, given: &Given, parameters: &[Lanes], rounds: u64, rng: &mut Stream) -> f64 {
        let one = |_| f64::from(self.value(given, parameters, rng));
        (0..rounds).map(one).sum::<f64>() / rounds as f64
    }

    /// A step of this size up the last gradient, given its number, from 1, and where it is measured by them the moments of those before
    /// it.
    pub(crate) fn climb(
        &self,
        method: Method,
        given: &Given,
        [at, first, second]: [&mut [Lanes]; 3],
        number: u32,
        size: f32,
    ) {
        let shape = given.shape;
        let pace = method.pace(shape);
        if pace != Pace::Natural {
            let size = size * MEASURED;
            let units = method.units(shape, if pace == Pace::Both { 0.0 } else { size }, size);
            adam::ascend(at, &self.gradient, [first, second], number, units);
        }
        if pace != Pace::Measured {
            let n = shape.tiles_len();
            for point in 0..method.points_len() {
                for (l, layer) in shape.layers().iter().enumerate() {
                    let tiles = shape.tiles(l);
                    let tiles = point * n + tiles.start..point * n + tiles.end;
                    let (at, gradient) = (&mut at[tiles.clone()], &self.gradient[tiles]);
                    if layer.family == Family::Bernoulli {
                        natural::ascend_bits(at, gradient, size);
                    } else {
                        natural::ascend_counts(at, gradient, if l == 0 { given.seen.sums } else { &[] }, size);
                    }
                }
            }
        }
        if let (Some(level), Some(weights)) = (self.noise.level(), at.last_mut()) {
            let rate = (1.0 / number as f32).max(FOLLOWED);
            for (weight, level) in weights.0.iter_mut().zip(level) {
                if level.is_finite() {
                    *weight += rate * (level - *weight);
                }
            }
        }
    }

    /// Where λ is a mixture, puts the derivatives along the logarithms of its weights after those along its points, given the last
    /// value; and scales those along each point, which are per weight.
    pub(crate) fn weights_gradient(&self, value: f32, gradient: &mut [Lanes]) {
        let Some(level) = self.noise.level() else { return };
        let points = level.len();
        let Some((last, rest)) = gradient.split_last_mut() else { return };
        let n = rest.len() / points;
        *last = Lanes::default();
        for i in 0..points {
            let log_weight = self.noise.log_weight(i);
            let weight = log_weight.exp();
            last.0[i] = weight * (level[i] - log_weight - value);
            rest[i * n..(i + 1) * n].iter_mut().for_each(|lanes| lanes.0 = lanes.0.map(|x| weight * x));
        }
    }

    /// Gives the points of a mixture the weights that its bound asks for.
    pub(crate) fn weigh(&mut self, given: &Given, parameters: &mut [Lanes], rng: &Stream) {
        if self.noise.level().is_none() {
            return;
        }
        for _ in 0..REWEIGHED {
            let mut rng = rng.clone();
            let mut sums = [0.0; DRAWS];
            for _ in 0..WEIGHED {
                self.value(given, parameters, &mut rng);
                for (sum, level) in sums.iter_mut().zip(self.noise.level().unwrap_or_default()) {
                    *sum += level / WEIGHED as f32;
                }
            }
            if let Some(weights) = parameters.last_mut() {
                weights.0[..DRAWS].copy_from_slice(&sums);
            }
        }
    }

    /// Adds dependence to where mean-field has settled, in half as many steps as that took, and leaves the document as much of it as
    /// its bound is the better for: near mean-field a gradient is mostly noise, and what noise has made of the parameters can cost
    /// more than dependence is worth.
    pub(crate) fn join(
        &mut self,
        method: Method,
        given: &Given,
        parameters: &mut [Lanes],
        settled: FitSettings,
        rng: &Stream,
    ) {
        let shape = given.shape;
        self.put(method, shape);
        let Some(range) = method.dependence(shape) else { return };
        let before = parameters[..range.start].to_vec();
        let [mut first, mut second] = [0, 1].map(|_| vec![Lanes::default(); parameters.len()]);
        let (steps, draws) = (settled.steps.div_ceil(2), method.draws(settled.draws));
        let mut own = rng.clone();
        for step in 0..steps {
            self.step(given, parameters, draws, &mut own);
            let size = settled.size * adam::falling(step as f32 / steps as f32);
            self.climb(method, given, [&mut *parameters, &mut first, &mut second], step + 1, size);
        }
        let after = parameters.to_vec();
        let mut values = |scale: f32, rounds: usize, rng: &Stream| -> Vec<f64> {
            shrunk(&before, &after, scale, parameters);
            let mut rng = rng.clone();
            (0..rounds).map(|_| f64::from(self.value(given, parameters, &mut rng))).collect()
        };
        // The same random numbers for all that are tried.
        let without = values(0.0, TRIED, &own);
        let mut best = (0.0, 0.0);
        for scale in SCALES {
            let (mean, error) = gain(&values(scale, TRIED, &own), &without);
            if mean > best.0 && mean > SURE * error {
                best = (mean, scale);
            }
        }
        // What was chosen has to do it again, since the best of several is in part the luckiest.
        if best.1 > 0.0 {
            own.set_stream(own.get_stream() + 1);
            let without = values(0.0, AGAIN, &own);
            let (mean, error) = gain(&values(best.1, AGAIN, &own), &without);
            if mean <= SURE * error {
                best.1 = 0.0;
            }
        }
        shrunk(&before, &after, best.1, parameters);
    }

    /// Adds the derivatives along the weights between layers at the last step's draws.
    pub(crate) fn between(&self, shape: &Shape, draws: usize, d_weights: &mut [Vec<Lanes>]) {
        for (l, out) in d_weights.iter_mut().enumerate() {
            let tiles = shape.tiles(l);
            let (up, up_len) = shape.above(l);
            let (d_rows, d_bias) = out.split_at_mut(up_len * tiles.len());
            gradient(&self.z[up], up_len, &self.d_above[tiles], draws, &self.shares, d_rows, d_bias);
        }
    }
}

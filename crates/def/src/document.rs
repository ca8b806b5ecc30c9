//! One document, given the weights, as a model of the core crate, for use with any of its variational models.

use crate::burst::log_constant;
use crate::kernel::layer::RATE_MIN;
use crate::shape::{Family, Shape};
use crate::weights::{LayerWeights, TermWeights};
use hyperprior::model::{Conditionals, Gradient, Latents, Locals, Model, Support};
use hyperprior::{Batch, Result};
use hyperprior_math::special::{HALF_LN_2_PI, ln_factorial, ln_gamma, sigmoid, softplus};

/// ln p(x, z) of one document, at the cost of the words that occur.
///
/// ```
/// use hyperprior_def::corpus::bible;
/// use hyperprior_def::{DocumentModel, Settings, Training};
///
/// let bible = bible();
/// let training = Training::new(&bible, &Settings::default())?;
/// let genesis = DocumentModel::new(training.shape(), training.terms(), training.layer_weights(), bible.document(0));
/// hyperprior::check(&genesis, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DocumentModel {
    latents: Latents,
    families: Vec<Family>,
    /// The shape α of gamma latents, and α ln α − ln Γ(α).
    gamma_shape: f64,
    gamma_constant: f64,
    /// The first latent of each layer, and one past the last.
    firsts: Vec<usize>,
    counts: Vec<f64>,
    /// W of the words that occur, row by row, and their background.
    weights: Vec<f64>,
    background: Vec<f64>,
    /// Σ_v W_vk, and the terms that depend on no latent.
    sums: Vec<f64>,
    constant: f64,
    /// For each layer the weights of its parents, row by row, and its intercepts.
    rows: Vec<Vec<f64>>,
    bias: Vec<Vec<f64>>,
}

impl DocumentModel {
    /// The model of one document, with the weights as they enter the bound in training.
    pub fn new(shape: &Shape, terms: &TermWeights, layer_weights: &[LayerWeights], document: (&[u32], &[f32])) -> Self {
        let (words, counts) = document;
        let width = shape.layers()[0].width;
        let mut latents = Latents::new();
        let mut firsts = vec![0];
        for (l, layer) in shape.layers().iter().enumerate() {
            let support = match layer.family {
                Family::Poisson => Support::Counts,
                Family::Bernoulli => Support::BINARY,
                Family::Gamma => Support::Positive,
                Family::Gaussian => Support::Real,
            };
            let name = format!("z{}", l + 1);
            latents = latents.clone().vector(&name, layer.width, support).unwrap_or(latents);
            firsts.push(firsts[l] + layer.width);
        }
        let row = |v: u32| (0..width).map(move |k| f64::from(terms.seen_weight(v as usize, k)));
        let background: Vec<f64> = words.iter().map(|v| f64::from(terms.background(*v as usize))).collect();
        let factorials: f64 = counts.iter().map(|x| ln_factorial(f64::from(*x))).sum();
        let gamma_shape = layer_weights.first().map_or(1.0, |layer_weights| f64::from(layer_weights.gamma_shape()));
        Self {
            latents,
            gamma_shape,
            gamma_constant: gamma_shape * gamma_shape.ln() - ln_gamma(gamma_shape),
            families: shape.layers().iter().map(|layer| layer.family).collect(),
            firsts,
            counts: counts.iter().map(|x| f64::from(*x)).collect(),
            weights: words.iter().copied().flat_map(row).collect(),
            background,
            sums: (0..width).map(|k| f64::from(terms.sum(k))).collect(),
            constant: -factorials - terms.background_sum(),
            rows: layer_weights
                .iter()
                .zip(shape.layers())
                .map(|(b, layer)| {
                    let parent = |p: usize| (0..layer.width).map(move |c| f64::from(b.mean(p, c)));
                    (0..b.parents_len()).flat_map(parent).collect()
                })
                .collect(),
            bias: layer_weights
                .iter()
                .zip(shape.layers())
                .map(|(b, layer)| (0..layer.width).map(|c| f64::from(b.intercept(c))).collect())
                .collect(),
        }
    }

    /// The same with negative binomial counts of words: δ of each word of the document, as [`Training::bursts`](crate::Training::bursts) and
    /// [`Trained::bursts`](crate::Trained::bursts) have them for all terms.
    #[must_use]
    pub fn bursty(self, bursts: &[f32]) -> Self {
        let width = self.width(0);
        let (mut counts, mut weights, mut background) = (Vec::new(), Vec::new(), Vec::new());
        let mut constant = self.constant;
        for (word, (count, burst)) in self.counts.iter().zip(bursts).enumerate() {
            // Each occurrence is a word of its own.
            for i in 0..*count as u32 {
                counts.push(1.0);
                weights.extend_from_slice(&self.weights[word * width..][..width]);
                background.push(self.background[word] + f64::from(i) * f64::from(*burst));
            }
            constant += count * log_constant(f64::from(*burst));
        }
        Self { counts, weights, background, constant, ..self }
    }

    fn layer_of(&self, i: usize) -> usize {
        self.firsts.iter().skip(1).take_while(|first| **first <= i).count()
    }

    fn width(&self, layer: usize) -> usize {
        self.firsts[layer + 1] - self.firsts[layer]
    }

    /// b_v + Σ_k W_vk z_k of one word.
    fn rate(&self, word: usize, z: &dyn Fn(usize) -> f64) -> f64 {
        let width = self.width(0);
        let row = &self.weights[word * width..][..width];
        self.background[word] + row.iter().enumerate().map(|(k, w)| w * z(k)).sum::<f64>()
    }

    /// ln p(x | z), with `more(word)` added to the rates and `mass` to their sum.
    fn words(&self, rates: &[f64], more: &dyn Fn(usize) -> f64, mass: f64) -> f64 {
        let logs: f64 = (0..rates.len()).map(|n| self.counts[n] * (rates[n] + more(n)).ln()).sum();
        logs - mass + self.constant
    }

    /// The activation of a child of a layer.
    fn activation(&self, layer: usize, child: usize, z: &dyn Fn(usize) -> f64) -> f64 {
        let width = self.width(layer);
        let rows = self.rows[layer].chunks_exact(width);
        self.bias[layer][child]
            + rows.enumerate().map(|(p, row)| row[child] * z(self.firsts[layer + 1] + p)).sum::<f64>()
    }

    /// ln p of one latent given its activation.
    fn own(&self, layer: usize, z: f64, a: f64) -> f64 {
        match self.families[layer] {
            Family::Poisson => {
                let rate = softplus(a) + f64::from(RATE_MIN);
                z * rate.ln() - rate - ln_factorial(z)
            }
            Family::Bernoulli if z > 0.5 => sigmoid(a).ln(),
            Family::Bernoulli => -softplus(a),
            Family::Gamma => {
                let (shape, mean) = (self.gamma_shape, softplus(a) + f64::from(RATE_MIN));
                self.gamma_constant + (shape - 1.0) * z.ln() - shape * (mean.ln() + z / mean)
            }
            Family::Gaussian => -0.5 * (z - a) * (z - a) - HALF_LN_2_PI,
        }
    }

    /// Its derivatives along the activation, and along the latent if it is continuous.
    fn own_slopes(&self, layer: usize, z: f64, a: f64) -> (f64, f64) {
        let (mean, slope) = (softplus(a) + f64::from(RATE_MIN), sigmoid(a));
        match self.families[layer] {
            Family::Poisson => (slope * (z / mean - 1.0), 0.0),
            Family::Bernoulli => (z - slope, 0.0),
            Family::Gamma => {
                let shape = self.gamma_shape;
                (slope * shape * (z / mean - 1.0) / mean, (shape - 1.0) / z - shape / mean)
            }
            Family::Gaussian => (z - a, a - z),
        }
    }

    /// ln p of a layer given the one above.
    fn layer(&self, layer: usize, z: &dyn Fn(usize) -> f64) -> f64 {
        let first = self.firsts[layer];
        (0..self.width(layer)).map(|c| self.own(layer, z(first + c), self.activation(layer, c, z))).sum()
    }

    fn rates(&self, z: &dyn Fn(usize) -> f64) -> (Vec<f64>, f64) {
        let mass = self.sums.iter().enumerate().map(|(k, sum)| sum * z(k)).sum();
        ((0..self.counts.len()).map(|n| self.rate(n, z)).collect(), mass)
    }
}

impl Model for DocumentModel {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let z = |i: usize| z.get(i, s);
            let (rates, mass) = self.rates(&z);
            *out = self.words(&rates, &|_| 0.0, mass);
            *out += (0..self.families.len()).map(|l| self.layer(l, &z)).sum::<f64>();
        }
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        Some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        self.families.iter().any(|family| family.is_continuous()).then_some(self)
    }

    fn work(&self) -> usize {
        self.weights.len() + self.rows.iter().map(Vec::len).sum::<usize>()
    }
}

impl Locals for DocumentModel {
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()> {
        for s in 0..z.draws_len() {
            let z = |i: usize| z.get(i, s);
            let (rates, mass) = self.rates(&z);
            let words = self.words(&rates, &|_| 0.0, mass);
            let below: Vec<f64> =
                (0..self.families.len()).map(|l| if l == 0 { words } else { self.layer(l - 1, &z) }).collect();
            for i in 0..self.latents.len() {
                let l = self.layer_of(i);
                let own = self.own(l, z(i), self.activation(l, i - self.firsts[l], &z));
                out.set(i, s, below[l] + own);
            }
        }
        Ok(())
    }
}

impl Conditionals for DocumentModel {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let layer = self.layer_of(i);
        let k = i - self.firsts[layer];
        for s in 0..z.draws_len() {
            let z = |i: usize| z.get(i, s);
            let a = self.activation(layer, k, &z);
            if layer == 0 {
                let (rates, mass) = self.rates(&z);
                let width = self.width(0);
                for (v, value) in values.iter().enumerate() {
                    let change = value - z(i);
                    let more = |n: usize| change * self.weights[n * width + k];
                    let words = self.words(&rates, &more, mass + change * self.sums[k]);
                    out.set(v, s, words + self.own(0, *value, a));
                }
                continue;
            }
            let below = layer - 1;
            let width = self.width(below);
            let now: Vec<f64> = (0..width).map(|c| self.activation(below, c, &z)).collect();
            for (v, value) in values.iter().enumerate() {
                let change = value - z(i);
                let child = |c: usize| {
                    let a = now[c] + change * self.rows[below][k * width + c];
                    self.own(below, z(self.firsts[below] + c), a)
                };
                out.set(v, s, (0..width).map(child).sum::<f64>() + self.own(layer, *value, a));
            }
        }
        Ok(())
    }
}

impl Gradient for DocumentModel {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.log_joint(z, out)?;
        for s in 0..z.draws_len() {
            let z = |i: usize| z.get(i, s);
            let (rates, _) = self.rates(&z);
            let width = self.width(0);
            for k in 0..width {
                let explained = |n: usize| self.counts[n] * self.weights[n * width + k] / rates[n];
                d_z.set(k, s, (0..rates.len()).map(explained).sum::<f64>() - self.sums[k]);
            }
            for l in 0..self.families.len() {
                let (first, width) = (self.firsts[l], self.width(l));
                let mut d_a = vec![0.0; width];
                for (c, d_a) in d_a.iter_mut().enumerate() {
                    let own;
                    (*d_a, own) = self.own_slopes(l, z(first + c), self.activation(l, c, &z));
                    d_z.set(first + c, s, d_z.get(first + c, s) + own);
                }
                for (p, row) in self.rows[l].chunks_exact(width).enumerate() {
                    let along = row.iter().zip(&d_a).map(|(w, d)| w * d).sum();
                    d_z.set(self.firsts[l + 1] + p, s, along);
                }
            }
        }
        Ok(())
    }
}

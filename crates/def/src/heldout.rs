//! Documents that were not trained on: their latents given the weights, and how well the words that were hidden are foretold.

use crate::adam;
use crate::corpus::{Corpus, Document, hide_tokens, hide_types};
use crate::error::{Error, Result};
use crate::estimate::{Estimator, Given};
use crate::kernel::between::Link;
use crate::kernel::words::{Seen, Words};
use crate::local::Method;
use crate::network::{Network, Pass};
use crate::settings::Settings;
use crate::shape::Shape;
use crate::train::Training;
use crate::weights::{Between, TermWeights};
use hyperprior_math::random::stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes};
use hyperprior_math::special::ln_factorial;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a document's latents are fitted once the weights are given. The same for every method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitSettings {
    /// Steps; from half way on their size falls along a half cosine.
    pub steps: u32,
    /// Their size.
    pub size: f32,
    /// Draws in a step: 1, 2, 4 or 8.
    pub draws: usize,
}

impl FitSettings {
    /// Whether every field has a meaning.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad = |field, value: String, reason| Err(Error::BadSetting { field, value, reason });
        if !(self.size > 0.0 && self.size.is_finite()) {
            return bad("size", self.size.to_string(), "it is a number above 0");
        }
        if !(1..=DRAWS).contains(&self.draws) || !self.draws.is_power_of_two() {
            return bad("draws", self.draws.to_string(), "use 1, 2, 4 or 8 draws");
        }
        if self.steps == 0 {
            return bad("steps", self.steps.to_string(), "a document takes at least one step");
        }
        Ok(())
    }
}

impl Default for FitSettings {
    fn default() -> Self {
        Self { steps: 300, size: 0.3, draws: 4 }
    }
}

/// How well hidden words are foretold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Heldout {
    /// exp(−Σ y ln μ / Σ y) over the hidden words, with μ = E W · E z, normalised.
    pub perplexity: f64,
    /// The same with the normalised rates averaged over draws of q(z).
    pub perplexity_averaged: f64,
    /// The bound on the words that were seen, per word.
    pub elbo_per_word: f64,
    /// How many words were hidden.
    pub hidden: f64,
}

/// What has been measured so far: how well the hidden words are foretold in both ways, the bound, and how many words were hidden and
/// seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    sums: [f64; 5],
}

impl Measured {
    fn add(&mut self, rows: &[[f64; 5]]) {
        for row in rows {
            self.sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    }

    /// What that comes to.
    pub fn heldout(&self) -> Heldout {
        let [plug_in, averaged, elbo, hidden, seen] = self.sums;
        Heldout {
            perplexity: (-plug_in / hidden).exp(),
            perplexity_averaged: (-averaged / hidden).exp(),
            elbo_per_word: elbo / seen,
            hidden,
        }
    }
}

/// What is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// Half of the word types of each document, every count of a type with it.
    Types,
    /// Half of the words of each document, one by one.
    Tokens,
}

impl Hide {
    fn apply(self, document: (&[u32], &[f32]), seed: u64, index: u64) -> Result<(Document, Document)> {
        match self {
            Self::Types => hide_types(document, 1.0 - SEEN, seed, index),
            Self::Tokens => hide_tokens(document, 1.0 - SEEN, seed, index),
        }
    }
}

/// Draws of λ that means are taken over, at a time, and how many times.
const ROUNDS: usize = 64;
const STEP: u64 = u64::MAX - 3;
/// Times eight draws that a bound is taken over.
const BOUND_ROUNDS: u64 = 64;
/// The share of a document that is seen.
const SEEN: f64 = 0.5;

/// E z, layer by layer, from draws of λ.
pub(crate) fn expected(shape: &Shape, method: Method, own: &[Lanes], seed: u64, document: u64) -> Vec<Vec<f32>> {
    let method = method.of(shape, own);
    let mut estimator = Estimator::new(shape, method);
    let mut rng = stream(seed, STEP, document, 1);
    let mut sums: Vec<Vec<f32>> = shape.layers().iter().map(|layer| vec![0.0; layer.width]).collect();
    let rounds = if method == Method::MeanField { 1 } else { ROUNDS };
    for _ in 0..rounds {
        estimator.draw(shape, own, DRAWS, &mut rng);
        for (l, sum) in sums.iter_mut().enumerate() {
            for (k, sum) in sum.iter_mut().enumerate() {
                let (tile, lane) = shape.place(l, k);
                let one = |q: usize| estimator.shares[q] * estimator.mean[tile].0[q][lane];
                *sum += (0..DRAWS).map(one).sum::<f32>() / rounds as f32;
            }
        }
    }
    sums
}

/// A model with its weights given.
pub struct Predictor<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) method: Method,
    terms: &'a TermWeights,
    between: Vec<Between>,
    activity: f32,
    pub(crate) seed: u64,
    settings: FitSettings,
    network: Option<&'a Network>,
}

impl<'a> Predictor<'a> {
    /// From a training as it stands.
    ///
    /// # Errors
    /// What [`FitSettings::check`] says.
    pub fn new(training: &'a Training, settings: FitSettings) -> Result<Self> {
        let model = (training.shape(), training.terms(), training.settled());
        let network = training.network.as_ref();
        Self::with(model, network, training.settings(), settings, training.settings().seed)
    }

    /// With the weights as they are; those between layers have settled.
    pub(crate) fn with(
        (shape, terms, between): (&'a Shape, &'a TermWeights, Vec<Between>),
        network: Option<&'a Network>,
        trained: &Settings,
        settings: FitSettings,
        seed: u64,
    ) -> Result<Self> {
        settings.check()?;
        Ok(Self { shape, method: trained.method, terms, between, activity: trained.activity, seed, settings, network })
    }

    /// With another variational model of a document than the training's, and parameters of its own.
    #[must_use]
    pub fn with_method(self, method: Method) -> Self {
        Self { method, network: None, ..self }
    }

    /// Fits the latents of a document, of which the words in `hidden` are not known, and returns their parameters and the bound.
    pub(crate) fn fit(&self, seen: &Document, hidden: &Document, hide: Hide, index: u64) -> (Vec<Lanes>, f64) {
        let shape = self.shape;
        let len = self.method.parameters_len(shape);
        let [mut at, mut first, mut second] = [0, 1, 2].map(|_| vec![Lanes::default(); len]);
        // What is drawn to begin with is apart, so that all methods go on alike.
        self.method.start(shape, self.activity, &mut stream(self.seed, STEP, index, 4), &mut at);
        let mut rng = stream(self.seed, STEP, index, 0);
        let n = shape.tiles(0).len();
        let mut sums = self.terms.seen().sums.to_vec();
        let mut background = self.terms.background_sum();
        let mut constant: f64 = seen.counts.iter().map(|x| ln_factorial(f64::from(*x))).sum();
        match hide {
            // Types that are hidden are not known to be absent.
            Hide::Types => {
                let mut row = vec![Lanes::default(); n];
                for term in &hidden.terms {
                    self.terms.mean_row(*term as usize, &mut row);
                    for (sum, row) in sums.iter_mut().zip(&row) {
                        for lane in 0..LANES {
                            sum.0[lane] = (sum.0[lane] - row.0[lane]).max(0.0);
                        }
                    }
                    background -= f64::from(self.terms.background(*term as usize));
                }
            }
            // Half of the words of a document come at half the rates.
            Hide::Tokens => {
                sums.iter_mut().for_each(|sum| sum.0.iter_mut().for_each(|x| *x *= SEEN as f32));
                background *= SEEN;
                constant -= seen.counts.iter().map(|x| f64::from(*x)).sum::<f64>() * SEEN.ln();
            }
        }
        let whole = self.terms.seen();
        let weights = Seen { weights: whole.weights, background: whole.background, sums: &sums };
        let links: Vec<Link> = self.between.iter().map(Between::link).collect();
        let words = Words { terms: &seen.terms, counts: &seen.counts };
        let given = Given { shape, words, seen: weights, links: &links };
        let mut estimator = Estimator::new(shape, self.method);
        if let Some(network) = self.network {
            network.forward(&words, &mut Pass::default(), &mut at);
        }
        let steps = if self.network.is_some() { 0 } else { self.settings.steps };
        for step in 0..steps {
            let done = step as f32 / steps as f32;
            let method = self.method.at(done, false);
            estimator.put(method, shape);
            let own = &mut at[..method.parameters_len(shape)];
            let begins = method.begins(steps);
            if step == begins {
                method.begin(shape, own);
            }
            estimator.step(&given, own, method.draws(self.settings.draws), &mut rng);
            let size = self.settings.size * adam::falling(done);
            estimator.climb(method, &given, [own, &mut first, &mut second], step + 1 - begins, size);
        }
        let apart = stream(self.seed, STEP, index, 3);
        estimator.put(self.method, shape);
        if self.network.is_none() {
            estimator.join(self.method, &given, &mut at, self.settings, &apart);
            estimator.weigh(&given, &mut at, &apart);
        }
        estimator.put(self.method.of(shape, &at), shape);
        let bound = estimator.bound(&given, &at, BOUND_ROUNDS, &mut rng);
        (at, bound - constant - background)
    }

    /// Hides a part of each document, fits the rest, and foretells what was hidden.
    ///
    /// # Errors
    /// What the hiding says.
    pub fn heldout(&self, corpus: &Corpus, hide: Hide) -> Result<Heldout> {
        let mut measured = Measured::default();
        self.measure(corpus, hide, 0..corpus.documents_len(), &mut measured)?;
        Ok(measured.heldout())
    }

    /// The same for some of the documents, for whoever wants to see how far it is, or to stop. In whatever ranges documents are
    /// measured one after another, the numbers are the same.
    ///
    /// # Errors
    /// What the hiding says.
    pub fn measure(&self, corpus: &Corpus, hide: Hide, documents: Range<usize>, into: &mut Measured) -> Result<()> {
        let one = |d: usize| -> Result<[f64; 5]> {
            let (seen, hidden) = hide.apply(corpus.document(d), self.seed, d as u64)?;
            if seen.terms.is_empty() || hidden.terms.is_empty() {
                return Ok([0.0; 5]);
            }
            let (own, elbo) = self.fit(&seen, &hidden, hide, d as u64);
            let [plug_in, averaged] = self.foretold(&own, &hidden, d as u64);
            let count = |document: &Document| document.counts.iter().map(|x| f64::from(*x)).sum::<f64>();
            Ok([plug_in, averaged, elbo, count(&hidden), count(&seen)])
        };
        let rows: Vec<[f64; 5]> = documents.into_par_iter().map(one).collect::<Result<_>>()?;
        into.add(&rows);
        Ok(())
    }

    /// Σ y ln μ over the hidden words, with the means plugged in and with the rates averaged over draws.
    fn foretold(&self, own: &[Lanes], hidden: &Document, index: u64) -> [f64; 2] {
        let shape = self.shape;
        let mean = &expected(shape, self.method, own, self.seed, index)[0];
        let width = shape.layers()[0].width;
        let rates = |z: &[f32]| -> Vec<f64> {
            let total: f64 = (0..width).map(|k| f64::from(z[k]) * f64::from(self.terms.sum(k))).sum();
            let rate = |term: &u32| -> f64 {
                (0..width).map(|k| f64::from(z[k]) * f64::from(self.terms.mean(*term as usize, k))).sum()
            };
            let rates: Vec<f64> = hidden.terms.iter().map(rate).collect();
            shares(&rates, total)
        };
        let mut averaged = vec![0.0; hidden.terms.len()];
        let mut estimator = Estimator::new(shape, self.method.of(shape, own));
        let mut rng = stream(self.seed, STEP, index, 2);
        let mut z = vec![0.0; width];
        let mut counted = 0.0;
        for _ in 0..ROUNDS {
            estimator.draw(shape, own, DRAWS, &mut rng);
            for q in 0..DRAWS {
                for (k, z) in z.iter_mut().enumerate() {
                    let (tile, lane) = shape.place(0, k);
                    *z = estimator.z[tile].0[q][lane];
                }
                if z.iter().all(|z| *z == 0.0) {
                    continue;
                }
                let weight = f64::from(estimator.shares[q]);
                counted += weight;
                averaged.iter_mut().zip(rates(&z)).for_each(|(sum, share)| *sum += weight * share);
            }
        }
        let plug_in = rates(mean);
        // Where no draw has any latent at work, there is nothing to average.
        averaged
            .iter_mut()
            .zip(&plug_in)
            .for_each(|(sum, share)| *sum = if counted > 0.0 { *sum / counted } else { *share });
        [&plug_in, &averaged].map(|shares| log_likelihood(shares, &hidden.counts))
    }
}

/// The least share that a word is given.
const FLOOR: f64 = 1e-12;

/// Some words' shares of what all rates come to.
fn shares(rates: &[f64], total: f64) -> Vec<f64> {
    rates.iter().map(|rate| rate / total.max(f64::MIN_POSITIVE)).collect()
}

/// Σ y ln of the shares.
fn log_likelihood(shares: &[f64], counts: &[f32]) -> f64 {
    shares.iter().zip(counts).map(|(share, y)| f64::from(*y) * share.max(FLOOR).ln()).sum()
}

/// The perplexity of the hidden words under the shares that all words have in the training documents.
///
/// # Errors
/// What the hiding says.
pub fn unigram(train: &Corpus, test: &Corpus, hide: Hide, seed: u64) -> Result<f64> {
    let mut shares = vec![0.1_f64; train.terms_len()];
    for (term, x) in train.terms().iter().zip(train.counts()) {
        shares[*term as usize] += f64::from(*x);
    }
    let total: f64 = shares.iter().sum();
    let (mut sum, mut count) = (0.0, 0.0);
    for d in 0..test.documents_len() {
        let (seen, hidden) = hide.apply(test.document(d), seed, d as u64)?;
        if seen.terms.is_empty() {
            continue;
        }
        for (term, y) in hidden.terms.iter().zip(&hidden.counts) {
            sum += f64::from(*y) * (shares[*term as usize] / total).ln();
            count += f64::from(*y);
        }
    }
    Ok((-sum / f64::max(count, 1.0)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perplexity_is_that_of_normalised_rates() {
        // Rates 2, 1, 1, 1/2; hidden are one of the first word and two of the last: ((9/4) 9²)^(1/3).
        let found = log_likelihood(&shares(&[2.0, 0.5], 4.5), &[1.0, 2.0]);
        let mut measured = Measured::default();
        measured.add(&[[found, found, 0.0, 3.0, 1.0]]);
        assert!((measured.heldout().perplexity - 182.25_f64.cbrt()).abs() < 1e-9);
    }
}

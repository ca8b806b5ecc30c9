//! Documents that were not trained on: their latents given the weights, and how well their held-out words are predicted.

use crate::adam;
use crate::burst::{Tokens, constant, mean_length, thinned};
use crate::corpus::{Corpus, Document, hold_out_tokens, hold_out_types};
use crate::error::Result;
use crate::estimate::{Estimator, Given};
use crate::expected::{ROUNDS, STEP, expected};
use crate::forecast::{Forecast, SEEN, continued, halved};
use crate::kernel::layer::Link;
use crate::kernel::words::{Seen, Words};
use crate::local::Method;
use crate::network::{Network, Pass};
use crate::settings::Settings;
use crate::shape::Shape;
use crate::train::Training;
use crate::weights::{LayerWeights, TermWeights};
use hyperprior_math::random::stream;
use hyperprior_math::single::{DRAWS, LANES, Lanes};
use hyperprior_math::special::ln_factorial;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

pub use crate::settings::FitSettings;

/// How well held-out words are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Heldout {
    /// exp(−Σ y ln μ / Σ y) over the held-out words, with μ = E W · E z, normalised.
    pub perplexity: f64,
    /// The same with the normalised rates averaged over draws of q(z).
    pub perplexity_averaged: f64,
    /// The bound on the observed words, per word.
    pub elbo_per_word: f64,
    /// The number of held-out words.
    pub hidden: f64,
}

/// The measures of the documents so far: both log likelihoods of the held-out words, the bound, and the numbers of held-out and
/// observed words.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    documents: Vec<[f64; 5]>,
}

impl Measured {
    /// The measures of all documents together.
    pub fn heldout(&self) -> Heldout {
        let mut sums = [0.0; 5];
        for document in &self.documents {
            sums.iter_mut().zip(document).for_each(|(sum, x)| *sum += x);
        }
        let [plug_in, averaged, elbo, hidden, seen] = sums;
        Heldout {
            perplexity: (-plug_in / hidden).exp(),
            perplexity_averaged: (-averaged / hidden).exp(),
            elbo_per_word: elbo / seen,
            hidden,
        }
    }

    /// For each document Σ y ln μ over its held-out words, with the means plugged in, and their number.
    pub fn documents(&self) -> impl Iterator<Item = (f64, f64)> {
        self.documents.iter().map(|[plug_in, _, _, hidden, _]| (*plug_in, *hidden))
    }
}

/// What is held out of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holdout {
    /// Half of the word types of each document, with all their tokens.
    Types,
    /// Half of the tokens of each document, chosen one by one.
    Tokens,
}

impl Holdout {
    fn apply(self, document: (&[u32], &[f32]), seed: u64, index: u64) -> Result<(Document, Document)> {
        match self {
            Self::Types => hold_out_types(document, 1.0 - SEEN, seed, index),
            Self::Tokens => hold_out_tokens(document, 1.0 - SEEN, seed, index),
        }
    }
}

/// A bound is the mean over this many times eight draws.
const BOUND_ROUNDS: u64 = 64;

/// A model with given weights, to be fitted to documents.
pub struct Predictor<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) method: Method,
    pub(crate) terms: &'a TermWeights,
    pub(crate) layer_weights: Vec<LayerWeights>,
    /// δ of every term, if words come in bursts.
    pub(crate) bursts: &'a [f32],
    /// The rates of half of the words, summed over the terms for each latent, and of the background.
    halved: (Vec<Lanes>, f64),
    /// How words are predicted if types are hidden, and if tokens are.
    forecasts: [Forecast; 2],
    activity: f32,
    pub(crate) seed: u64,
    settings: FitSettings,
    network: Option<&'a Network>,
}

impl<'a> Predictor<'a> {
    /// From the current state of a training.
    ///
    /// # Errors
    /// The errors of [`FitSettings::check`].
    pub fn new(training: &'a Training, settings: FitSettings) -> Result<Self> {
        let model = (training.shape(), training.terms(), training.layer_weight_means(), training.bursts());
        let network = training.network.as_ref();
        Self::with(model, network, training.settings(), settings, training.settings().seed)
    }

    /// From these weights; those between layers are at their means.
    pub(crate) fn with(
        (shape, terms, layer_weights, bursts): (&'a Shape, &'a TermWeights, Vec<LayerWeights>, &'a [f32]),
        network: Option<&'a Network>,
        trained: &Settings,
        settings: FitSettings,
        seed: u64,
    ) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            shape,
            method: trained.method,
            terms,
            layer_weights,
            bursts,
            halved: halved(terms, bursts),
            forecasts: [mean_length, continued].map(|factor| Forecast::new(terms, bursts, factor)),
            activity: trained.activity,
            seed,
            settings,
            network,
        })
    }

    /// With another variational model of a document than the training's, and parameters of its own.
    #[must_use]
    pub fn with_method(self, method: Method) -> Self {
        Self { method, network: None, ..self }
    }

    /// Fits the latents of a document whose words in `hidden` are held out, and returns their parameters and the bound.
    pub(crate) fn fit(&self, seen: &Document, hidden: &Document, holdout: Holdout, index: u64) -> (Vec<Lanes>, f64) {
        let shape = self.shape;
        let len = self.method.parameters_len(shape);
        let [mut at, mut first, mut second] = [0, 1, 2].map(|_| vec![Lanes::default(); len]);
        // The start has its own stream, so that all methods continue with the same numbers.
        self.method.start(shape, self.activity, &mut stream(self.seed, STEP, index, 4), &mut at);
        let mut rng = stream(self.seed, STEP, index, 0);
        let n = shape.tiles(0).len();
        let mut sums = self.terms.seen().sums.to_vec();
        let mut background = self.terms.background_sum();
        let document = (seen.terms.as_slice(), seen.counts.as_slice());
        let mut of_words = constant(self.bursts, document);
        match holdout {
            // Held-out types are not known to be absent.
            Holdout::Types => {
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
            // Half of the tokens of a document come at half the rates, or a little more if they come in bursts.
            Holdout::Tokens => {
                (sums, background) = self.halved.clone();
                let of_word = |(term, x): (&u32, &f32)| f64::from(*x) * thinned(self.bursts, *term as usize, SEEN).1;
                let factorials: f64 = seen.counts.iter().map(|x| ln_factorial(f64::from(*x))).sum();
                of_words = seen.terms.iter().zip(&seen.counts).map(of_word).sum::<f64>() - factorials;
            }
        }
        let whole = self.terms.seen();
        let weights = Seen { weights: whole.weights, background: whole.background, sums: &sums };
        let links: Vec<Link> = self.layer_weights.iter().map(LayerWeights::link).collect();
        let tokens = (!self.bursts.is_empty()).then(|| Tokens::of(std::iter::once(document)));
        let words = tokens.as_ref().map_or_else(|| Words::of(document), |tokens| tokens.words(0, self.bursts));
        let given = Given { shape, words, seen: weights, links: &links };
        let mut estimator = Estimator::new(shape, self.method);
        if let Some(network) = self.network {
            network.forward(&words, &mut Pass::default(), &mut at);
        }
        // All methods take as many steps: where dependence comes last, a third of them are for it.
        let adds = self.method.adds_dependence(self.network.is_some());
        let steps = match self.settings.steps {
            _ if self.network.is_some() => 0,
            steps if adds => (2 * steps).div_ceil(3),
            steps => steps,
        };
        for step in 0..steps {
            let done = step as f32 / steps as f32;
            let method = self.method.at(done, false);
            estimator.set_method(method, shape);
            let own = &mut at[..method.parameters_len(shape)];
            let begins = method.begins(steps);
            if step == begins {
                method.begin(shape, &mut stream(self.seed, STEP, index, 5), own);
            }
            estimator.step(&given, own, method.draws(self.settings.draws), &mut rng);
            let size = self.settings.size * adam::falling(done);
            estimator.ascend(method, &given, [own, &mut first, &mut second], step + 1 - begins, size);
        }
        let last = stream(self.seed, STEP, index, 3);
        estimator.set_method(self.method, shape);
        if self.network.is_none() {
            estimator.add_dependence(self.method, &given, &mut at, FitSettings { steps, ..self.settings }, &last);
            estimator.fit_mixture_weights(&given, &mut at, &last);
        }
        estimator.set_method(self.method.of(shape, &at), shape);
        let bound = estimator.bound(&given, &at, BOUND_ROUNDS, &mut rng);
        (at, bound + of_words - background)
    }

    /// Holds out a part of each document, fits the rest, and predicts the held-out part.
    ///
    /// # Errors
    /// The errors of the holdout.
    pub fn heldout(&self, corpus: &Corpus, holdout: Holdout) -> Result<Heldout> {
        let mut measured = Measured::default();
        self.measure(corpus, holdout, 0..corpus.documents_len(), &mut measured)?;
        Ok(measured.heldout())
    }

    /// The same for some of the documents, so that a caller can report progress or stop. The numbers do not depend on how the
    /// documents are divided into ranges.
    ///
    /// # Errors
    /// The errors of the holdout.
    pub fn measure(
        &self,
        corpus: &Corpus,
        holdout: Holdout,
        documents: Range<usize>,
        into: &mut Measured,
    ) -> Result<()> {
        let one = |d: usize| -> Result<[f64; 5]> {
            let (seen, hidden) = holdout.apply(corpus.document(d), self.seed, d as u64)?;
            if seen.terms.is_empty() || hidden.terms.is_empty() {
                return Ok([0.0; 5]);
            }
            let (own, elbo) = self.fit(&seen, &hidden, holdout, d as u64);
            let [plug_in, averaged] = self.log_likelihoods(&own, [&seen, &hidden], holdout, d as u64);
            let count = |document: &Document| document.counts.iter().map(|x| f64::from(*x)).sum::<f64>();
            Ok([plug_in, averaged, elbo, count(&hidden), count(&seen)])
        };
        let rows: Vec<[f64; 5]> = documents.into_par_iter().map(one).collect::<Result<_>>()?;
        into.documents.extend(rows);
        Ok(())
    }

    /// Σ y ln μ over the held-out words, with the means plugged in and with the rates averaged over draws. If words come in bursts, the
    /// other occurrences of a word that has been seen are the more probable.
    fn log_likelihoods(&self, own: &[Lanes], [seen, hidden]: [&Document; 2], holdout: Holdout, index: u64) -> [f64; 2] {
        let forecast = &self.forecasts[usize::from(holdout == Holdout::Tokens)];
        // What has been seen of every term, times δ.
        let mut seen_before = HashMap::new();
        if holdout == Holdout::Tokens && !self.bursts.is_empty() {
            let of = |(term, x): (&u32, &f32)| (*term, f64::from(self.bursts[*term as usize]) * f64::from(*x));
            seen_before.extend(seen.terms.iter().zip(&seen.counts).map(of));
        }
        let of_seen: f64 =
            seen.terms.iter().map(|term| forecast.factor(*term) * seen_before.get(term).unwrap_or(&0.0)).sum();
        let shape = self.shape;
        let mean = &expected(shape, self.method, own, self.seed, index)[0];
        let width = shape.layers()[0].width;
        let rates = |z: &[f32]| -> Vec<f64> {
            let total: f64 = (0..width).map(|k| f64::from(z[k]) * forecast.sums[k]).sum();
            let rate = |term: &u32| -> f64 {
                let rate: f64 =
                    (0..width).map(|k| f64::from(z[k]) * f64::from(self.terms.mean(*term as usize, k))).sum();
                forecast.factor(*term) * (rate + seen_before.get(term).unwrap_or(&0.0))
            };
            let rates: Vec<f64> = hidden.terms.iter().map(rate).collect();
            shares(&rates, total + of_seen)
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
        // If all latents are zero in every draw, there is nothing to average.
        averaged
            .iter_mut()
            .zip(&plug_in)
            .for_each(|(sum, share)| *sum = if counted > 0.0 { *sum / counted } else { *share });
        [&plug_in, &averaged].map(|shares| log_likelihood(shares, &hidden.counts))
    }
}

/// The least share of a word.
const FLOOR: f64 = 1e-12;

/// The shares of some rates in their total over all words.
fn shares(rates: &[f64], total: f64) -> Vec<f64> {
    rates.iter().map(|rate| rate / total.max(f64::MIN_POSITIVE)).collect()
}

/// Σ y ln of the shares.
fn log_likelihood(shares: &[f64], counts: &[f32]) -> f64 {
    shares.iter().zip(counts).map(|(share, y)| f64::from(*y) * share.max(FLOOR).ln()).sum()
}

/// The perplexity of the held-out words under the words' frequencies in the training documents.
///
/// # Errors
/// The errors of the holdout.
pub fn unigram(train: &Corpus, test: &Corpus, holdout: Holdout, seed: u64) -> Result<f64> {
    let mut shares = vec![0.1_f64; train.terms_len()];
    for (term, x) in train.terms().iter().zip(train.counts()) {
        shares[*term as usize] += f64::from(*x);
    }
    let total: f64 = shares.iter().sum();
    let (mut sum, mut count) = (0.0, 0.0);
    for d in 0..test.documents_len() {
        let (seen, hidden) = holdout.apply(test.document(d), seed, d as u64)?;
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
        // Rates 2, 1, 1, 1/2; held out are one of the first word and two of the last: ((9/4) 9²)^(1/3).
        let found = log_likelihood(&shares(&[2.0, 0.5], 4.5), &[1.0, 2.0]);
        let measured = Measured { documents: vec![[found, found, 0.0, 3.0, 1.0]] };
        assert!((measured.heldout().perplexity - 182.25_f64.cbrt()).abs() < 1e-9);
    }
}

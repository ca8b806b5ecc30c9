//! Training: each minibatch takes steps of its documents' own parameters, then of the weights.

mod batch;
mod choice;
mod start;

use crate::burst::{Bursts, Text, Tokens, WordCounts, mean_length};
use crate::corpus::Corpus;
use crate::device::{CudaTraining, Device};
use crate::error::{Error, Result};
use crate::estimate::{Estimator, Given};
use crate::expected::expected;
use crate::kernel::layer::Link;
use crate::local::Method;
use crate::memory;
use crate::minibatch::{CHUNK, MinibatchChunk};
use crate::network::{Network, Pass};
use crate::settings::{FitSettings, Settings};
use crate::shape::Shape;
use crate::weights::{LayerWeights, TermWeights};
use hyperprior_math::random::{TextPurpose, stream};
use hyperprior_math::single::Lanes;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::Serialize;
use start::term_weights;
use std::borrow::Cow;

pub use choice::{Candidate, Choice};

/// The result of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: u32,
    /// The objective, with each document evaluated in its minibatch: near the end the bound on ln p(corpus).
    pub objective: f64,
}

/// A model being trained.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) settings: Settings,
    shape: Shape,
    pub(crate) terms: TermWeights,
    pub(crate) layer_weights: Vec<LayerWeights>,
    /// The documents' own parameters, and the moments of their gradients.
    pub(crate) local: [Vec<Lanes>; 3],
    /// The inference network, if documents have no parameters of their own.
    pub(crate) network: Option<Network>,
    pub(crate) epoch: u32,
    /// The objective, epoch by epoch.
    pub(crate) history: Vec<f64>,
    pub(crate) step: u64,
    /// The words one by one, and how they come in bursts, if they do.
    pub(crate) bursty: Option<(Tokens, Bursts)>,
    /// What [`crate::Method::Hvm`] turned out to be.
    pub(crate) choice: Option<Choice>,
    chunks: Vec<MinibatchChunk>,
    device: OnDevice,
}

/// The training on a device, if it is not on the processor. A copy continues on the processor, from the end of the last epoch.
#[derive(Debug, Default)]
struct OnDevice(Option<Box<CudaTraining>>);

impl Clone for OnDevice {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// The random streams of a minibatch's weights, the order of documents, the start, the bound and the final fits.
const WEIGHTS: u64 = TextPurpose::Weights.step();
const ORDER: u64 = TextPurpose::DocumentOrder.step();
const START: u64 = TextPurpose::DocumentStart.step();
const BOUND: u64 = TextPurpose::Bound.step();
const FINISH: u64 = TextPurpose::Dependence.step();

/// A corpus with how its words come in bursts.
fn text_of<'a>(corpus: &'a Corpus, bursty: Option<&'a (Tokens, Bursts)>) -> Text<'a> {
    Text { corpus, bursty: bursty.map(|(tokens, bursts)| (tokens, bursts.each.as_slice())) }
}

impl<'a> Training<'a> {
    /// A model before its first epoch.
    ///
    /// # Errors
    /// The errors of [`Settings::check`], and [`Error::BadSetting`] for a corpus without documents.
    pub fn new(corpus: &'a Corpus, settings: &Settings) -> Result<Self> {
        settings.check()?;
        if corpus.documents_len() == 0 || corpus.tokens_len() == 0 {
            return Err(Error::BadSetting {
                field: "corpus",
                value: "empty".to_owned(),
                reason: "at least one document must have a word",
            });
        }
        let mut settings = settings.clone();
        if settings.amortize.is_some() {
            settings.method = settings.method.with_network();
        }
        let (settings, method) = (&settings, settings.method);
        let shape = Shape::with(&settings.layers, method.is_conway_maxwell())?;
        memory::check(settings, &shape, corpus.terms_len(), corpus.documents_len())?;
        let mut rng = stream(settings.seed, START, 0, 0);
        let terms = term_weights(corpus, settings, &mut rng);
        let layer_weights =
            LayerWeights::all(&shape, settings.weights, settings.activity, settings.gamma_shape, &mut rng);
        let parameters_len = method.parameters_len(&shape);
        let network = Network::of(settings, &shape, corpus.terms_len());
        let len = if network.is_some() { 0 } else { parameters_len * corpus.documents_len() };
        let mut local = [vec![Lanes::default(); len], vec![Lanes::default(); len], vec![Lanes::default(); len]];
        local[0].par_chunks_mut(parameters_len).enumerate().for_each(|(d, own)| {
            let mut rng = stream(settings.seed, START, 1 + d as u64, 0);
            method.start(&shape, settings.activity, &mut rng, own);
        });
        let documents = (0..corpus.documents_len()).map(|d| corpus.document(d));
        let is_bursty = settings.words == WordCounts::NegativeBinomial;
        let chunks_len = settings.batch.min(corpus.documents_len()).div_ceil(CHUNK);
        let chunk = MinibatchChunk::new(&shape, method, &layer_weights, network.as_ref());
        Ok(Self {
            corpus,
            settings: settings.clone(),
            terms,
            layer_weights,
            local,
            network,
            epoch: 0,
            history: Vec::new(),
            step: 0,
            bursty: is_bursty.then(|| (Tokens::of(documents), Bursts::new(corpus))),
            choice: None,
            chunks: vec![chunk; chunks_len],
            shape,
            device: OnDevice::default(),
        })
    }

    /// Continues on another device. The numbers of a GPU differ from those of the processor, where random numbers are drawn in
    /// another way; the same seed gives the same numbers again on the same GPU.
    ///
    /// # Errors
    /// [`Error::Device`] if the device does not exist, has too little memory, or cannot train this model.
    pub fn use_device(&mut self, device: Device) -> Result<()> {
        self.device.0 = match device {
            Device::Cpu => None,
            Device::Cuda(number) => {
                let [local, ..] = &self.local;
                let on_device =
                    CudaTraining::new(number, self.corpus, &self.shape, &self.settings, &self.terms, local)?;
                Some(Box::new(on_device))
            }
        };
        Ok(())
    }

    /// The layers.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The words' weights.
    pub fn terms(&self) -> &TermWeights {
        &self.terms
    }

    /// The weights between layers, those above the lowest layer first; the last are the top layer's own parameters.
    pub fn layer_weights(&self) -> &[LayerWeights] {
        &self.layer_weights
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// [`Epoch::objective`] of every epoch so far.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// The number of epochs done.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The mean over all words of the variance of a word's count divided by its mean, given the latents: e^δ for negative binomial
    /// counts, 1 for Poisson counts.
    pub fn overdispersion(&self) -> f64 {
        self.bursty.as_ref().map_or(1.0, |(_, bursts)| bursts.overdispersion())
    }

    /// δ of every term; empty for Poisson counts.
    pub fn bursts(&self) -> &[f32] {
        self.bursty.as_ref().map_or(&[], |(_, bursts)| &bursts.each)
    }

    /// The documents as the model sees them.
    fn text(&self) -> Text<'_> {
        text_of(self.corpus, self.bursty.as_ref())
    }

    /// The settings that were asked for: those of the training, before [`crate::Method::Hvm`] was decided.
    pub fn wanted(&self) -> Settings {
        let settings = self.settings.clone();
        if self.choice.is_some() { settings.method(Method::Hvm) } else { settings }
    }

    /// The number of documents whose Gaussian keeps dependence; `None` for methods that do not add it document by document.
    pub fn dependent_len(&self) -> Option<usize> {
        let method = self.settings.method;
        let keeps = |d: &usize| method.of(&self.shape, &self.own(*d)) != Method::MeanField;
        method
            .adds_dependence(self.network.is_some())
            .then(|| (0..self.corpus.documents_len()).into_par_iter().filter(keeps).count())
    }

    /// The share of all counts that the background explains.
    pub fn background_share(&self) -> f64 {
        let documents = self.corpus.documents_len() as f64;
        let bursts = self.bursts();
        let of_term = |v: usize| f64::from(self.terms.background(v)) * mean_length(bursts, v);
        let sum = if bursts.is_empty() { self.terms.background_sum() } else { (0..bursts.len()).map(of_term).sum() };
        documents * sum / self.corpus.tokens_len() as f64
    }

    /// The contribution of q(weights) and of the background to the bound.
    fn of_weights(&self) -> f64 {
        let background = self.corpus.documents_len() as f64 * self.terms.background_sum();
        self.terms.value() + self.layer_weights.iter().map(LayerWeights::value).sum::<f64>() - background
    }

    /// The bound on ln p(corpus) at the current weights, those between layers at their means, from `rounds` times eight draws of
    /// every document's latents. Point estimates of the weights have no entropy: then this is a bound on ln p(x, W).
    pub fn bound(&self, rounds: u64) -> f64 {
        let layer_weights = self.layer_weight_means();
        let links: Vec<Link> = layer_weights.iter().map(LayerWeights::link).collect();
        let text = self.text();
        let one = |d: usize| {
            let own = self.own(d);
            let mut estimator = Estimator::new(&self.shape, self.settings.method.of(&self.shape, &own));
            let mut rng = stream(self.settings.seed, BOUND, d as u64, 0);
            let given = Given { shape: &self.shape, words: text.words(d), seen: self.terms.seen(), links: &links };
            estimator.bound(&given, &own, rounds, &mut rng) + text.constant(d)
        };
        let documents: Vec<f64> = (0..self.corpus.documents_len()).into_par_iter().map(one).collect();
        documents.iter().sum::<f64>() + self.of_weights()
    }

    /// E z of a document's latents, layer by layer.
    pub fn activations(&self, document: usize) -> Vec<Vec<f32>> {
        let (method, seed) = (self.settings.method, self.settings.seed);
        expected(&self.shape, method, &self.own(document), seed, document as u64)
    }

    /// A document's parameters.
    fn own(&self, document: usize) -> Cow<'_, [Lanes]> {
        let len = self.settings.method.parameters_len(&self.shape);
        match &self.network {
            None => Cow::Borrowed(&self.local[0][document * len..][..len]),
            Some(network) => {
                let mut at = vec![Lanes::default(); len];
                network.forward(&self.text().words(document), &mut Pass::default(), &mut at);
                Cow::Owned(at)
            }
        }
    }

    /// One pass over all documents.
    ///
    /// # Errors
    /// [`Error::Device`] if a GPU fails, and the errors of [`Training::choose`].
    pub fn run_epoch(&mut self) -> Result<Epoch> {
        self.choose(&mut |_| true)?;
        let elbo = self.pass(&[])?;
        if self.epoch == self.settings.epochs {
            self.finish();
        }
        let objective = elbo + self.of_weights();
        self.history.push(objective);
        Ok(Epoch { number: self.epoch, objective })
    }

    /// The minibatches of an epoch without some documents, which are in order. Returns the sum of the documents' bounds.
    fn pass(&mut self, without: &[usize]) -> Result<f64> {
        let mut order: Vec<usize> = (0..self.corpus.documents_len()).collect();
        order.retain(|d| without.binary_search(d).is_err());
        order.shuffle(&mut stream(self.settings.seed, ORDER, u64::from(self.epoch), 0));
        let mut elbo = 0.0;
        // Minibatches of nearly equal size: each is scaled up to the corpus, and a last one of few documents would be noisy.
        let batches = order.len().div_ceil(self.settings.batch);
        for b in 0..batches {
            let range = b * order.len() / batches..(b + 1) * order.len() / batches;
            elbo += self.run_batch(&order[range])?;
        }
        if let Some(device) = &mut self.device.0 {
            device.download(&mut self.terms, &mut self.local[0])?;
        }
        self.epoch += 1;
        Ok(elbo)
    }

    /// Fits what waits for the final weights: the weights of mixtures, and the dependence that is added to mean-field.
    fn finish(&mut self) {
        let (shape, settings, method) = (&self.shape, &self.settings, self.settings.method);
        if self.network.is_some() || method.has_nothing_to_add() {
            return;
        }
        let layer_weights = self.layer_weight_means();
        let links: Vec<Link> = layer_weights.iter().map(LayerWeights::link).collect();
        let seen = self.terms.seen();
        let text = text_of(self.corpus, self.bursty.as_ref());
        let steps = settings.epochs.saturating_mul(settings.local_steps);
        let fit = FitSettings { steps, size: settings.size(shape), draws: settings.draws };
        self.local[0].par_chunks_mut(method.parameters_len(shape)).enumerate().for_each(|(d, own)| {
            let given = Given { shape, words: text.words(d), seen, links: &links };
            let mut estimator = Estimator::new(shape, method);
            let rng = stream(settings.seed, FINISH, d as u64, 0);
            estimator.add_dependence(method, &given, own, fit, &rng);
            estimator.fit_mixture_weights(&given, own, &rng);
        });
    }

    /// The weights between layers at their means, to fit other documents.
    pub(crate) fn layer_weight_means(&self) -> Vec<LayerWeights> {
        let mut layer_weights = self.layer_weights.clone();
        layer_weights.iter_mut().for_each(LayerWeights::use_means);
        layer_weights
    }
}

//! Training: minibatches of documents climb the bound with their own parameters, and the weights follow.

use crate::adam;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::estimate::{Estimator, Given, MEASURED};
use crate::heldout::FitSettings;
use crate::kernel::between::Link;
use crate::kernel::words::{Words, allocate};
use crate::network::{Network, Pass};
use crate::room;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::visit::{CHUNK, TermIndex, Visit, add};
use crate::weights::{Between, TermWeights};
use hyperprior_math::random::{Stream, stream};
use hyperprior_math::single::Lanes;
use hyperprior_math::special::ln_factorial;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::Serialize;
use std::borrow::Cow;

/// What an epoch did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: u32,
    /// What is climbed, from the documents as they were visited: near the end the bound on ln p(corpus).
    pub objective: f64,
}

/// A model being trained.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) settings: Settings,
    shape: Shape,
    pub(crate) terms: TermWeights,
    pub(crate) between: Vec<Between>,
    /// The documents' own parameters, and the moments of their gradients.
    pub(crate) local: [Vec<Lanes>; 3],
    /// What gives them to documents that have none of their own.
    pub(crate) network: Option<Network>,
    pub(crate) epoch: u32,
    /// What was climbed, epoch by epoch.
    pub(crate) history: Vec<f64>,
    pub(crate) step: u64,
    /// −Σ ln x! of each document.
    constants: Vec<f64>,
    visits: Vec<Visit>,
}

/// Streams for a minibatch's weights, for the order of documents and for the start are apart from those of documents.
const WEIGHTS: u64 = u64::MAX;
const ORDER: u64 = u64::MAX - 1;
const START: u64 = u64::MAX - 2;
const BOUND: u64 = u64::MAX - 4;
const FINISH: u64 = u64::MAX - 5;

impl<'a> Training<'a> {
    /// A model before its first epoch.
    ///
    /// # Errors
    /// What [`Settings::check`] says, and [`Error::BadSetting`] for a corpus without documents.
    pub fn new(corpus: &'a Corpus, settings: &Settings) -> Result<Self> {
        settings.check()?;
        if corpus.documents_len() == 0 || corpus.tokens_len() == 0 {
            return Err(Error::BadSetting {
                field: "corpus",
                value: "nothing".to_owned(),
                reason: "there is no document with a word to learn from",
            });
        }
        let method = settings.method;
        let shape = Shape::with(&settings.layers, method.is_tight())?;
        room::is_there(settings, &shape, corpus.terms_len(), corpus.documents_len())?;
        let mut rng = stream(settings.seed, START, 0, 0);
        let terms = start(corpus, settings, &mut rng);
        let between = Between::all(&shape, settings.weights, settings.activity, settings.gamma_shape, &mut rng);
        let parameters_len = method.parameters_len(&shape);
        let network = Network::of(settings, &shape, corpus.terms_len());
        let len = if network.is_some() { 0 } else { parameters_len * corpus.documents_len() };
        let mut local = [vec![Lanes::default(); len], vec![Lanes::default(); len], vec![Lanes::default(); len]];
        local[0].par_chunks_mut(parameters_len).enumerate().for_each(|(d, own)| {
            let mut rng = stream(settings.seed, START, 1 + d as u64, 0);
            method.start(&shape, settings.activity, &mut rng, own);
        });
        let constant = |d| -corpus.document(d).1.iter().map(|x| ln_factorial(f64::from(*x))).sum::<f64>();
        let visits_len = settings.batch.min(corpus.documents_len()).div_ceil(CHUNK);
        let visit = Visit::new(&shape, method, &between, network.as_ref());
        Ok(Self {
            corpus,
            settings: settings.clone(),
            terms,
            between,
            local,
            network,
            epoch: 0,
            history: Vec::new(),
            step: 0,
            constants: (0..corpus.documents_len()).map(constant).collect(),
            visits: vec![visit; visits_len],
            shape,
        })
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
    pub fn between(&self) -> &[Between] {
        &self.between
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// [`Epoch::objective`] of the epochs that were done.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Epochs done.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The share of all counts that the background explains.
    pub fn background_share(&self) -> f64 {
        let documents = self.corpus.documents_len() as f64;
        documents * self.terms.background_sum() / self.corpus.tokens_len() as f64
    }

    /// What the weights' beliefs and the background add to the bound.
    fn of_weights(&self) -> f64 {
        let background = self.corpus.documents_len() as f64 * self.terms.background_sum();
        self.terms.value() + self.between.iter().map(Between::value).sum::<f64>() - background
    }

    /// The bound on ln p(corpus) with the weights as they are, between layers at their means, from that many draws of every
    /// document's latents. Weights that are points have no entropy: then it is ln p(x, W) that is bounded.
    pub fn bound(&self, rounds: u64) -> f64 {
        let between = self.settled();
        let links: Vec<Link> = between.iter().map(Between::link).collect();
        let one = |d: usize| {
            let (terms, counts) = self.corpus.document(d);
            let own = self.own(d);
            let mut estimator = Estimator::new(&self.shape, self.settings.method.of(&self.shape, &own));
            let mut rng = stream(self.settings.seed, BOUND, d as u64, 0);
            let (words, seen) = (Words { terms, counts }, self.terms.seen());
            let given = Given { shape: &self.shape, words, seen, links: &links };
            estimator.bound(&given, &own, rounds, &mut rng) + self.constants[d]
        };
        let documents: Vec<f64> = (0..self.corpus.documents_len()).into_par_iter().map(one).collect();
        documents.iter().sum::<f64>() + self.of_weights()
    }

    /// E z of a document's latents, layer by layer.
    pub fn activations(&self, document: usize) -> Vec<Vec<f32>> {
        let (method, seed) = (self.settings.method, self.settings.seed);
        crate::heldout::expected(&self.shape, method, &self.own(document), seed, document as u64)
    }

    /// A document's parameters.
    fn own(&self, document: usize) -> Cow<'_, [Lanes]> {
        let len = self.settings.method.parameters_len(&self.shape);
        match &self.network {
            None => Cow::Borrowed(&self.local[0][document * len..][..len]),
            Some(network) => {
                let (terms, counts) = self.corpus.document(document);
                let mut at = vec![Lanes::default(); len];
                network.forward(&Words { terms, counts }, &mut Pass::default(), &mut at);
                Cow::Owned(at)
            }
        }
    }

    /// One pass over all documents.
    pub fn run_epoch(&mut self) -> Epoch {
        let mut order: Vec<usize> = (0..self.corpus.documents_len()).collect();
        order.shuffle(&mut stream(self.settings.seed, ORDER, u64::from(self.epoch), 0));
        let mut elbo = 0.0;
        // Of nearly the same size: a last one with few documents would be taken for all of them.
        let batches = order.len().div_ceil(self.settings.batch);
        for b in 0..batches {
            let range = b * order.len() / batches..(b + 1) * order.len() / batches;
            elbo += self.run_batch(&order[range]);
        }
        self.epoch += 1;
        if self.epoch == self.settings.epochs {
            self.finish();
        }
        let objective = elbo + self.of_weights();
        self.history.push(objective);
        Epoch { number: self.epoch, objective }
    }

    /// Adds what comes when the weights are there: the weights of mixtures, and dependence that joins mean-field.
    fn finish(&mut self) {
        let (shape, settings, method) = (&self.shape, &self.settings, self.settings.method);
        if self.network.is_some() || method.has_nothing_to_add() {
            return;
        }
        let between = self.settled();
        let links: Vec<Link> = between.iter().map(Between::link).collect();
        let (corpus, seen) = (self.corpus, self.terms.seen());
        let steps = settings.epochs.saturating_mul(settings.local_steps);
        let settled = FitSettings { steps, size: settings.size(shape), draws: settings.draws };
        self.local[0].par_chunks_mut(method.parameters_len(shape)).enumerate().for_each(|(d, own)| {
            let (terms, counts) = corpus.document(d);
            let given = Given { shape, words: Words { terms, counts }, seen, links: &links };
            let mut estimator = Estimator::new(shape, method);
            let rng = stream(settings.seed, FINISH, d as u64, 0);
            estimator.join(method, &given, own, settled, &rng);
            estimator.weigh(&given, own, &rng);
        });
    }

    /// One minibatch: the documents' bounds.
    fn run_batch(&mut self, batch: &[usize]) -> f64 {
        let settings = &self.settings;
        let done = self.epoch as f32 / settings.epochs.max(1) as f32;
        let (falling, method) = (adam::falling(done), self.settings.method.at(done, self.network.is_some()));
        let draws = method.draws(settings.draws);
        let mut rng = stream(settings.seed, self.step, WEIGHTS, 0);
        for between in &mut self.between {
            between.draw(&mut rng);
        }
        let links: Vec<Link> = self.between.iter().map(Between::link).collect();
        let (shape, seen, corpus, constants, step) =
            (&self.shape, self.terms.seen(), self.corpus, &self.constants, self.step);
        let parameters_len = self.settings.method.parameters_len(shape);
        let fitted_len = method.parameters_len(shape);
        for visit in &mut self.visits {
            visit.estimator.put(method, shape);
        }
        // Each document's parameters are lent to the one visit that treats it.
        let [at, first, second] = &mut self.local;
        let mut places: Vec<usize> = (0..batch.len()).collect();
        places.sort_by_key(|i| batch[*i]);
        let mut lent: Vec<Option<[&mut [Lanes]; 3]>> = (0..batch.len()).map(|_| None).collect();
        let mut rest = [at.as_mut_slice(), first.as_mut_slice(), second.as_mut_slice()];
        let mut skipped = 0;
        for place in places.into_iter().filter(|_| self.network.is_none()) {
            let d = batch[place];
            lent[place] = Some(rest.each_mut().map(|rest| {
                let (_, tail) = std::mem::take(rest).split_at_mut((d - skipped) * parameters_len);
                let (own, tail) = tail.split_at_mut(parameters_len);
                *rest = tail;
                &mut own[..fitted_len]
            }));
            skipped = d + 1;
        }
        let network = self.network.as_ref();
        let used = batch.len().div_ceil(CHUNK);
        let begins = method.begins(settings.epochs);
        let number = (self.epoch - begins.min(self.epoch)) * settings.local_steps;
        let is_first = self.epoch == begins;
        let size = settings.size(shape) * falling;
        self.visits[..used].par_iter_mut().zip(batch.par_chunks(CHUNK)).zip(lent.par_chunks_mut(CHUNK)).for_each(
            |((visit, documents), lent)| {
                visit.clear();
                for (i, d) in documents.iter().enumerate() {
                    let (terms, counts) = corpus.document(*d);
                    let words = Words { terms, counts };
                    let given = Given { shape, words, seen, links: &links };
                    let mut rng = stream(settings.seed, step, *d as u64, 0);
                    let mut value = 0.0;
                    if let Some(network) = network {
                        let Visit { estimator, amortized, .. } = &mut *visit;
                        network.forward(&words, &mut amortized.passes[i], &mut amortized.at);
                        let at = &amortized.at[..fitted_len];
                        value = estimator.step(&given, at, draws, &mut rng);
                        amortized.d_out[..fitted_len].copy_from_slice(&estimator.gradient);
                        estimator.weights_gradient(value, &mut amortized.d_out[..fitted_len]);
                        network.backward(&mut amortized.passes[i], &amortized.d_out, &mut amortized.gradient);
                    }
                    if let Some([at, first, second]) = &mut lent[i] {
                        if is_first {
                            method.begin(shape, at);
                        }
                        for local_step in 0..settings.local_steps {
                            value = visit.estimator.step(&given, at, draws, &mut rng);
                            let number = number + local_step + 1;
                            visit.estimator.climb(method, &given, [at, first, second], number, size);
                        }
                    }
                    visit.value += f64::from(value) + constants[*d];
                    visit.keep(shape, i, draws);
                }
            },
        );
        let visits = &self.visits[..used];
        let scale = corpus.documents_len() as f32 / batch.len() as f32;
        let value: f64 = visits.iter().map(|visit| visit.value).sum();
        let mut activity = vec![Lanes::default(); shape.tiles(0).len()];
        let mut d_between: Vec<Vec<Lanes>> =
            self.between.iter().map(|between| vec![Lanes::default(); between.len()]).collect();
        for visit in visits {
            add(&mut activity, &visit.activity, scale);
            for (sum, own) in d_between.iter_mut().zip(&visit.d_between) {
                add(sum, own, scale);
            }
        }
        let index = TermIndex::new(corpus, batch);
        let statistic = |v: usize, row: &mut [Lanes]| {
            for (place, word) in index.of(v) {
                let visit = &visits[place / CHUNK];
                let x = corpus.document(batch[place]).1[word];
                let inverse = &visit.inverse[place % CHUNK][word];
                allocate(scale * x, inverse, &visit.z[place % CHUNK], draws, row);
            }
        };
        if let Some(network) = &mut self.network {
            let mut gradient = vec![Lanes::default(); network.gradient_len()];
            visits.iter().for_each(|visit| add(&mut gradient, &visit.amortized.gradient, 1.0));
            let pass = |place: usize| &visits[place / CHUNK].amortized.passes[place % CHUNK];
            let passes: Vec<&Pass> = (0..batch.len()).map(pass).collect();
            let passes_of =
                |v: usize| index.of(v).map(|(place, word)| (passes[place], corpus.document(batch[place]).1[word]));
            network.ascend(&gradient, &passes, passes_of, size * MEASURED);
        }
        let sharpness = (self.epoch as f32 / (SHARP * settings.epochs as f32).max(1.0)).min(1.0);
        let forgetting = (self.step as f32 + DELAY).powf(-FORGETTING);
        self.terms.update(forgetting, sharpness, &statistic, &activity);
        let size = settings.between_size * falling;
        for (between, gradient) in self.between.iter_mut().zip(&d_between) {
            between.ascend(gradient, size);
        }
        self.step += 1;
        value
    }

    /// What is needed to fit other documents: the weights at their means.
    pub(crate) fn settled(&self) -> Vec<Between> {
        let mut between = self.between.clone();
        between.iter_mut().for_each(Between::settle);
        between
    }
}

/// The share of the epochs after which documents see exp E ln W.
const SHARP: f32 = 0.7;
/// The weights' statistics move (t + delay)^−forgetting of the way at step t.
const DELAY: f32 = 4.0;
const FORGETTING: f32 = 0.6;

/// Each latent starts from the words of a few documents, mixed with those of all.
fn start(corpus: &Corpus, settings: &Settings, rng: &mut Stream) -> TermWeights {
    const FEW: usize = 20;
    const SHARE: f32 = 0.8;
    let (documents, terms) = (corpus.documents_len(), corpus.terms_len());
    let width = settings.layers[0].width;
    let mut all = vec![0.1_f32; terms];
    for (term, x) in corpus.terms().iter().zip(corpus.counts()) {
        all[*term as usize] += x;
    }
    let total: f32 = all.iter().sum();
    all.iter_mut().for_each(|x| *x /= total);
    let length = corpus.tokens_len() as f32 / documents as f32;
    let active = settings.layers[0].family.possible(settings.activity);
    let size = length / (width as f32 * active);
    let mut own = vec![0.0_f32; terms * width];
    for k in 0..width {
        let mut taken = 0.0;
        for _ in 0..FEW {
            let (words, counts) = corpus.document(rng.random_range(0..documents));
            for (term, x) in words.iter().zip(counts) {
                own[*term as usize * width + k] += x;
                taken += x;
            }
        }
        for v in 0..terms {
            let x = &mut own[v * width + k];
            let normal: f32 = StandardNormal.sample(rng);
            *x = size * (SHARE * *x / f32::max(taken, 1.0) + (1.0 - SHARE) * all[v] * (0.3 * normal).exp());
        }
    }
    let background: Vec<f32> = all.iter().map(|share| settings.background * length * share).collect();
    TermWeights::new(
        settings.weights,
        settings.term_prior,
        width,
        &|v, k| own[v * width + k],
        &background,
        documents as f32 * active,
    )
}

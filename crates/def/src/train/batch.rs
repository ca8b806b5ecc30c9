//! One minibatch: the steps of its documents, then those of the weights.

use super::{Training, WEIGHTS, text_of};
use crate::adam;
use crate::device::DeviceStep;
use crate::error::Result;
use crate::estimate::ADAM_SIZE;
use crate::kernel::layer::Link;
use crate::kernel::words::allocate;
use crate::local::Method;
use crate::minibatch::{CHUNK, Parameters, Shared, TermIndex, add};
use crate::network::Pass;
use crate::weights::LayerWeights;
use hyperprior_math::random::stream;
use hyperprior_math::single::Lanes;
use rayon::prelude::*;

/// The share of the epochs after which documents use exp E ln W.
const SHARP: f32 = 0.7;
/// At step t the weights' statistics move by a share (t + delay)^−forgetting.
const DELAY: f32 = 4.0;
const FORGETTING: f32 = 0.6;

impl Training<'_> {
    /// Runs one minibatch and returns the sum of its documents' bounds.
    pub(super) fn run_batch(&mut self, batch: &[usize]) -> Result<f64> {
        let settings = &self.settings;
        let done = self.epoch as f32 / settings.epochs.max(1) as f32;
        let (falling, method) = (adam::falling(done), settings.method.at(done, self.network.is_some()));
        let draws = method.draws(settings.draws);
        let mut rng = stream(settings.seed, self.step, WEIGHTS, 0);
        for weights in &mut self.layer_weights {
            weights.draw(&mut rng);
        }
        let value = if self.device.0.is_some() {
            self.step_on_device(batch, falling)?
        } else {
            self.step_documents(batch, method, draws, falling);
            let value = self.chunks[..batch.len().div_ceil(CHUNK)].iter().map(|chunk| chunk.value).sum();
            self.step_weights(batch, draws, falling);
            value
        };
        self.step += 1;
        Ok(value)
    }

    /// The steps of the documents and of the weights, on a device.
    fn step_on_device(&mut self, batch: &[usize], falling: f32) -> Result<f64> {
        let (forgetting, sharpness) = (self.forgetting(), self.sharpness());
        let size = self.settings.size(&self.shape) * falling;
        let Some(device) = &mut self.device.0 else { return Ok(0.0) };
        let step =
            DeviceStep { batch, layer_weights: &self.layer_weights, step: self.step, size, forgetting, sharpness };
        let (value, d_layer_weights) = device.run_batch(&step)?;
        self.step_layer_weights(&d_layer_weights, falling);
        Ok(value)
    }

    /// The share by which the statistics of the words' weights move.
    fn forgetting(&self) -> f32 {
        (self.step as f32 + DELAY).powf(-FORGETTING)
    }

    /// How far the words' weights have moved from E W to exp E ln W.
    fn sharpness(&self) -> f32 {
        (self.epoch as f32 / (SHARP * self.settings.epochs as f32).max(1.0)).min(1.0)
    }

    fn step_layer_weights(&mut self, gradients: &[Vec<Lanes>], falling: f32) {
        let size = self.settings.layer_weights_size * falling;
        for (weights, gradient) in self.layer_weights.iter_mut().zip(gradients) {
            weights.ascend(gradient, size);
        }
    }

    /// The steps of the documents' own parameters, or the gradient of the network that gives them.
    fn step_documents(&mut self, batch: &[usize], method: Method, draws: usize, falling: f32) {
        let (shape, settings) = (&self.shape, &self.settings);
        for chunk in &mut self.chunks {
            chunk.estimator.set_method(method, shape);
        }
        let mut parameters: Vec<Parameters> = match self.network {
            None => {
                let lens = [settings.method.parameters_len(shape), method.parameters_len(shape)];
                borrow_parameters(&mut self.local, batch, lens)
            }
            Some(_) => batch.iter().map(|_| None).collect(),
        };
        let links: Vec<Link> = self.layer_weights.iter().map(LayerWeights::link).collect();
        let begins = method.begins(settings.epochs);
        let shared = Shared {
            text: text_of(self.corpus, self.bursty.as_ref()),
            settings,
            shape,
            seen: self.terms.seen(),
            links: &links,
            network: self.network.as_ref(),
            method,
            draws,
            step: self.step,
            steps_done: (self.epoch - begins.min(self.epoch)) * settings.local_steps,
            is_first: self.epoch == begins,
            size: settings.size(shape) * falling,
        };
        let used = batch.len().div_ceil(CHUNK);
        self.chunks[..used]
            .par_iter_mut()
            .zip(batch.par_chunks(CHUNK))
            .zip(parameters.par_chunks_mut(CHUNK))
            .for_each(|((chunk, documents), parameters)| chunk.run(&shared, documents, parameters));
    }

    /// The steps of the network, of the words' weights and of the weights between layers, from what the documents left behind.
    fn step_weights(&mut self, batch: &[usize], draws: usize, falling: f32) {
        let (forgetting, sharpness) = (self.forgetting(), self.sharpness());
        let (shape, settings, corpus) = (&self.shape, &self.settings, self.corpus);
        let text = text_of(corpus, self.bursty.as_ref());
        let chunks = &self.chunks[..batch.len().div_ceil(CHUNK)];
        let scale = corpus.documents_len() as f32 / batch.len() as f32;
        let mut activity = vec![Lanes::default(); shape.tiles(0).len()];
        let mut d_layer_weights: Vec<Vec<Lanes>> =
            self.layer_weights.iter().map(|weights| vec![Lanes::default(); weights.len()]).collect();
        for chunk in chunks {
            add(&mut activity, &chunk.activity, scale);
            for (sum, own) in d_layer_weights.iter_mut().zip(&chunk.d_layer_weights) {
                add(sum, own, scale);
            }
        }
        let index = TermIndex::new(&text, batch);
        let statistic = |v: usize, row: &mut [Lanes]| {
            for (place, word) in index.of(v) {
                let chunk = &chunks[place / CHUNK];
                let x = text.words(batch[place]).counts[word];
                let inverse = &chunk.inverse[place % CHUNK][word];
                allocate(scale * x, inverse, &chunk.z[place % CHUNK], draws, row);
            }
        };
        if let Some(network) = &mut self.network {
            let mut gradient = vec![Lanes::default(); network.gradient_len()];
            chunks.iter().for_each(|chunk| add(&mut gradient, &chunk.amortized.gradient, 1.0));
            let pass = |place: usize| &chunks[place / CHUNK].amortized.passes[place % CHUNK];
            let passes: Vec<&Pass> = (0..batch.len()).map(pass).collect();
            let passes_of =
                |v: usize| index.of(v).map(|(place, word)| (passes[place], text.words(batch[place]).counts[word]));
            network.ascend(&gradient, &passes, passes_of, settings.size(shape) * falling * ADAM_SIZE);
        }
        // Before the weights move, of which the rates are.
        let continued: Option<Vec<f64>> = text.bursty.map(|(_, bursts)| {
            let of_term = |v: usize| -> f64 {
                let of_word = |(place, word): (usize, usize)| {
                    let inverse = &chunks[place / CHUNK].inverse[place % CHUNK][word][..draws];
                    text.words(batch[place]).earlier[word] * inverse.iter().sum::<f32>()
                };
                f64::from(scale * bursts[v] * index.of(v).map(of_word).sum::<f32>())
            };
            (0..corpus.terms_len()).into_par_iter().map(of_term).collect()
        });
        self.terms.update(forgetting, sharpness, &statistic, &activity);
        if let (Some((_, bursts)), Some(continued)) = (&mut self.bursty, continued) {
            bursts.update(f64::from(forgetting), |v| continued[v]);
        }
        self.step_layer_weights(&d_layer_weights, falling);
    }
}

/// Borrows the parameters of each document of a minibatch and the moments of their gradients: of `len` vectors a document, the
/// first `fitted_len`.
fn borrow_parameters<'a>(
    local: &'a mut [Vec<Lanes>; 3],
    batch: &[usize],
    [len, fitted_len]: [usize; 2],
) -> Vec<Parameters<'a>> {
    let mut places: Vec<usize> = (0..batch.len()).collect();
    places.sort_by_key(|i| batch[*i]);
    let mut borrowed: Vec<Parameters> = batch.iter().map(|_| None).collect();
    let mut rest = local.each_mut().map(Vec::as_mut_slice);
    let mut skipped = 0;
    for place in places {
        let d = batch[place];
        borrowed[place] = Some(rest.each_mut().map(|rest| {
            let (_, tail) = std::mem::take(rest).split_at_mut((d - skipped) * len);
            let (own, tail) = tail.split_at_mut(len);
            *rest = tail;
            &mut own[..fitted_len]
        }));
        skipped = d + 1;
    }
    borrowed
}

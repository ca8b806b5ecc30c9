//! A saved model: what is needed to fit new documents, without the training documents.

use crate::burst::{WordCounts, mean_length};
use crate::error::{Error, Result};
use crate::memory;
use crate::network::Network;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::topics::{Topics, Word, descending, words};
use crate::train::Training;
use crate::weights::{LayerWeights, TermWeights};
use hyperprior::checkpoint::{ChecksumReader, ChecksumWriter, DAMAGED_HEAD};
use hyperprior_math::random::stream;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Read, Write};

/// The first line, with the version of the format.
const FORMAT: &[u8] = b"hyperprior topics model 1\n";

/// Everything except the arrays.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// The version of the program that wrote it.
    version: String,
    settings: Settings,
    epoch: u32,
    sharpness: f32,
    order: Vec<usize>,
    vocabulary: Vec<String>,
}

/// The weights of a training, its settings and its vocabulary.
///
/// ```
/// use hyperprior_def::heldout::{FitSettings, Predictor};
/// use hyperprior_def::{Settings, Trained, Training, corpus};
///
/// let bible = corpus::bible();
/// let mut training = Training::new(&bible, &Settings::default().epochs(1))?;
/// training.run_epoch()?;
/// let mut file = Vec::new();
/// training.save_model(None, &mut file)?;
/// let trained = Trained::load(file.as_slice())?;
/// let predictor = Predictor::of_trained(&trained, FitSettings::default(), 1)?;
/// let psalm = &predictor.infer(&bible, 500..501)[0];
/// assert_eq!(psalm.activations[0].len(), 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trained {
    settings: Settings,
    shape: Shape,
    terms: TermWeights,
    layer_weights: Vec<LayerWeights>,
    network: Option<Network>,
    bursts: Vec<f32>,
    epoch: u32,
    order: Vec<usize>,
    vocabulary: Vec<String>,
}

impl Training<'_> {
    /// Writes what is needed to fit other documents, for [`Trained::load`]. Topics are numbered as in `topics`; without it, by the
    /// words that their weights explain.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn save_model(&self, topics: Option<&Topics>, out: impl Write) -> io::Result<()> {
        let order = match topics {
            Some(topics) => topics.topics.iter().map(|topic| topic.latent).collect(),
            None => descending(&(0..self.terms.width()).map(|k| self.terms.explained(k)).collect::<Vec<_>>()),
        };
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: self.settings.clone(),
            epoch: self.epoch,
            sharpness: self.terms.sharpness(),
            order,
            vocabulary: self.corpus.vocabulary().to_vec(),
        };
        let background: Vec<f32> = (0..self.terms.terms_len()).map(|v| self.terms.background(v)).collect();
        let mut out = ChecksumWriter::new(out, FORMAT, &head)?;
        out.floats(&background)?;
        out.floats(self.bursts())?;
        self.terms.arrays().into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        self.layer_weights.iter().try_for_each(|layer_weights| out.lanes(layer_weights.means()))?;
        let network = self.network.iter().flat_map(Network::weights);
        network.into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        out.finish()
    }
}

impl Trained {
    /// Reads a model.
    ///
    /// # Errors
    /// [`Error::Model`] if the file is not a model, is of another version, is cut off or damaged.
    pub fn load(file: impl Read) -> Result<Self> {
        let bad = |reason| Error::Model { reason };
        let (mut file, head): (_, Head) = ChecksumReader::new(file, FORMAT).map_err(bad)?;
        let Head { settings, epoch, sharpness, order, vocabulary, .. } = head;
        settings.check().map_err(|_| bad(DAMAGED_HEAD))?;
        let shape =
            Shape::with(&settings.layers, settings.method.is_conway_maxwell()).map_err(|_| bad(DAMAGED_HEAD))?;
        let width = settings.layers[0].width;
        let is_order = order.len() == width && order.iter().all(|latent| *latent < width);
        if !is_order || order.iter().collect::<HashSet<_>>().len() < width || vocabulary.is_empty() {
            return Err(bad(DAMAGED_HEAD));
        }
        memory::check(&settings, &shape, vocabulary.len(), 0).map_err(|_| bad(DAMAGED_HEAD))?;
        let mut background = vec![0.0; vocabulary.len()];
        file.floats(&mut background).map_err(bad)?;
        let is_bursty = settings.words == WordCounts::NegativeBinomial;
        let mut bursts = vec![0.0; if is_bursty { vocabulary.len() } else { 0 }];
        file.floats(&mut bursts).map_err(bad)?;
        if !bursts.iter().all(|burst| *burst > 0.0 && burst.is_finite()) {
            return Err(bad(DAMAGED_HEAD));
        }
        // The initial values are overwritten.
        let mut terms = TermWeights::new(settings.weights, settings.term_prior, width, &|_, _| 0.0, &background, 0.0);
        let mut rng = stream(0, 0, 0, 0);
        let mut layer_weights =
            LayerWeights::all(&shape, settings.weights, settings.activity, settings.gamma_shape, &mut rng);
        let mut network = Network::of(&settings, &shape, vocabulary.len());
        let of_network = network.iter_mut().flat_map(Network::weights_mut);
        for lanes in terms
            .arrays_mut()
            .into_iter()
            .chain(layer_weights.iter_mut().map(LayerWeights::means_mut))
            .chain(of_network)
        {
            file.lanes(lanes).map_err(bad)?;
        }
        file.finish().map_err(bad)?;
        terms.restore(sharpness);
        layer_weights.iter_mut().for_each(LayerWeights::use_means);
        Ok(Self { settings, shape, terms, layer_weights, network, bursts, epoch, order, vocabulary })
    }

    /// The settings of the training.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The layers.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The words' weights.
    pub fn terms(&self) -> &TermWeights {
        &self.terms
    }

    /// The weights between layers, at their means.
    pub fn layer_weights(&self) -> &[LayerWeights] {
        &self.layer_weights
    }

    /// The inference network, if documents have no parameters of their own.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// δ of every term; empty for Poisson counts.
    pub fn bursts(&self) -> &[f32] {
        &self.bursts
    }

    /// The number of epochs of training; less than [`Settings::epochs`] if the training was not finished.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The latents of the lowest layer in the order of their numbers as topics.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The terms.
    pub fn vocabulary(&self) -> &[String] {
        &self.vocabulary
    }

    /// The words of a latent of the lowest layer, the largest share first.
    ///
    /// # Panics
    /// There is no such latent.
    pub fn words(&self, latent: usize, len: usize) -> Vec<Word> {
        let rate = |v: usize| f64::from(self.terms.mean(v, latent)) * mean_length(&self.bursts, v);
        let rates: Vec<f64> = (0..self.vocabulary.len()).map(rate).collect();
        words(&rates, &self.vocabulary, len)
    }

    /// The share of a document's words that each latent of the lowest layer explains, with the latents at these means; the
    /// background explains the rest. A word is divided in proportion to the contributions to its rate. All shares are 0 for a
    /// document without words.
    ///
    /// # Panics
    /// There are not as many means as latents, or there is no such term.
    pub fn shares(&self, lowest: &[f32], (terms, counts): (&[u32], &[f32])) -> Vec<f64> {
        assert_eq!(lowest.len(), self.terms.width(), "one mean for each latent");
        let mut shares = vec![0.0; lowest.len()];
        for (term, count) in terms.iter().zip(counts) {
            let v = *term as usize;
            let parts: Vec<f64> =
                lowest.iter().enumerate().map(|(k, z)| f64::from(*z) * f64::from(self.terms.mean(v, k))).collect();
            let rate = parts.iter().sum::<f64>() + f64::from(self.terms.background(v));
            shares.iter_mut().zip(parts).for_each(|(share, part)| *share += f64::from(*count) * part / rate);
        }
        let len: f64 = counts.iter().map(|count| f64::from(*count)).sum();
        shares.iter_mut().for_each(|share| *share /= len.max(1.0));
        shares
    }
}

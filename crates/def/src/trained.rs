//! A trained model by itself: all that documents which it never saw are fitted with, without those that it learnt from.

use crate::error::{Error, Result};
use crate::network::Network;
use crate::room;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::topics::{Topics, Word, descending, words};
use crate::train::Training;
use crate::weights::{Between, TermWeights};
use hyperprior::sealed::{DAMAGED_HEAD, Opener, Sealer};
use hyperprior_math::random::stream;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Read, Write};

/// The first line; the number goes up when what follows changes.
const FORMAT: &[u8] = b"hyperprior topics model 1\n";

/// What is not an array.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// Of the program that wrote it.
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
/// let mut training = Training::new(&bible, &Settings { epochs: 1, ..Settings::default() })?;
/// training.run_epoch();
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
    between: Vec<Between>,
    network: Option<Network>,
    epoch: u32,
    order: Vec<usize>,
    vocabulary: Vec<String>,
}

impl Training<'_> {
    /// Writes all that other documents are fitted with, for [`Trained::load`]. Topics are numbered as `topics` has them; without,
    /// as their weights let expect.
    ///
    /// # Errors
    /// What the system says.
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
        let mut out = Sealer::new(out, FORMAT, &head)?;
        out.floats(&background)?;
        self.terms.arrays().into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        self.between.iter().try_for_each(|between| out.lanes(between.means()))?;
        let network = self.network.iter().flat_map(Network::weights);
        network.into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        out.finish()
    }
}

impl Trained {
    /// As it was written.
    ///
    /// # Errors
    /// [`Error::Model`] for a file that is none, is of another version, is cut off or damaged.
    pub fn load(file: impl Read) -> Result<Self> {
        let bad = |reason| Error::Model { reason };
        let (mut file, head): (_, Head) = Opener::new(file, FORMAT).map_err(bad)?;
        let Head { settings, epoch, sharpness, order, vocabulary, .. } = head;
        settings.check().map_err(|_| bad(DAMAGED_HEAD))?;
        let shape = Shape::with(&settings.layers, settings.method.is_tight()).map_err(|_| bad(DAMAGED_HEAD))?;
        let width = settings.layers[0].width;
        let is_order = order.len() == width && order.iter().all(|latent| *latent < width);
        if !is_order || order.iter().collect::<HashSet<_>>().len() < width || vocabulary.is_empty() {
            return Err(bad(DAMAGED_HEAD));
        }
        room::is_there(&settings, &shape, vocabulary.len(), 0).map_err(|_| bad(DAMAGED_HEAD))?;
        let mut background = vec![0.0; vocabulary.len()];
        file.floats(&mut background).map_err(bad)?;
        // What these begin with is written over.
        let mut terms = TermWeights::new(settings.weights, settings.term_prior, width, &|_, _| 0.0, &background, 0.0);
        let mut rng = stream(0, 0, 0, 0);
        let mut between = Between::all(&shape, settings.weights, settings.activity, settings.gamma_shape, &mut rng);
        let mut network = Network::of(&settings, &shape, vocabulary.len());
        let of_network = network.iter_mut().flat_map(Network::weights_mut);
        for lanes in terms.arrays_mut().into_iter().chain(between.iter_mut().map(Between::means_mut)).chain(of_network)
        {
            file.lanes(lanes).map_err(bad)?;
        }
        file.finish().map_err(bad)?;
        terms.restore(sharpness);
        between.iter_mut().for_each(Between::settle);
        Ok(Self { settings, shape, terms, between, network, epoch, order, vocabulary })
    }

    /// The settings that it was trained with.
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
    pub fn between(&self) -> &[Between] {
        &self.between
    }

    /// What gives documents their parameters, where they have none of their own.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// The epochs that it was trained for; fewer than [`Settings::epochs`] where that was not the end.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The latents of the lowest layer in the order in which they are numbered as topics.
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
        let rates: Vec<f64> = (0..self.vocabulary.len()).map(|v| f64::from(self.terms.mean(v, latent))).collect();
        words(&rates, &self.vocabulary, len)
    }

    /// The share of a document's words that each latent of the lowest layer explains, where the latents are at these means; the
    /// background explains the rest. A word is shared out in proportion to what each adds to its rate. All are 0 for a document
    /// without words.
    ///
    /// # Panics
    /// There are not as many means as latents, or there is no such term.
    pub fn shares(&self, lowest: &[f32], (terms, counts): (&[u32], &[f32])) -> Vec<f64> {
        assert_eq!(lowest.len(), self.terms.width(), "a mean for each latent");
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

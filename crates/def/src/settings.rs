//! The settings of a training, and of fits to documents given the weights.

use crate::burst::WordCounts;
use crate::error::{Error, Result};
use crate::local::Method;
use crate::shape::{Family, Layer, Shape};
use crate::weights::{TermPrior, WeightPosterior};
use hyperprior_math::single::DRAWS;
use serde::{Deserialize, Serialize};

/// The relative step size if some latents are continuous: their gradients change with every draw of the others.
const CONTINUOUS: f32 = 0.4;
/// The largest number of hidden units.
const HIDDEN_MAX: usize = 4096;
/// The largest initial mean of the latents.
const ACTIVITY_MAX: f32 = 50.0;

/// The settings of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// The layers, the one next to the words first.
    pub layers: Vec<Layer>,
    /// The variational model of a document.
    pub method: Method,
    /// The number of hidden units of an inference network; without it each document has its own parameters.
    pub amortize: Option<usize>,
    /// The distribution of the counts of words.
    pub words: WordCounts,
    /// The approximate posterior of the weights.
    pub weights: WeightPosterior,
    /// The prior of the words' weights.
    pub term_prior: TermPrior,
    /// The share of all words explained by the background, the terms' frequencies in the corpus. It is fixed, not learnt.
    pub background: f32,
    /// The initial mean of the latents; Gaussian latents start at 0.
    pub activity: f32,
    /// The shape of the latents of gamma layers: below 1, most are near 0 and few are large.
    pub gamma_shape: f32,
    /// The seed: the same seed gives the same numbers on any number of threads.
    pub seed: u64,
    /// The number of passes over all documents.
    pub epochs: u32,
    /// Documents in a minibatch.
    pub batch: usize,
    /// Draws of a document's latents in a step: 1, 2, 4 or 8.
    pub draws: usize,
    /// Steps of a document's own parameters in each minibatch.
    pub local_steps: u32,
    /// The initial size of those steps; from half way on it decays along a half cosine.
    pub local_size: f32,
    /// The size of the steps of the weights between layers.
    #[serde(rename = "between_size")]
    pub layer_weights_size: f32,
}

hyperprior::setters!(Settings {
    layers: Vec<Layer>, method: Method, words: WordCounts, weights: WeightPosterior, term_prior: TermPrior, background: f32, activity: f32, gamma_shape: f32, seed: u64, epochs: u32, batch: usize, draws: usize, local_steps: u32, local_size: f32, layer_weights_size: f32;
    amortize?: usize
});

impl Default for Settings {
    fn default() -> Self {
        Self {
            layers: vec![Layer { family: Family::Poisson, width: 50 }],
            method: Method::default(),
            amortize: None,
            words: WordCounts::default(),
            weights: WeightPosterior::default(),
            term_prior: TermPrior::default(),
            background: 0.02,
            activity: 1.0,
            gamma_shape: 0.3,
            seed: 1,
            epochs: 60,
            batch: 256,
            draws: 4,
            local_steps: 5,
            local_size: 0.5,
            layer_weights_size: 0.02,
        }
    }
}

impl Settings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        Shape::new(&self.layers)?;
        let bad = |field, value: String, reason| Err(Error::BadSetting { field, value, reason });
        let positive = |x: f32| x > 0.0 && x.is_finite();
        for (field, x) in [
            ("term_prior.shape", self.term_prior.shape),
            ("term_prior.rate", self.term_prior.rate),
            ("background", self.background),
            ("activity", self.activity),
            ("gamma_shape", self.gamma_shape),
            ("local_size", self.local_size),
            ("layer_weights_size", self.layer_weights_size),
        ] {
            if !positive(x) {
                return bad(field, x.to_string(), "it must be a number above 0");
            }
        }
        if self.background >= 1.0 {
            return bad("background", self.background.to_string(), "it must be above 0 and below 1");
        }
        if self.activity > ACTIVITY_MAX {
            return bad("activity", self.activity.to_string(), "latents can start from a mean of at most 50");
        }
        if self.batch == 0 {
            return bad("batch", self.batch.to_string(), "a minibatch has at least one document");
        }
        if !(1..=DRAWS).contains(&self.draws) || !self.draws.is_power_of_two() {
            return bad("draws", self.draws.to_string(), "use 1, 2, 4 or 8 draws");
        }
        if let Some(units) = self.amortize.filter(|units| !(1..=HIDDEN_MAX).contains(units)) {
            return bad("amortize", units.to_string(), "a network has from 1 to 4096 hidden units");
        }
        if self.local_steps == 0 {
            return bad(
                "local_steps",
                self.local_steps.to_string(),
                "a document takes at least one step in a minibatch",
            );
        }
        Ok(())
    }

    /// The initial size of the documents' steps.
    pub(crate) fn size(&self, shape: &Shape) -> f32 {
        self.local_size * if shape.is_continuous() { CONTINUOUS } else { 1.0 }
    }
}

/// The settings of a fit to a document given the weights, the same for every method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FitSettings {
    /// The number of steps; from half way on their size decays along a half cosine.
    pub steps: u32,
    /// Their initial size.
    pub size: f32,
    /// Draws in a step: 1, 2, 4 or 8.
    pub draws: usize,
}

hyperprior::setters!(FitSettings {
    steps: u32, size: f32, draws: usize;
});

impl FitSettings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad = |field, value: String, reason| Err(Error::BadSetting { field, value, reason });
        if !(self.size > 0.0 && self.size.is_finite()) {
            return bad("size", self.size.to_string(), "it must be a number above 0");
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

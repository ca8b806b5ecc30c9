//! What decides how a training goes.

use crate::error::{Error, Result};
use crate::local::Method;
use crate::shape::{Family, Layer, Shape};
use crate::weights::{Belief, TermPrior};
use hyperprior_math::single::DRAWS;
use serde::{Deserialize, Serialize};

/// Steps where some latents are continuous, beside others: their gradients change with every draw of the rest.
const CONTINUOUS: f32 = 0.4;
/// The most hidden units.
const HIDDEN_MAX: usize = 4096;
/// The largest mean that latents start from.
const ACTIVITY_MAX: f32 = 50.0;

/// Everything that decides how a training goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The layers, the one next to the words first.
    pub layers: Vec<Layer>,
    /// The variational model of a document.
    pub method: Method,
    /// The hidden units of a network that gives documents their parameters; without it each document has its own.
    pub amortize: Option<usize>,
    /// What is believed of the weights.
    pub weights: Belief,
    /// The prior of the words' weights.
    pub term_prior: TermPrior,
    /// The share of all words that a background of every term's share in the corpus explains. It is given, not learnt.
    pub background: f32,
    /// The mean that latents start from; Gaussian ones start from 0.
    pub activity: f32,
    /// The shape of the latents of gamma layers: below 1, most are near 0 and few are large.
    pub gamma_shape: f32,
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// How often every document is visited.
    pub epochs: u32,
    /// Documents in a minibatch.
    pub batch: usize,
    /// Draws of a document's latents in a step: 1, 2, 4 or 8.
    pub draws: usize,
    /// Steps of a document's own parameters at a visit.
    pub local_steps: u32,
    /// The size of those steps at the beginning; from half way on it falls along a half cosine.
    pub local_size: f32,
    /// The size of steps of the weights between layers.
    pub between_size: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            layers: vec![Layer { family: Family::Poisson, width: 50 }],
            method: Method::default(),
            amortize: None,
            weights: Belief::default(),
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
            between_size: 0.02,
        }
    }
}

impl Settings {
    /// Whether every field has a meaning.
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
            ("between_size", self.between_size),
        ] {
            if !positive(x) {
                return bad(field, x.to_string(), "it is a number above 0");
            }
        }
        if self.background >= 1.0 {
            return bad("background", self.background.to_string(), "it is a share, above 0 and below 1");
        }
        if self.activity > ACTIVITY_MAX {
            return bad("activity", self.activity.to_string(), "a mean of at most 50 is where latents can start");
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
            return bad("local_steps", self.local_steps.to_string(), "a document takes at least one step at a visit");
        }
        Ok(())
    }

    /// The size of documents' steps at the beginning.
    pub(crate) fn size(&self, shape: &Shape) -> f32 {
        self.local_size * if shape.is_continuous() { CONTINUOUS } else { 1.0 }
    }
}

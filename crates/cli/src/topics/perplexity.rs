//! How well the words of documents that were set aside are foretold.

use super::batches::{HASTY, first};
use crate::error::CliError;
use hyperprior_def::heldout::{FitSettings, Heldout, Holdout, Measured, Predictor, unigram};
use hyperprior_def::{Corpus, Training};

/// The perplexity of hidden words.
#[derive(Clone, Copy, Debug)]
pub struct Perplexity {
    /// How many documents it is of.
    pub documents: usize,
    /// Of hidden word types, and of hidden words; each with what the shares of all words come to.
    pub types: (Heldout, f64),
    pub words: (Heldout, f64),
}

impl Perplexity {
    /// Of the first documents that were set aside, as far as they were measured. None where nothing could be hidden.
    pub fn new(
        training: &Training,
        train: &Corpus,
        measured: &Corpus,
        [types, words]: [Measured; 2],
    ) -> Result<Option<Self>, CliError> {
        let beside = |found: Measured, hide| -> Result<(Heldout, f64), CliError> {
            Ok((found.heldout(), unigram(train, measured, hide, training.settings().seed)?))
        };
        let foretold = Self {
            documents: measured.documents_len(),
            types: beside(types, Holdout::Types)?,
            words: beside(words, Holdout::Tokens)?,
        };
        Ok((foretold.types.0.hidden > 0.0 && foretold.words.0.hidden > 0.0).then_some(foretold))
    }
}

/// A measurement that takes no longer than an epoch, for the person who watches.
pub struct Glance {
    corpus: Corpus,
}

/// Shorter than a real one: it is to be seen whether the number falls.
const QUICK: FitSettings = FitSettings { steps: 50, size: 0.2, draws: 1 };

impl Glance {
    /// Of as many documents as take an epoch's time.
    pub fn new(training: &Training, train: &Corpus, test: &Corpus) -> Self {
        let settings = training.settings();
        let steps = train.documents_len() * settings.local_steps as usize * settings.draws;
        let documents = (steps / (QUICK.steps as usize * QUICK.draws)).clamp(1, HASTY);
        Self { corpus: first(test, documents) }
    }

    /// About the perplexity of hidden word types.
    pub fn perplexity(&self, training: &Training) -> Result<f64, CliError> {
        Ok(Predictor::new(training, QUICK)?.heldout(&self.corpus, Holdout::Types)?.perplexity)
    }
}

//! Perplexity of hidden words in held-out documents.

use super::batches::{QUICK_MAX, first};
use crate::error::CliError;
use hyperprior_def::heldout::{FitSettings, Heldout, Holdout, Measured, Predictor, unigram};
use hyperprior_def::{Corpus, Training};

/// The perplexity of hidden words.
#[derive(Clone, Copy, Debug)]
pub struct Perplexity {
    /// The number of documents.
    pub documents: usize,
    /// For hidden word types, and for hidden words; each with the perplexity of a unigram model.
    pub types: (Heldout, f64),
    pub words: (Heldout, f64),
}

impl Perplexity {
    /// For the held-out documents that were evaluated. `None` if no words could be hidden.
    pub fn new(
        training: &Training,
        train: &Corpus,
        measured: &Corpus,
        [types, words]: [Measured; 2],
    ) -> Result<Option<Self>, CliError> {
        let with_unigram = |found: Measured, hidden| -> Result<(Heldout, f64), CliError> {
            Ok((found.heldout(), unigram(train, measured, hidden, training.settings().seed)?))
        };
        let perplexity = Self {
            documents: measured.documents_len(),
            types: with_unigram(types, Holdout::Types)?,
            words: with_unigram(words, Holdout::Tokens)?,
        };
        Ok((perplexity.types.0.hidden > 0.0 && perplexity.words.0.hidden > 0.0).then_some(perplexity))
    }
}

/// A quick evaluation for the progress bar that takes no longer than an epoch.
pub struct Glance {
    corpus: Corpus,
}

/// Fewer steps than a full evaluation, but enough to see whether the perplexity falls.
fn quick() -> FitSettings {
    FitSettings::default().steps(50).size(0.2).draws(1)
}

impl Glance {
    /// With as many documents as take the time of an epoch.
    pub fn new(training: &Training, train: &Corpus, test: &Corpus) -> Self {
        let settings = training.settings();
        let steps = train.documents_len() * settings.local_steps as usize * settings.draws;
        let documents = (steps / (quick().steps as usize * quick().draws)).clamp(1, QUICK_MAX);
        Self { corpus: first(test, documents) }
    }

    /// The approximate perplexity of hidden word types.
    pub fn perplexity(&self, training: &Training) -> Result<f64, CliError> {
        Ok(Predictor::new(training, quick())?.heldout(&self.corpus, Holdout::Types)?.perplexity)
    }
}

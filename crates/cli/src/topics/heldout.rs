//! Evaluation on held-out documents, in batches so that it can be watched and stopped.

use super::batches::{QUICK_MAX, first, in_batches};
use super::perplexity::Perplexity;
use super::watch::Watch;
use crate::error::CliError;
use crate::progress::StopFlag;
use hyperprior_def::heldout::{FitSettings, Holdout, Measured, Predictor};
use hyperprior_def::{Corpus, Training};

/// The results for the held-out documents that were evaluated.
#[derive(Default)]
pub struct HeldOut {
    /// The perplexity of their hidden words.
    pub perplexity: Option<Perplexity>,
    /// E z of the bottom layer in each of them, given all words.
    pub activity: Vec<Vec<f32>>,
}

impl HeldOut {
    /// Evaluates the current model on all of `test`, or on the documents done when a signal arrives. After an earlier signal, on at
    /// most [`QUICK_MAX`].
    pub fn new(
        training: &Training,
        (train, test): (&Corpus, &Corpus),
        stop: &StopFlag,
        watch: &Watch,
    ) -> Result<Self, CliError> {
        let is_quick = stop.is_raised();
        let len = if is_quick { test.documents_len().min(QUICK_MAX) } else { test.documents_len() };
        if len == 0 {
            return Ok(Self::default());
        }
        let predictor = Predictor::new(training, FitSettings::default())?;
        let [mut types, mut words] = [Measured::default(), Measured::default()];
        let mut activity = Vec::new();
        watch.documents("held-out documents", len);
        for batch in in_batches(len) {
            predictor.measure(test, Holdout::Types, batch.clone(), &mut types)?;
            predictor.measure(test, Holdout::Tokens, batch.clone(), &mut words)?;
            activity.extend(
                predictor.infer(test, batch.clone()).into_iter().map(|mut found| found.activations.swap_remove(0)),
            );
            watch.done(batch.end);
            if stop.is_raised() && !is_quick {
                break;
            }
        }
        let measured = first(test, activity.len());
        Ok(Self { perplexity: Perplexity::new(training, train, &measured, [types, words])?, activity })
    }
}

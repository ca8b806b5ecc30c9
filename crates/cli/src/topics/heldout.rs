//! What a training makes of the documents that were set aside, a few at a time, so that it can be watched and stopped.

use super::batches::{HASTY, first, in_parts};
use super::perplexity::Perplexity;
use super::watch::Watch;
use crate::error::CliError;
use crate::progress::StopFlag;
use hyperprior_def::heldout::{FitSettings, Holdout, Measured, Predictor};
use hyperprior_def::{Corpus, Training};

/// Of the documents that were set aside, the first so many.
#[derive(Default)]
pub struct HeldOut {
    /// How well their hidden words are foretold.
    pub foretold: Option<Perplexity>,
    /// E z of the lowest layer in each of them, every word seen.
    pub activity: Vec<Vec<f32>>,
}

impl HeldOut {
    /// By a training as it stands: of all of `test`, or of those that were measured when someone asked to stop. Where that was asked
    /// before, of at most [`HASTY`].
    pub fn new(
        training: &Training,
        (train, test): (&Corpus, &Corpus),
        stop: &StopFlag,
        watch: &Watch,
    ) -> Result<Self, CliError> {
        let in_haste = stop.is_raised();
        let len = if in_haste { test.documents_len().min(HASTY) } else { test.documents_len() };
        if len == 0 {
            return Ok(Self::default());
        }
        let predictor = Predictor::new(training, FitSettings::default())?;
        let [mut types, mut words] = [Measured::default(); 2];
        let mut activity = Vec::new();
        watch.documents("documents set aside", len);
        for few in in_parts(len) {
            predictor.measure(test, Holdout::Types, few.clone(), &mut types)?;
            predictor.measure(test, Holdout::Tokens, few.clone(), &mut words)?;
            activity.extend(
                predictor.infer(test, few.clone()).into_iter().map(|mut found| found.activations.swap_remove(0)),
            );
            watch.done(few.end);
            if stop.is_raised() && !in_haste {
                break;
            }
        }
        let measured = first(test, activity.len());
        Ok(Self { foretold: Perplexity::new(training, train, &measured, [types, words])?, activity })
    }
}

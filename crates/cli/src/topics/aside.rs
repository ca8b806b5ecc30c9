//! What a training makes of the documents that were set aside, a few at a time, so that it can be watched and stopped.

use super::foretold::Foretold;
use super::watch::Watch;
use crate::error::CliError;
use crate::progress::StopFlag;
use hyperprior_def::heldout::{FitSettings, Hide, Measured, Predictor};
use hyperprior_def::{Corpus, Training};
use std::ops::Range;

/// Of the documents that were set aside, the first so many.
#[derive(Default)]
pub struct Aside {
    /// How well their hidden words are foretold.
    pub foretold: Option<Foretold>,
    /// E z of the lowest layer in each of them, every word seen.
    pub activity: Vec<Vec<f32>>,
}

/// Documents that are measured where someone waits for the end.
pub const HASTY: usize = 200;

impl Aside {
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
            predictor.measure(test, Hide::Types, few.clone(), &mut types)?;
            predictor.measure(test, Hide::Tokens, few.clone(), &mut words)?;
            activity.extend(
                predictor.infer(test, few.clone()).into_iter().map(|mut found| found.activations.swap_remove(0)),
            );
            watch.done(few.end);
            if stop.is_raised() && !in_haste {
                break;
            }
        }
        let measured = first(test, activity.len());
        Ok(Self { foretold: Foretold::new(training, train, &measured, [types, words])?, activity })
    }
}

/// Documents a few at a time: enough for every thread, and soon done.
pub fn in_parts(len: usize) -> impl Iterator<Item = Range<usize>> {
    let part = 8 * rayon::current_num_threads().max(1);
    (0..len).step_by(part).map(move |start| start..len.min(start + part))
}

/// The first documents of a corpus.
pub fn first(corpus: &Corpus, documents: usize) -> Corpus {
    corpus.subset(&(0..corpus.documents_len().min(documents)).collect::<Vec<_>>())
}

//! Trains a cell, or resumes its training, and evaluates it on the held-out documents.

use super::numbers::{Each, Numbers, Point};
use super::plan::{Cell, spread};
use super::settings::{BOUND_ROUNDS, CURVE_DOCUMENTS, Choice};
use super::store::Store;
use super::watch::{Watch, Work};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::topics::in_batches;
use hyperprior_def::heldout::{Holdout, Measured, Predictor, unigram};
use hyperprior_def::{Corpus, Family, Trained, Training};
use std::time::{Duration, Instant};

/// The time between checkpoints.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// The documents of a seed, and the store for results.
pub struct Bench<'a> {
    pub choice: Choice,
    pub work: Work,
    /// The training documents, the number of held-out documents, and those to evaluate.
    pub train: &'a Corpus,
    pub heldout_len: usize,
    pub test: &'a Corpus,
    pub store: &'a Store,
    pub stop: &'a StopFlag,
}

impl Bench<'_> {
    /// The numbers of a cell; `None` after a signal, with a checkpoint to resume from.
    pub fn cell(&self, cell: &Cell, watch: &mut Watch) -> Result<Option<Numbers>, CliError> {
        let settings = cell.settings(self.choice.train());
        let saved = self.store.training(cell, self.train, &settings).unwrap_or_else(|reason| {
            watch.say(&format!("Note: {} starts over: {reason}", cell.describe()));
            None
        });
        let (mut training, mut seconds) = match saved {
            Some(saved) => saved,
            None => (Training::new(self.train, &settings)?, 0.0),
        };
        watch.skip(f64::from(training.epoch()) * self.work.epoch(cell));
        self.run_epochs(cell, &mut training, &mut seconds, watch)?;
        let found = match training.epoch() < settings.epochs {
            true => None,
            false => self.measure(cell, &training, seconds, watch)?,
        };
        match &found {
            None => self.save(cell, &training, seconds, watch),
            // For a curve, requested now or later.
            Some(_) if cell.layers.0.len() == 1 => self.store.save_model(cell, &training)?,
            Some(_) => {}
        }
        Ok(found)
    }

    /// Runs epochs until the last one or a signal.
    fn run_epochs(
        &self,
        cell: &Cell,
        training: &mut Training,
        seconds: &mut f64,
        watch: &mut Watch,
    ) -> Result<(), CliError> {
        let epochs = training.settings().epochs;
        let mut saved = Instant::now();
        while training.epoch() < epochs && !self.stop.is_raised() {
            let began = Instant::now();
            training.choose(&mut |_| !self.stop.is_raised())?;
            if training.is_due() {
                break;
            }
            let epoch = training.run_epoch()?.number;
            *seconds += began.elapsed().as_secs_f64();
            watch.advance(self.work.epoch(cell), &format!("epoch {epoch}/{epochs}"));
            if saved.elapsed() > SAVE_EVERY {
                self.save(cell, training, *seconds, watch);
                saved = Instant::now();
            }
        }
        Ok(())
    }

    /// Saves a checkpoint. A full disk does not end the training: there may be space later.
    fn save(&self, cell: &Cell, training: &Training, seconds: f64, watch: &Watch) {
        if training.epoch() > 0
            && let Err(error) = self.store.save_training(cell, training, seconds)
        {
            watch.say(&format!("Warning: the checkpoint of {} could not be saved: {error}", cell.describe()));
        }
    }

    fn measure(
        &self,
        cell: &Cell,
        training: &Training,
        training_seconds: f64,
        watch: &mut Watch,
    ) -> Result<Option<Numbers>, CliError> {
        let began = Instant::now();
        let predictor = Predictor::new(training, self.choice.fit())?;
        let [mut types, mut words] = [Measured::default(), Measured::default()];
        let (mut whole, mut annealed) = (0.0, Vec::new());
        let len = self.test.documents_len();
        for batch in in_batches(len) {
            if self.stop.is_raised() {
                return Ok(None);
            }
            predictor.measure(self.test, Holdout::Types, batch.clone(), &mut types)?;
            predictor.measure(self.test, Holdout::Tokens, batch.clone(), &mut words)?;
            // Added one by one, so that the sum does not depend on the batches.
            let fits = predictor.infer(self.test, batch.clone());
            fits.iter().for_each(|found| whole += found.bound);
            if self.choice.temperatures > 0 && matches!(cell.family, Family::Poisson | Family::Bernoulli) {
                annealed.extend(predictor.annealed(self.test, batch.clone(), &fits, self.choice.temperatures)?);
            }
            watch.advance(batch.len() as f64 * self.work.document(cell), &format!("document {}/{len}", batch.end));
        }
        let words_of = |d: usize| self.test.document(d).1.iter().map(|x| f64::from(*x)).sum::<f64>();
        let each = Each {
            types: types.documents().map(|(types, _)| types).collect(),
            hidden: types.documents().map(|(_, hidden)| hidden).collect(),
            words: (0..annealed.len()).map(words_of).collect(),
            annealed,
        };
        let [types, words] = [types, words].map(|measured| measured.heldout());
        if !(types.hidden > 0.0 && words.hidden > 0.0) {
            return Err(CliError::Usage(
                "no held-out document has enough words to hide some of them; use longer documents".to_owned(),
            ));
        }
        if self.stop.is_raised() {
            return Ok(None);
        }
        let elbo = training.bound(BOUND_ROUNDS) / self.train.tokens_len() as f64;
        watch.advance(self.work.bound(cell), "bound");
        let unigram = |hidden| unigram(self.train, self.test, hidden, cell.seed);
        Ok(Some(Numbers {
            cell: cell.clone(),
            documents: self.train.documents_len(),
            heldout_documents: self.heldout_len,
            measured_documents: len,
            elbo,
            elbo_heldout: whole / self.test.tokens_len() as f64,
            elbo_visible: types.elbo_per_word,
            heldout_perplexity: types.perplexity,
            heldout_perplexity_averaged: types.perplexity_averaged,
            unigram_perplexity: unigram(Holdout::Types)?,
            completion_perplexity: words.perplexity,
            completion_perplexity_averaged: words.perplexity_averaged,
            completion_unigram_perplexity: unigram(Holdout::Tokens)?,
            chosen: training.choice().map(|choice| choice.method),
            annealed: each.annealed.iter().sum::<f64>() / each.words.iter().sum::<f64>(),
            each,
            training_seconds,
            evaluation_seconds: began.elapsed().as_secs_f64(),
        }))
    }

    /// A point of a cell's curve; `None` after a signal.
    pub fn point(
        &self,
        cell: &Cell,
        trained: &Trained,
        steps: u32,
        watch: &mut Watch,
    ) -> Result<Option<Point>, CliError> {
        let began = Instant::now();
        let test = spread(self.test, CURVE_DOCUMENTS);
        let predictor = Predictor::of_trained(trained, self.choice.fit_for(steps), cell.seed)?;
        let mut types = Measured::default();
        for batch in in_batches(test.documents_len()) {
            if self.stop.is_raised() {
                return Ok(None);
            }
            predictor.measure(&test, Holdout::Types, batch.clone(), &mut types)?;
            watch.advance(batch.len() as f64 * self.work.half(cell, steps), &format!("document {}", batch.end));
        }
        let types = types.heldout();
        Ok(Some(Point {
            cell: cell.clone(),
            steps,
            documents: test.documents_len(),
            heldout_perplexity: types.perplexity,
            heldout_perplexity_averaged: types.perplexity_averaged,
            elbo_visible: types.elbo_per_word,
            seconds: began.elapsed().as_secs_f64(),
        }))
    }
}

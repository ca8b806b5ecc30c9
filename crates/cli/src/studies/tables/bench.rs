//! One cell after another: trained, or gone on with, and measured on the documents that were set aside.

use super::numbers::{Numbers, Point};
use super::plan::{Cell, spread};
use super::settings::{BOUND_ROUNDS, CURVE_DOCUMENTS, Choice};
use super::store::Store;
use super::watch::{Watch, Work};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::topics::in_parts;
use hyperprior_def::heldout::{Holdout, Measured, Predictor, unigram};
use hyperprior_def::{Corpus, Trained, Training};
use std::time::{Duration, Instant};

/// How long work may be lost when the process is killed.
const SAVED_EVERY: Duration = Duration::from_secs(60);

/// The documents of a seed, and where what comes of them goes.
pub struct Bench<'a> {
    pub choice: Choice,
    pub work: Work,
    /// The documents to train on, how many were set aside, and those of them that are measured.
    pub train: &'a Corpus,
    pub heldout_len: usize,
    pub test: &'a Corpus,
    pub store: &'a Store,
    pub stop: &'a StopFlag,
}

impl Bench<'_> {
    /// The numbers of a cell; nothing where someone asked to stop, and then it can be gone on with.
    pub fn cell(&self, cell: &Cell, watch: &mut Watch) -> Result<Option<Numbers>, CliError> {
        let settings = cell.settings(self.choice.train());
        let kept = self.store.training(cell, self.train, &settings).unwrap_or_else(|reason| {
            watch.say(&format!("Warning: {} starts anew: {reason}", cell.describe()));
            None
        });
        let (mut training, mut seconds) = match kept {
            Some(kept) => kept,
            None => (Training::new(self.train, &settings)?, 0.0),
        };
        watch.skip(f64::from(training.epoch()) * self.work.epoch(cell));
        self.climb(cell, &mut training, &mut seconds, watch);
        let found = match training.epoch() < settings.epochs {
            true => None,
            false => self.measure(cell, &training, seconds, watch)?,
        };
        match &found {
            None => self.save(cell, &training, seconds, watch),
            // For a curve, be it asked for now or later.
            Some(_) if cell.layers.0.len() == 1 => self.store.keep_model(cell, &training)?,
            Some(_) => {}
        }
        Ok(found)
    }

    /// Epoch after epoch, until the last or until someone asks to stop.
    fn climb(&self, cell: &Cell, training: &mut Training, seconds: &mut f64, watch: &mut Watch) {
        let epochs = training.settings().epochs;
        let mut saved = Instant::now();
        while training.epoch() < epochs && !self.stop.is_raised() {
            let began = Instant::now();
            let epoch = training.run_epoch().number;
            *seconds += began.elapsed().as_secs_f64();
            watch.advance(self.work.epoch(cell), &format!("epoch {epoch}/{epochs}"));
            if saved.elapsed() > SAVED_EVERY {
                self.save(cell, training, *seconds, watch);
                saved = Instant::now();
            }
        }
    }

    /// A disk that is full is no reason to end a training: there may be room later.
    fn save(&self, cell: &Cell, training: &Training, seconds: f64, watch: &Watch) {
        if training.epoch() > 0
            && let Err(error) = self.store.keep_training(cell, training, seconds)
        {
            watch.say(&format!("Warning: the training of {} could not be saved: {error}", cell.describe()));
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
        let [mut types, mut words] = [Measured::default(); 2];
        let mut whole = 0.0;
        let len = self.test.documents_len();
        for few in in_parts(len) {
            if self.stop.is_raised() {
                return Ok(None);
            }
            predictor.measure(self.test, Holdout::Types, few.clone(), &mut types)?;
            predictor.measure(self.test, Holdout::Tokens, few.clone(), &mut words)?;
            // One by one: the sum is the same in whatever parts they come.
            predictor.infer(self.test, few.clone()).iter().for_each(|found| whole += found.bound);
            watch.advance(few.len() as f64 * self.work.document(cell), &format!("document {}/{len}", few.end));
        }
        let [types, words] = [types, words].map(|measured| measured.heldout());
        if !(types.hidden > 0.0 && words.hidden > 0.0) {
            return Err(CliError::Usage(
                "no document that was set aside has words enough to hide some of them; give longer documents"
                    .to_owned(),
            ));
        }
        if self.stop.is_raised() {
            return Ok(None);
        }
        let elbo = training.bound(BOUND_ROUNDS) / self.train.tokens_len() as f64;
        watch.advance(self.work.bound(cell), "bound");
        let unigram = |hide| unigram(self.train, self.test, hide, cell.seed);
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
            training_seconds,
            evaluation_seconds: began.elapsed().as_secs_f64(),
        }))
    }

    /// A point of a cell's curve; nothing where someone asked to stop.
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
        for few in in_parts(test.documents_len()) {
            if self.stop.is_raised() {
                return Ok(None);
            }
            predictor.measure(&test, Holdout::Types, few.clone(), &mut types)?;
            watch.advance(few.len() as f64 * self.work.half(cell, steps), &format!("document {}", few.end));
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

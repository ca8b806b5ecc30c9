//! What an inference may cost, what it has cost, and how its fits go.

use super::run::InferSettings;
use super::settle::FLAT;
use crate::error::Result;
use crate::fit::{Ending, Fit, FitSettings, Fitted, Observer, Progress, StartSettings, fit_from};
use crate::gradient::GradientSettings;
use crate::journal::{self, Begun, Journal};
use crate::model::Model;
use crate::prior::Start;
use crate::variational::Variational;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Passes everything on, and says when the time is over.
pub(super) struct Timed<'a> {
    observer: &'a mut dyn Observer,
    end: Option<Instant>,
}

impl<'a> Timed<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, settings: &InferSettings) -> Self {
        // Steps that are counted need no clock: the same run twice is to end at the same one.
        let budget = settings.budget.filter(|_| settings.within.is_none());
        let end = budget.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self { observer, end: end.and_then(|budget| Instant::now().checked_add(budget)) }
    }
}

impl Observer for Timed<'_> {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.observer.observe(progress)
    }

    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.observer.advance(work, done, of)
    }

    fn is_spent(&mut self) -> bool {
        self.observer.is_spent() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        self.observer.journal()
    }
}

/// What an inference that its budget ended had done by then, so that it can end there again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The steps of each fit, one after the other.
    pub steps: Vec<u64>,
    /// How many of them were done, or under way, when the budget was spent.
    pub spent_at: usize,
}

/// The steps of all fits of an inference.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    taken: Vec<u64>,
    /// How many fits there were when the budget was spent, if it is.
    spent_at: Option<usize>,
    /// What is to be done again.
    within: Option<Within>,
    /// Whether someone asked to stop.
    pub(super) is_stopped: bool,
}

impl Course {
    pub(super) fn new(settings: &InferSettings) -> Self {
        Self { within: settings.within.clone(), ..Self::default() }
    }

    /// Whether there is nothing left to spend.
    pub(super) fn is_spent(&self) -> bool {
        self.spent_at.is_some()
    }

    /// What was done, where the budget ended it.
    pub(super) fn within(&self) -> Option<Within> {
        self.spent_at.map(|spent_at| Within { steps: self.taken.clone(), spent_at })
    }

    /// Steps of all fits.
    pub(super) fn used(&self) -> u64 {
        self.taken.iter().sum()
    }

    /// How many steps the next fit may take, which wants so many.
    fn steps(&self, wanted: u64) -> u64 {
        let again = self.within.as_ref().and_then(|within| within.steps.get(self.taken.len()));
        again.map_or(wanted, |steps| wanted.min(*steps))
    }

    /// Takes note of a fit; one that failed will fail again, given the steps that it wanted.
    fn took(&mut self, fitted: &Result<Fitted>, wanted: u64) {
        self.taken.push(fitted.as_ref().map_or(wanted, |fitted| fitted.steps));
        let is_spent = match &self.within {
            Some(within) => self.taken.len() >= within.spent_at,
            None => fitted.as_ref().is_ok_and(|fitted| fitted.is_spent),
        };
        if is_spent {
            self.spent_at.get_or_insert(self.taken.len());
        }
        self.is_stopped |= fitted.as_ref().is_ok_and(|fitted| fitted.stopped);
    }
}

/// An inference under way.
pub(super) struct Work<'a> {
    pub(super) settings: &'a InferSettings,
    pub(super) course: Course,
    pub(super) observer: &'a mut dyn Observer,
}

/// How long a fit is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    /// So many steps.
    Fixed(u64),
    /// Until it ends by itself, and at most so many steps.
    ByItself { most: u64, is_patient: bool },
}

/// The share of the accuracy that a fit may leave; the family of the approximation has the rest.
const SHARE: f64 = 0.2;

impl Work<'_> {
    /// Whether work that could be left out is to be. A run that is gone on with comes to the same answer.
    pub(super) fn is_over(&mut self) -> Result<bool> {
        if self.settings.budget.is_some() && self.settings.within.is_none() && !self.course.is_spent() {
            let is_spent = match journal::begin(self.observer)? {
                Begun::Finished(is_spent) => is_spent,
                _ => {
                    let is_spent = self.observer.is_spent();
                    journal::finish(self.observer, || is_spent)?;
                    is_spent
                }
            };
            if is_spent {
                self.course.spent_at = Some(self.course.taken.len());
            }
        } else if self.settings.within.is_none() && self.observer.is_spent() {
            self.course.spent_at.get_or_insert(self.course.taken.len());
        }
        Ok(self.course.is_spent())
    }

    /// How fits go; steps that were asked for are taken, whatever the length.
    fn fit_settings(&self, seed: u64, length: Length) -> FitSettings {
        let (most, ending) = match (self.settings.steps, length) {
            (Some(steps), _) | (None, Length::Fixed(steps)) => (steps, None),
            (None, Length::ByItself { most, is_patient }) => {
                (most, Some(Ending { accuracy: SHARE * self.settings.accuracy, is_patient }))
            }
        };
        FitSettings { seed, steps: self.course.steps(most).max(1), flat: FLAT, ending, ..FitSettings::default() }
    }

    /// Fits an approximation of continuous latents from a start.
    pub(super) fn fit(
        &mut self,
        model: &dyn Model,
        q: &Variational,
        start: &Start,
        seed: u64,
        length: Length,
    ) -> Result<Fitted> {
        let draws = if q.prior().components_len() > 1 { 16 } else { 32 };
        let settings = FitSettings {
            step_size: self.settings.step_size.unwrap_or(0.03),
            gradient: GradientSettings { draws, replicates: 1, ..GradientSettings::default() },
            start: StartSettings::single(),
            ..self.fit_settings(seed, length)
        };
        let mut fit = Fit::init(model, q, &settings, start)?;
        let fitted = fit.run(self.observer).map(|flow| fit.finish(flow.is_break()));
        self.course.took(&fitted, settings.steps);
        fitted
    }

    /// Fits an approximation of latents of which some are discrete, from the best of some starts.
    pub(super) fn fit_mixed(
        &mut self,
        model: &dyn Model,
        q: &Variational,
        starts: &[Start],
        seed: u64,
        length: Length,
    ) -> Result<Fitted> {
        let draws = if self.is_heavy(model) { 8 } else { 16 };
        let usual = FitSettings::default();
        let settings = FitSettings {
            step_size: self.settings.step_size.unwrap_or(usual.step_size),
            gradient: GradientSettings { draws, importance: self.settings.importance, ..usual.gradient },
            start: StartSettings { tries: starts.len(), steps: 200, ..usual.start },
            ..self.fit_settings(seed, length)
        };
        let fitted = fit_from(model, q, &settings, starts, self.observer);
        self.course.took(&fitted, settings.steps);
        fitted
    }

    /// Models that cost more than others get fewer draws a step, and nothing twice.
    pub(super) fn is_heavy(&self, model: &dyn Model) -> bool {
        model.work() > HEAVY
    }
}

const HEAVY: usize = 50_000;

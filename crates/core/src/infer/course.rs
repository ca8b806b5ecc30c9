//! What an inference may cost, what it has cost, and how its fits go.

use super::run::InferSettings;
use super::settle::FLAT;
use crate::error::Result;
use crate::fit::{Ending, Fit, FitSettings, Fitted, Observer, Progress, StartSettings, fit_from};
use crate::gradient::GradientSettings;
use crate::journal::Journal;
use crate::model::Model;
use crate::prior::Start;
use crate::variational::Variational;
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

/// The steps of all fits of an inference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Steps that were taken.
    pub(super) used: u64,
    /// The most that may be.
    within: Option<u64>,
    /// Whether there are no more.
    pub(super) is_spent: bool,
}

impl Course {
    pub(super) fn new(settings: &InferSettings) -> Self {
        Self { used: 0, within: settings.within, is_spent: false }
    }

    /// How many steps a fit may take that wants so many; one at least.
    pub(super) fn steps(&self, wanted: u64) -> u64 {
        self.within.map_or(wanted, |within| wanted.min(within.saturating_sub(self.used)).max(1))
    }

    pub(super) fn took(&mut self, fitted: &Fitted) {
        self.used += fitted.steps;
        self.is_spent |= fitted.is_spent || self.within.is_some_and(|within| self.used >= within);
    }

    /// Whether work that could be left out is to be.
    pub(super) fn is_over(&mut self, observer: &mut dyn Observer) -> bool {
        // Where steps are counted, what was left out once is left out again.
        self.is_spent |= self.within.is_none() && observer.is_spent();
        self.is_spent
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
    /// Whether work that could be left out is to be.
    pub(super) fn is_over(&mut self) -> bool {
        self.course.is_over(self.observer)
    }

    /// How fits go; steps that were asked for are taken, whatever the length.
    fn fit_settings(&self, seed: u64, length: Length) -> FitSettings {
        let (most, ending) = match (self.settings.steps, length) {
            (Some(steps), _) | (None, Length::Fixed(steps)) => (steps, None),
            (None, Length::ByItself { most, is_patient }) => {
                (most, Some(Ending { accuracy: SHARE * self.settings.accuracy, is_patient }))
            }
        };
        FitSettings { seed, steps: self.course.steps(most), flat: FLAT, ending, ..FitSettings::default() }
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
        let stopped = fit.run(self.observer)?.is_break();
        let fitted = fit.finish(stopped);
        self.course.took(&fitted);
        Ok(fitted)
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
        let fitted = fit_from(model, q, &settings, starts, self.observer)?;
        self.course.took(&fitted);
        Ok(fitted)
    }

    /// Models that cost more than others get fewer draws a step, and nothing twice.
    pub(super) fn is_heavy(&self, model: &dyn Model) -> bool {
        model.work() > HEAVY
    }
}

const HEAVY: usize = 50_000;

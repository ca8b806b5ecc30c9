//! The time budget of a run, the steps it has taken, and the settings of its fits.

use super::settings::{BudgetRecord, Correction, InferSettings};
use crate::checkpoint::Stage;
use crate::diagnostics::convergence::FLAT;
use crate::error::Result;
use crate::fit::{Fit, FitSettings, Fitted, StartSettings, StoppingRule, fit_from};
use crate::gradient::GradientSettings;
use crate::model::Model;
use crate::prior::Start;
use crate::session::Session;
use crate::variational::Variational;
use std::time::{Duration, Instant};

/// The steps of all fits of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct BudgetLedger {
    taken: Vec<u64>,
    /// How many fits there were when the budget was spent, if it has been.
    spent_at: Option<usize>,
    /// The record of an earlier run to reproduce.
    record: Option<BudgetRecord>,
    /// Whether the run was asked to stop.
    pub(super) is_stopped: bool,
}

impl BudgetLedger {
    pub(super) fn new(settings: &InferSettings) -> Self {
        Self { record: settings.budget_record.clone(), ..Self::default() }
    }

    /// Whether the budget is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.spent_at.is_some()
    }

    /// How far the fits got, if the budget is spent.
    pub(super) fn record(&self) -> Option<BudgetRecord> {
        self.spent_at.map(|spent_at| BudgetRecord { steps: self.taken.clone(), spent_at })
    }

    /// Steps of all fits.
    pub(super) fn used(&self) -> u64 {
        self.taken.iter().sum()
    }

    /// How many of the `wanted` steps the next fit may take.
    fn steps(&self, wanted: u64) -> u64 {
        let again = self.record.as_ref().and_then(|record| record.steps.get(self.taken.len()));
        again.map_or(wanted, |steps| wanted.min(*steps))
    }

    /// Records a fit. One that failed would fail again, so it counts with the steps that it wanted.
    fn record_fit(&mut self, fitted: &Result<Fitted>, wanted: u64) {
        self.taken.push(fitted.as_ref().map_or(wanted, |fitted| fitted.steps));
        let is_spent = match &self.record {
            Some(record) => self.taken.len() >= record.spent_at,
            None => fitted.as_ref().is_ok_and(|fitted| fitted.is_spent),
        };
        if is_spent {
            self.spent_at.get_or_insert(self.taken.len());
        }
        self.is_stopped |= fitted.as_ref().is_ok_and(|fitted| fitted.stopped);
    }
}

/// The deadline of the time budget. A run with a record counts steps instead, to stop at the same ones.
pub(super) fn deadline(settings: &InferSettings) -> Option<Instant> {
    let budget = settings.budget.filter(|_| settings.budget_record.is_none());
    let budget = budget.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    budget.and_then(|budget| Instant::now().checked_add(budget))
}

/// A run in progress.
pub(super) struct Work<'a> {
    pub(super) settings: &'a InferSettings,
    pub(super) ledger: BudgetLedger,
    pub(super) session: Session<'a>,
}

impl Work<'_> {
    /// Whether other draws may replace those of the approximation: the settings leave that open, and there is time.
    pub(super) fn may_replace(&self) -> bool {
        let is_over = self.ledger.is_stopped || self.ledger.is_spent();
        self.settings.is_free() && self.settings.correct == Correction::ResampleMove && !is_over
    }
}

/// When a fit ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    /// After this many steps.
    Fixed(u64),
    /// When the stopping rule says so, and after at most this many steps.
    UntilConverged { most: u64, is_patient: bool },
}

/// The share of the accuracy that a fit may miss; the rest is for the family of the approximation.
const SHARE: f64 = 0.2;

impl Work<'_> {
    /// Whether to skip optional work. A resumed run gives the same answer.
    pub(super) fn is_over(&mut self) -> Result<bool> {
        if self.settings.budget.is_some() && self.settings.budget_record.is_none() && !self.ledger.is_spent() {
            let is_spent = match self.session.begin()? {
                Stage::Finished(is_spent) => is_spent,
                _ => {
                    let is_spent = self.session.is_spent();
                    self.session.finish(|| is_spent)?;
                    is_spent
                }
            };
            if is_spent {
                self.ledger.spent_at = Some(self.ledger.taken.len());
            }
        } else if self.settings.budget_record.is_none() && self.session.is_spent() {
            self.ledger.spent_at.get_or_insert(self.ledger.taken.len());
        }
        Ok(self.ledger.is_spent())
    }

    /// The settings of a fit. A number of steps set by the user overrides the length.
    fn fit_settings(&self, seed: u64, length: Length) -> FitSettings {
        let (most, stopping) = match (self.settings.steps, length) {
            (Some(steps), _) | (None, Length::Fixed(steps)) => (steps, None),
            (None, Length::UntilConverged { most, is_patient }) => {
                (most, Some(StoppingRule { accuracy: SHARE * self.settings.accuracy, is_patient }))
            }
        };
        let optimizer = self.settings.optimizer.unwrap_or_default();
        let steps = self.ledger.steps(most).max(1);
        FitSettings { seed, steps, flat: FLAT, stopping, optimizer, ..FitSettings::default() }
    }

    fn gradient_settings(&self) -> GradientSettings {
        GradientSettings::default().estimator(self.settings.estimator.unwrap_or_default())
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
        let draws = if q.prior().components_len() > 1 { 8 } else { 32 };
        let settings = FitSettings {
            step_size: self.settings.step_size.unwrap_or(0.03),
            gradient: GradientSettings { draws, replicates: 1, ..self.gradient_settings() },
            start: StartSettings::single(),
            ..self.fit_settings(seed, length)
        };
        let mut fit = Fit::init(model, q, &settings, start)?;
        let fitted = fit.run(&mut self.session).map(|flow| fit.finish(flow.is_break()));
        self.ledger.record_fit(&fitted, settings.steps);
        fitted
    }

    /// Fits an approximation when some latents are discrete, from the best of several starts.
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
        let importance = self.settings.importance.unwrap_or_else(|| usual_importance(q));
        let settings = FitSettings {
            step_size: self.settings.step_size.unwrap_or(usual.step_size),
            gradient: GradientSettings { draws, importance, ..self.gradient_settings() },
            start: StartSettings { tries: starts.len(), steps: 200, ..usual.start },
            dropped_max: if self.settings.correct == Correction::ResampleMove {
                DROPPED_MAX
            } else {
                usual.dropped_max
            },
            ..self.fit_settings(seed, length)
        };
        let fitted = fit_from(model, q, &settings, starts, &mut self.session);
        self.ledger.record_fit(&fitted, settings.steps);
        fitted
    }

    /// Whether the model is expensive; if so, it gets fewer draws per step and nothing is fitted twice.
    pub(super) fn is_heavy(&self, model: &dyn Model) -> bool {
        model.work() > HEAVY
    }
}

/// Draws of an r that matches moments: what they add costs little beside the matching, and they close the gap that a Gaussian leaves
/// where logits are wide.
const IMPORTANCE: usize = 8;

/// The draws of r that tighten the bound that is maximised, if none were asked for. With point masses the gradient is known for one
/// component.
fn usual_importance(q: &Variational) -> usize {
    let is_known = q.likelihood().point_mass_len() == 0 || q.prior().components_len() == 1;
    if q.recursive().matches_moments() && is_known { IMPORTANCE } else { 0 }
}

/// The share of the draws of an approximation with discrete latents that may be impossible, if moves follow: independent factors know
/// nothing of limits such as "no more survivors than there were", but the moves keep to them.
const DROPPED_MAX: f64 = 0.999;
/// The work of a draw above which a model counts as expensive.
const HEAVY: usize = 50_000;

//! The verdict on a fit, and the diagnostics behind it.

use super::diagnostic::{Diagnostic, Finding, Remedy, Severity, Verdict};
use crate::infer::{Correction, Inferred, OVERSAMPLED, Restarts, TAIL_DRIFT_MAX};

/// Above this the importance weights have no mean.
const NO_MEAN: f64 = 1.0;
/// A smaller effective sample size is not enough for the shape of a posterior.
const ESS_MIN: f64 = 400.0;
/// Uncorrected draws are close to the posterior if importance weighting leaves this share of them effective.
const EVEN_MIN: f64 = 0.8;
/// Above this, the means of a latent differ between fits.
const RHAT_MAX: f64 = 1.1;
/// With a larger share of impossible draws, the approximation does not match the posterior.
const INVALID_MAX: f64 = 0.05;

impl Inferred {
    /// How far the draws can be trusted.
    pub fn verdict(&self) -> Verdict {
        self.diagnostics().first().map_or(Verdict::Trust, |found| found.severity.verdict())
    }

    /// The diagnostics behind the verdict, the most serious first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.of_the_fit().into_iter().collect();
        self.of_the_search(&mut found);
        self.of_the_draws(&mut found);
        found.sort_by_key(|found| std::cmp::Reverse(found.severity));
        found
    }

    fn of_the_fit(&self) -> Option<Diagnostic> {
        let (step, steps) = (self.fitted.history.len() as u64, self.fitted.planned);
        let is_budget_spent = self.budget_record.is_some();
        let (severity, finding, remedy) = match self.has_converged {
            _ if self.fitted.stopped => {
                return Some(Diagnostic::new(Severity::Distrust, Finding::FitStopped { step, steps }, Vec::new()));
            }
            Some(true) => return None,
            Some(false) => {
                let more = Remedy::MoreSteps { steps: Some(steps.saturating_mul(2)) };
                (Severity::Distrust, Finding::ElboRising { is_budget_spent }, more)
            }
            None => (Severity::MeansOnly, Finding::TooFewSteps { steps: step, is_budget_spent }, Remedy::DefaultSteps),
        };
        let remedy = if is_budget_spent { Remedy::MoreTime } else { remedy };
        Some(Diagnostic::new(severity, finding, vec![remedy]))
    }

    fn of_the_search(&self, found: &mut Vec<Diagnostic>) {
        let mut add = |severity, finding, remedies| found.push(Diagnostic::new(severity, finding, remedies));
        if !self.fitted.stopped && self.moved.is_some_and(|moved| moved.stopped) {
            add(Severity::MeansOnly, Finding::MovesStopped, Vec::new());
        }
        if self.is_stopped && !self.fitted.stopped {
            add(Severity::MeansOnly, Finding::SelectionStopped, Vec::new());
        }
        if let Some(missed) = &self.missed_mode {
            let suggested: &[&str] = if self.candidates.is_empty() { &["auto", "mixture:8"] } else { &["mixture:16"] };
            let finding = Finding::MissedMode { share: missed.share, drawn: missed.drawn };
            add(Severity::Distrust, finding, vec![other_method(suggested)]);
        }
        if let Some(Restarts { rhat: Some(rhat), latent, .. }) = &self.restarts
            && *rhat > RHAT_MAX
        {
            let finding = Finding::RestartsDisagree { rhat: *rhat, latent: latent.clone() };
            add(Severity::MeansOnly, finding, vec![other_method(&["mixture:16"]), Remedy::MoreRestarts]);
        }
    }

    fn of_the_draws(&self, found: &mut Vec<Diagnostic>) {
        let mut add = |severity, finding, remedies| found.push(Diagnostic::new(severity, finding, remedies));
        let (khat, limit) = (self.psis.khat, self.psis.limit);
        if !(khat <= limit) {
            let severity = if khat <= NO_MEAN { Severity::MeansOnly } else { Severity::Distrust };
            let is_moved = self.correct == Correction::ResampleMove;
            let remedies = vec![other_method(&[]), Remedy::MoreSteps { steps: None }];
            add(severity, Finding::HighKhat { khat, limit, is_moved }, remedies);
        }
        let share = self.psis.ess / (self.z.draws_len() * OVERSAMPLED) as f64;
        if self.correct == Correction::None && share < EVEN_MIN && khat <= limit {
            add(Severity::MeansOnly, Finding::UnevenWeights { share }, vec![Remedy::CorrectDraws]);
        }
        let ess = self.effective_sample_size();
        if ess < ESS_MIN.min(0.5 * self.z.draws_len() as f64) {
            add(Severity::MeansOnly, Finding::LowEffectiveSampleSize { ess }, vec![other_method(&[])]);
        }
        let share = self.bounds.dropped as f64 / self.bounds.drawn.max(1) as f64;
        if share > INVALID_MAX {
            add(Severity::MeansOnly, Finding::InvalidShare { share }, Vec::new());
        }
        let is_widening = self.moved.is_some_and(|moved| moved.drift > TAIL_DRIFT_MAX && !moved.stopped);
        if let Some(latent) = self.drifting.clone().filter(|_| is_widening) {
            add(Severity::MeansOnly, Finding::WideningTails { latent }, vec![other_method(&[])]);
        }
    }
}

fn other_method(suggested: &[&str]) -> Remedy {
    Remedy::OtherMethod { suggested: suggested.iter().map(|&name| name.to_owned()).collect() }
}

//! The progress of a fit.

use crate::progress::{Bar, StopFlag};
use hyperprior::fit::{Observer, Phase, Progress};
use std::ops::ControlFlow;

/// Shows phases and steps on standard error, and stops the fit on a signal.
pub struct Watch {
    bar: Bar,
    stop: StopFlag,
    /// The last step of the main fit, and its number of steps.
    pub step: (u64, u64),
}

impl Watch {
    /// A bar without progress yet.
    pub fn new(quiet: bool, stop: &StopFlag) -> Self {
        Self { bar: Bar::new("fit", quiet, stop), stop: stop.clone(), step: (0, 0) }
    }

    /// Shows the name of the next phase.
    pub fn phase(&self, phase: &str) {
        self.bar.say(phase);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish();
    }
}

impl Observer for Watch {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        // From here on there is an approximation to report.
        self.stop.mark_results();
        if progress.phase == Phase::Main {
            self.step = (progress.step, progress.steps);
        }
        let flow = self.bar.observe(progress);
        if progress.phase == Phase::Main && (progress.step == progress.steps || flow.is_break()) {
            self.bar.say("draws");
        }
        flow
    }

    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.bar.advance(work, done, of)
    }
}

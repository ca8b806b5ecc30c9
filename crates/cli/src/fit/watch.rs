//! What is seen of a fit while it runs, and what is kept of that.

use crate::progress::{Bar, StopFlag};
use hyperprior::fit::{Observer, Phase, Progress};
use hyperprior::journal::Journal;
use std::ops::ControlFlow;

/// Shows phases and steps on standard error, and stops on request.
pub struct Watch {
    bar: Bar,
    stop: StopFlag,
    /// Where the state of the work is kept.
    pub journal: Option<Journal>,
    /// Where the last run is, and how many steps it has.
    pub step: (u64, u64),
}

impl Watch {
    /// Nothing seen yet.
    pub fn new(quiet: bool, stop: &StopFlag) -> Self {
        Self { bar: Bar::new("fit", quiet, stop), stop: stop.clone(), journal: None, step: (0, 0) }
    }

    /// Says what comes next.
    pub fn phase(&self, phase: &str) {
        self.bar.say(phase);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish();
    }
}

impl Observer for Watch {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        // From here on there is an approximation that is worth keeping.
        self.stop.keep();
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

    fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }
}

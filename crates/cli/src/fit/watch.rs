//! The progress of a fit.

use crate::progress::{Bar, StopFlag};
use hyperprior::fit::{Observer, Phase, Progress};
use std::ops::ControlFlow;
use std::time::Instant;

/// Shows phases and steps on standard error, and stops the fit on a signal.
pub struct Watch {
    bar: Bar,
    stop: StopFlag,
    /// The last step of the main fit, and its number of steps.
    pub step: (u64, u64),
    /// When each stage began.
    stages: Vec<(&'static str, Instant)>,
}

impl Watch {
    /// A bar without progress yet.
    pub fn new(quiet: bool, stop: &StopFlag) -> Self {
        Self { bar: Bar::new("fit", quiet, stop), stop: stop.clone(), step: (0, 0), stages: Vec::new() }
    }

    /// Shows the name of the next phase.
    pub fn phase(&mut self, phase: &'static str) {
        self.enter(phase);
        self.bar.say(phase);
    }

    /// The seconds of each stage, as a table.
    pub fn timings(&self) -> String {
        let ends = self.stages.iter().skip(1).map(|(_, at)| *at).chain([Instant::now()]);
        let mut seconds: Vec<(&str, f64)> = Vec::new();
        for ((stage, began), end) in self.stages.iter().zip(ends) {
            let took = end.duration_since(*began).as_secs_f64();
            match seconds.iter_mut().find(|(name, _)| name == stage) {
                Some((_, total)) => *total += took,
                None => seconds.push((stage, took)),
            }
        }
        let total: f64 = seconds.iter().map(|(_, took)| took).sum();
        let line = |(stage, took): &(&str, f64)| format!("{stage:<24} {took:>8.2} {:>5.1} %\n", 100.0 * took / total);
        let lines: String = seconds.iter().map(line).collect();
        format!("{:<24} {:>8}\n{lines}", "stage", "seconds")
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

    fn enter(&mut self, stage: &'static str) {
        self.stages.push((stage, Instant::now()));
    }
}

//! Who watches a fit: progress bars, traces, and whoever wants it stopped.

use crate::gradient::Estimate;
use crate::journal::Journal;
use std::ops::ControlFlow;

/// What a fit is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A short run from one of several starts.
    Start {
        /// Which one.
        number: usize,
        /// Of how many.
        of: usize,
    },
    /// The main run.
    Main,
}

/// Where a fit is after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is busy with.
    pub phase: Phase,
    /// Steps taken in this phase.
    pub step: u64,
    /// Steps this phase has.
    pub steps: u64,
    /// The step's estimate of the bound.
    pub estimate: Estimate,
}

/// Sees every step and may stop the fit, which then returns what it has.
pub trait Observer {
    /// Called after each step.
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Called now and then during work that is not steps: a search, the moves of draws. Work that is stopped ends early with what
    /// it has.
    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        let _ = (work, done, of);
        ControlFlow::Continue(())
    }

    /// Whether what the work may cost is spent: asked now and then, and before work that could be left out. The work then ends with
    /// what it has, as if it had been meant to.
    fn is_spent(&mut self) -> bool {
        false
    }

    /// Where the state of the work is kept, where it is.
    fn journal(&mut self) -> Option<&mut Journal> {
        None
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn observe(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Keeps the bound of every `every`-th step of the main run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// How often.
    pub every: u64,
    /// (step, estimate of the bound).
    pub points: Vec<(u64, f64)>,
}

impl Observer for Trace {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        if progress.phase == Phase::Main && progress.step.is_multiple_of(self.every.max(1)) {
            self.points.push((progress.step, progress.estimate.elbo));
        }
        ControlFlow::Continue(())
    }
}

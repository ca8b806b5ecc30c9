//! An observer for Python: it checks signals and reports progress a few times a second.

use hyperprior::fit::{Observer, Phase, Progress};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The time between two calls into Python.
const PAUSE: Duration = Duration::from_millis(100);

/// Checks signals and reports progress while the engine runs without the interpreter.
pub struct Watch {
    /// Called with the name of the work, the amount done, the total and the bound.
    progress: Option<Py<PyAny>>,
    last: Instant,
    /// The exception that stops the work.
    failure: Option<PyErr>,
}

impl Watch {
    /// An observer that reports to `progress`, if there is one.
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, last: Instant::now(), failure: None }
    }

    /// Reports progress if it is time to, and breaks if an exception was raised.
    pub fn report(&mut self, work: &str, done: u64, of: u64, elbo: Option<f64>) -> ControlFlow<()> {
        if self.failure.is_none() && self.last.elapsed() >= PAUSE {
            let called = Python::attach(|py| {
                py.check_signals()?;
                let progress = self.progress.as_ref();
                progress.map_or(Ok(()), |progress| progress.call1(py, (work, done, of, elbo)).map(|_| ()))
            });
            self.failure = called.err();
            self.last = Instant::now();
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the exception that stopped the work, if any.
    pub fn finish(self) -> PyResult<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl Observer for Watch {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        let work = match progress.phase {
            Phase::Start { .. } => "start",
            Phase::Main => "fit",
        };
        self.report(work, progress.step, progress.steps, Some(progress.estimate.elbo))
    }

    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.report(work, done as u64, of as u64, None)
    }
}

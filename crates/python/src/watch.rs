//! Who watches work that Python asked for: signals are looked at, and progress is told, a few times a second.

use hyperprior::fit::{Observer, Phase, Progress};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long Python is left alone.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks after the interpreter while work goes on without it.
pub struct Watch {
    /// Called with what is done, how much of it, of how much, and the bound.
    tell: Option<Py<PyAny>>,
    last: Instant,
    /// The exception that ends the work.
    failure: Option<PyErr>,
}

impl Watch {
    /// With somebody to tell, or nobody.
    pub fn new(tell: Option<Py<PyAny>>) -> Self {
        Self { tell, last: Instant::now(), failure: None }
    }

    /// Whether to go on.
    pub fn turn(&mut self, work: &str, done: u64, of: u64, elbo: Option<f64>) -> ControlFlow<()> {
        if self.failure.is_none() && self.last.elapsed() >= PAUSE {
            let told = Python::attach(|py| {
                py.check_signals()?;
                self.tell.as_ref().map_or(Ok(()), |tell| tell.call1(py, (work, done, of, elbo)).map(|_| ()))
            });
            self.failure = told.err();
            self.last = Instant::now();
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The exception that ended the work, where one did.
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
        self.turn(work, progress.step, progress.steps, Some(progress.estimate.elbo))
    }

    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.turn(work, done as u64, of as u64, None)
    }

    fn is_spent(&mut self) -> bool {
        self.failure.is_some()
    }
}

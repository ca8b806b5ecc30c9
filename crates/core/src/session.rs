//! A session of a long computation: its observer, budget and checkpoint.

use crate::checkpoint::{Checkpoint, Stage};
use crate::error::Result;
use crate::observer::{Observer, Progress};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::ControlFlow;
use std::time::Instant;

/// A limit on the cost of a computation.
///
/// ```
/// use hyperprior::{Budget, Quiet, Session};
///
/// /// Allows a number of checks.
/// struct Checks(usize);
/// impl Budget for Checks {
///     fn is_spent(&mut self) -> bool {
///         self.0 = self.0.saturating_sub(1);
///         self.0 == 0
///     }
/// }
///
/// let (mut quiet, mut checks) = (Quiet, Checks(2));
/// let mut session = Session::new(&mut quiet).with_budget(&mut checks);
/// assert!(!session.is_spent() && session.is_spent());
/// ```
pub trait Budget {
    /// Whether the budget is spent. It is checked regularly and before optional work; once it is spent, a computation returns the
    /// results it has.
    fn is_spent(&mut self) -> bool;
}

/// The observer, budget and checkpoint of a long computation. Only the observer is required: `&mut Quiet` converts into a session.
///
/// ```
/// use hyperprior::{Quiet, Session};
/// let mut quiet = Quiet;
/// let mut session = Session::new(&mut quiet);
/// assert!(!session.is_spent());
/// ```
pub struct Session<'a> {
    observer: &'a mut dyn Observer,
    budget: Option<&'a mut dyn Budget>,
    checkpoint: Option<&'a mut Checkpoint>,
    deadline: Option<Instant>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Session").field("checkpoint", &self.checkpoint).field("deadline", &self.deadline).finish()
    }
}

impl<'a, O: Observer> From<&'a mut O> for Session<'a> {
    fn from(observer: &'a mut O) -> Self {
        Self::new(observer)
    }
}

impl<'a> From<&'a mut Session<'_>> for Session<'a> {
    fn from(session: &'a mut Session<'_>) -> Self {
        session.reborrow()
    }
}

impl<'a> Session<'a> {
    /// A session with this observer, without a budget or a checkpoint.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, budget: None, checkpoint: None, deadline: None }
    }

    /// With a budget.
    #[must_use]
    pub fn with_budget(self, budget: &'a mut dyn Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// With a checkpoint, if there is one.
    #[must_use]
    pub fn with_checkpoint(self, checkpoint: Option<&'a mut Checkpoint>) -> Self {
        Self { checkpoint, ..self }
    }

    /// The same session for a shorter time.
    pub fn reborrow(&mut self) -> Session<'_> {
        Session {
            observer: &mut *self.observer,
            budget: match &mut self.budget {
                Some(budget) => Some(&mut **budget),
                None => None,
            },
            checkpoint: self.checkpoint.as_deref_mut(),
            deadline: self.deadline,
        }
    }

    /// With a deadline in addition to its budget.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// Reports a step; a break asks the computation to stop.
    pub fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.observer.observe(progress)
    }

    /// Reports work other than optimisation steps.
    pub fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.observer.advance(work, done, of)
    }

    /// Reports that the next stage begins.
    pub fn enter(&mut self, stage: &'static str) {
        self.observer.enter(stage);
    }

    /// Whether the budget is spent or the deadline has passed.
    pub fn is_spent(&mut self) -> bool {
        self.budget.as_mut().is_some_and(|budget| budget.is_spent())
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Begins the next stage of the computation: new, in progress or finished, according to the checkpoint.
    pub(crate) fn begin<S: DeserializeOwned>(&mut self) -> Result<Stage<S>> {
        self.checkpoint.as_mut().map_or(Ok(Stage::New), |checkpoint| checkpoint.begin())
    }

    /// Saves the state of the current stage if the save interval has passed.
    pub(crate) fn save<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        self.checkpoint.as_mut().map_or(Ok(()), |checkpoint| checkpoint.save(state))
    }

    /// Saves the state of a stage that is interrupted. Nothing after it is saved.
    pub(crate) fn interrupt<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        self.checkpoint.as_mut().map_or(Ok(()), |checkpoint| checkpoint.interrupt(state))
    }

    /// Saves the result of a finished stage.
    pub(crate) fn finish<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        self.checkpoint.as_mut().map_or(Ok(()), |checkpoint| checkpoint.finish(state))
    }
}

//! Observers of a computation: progress bars, traces, and requests to stop.

use crate::gradient::Estimate;
use std::ops::ControlFlow;

/// The phase of a fit. See [`Observer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A short run from one of several starts.
    Start {
        /// Its index.
        number: usize,
        /// The number of starts.
        of: usize,
    },
    /// The main run.
    Main,
}

/// The progress of a fit after a step. See [`Observer`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// The steps taken in this phase.
    pub step: u64,
    /// The steps planned for this phase.
    pub steps: u64,
    /// The step's estimate of the bound.
    pub estimate: Estimate,
}

/// Sees every step of a computation and may stop it; a stopped fit returns its current parameters.
///
/// ```
/// use hyperprior::fit::{Observer, Progress};
/// use std::ops::ControlFlow;
///
/// /// Stops a fit when its ELBO is high enough.
/// struct HighEnough(f64);
/// impl Observer for HighEnough {
///     fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
///         if progress.estimate.elbo > self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
///     }
/// }
/// ```
pub trait Observer {
    /// Called after each step.
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Called during work other than optimisation steps, such as the mode search or MCMC moves. If moves are stopped, the draws
    /// stay as they are; a stopped mode search is an error.
    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        let _ = (work, done, of);
        ControlFlow::Continue(())
    }

    /// Called when the computation enters its next stage.
    fn enter(&mut self, stage: &'static str) {
        let _ = stage;
    }
}

/// Observes nothing. See [`Session`](crate::Session).
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn observe(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Records the bound at every `every`-th step of the main run.
///
/// ```
/// use hyperprior::fit::{FitSettings, StartSettings, Trace, fit};
/// use hyperprior::targets::Ising;
/// use hyperprior::{Model, Variational, likelihood::MeanField};
/// let model = Ising::ring(3, 0.5)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let mut trace = Trace { every: 10, ..Trace::default() };
/// fit(&model, &q, &FitSettings::default().steps(50).start(StartSettings::single()), &mut trace)?;
/// assert_eq!(trace.points.len(), 5);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The interval in steps.
    pub every: u64,
    /// The steps and the estimates of the bound.
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

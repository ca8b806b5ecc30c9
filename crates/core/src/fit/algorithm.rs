//! Algorithm 1: black box inference with a hierarchical variational model.

use super::result::Fitted;
use super::settings::FitSettings;
use super::stopping::{Step, StoppingState};
use crate::checkpoint::Stage;
use crate::error::{Error, Result};
use crate::gradient::{Estimate, GradientEngine, Plan};
use crate::model::Model;
use crate::objective::{self, BoundSettings};
use crate::observer::{Phase, Progress};
use crate::optimizer::Optimizer;
use crate::prior::Start;
use crate::session::Session;
use crate::variational::Variational;
use hyperprior_math::random::{Purpose, stream};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// A fit in progress: Algorithm 1, step by step.
///
/// ```
/// use hyperprior::fit::{Fit, FitSettings};
/// use hyperprior::prior::Start;
/// use hyperprior::targets::Ising;
/// use hyperprior::{Model, Variational, likelihood::MeanField};
/// let model = Ising::ring(4, 0.5)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let settings = FitSettings::default();
/// let mut fit = Fit::init(&model, &q, &settings, &Start::at(vec![0.1; 4], 0.3))?;
/// let estimate = fit.step(0.02)?;
/// assert!(estimate.elbo.is_finite() && fit.steps() == 1);
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub struct Fit<'a> {
    model: &'a dyn Model,
    q: &'a Variational,
    settings: &'a FitSettings,
    engine: GradientEngine,
    theta: Vec<f64>,
    phi: Vec<f64>,
    theta_optimizer: Box<dyn Optimizer>,
    phi_optimizer: Box<dyn Optimizer>,
    d_theta: Vec<f64>,
    d_phi: Vec<f64>,
    /// Random streams are numbered by step, with a separate range for each start.
    first_stream: u64,
    step: u64,
    dropped: u64,
    drawn: u64,
    history: Vec<f64>,
    /// The state of the stopping rule, if there is one.
    stopping: Option<StoppingState>,
    is_spent: bool,
}

/// The state from which a fit can be resumed.
#[derive(Serialize, Deserialize)]
struct State {
    theta: Vec<f64>,
    phi: Vec<f64>,
    memory: [Vec<f64>; 2],
    step: u64,
    dropped: u64,
    drawn: u64,
    history: Vec<f64>,
    stopping: Option<StoppingState>,
    is_spent: bool,
}

impl<'a> Fit<'a> {
    /// A fit that begins at a given start.
    ///
    /// # Errors
    /// As [`FitSettings::check`] and [`GradientEngine::new`].
    pub fn init(model: &'a dyn Model, q: &'a Variational, settings: &'a FitSettings, start: &Start) -> Result<Self> {
        Self::init_numbered(model, q, settings, start, 0)
    }

    pub(super) fn init_numbered(
        model: &'a dyn Model,
        q: &'a Variational,
        settings: &'a FitSettings,
        start: &Start,
        number: u64,
    ) -> Result<Self> {
        settings.check()?;
        start.check(q.prior().lambda_len())?;
        let engine = GradientEngine::new(model, q, &settings.gradient)?;
        let mut rng = stream(settings.seed, Purpose::Start.step(), number, 0);
        let (mut theta, mut phi) = (vec![0.0; q.theta_len()], vec![0.0; q.phi_len()]);
        q.prior().initialize(start, &mut rng, &mut theta);
        q.recursive().initialize(start, &mut rng, &mut phi);
        Ok(Self {
            model,
            q,
            settings,
            engine,
            theta_optimizer: settings.optimizer.build(theta.len()),
            phi_optimizer: settings.optimizer.build(phi.len()),
            d_theta: vec![0.0; theta.len()],
            d_phi: vec![0.0; phi.len()],
            theta,
            phi,
            first_stream: number << 40,
            step: 0,
            dropped: 0,
            drawn: 0,
            history: Vec::new(),
            stopping: None,
            is_spent: false,
        })
    }

    fn state(&self) -> State {
        State {
            theta: self.theta.clone(),
            phi: self.phi.clone(),
            memory: [self.theta_optimizer.memory(), self.phi_optimizer.memory()],
            step: self.step,
            dropped: self.dropped,
            drawn: self.drawn,
            history: self.history.clone(),
            stopping: self.stopping.clone(),
            is_spent: self.is_spent,
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        let [of_theta, of_phi] = &state.memory;
        let fits = (state.theta.len(), state.phi.len()) == (self.theta.len(), self.phi.len())
            && self.theta_optimizer.recall(of_theta)
            && self.phi_optimizer.recall(of_phi);
        if !fits {
            return Err(Error::Checkpoint { reason: "it belongs to another approximation".to_owned() });
        }
        self.theta = state.theta;
        self.phi = state.phi;
        self.step = state.step;
        self.dropped = state.dropped;
        self.drawn = state.drawn;
        self.history = state.history;
        self.stopping = state.stopping;
        self.is_spent = state.is_spent;
        Ok(())
    }

    /// One step of the loop with the given step size: the gradients along θ and φ, and an update of both.
    ///
    /// # Errors
    /// Errors of the model, [`Error::NotFinite`] if too many draws are invalid, and [`Error::GradientNotFinite`] if the gradient is
    /// not finite.
    pub fn step(&mut self, size: f64) -> Result<Estimate> {
        let at = (self.settings.seed, self.first_stream + self.step);
        let here = (&*self.theta, &*self.phi);
        // The engine counts streams, not steps.
        let at_step = |error: Error| match error {
            Error::NotFinite { dropped, drawn, example, .. } => {
                Error::NotFinite { step: self.step, dropped, drawn, example }
            }
            error => error,
        };
        let gradients = (&mut *self.d_theta, &mut *self.d_phi);
        let estimate = self.engine.step(self.model, self.q, at, here, gradients).map_err(at_step)?;
        if estimate.dropped as f64 > self.settings.dropped_max * estimate.drawn as f64 {
            return Err(self.engine.not_finite(self.model, self.step));
        }
        if !self.d_theta.iter().chain(&self.d_phi).all(|d| d.is_finite()) {
            return Err(Error::GradientNotFinite { step: self.step, elbo: estimate.elbo });
        }
        self.theta_optimizer.ascend(&mut self.theta, &self.d_theta, size);
        self.phi_optimizer.ascend(&mut self.phi, &self.d_phi, size);
        self.step += 1;
        self.dropped += estimate.dropped as u64;
        self.drawn += estimate.drawn as u64;
        Ok(estimate)
    }

    /// Takes steps until the schedule or the stopping rule ends, or the observer asks to stop.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run<'s>(&mut self, session: impl Into<Session<'s>>) -> Result<ControlFlow<()>> {
        let first = self.step;
        let steps = self.settings.steps;
        self.history.clear();
        self.stopping = self.settings.stopping.map(|_| StoppingState::new(&self.theta, &self.phi));
        self.phase(&mut session.into(), Phase::Main, first, steps)
    }

    /// The steps of one phase, which is one stage of the session's checkpoint.
    pub(super) fn phase(
        &mut self,
        session: &mut Session,
        phase: Phase,
        first: u64,
        steps: u64,
    ) -> Result<ControlFlow<()>> {
        match session.begin()? {
            Stage::Finished(state) => {
                self.restore(state)?;
                return Ok(ControlFlow::Continue(()));
            }
            Stage::InProgress(state) => self.restore(state)?,
            Stage::New => {}
        }
        while self.step < first + steps {
            let size = match (phase, &self.stopping) {
                (Phase::Main, None) => self.settings.size(self.step - first),
                (Phase::Main, Some(stopping)) => stopping.step_size(self.settings.step_size),
                (Phase::Start { .. }, _) => self.settings.step_size,
            };
            let estimate = self.step(size)?;
            let mut is_end = false;
            if phase == Phase::Main {
                self.history.push(estimate.elbo);
                is_end = self.should_stop(size, estimate.elbo, self.step == first + steps, session)?;
            }
            let flow = session.observe(&Progress { phase, step: self.step - first, steps, estimate });
            // A request to stop at the last step is left to the next phase.
            if is_end {
                break;
            }
            if flow.is_break() {
                session.interrupt(|| self.state())?;
                return Ok(ControlFlow::Break(()));
            }
            session.save(|| self.state())?;
        }
        session.finish(|| self.state())?;
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the fit ends here. At the end of a step size, θ and φ move to the mean of the last iterates.
    fn should_stop(&mut self, size: f64, elbo: f64, is_last: bool, session: &mut Session) -> Result<bool> {
        let (Some(stopping), Some(rule)) = (&mut self.stopping, &self.settings.stopping) else {
            self.is_spent = self.step.is_multiple_of(ASKED) && session.is_spent();
            return Ok(self.is_spent);
        };
        let is_time = stopping.push(&Step { theta: &self.theta, phi: &self.phi, gradient: &self.d_theta, elbo });
        self.is_spent = is_time && session.is_spent();
        let is_over = is_last || self.is_spent || is_time && stopping.is_stage_over(rule);
        if !is_over {
            return Ok(false);
        }
        if let Some([theta, phi]) = stopping.mean() {
            let settings = BoundSettings {
                draws: RANKING_DRAWS,
                samples: self.settings.gradient.importance,
                seed: self.settings.seed,
            };
            // If q is impossible there, the bound is −∞.
            let bound = |theta: &[f64], phi: &[f64]| {
                objective::evaluate(self.model, self.q, (theta, phi), &settings)
                    .map_or(f64::NEG_INFINITY, |b| b.importance_lower.value)
            };
            let mut elbo = bound(&theta, &phi);
            // While the parameters still drift, the last iterate may be the best.
            let last = if stopping.is_stationary() { f64::NEG_INFINITY } else { bound(&self.theta, &self.phi) };
            if elbo >= last {
                (self.theta, self.phi) = (theta, phi);
            } else {
                elbo = last;
            }
            stopping.close(size, elbo, [&self.theta, &self.phi]);
        }
        Ok(is_last || self.is_spent || stopping.is_end(rule))
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The current θ.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// The current φ.
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }

    /// The gradient estimator of each latent.
    pub fn plans(&self) -> &[Plan] {
        self.engine.plans()
    }

    /// The fit at its current parameters; `stopped` records that it did not reach the end of its schedule.
    pub fn finish(self, stopped: bool) -> Fitted {
        Fitted {
            steps: self.step,
            planned: self.settings.steps,
            stopped,
            starts: Vec::new(),
            dropped: self.dropped as f64 / self.drawn.max(1) as f64,
            plans: self.plans().to_vec(),
            theta: self.theta,
            phi: self.phi,
            history: self.history,
            stages: self.stopping.map_or_else(Vec::new, |stopping| stopping.done),
            is_spent: self.is_spent,
        }
    }
}

/// Without a stopping rule, the fit checks its budget after this many steps.
const ASKED: u64 = 50;
/// The number of draws from which the bound at the end of a stage is estimated.
const RANKING_DRAWS: usize = 1024;

//! Algorithm 1: black box inference with a hierarchical variational model.
//!
//! [`Fit`] is the loop laid open (`init`, `step`, `run`); [`fit`] is the loop with its start: several short runs from
//! different seeds, the best by the bound carried on.

mod observer;
mod rounds;
mod start;

pub use observer::{Observer, Phase, Progress, Quiet, Trace};
pub(crate) use rounds::RISE_MAX;
pub use rounds::{Ending, Round};
pub(crate) use start::cluster;
pub use start::{StartKind, StartSettings};

use crate::bound::{self, BoundSettings, Bounds};
use crate::error::{Error, Result};
use crate::gradient::{Estimate, GradientEngine, GradientSettings, Plan};
use crate::journal::{self, Begun};
use crate::model::Model;
use crate::optimizer::{Optimizer, OptimizerKind};
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::random::stream;
use rounds::{Rounds, Step};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Everything that decides how a fit goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitSettings {
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// Optimisation steps after the start; the most of them, where the fit ends by itself.
    pub steps: u64,
    /// The step size at the beginning; it falls to nothing along a half cosine, or is halved where the fit ends by itself.
    pub step_size: f64,
    /// The share of the steps before the size begins to fall.
    pub flat: f64,
    /// When the fit ends by itself; after its steps, where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The optimiser.
    pub optimizer: OptimizerKind,
    /// How gradients are estimated.
    pub gradient: GradientSettings,
    /// Where the fit starts.
    pub start: StartSettings,
    /// The largest share of draws that may be dropped at a step because they are not finite.
    pub dropped_max: f64,
}

impl Default for FitSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            steps: 4000,
            step_size: 0.02,
            flat: 0.0,
            ending: None,
            optimizer: OptimizerKind::default(),
            gradient: GradientSettings::default(),
            start: StartSettings::default(),
            dropped_max: 0.5,
        }
    }
}

impl FitSettings {
    /// Whether every field has a meaning.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad = |field, value: f64, reason| Err(Error::BadSetting { field, value: value.to_string(), reason });
        if !(self.step_size > 0.0 && self.step_size.is_finite()) {
            return bad("step_size", self.step_size, "it must be above 0");
        }
        if !(0.0..=1.0).contains(&self.dropped_max) {
            return bad("dropped_max", self.dropped_max, "it is a share, between 0 and 1");
        }
        if !(0.0..1.0).contains(&self.flat) {
            return bad("flat", self.flat, "it is a share, at least 0 and below 1");
        }
        if let Some(Ending { accuracy, .. }) = self.ending
            && !(accuracy > 0.0 && accuracy.is_finite())
        {
            return bad("accuracy", accuracy, "it must be above 0");
        }
        self.start.check()?;
        self.gradient.check()
    }

    /// The step size at `step` of `steps`.
    fn size(&self, step: u64) -> f64 {
        let done = step as f64 / self.steps.max(1) as f64;
        half_cosine(self.step_size, ((done - self.flat) / (1.0 - self.flat)).max(0.0))
    }
}

/// The step size when this share of a schedule is done: from `size` to nothing along a half cosine.
pub(crate) fn half_cosine(size: f64, done: f64) -> f64 {
    size * 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos())
}

/// A fit under way.
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
    /// Random streams are numbered by step; each start has its own range of them.
    first_stream: u64,
    step: u64,
    dropped: u64,
    drawn: u64,
    history: Vec<f64>,
    /// Where the fit ends by itself.
    rounds: Option<Rounds>,
    is_spent: bool,
}

/// All that a fit needs to go on.
#[derive(Serialize, Deserialize)]
struct State {
    theta: Vec<f64>,
    phi: Vec<f64>,
    memory: [Vec<f64>; 2],
    step: u64,
    dropped: u64,
    drawn: u64,
    history: Vec<f64>,
    rounds: Option<Rounds>,
    is_spent: bool,
}

impl<'a> Fit<'a> {
    /// A fit at a given start.
    ///
    /// # Errors
    /// What [`FitSettings::check`] and [`GradientEngine::new`] say.
    pub fn init(model: &'a dyn Model, q: &'a Variational, settings: &'a FitSettings, start: &Start) -> Result<Self> {
        Self::init_numbered(model, q, settings, start, 0)
    }

    fn init_numbered(
        model: &'a dyn Model,
        q: &'a Variational,
        settings: &'a FitSettings,
        start: &Start,
        number: u64,
    ) -> Result<Self> {
        settings.check()?;
        start.check(q.prior().lambda_len())?;
        let engine = GradientEngine::new(model, q, &settings.gradient)?;
        let mut rng = stream(settings.seed, START_STEP, number, 0);
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
            rounds: None,
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
            rounds: self.rounds.clone(),
            is_spent: self.is_spent,
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        let [of_theta, of_phi] = &state.memory;
        let fits = (state.theta.len(), state.phi.len()) == (self.theta.len(), self.phi.len())
            && self.theta_optimizer.recall(of_theta)
            && self.phi_optimizer.recall(of_phi);
        if !fits {
            return Err(Error::Checkpoint { reason: "it is of another approximation".to_owned() });
        }
        self.theta = state.theta;
        self.phi = state.phi;
        self.step = state.step;
        self.dropped = state.dropped;
        self.drawn = state.drawn;
        self.history = state.history;
        self.rounds = state.rounds;
        self.is_spent = state.is_spent;
        Ok(())
    }

    /// One step of the loop with the given step size: gradients of θ and φ, and a move along both.
    ///
    /// # Errors
    /// What the model returns, [`Error::NotFinite`] where too many draws are not finite, and [`Error::GradientNotFinite`]
    /// where the gradient is not.
    pub fn step(&mut self, size: f64) -> Result<Estimate> {
        let at = (self.settings.seed, self.first_stream + self.step);
        let here = (&*self.theta, &*self.phi);
        let estimate = self.engine.step(self.model, self.q, at, here, (&mut self.d_theta, &mut self.d_phi))?;
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

    /// Steps along the settings' schedule until it ends, by itself too, or the observer asks to stop.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let first = self.step;
        let steps = self.settings.steps;
        self.history.clear();
        self.rounds = self.settings.ending.map(|_| Rounds::new(&self.theta, &self.phi));
        self.piece(observer, Phase::Main, first, steps)
    }

    /// Steps of one phase, a piece of work in the observer's journal.
    fn piece(&mut self, observer: &mut dyn Observer, phase: Phase, first: u64, steps: u64) -> Result<ControlFlow<()>> {
        match journal::begin(observer)? {
            Begun::Finished(state) => {
                self.restore(state)?;
                return Ok(ControlFlow::Continue(()));
            }
            Begun::UnderWay(state) => self.restore(state)?,
            Begun::New => {}
        }
        while self.step < first + steps {
            let size = match (phase, &self.rounds) {
                (Phase::Main, None) => self.settings.size(self.step - first),
                (Phase::Main, Some(rounds)) => rounds.size(self.settings.step_size),
                (Phase::Start { .. }, _) => self.settings.step_size,
            };
            let estimate = self.step(size)?;
            let mut is_end = false;
            if phase == Phase::Main {
                self.history.push(estimate.elbo);
                is_end = self.look(size, estimate.elbo, self.step == first + steps, observer)?;
            }
            let flow = observer.observe(&Progress { phase, step: self.step - first, steps, estimate });
            // Who stops it now is asked again by what comes next.
            if is_end {
                break;
            }
            if flow.is_break() {
                journal::stop(observer, || self.state())?;
                return Ok(ControlFlow::Break(()));
            }
            journal::keep(observer, || self.state())?;
        }
        journal::finish(observer, || self.state())?;
        Ok(ControlFlow::Continue(()))
    }

    /// Looks whether a round of steps is over, and ends it with their mean; says whether that is the end of the fit.
    fn look(&mut self, size: f64, elbo: f64, is_last: bool, observer: &mut dyn Observer) -> Result<bool> {
        let (Some(rounds), Some(ending)) = (&mut self.rounds, &self.settings.ending) else {
            self.is_spent = self.step.is_multiple_of(ASKED) && observer.is_spent();
            return Ok(self.is_spent);
        };
        let is_time = rounds.take(&Step { theta: &self.theta, phi: &self.phi, gradient: &self.d_theta, elbo });
        self.is_spent = is_time && observer.is_spent();
        let is_over = is_last || self.is_spent || is_time && rounds.is_over(ending);
        if !is_over {
            return Ok(false);
        }
        if let Some([theta, phi]) = rounds.mean() {
            let settings = BoundSettings { draws: RANKING_DRAWS, samples: 0, seed: self.settings.seed };
            // Where it is impossible it has none.
            let bound = |theta: &[f64], phi: &[f64]| {
                bound::evaluate(self.model, self.q, (theta, phi), &settings).map_or(f64::NEG_INFINITY, |b| b.elbo.value)
            };
            let mut elbo = bound(&theta, &phi);
            // Of parameters that travel, the last may be the best.
            let last = if rounds.trembles() { f64::NEG_INFINITY } else { bound(&self.theta, &self.phi) };
            if elbo >= last {
                (self.theta, self.phi) = (theta, phi);
            } else {
                elbo = last;
            }
            rounds.close(size, elbo, [&self.theta, &self.phi]);
        }
        Ok(is_last || self.is_spent || rounds.is_end(ending))
    }

    /// θ as it stands.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// φ as it stands.
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }

    /// What is done for each latent.
    pub fn plans(&self) -> &[Plan] {
        self.engine.plans()
    }

    /// The fit as it stands; `stopped` says that it did not come to the end of its schedule.
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
            rounds: self.rounds.map_or_else(Vec::new, |rounds| rounds.done),
            is_spent: self.is_spent,
        }
    }
}

/// Steps after which a fit that does not end by itself asks whether it may go on.
const ASKED: u64 = 50;
/// Draws that a round's bound is estimated from.
const RANKING_DRAWS: usize = 1024;
/// Streams of starts are apart from those of steps.
const START_STEP: u64 = u64::MAX - 1;

/// A finished fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The prior's parameters.
    pub theta: Vec<f64>,
    /// The recursive approximation's parameters.
    pub phi: Vec<f64>,
    /// How many steps were taken after the start.
    pub steps: u64,
    /// How many there were to be.
    pub planned: u64,
    /// Whether it was stopped before the end of its schedule.
    pub stopped: bool,
    /// The bound that each start reached in its short run, −∞ for one that was impossible; the best was carried on. Empty for a
    /// single start.
    pub starts: Vec<f64>,
    /// The share of draws that were dropped because they were not finite.
    pub dropped: f64,
    /// What was done for each latent.
    pub plans: Vec<Plan>,
    /// Each step's estimate of the bound.
    pub history: Vec<f64>,
    /// What steps of one size came to, each half the one before; empty where the fit did not end by itself.
    pub rounds: Vec<Round>,
    /// Whether the observer's means were spent before it ended by itself.
    pub is_spent: bool,
}

impl Fitted {
    /// The bounds of the fitted model.
    ///
    /// # Errors
    /// As [`bound::evaluate`].
    pub fn bounds(&self, model: &dyn Model, q: &Variational, settings: &BoundSettings) -> Result<Bounds> {
        bound::evaluate(model, q, (&self.theta, &self.phi), settings)
    }
}

/// Fits a variational model to a model: several short runs from different starts, the best by the bound carried on.
///
/// ```
/// use hyperprior::fit::{FitSettings, Quiet, fit};
/// use hyperprior::likelihood::MeanField;
/// use hyperprior::model::{Latents, Model, Support};
/// use hyperprior::{Batch, Variational};
///
/// /// Counts with a known posterior: z ~ Poisson(4).
/// struct Counts(Latents);
/// impl Model for Counts {
///     fn latents(&self) -> &Latents {
///         &self.0
///     }
///     fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
///         for (o, z) in out.iter_mut().zip(z.column(0)) {
///             *o = z * 4f64.ln() - 4.0 - hyperprior::math::special::ln_factorial(*z);
///         }
///         Ok(())
///     }
/// }
///
/// let model = Counts(Latents::new().scalar("z", Support::Counts)?);
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let fitted = fit(&model, &q, &FitSettings { steps: 500, ..FitSettings::default() }, &mut Quiet)?;
/// assert!((fitted.theta[0].exp() - 4.0).abs() < 0.1);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// What the parts, the model and the settings say; [`Error::NotFinite`] where no start is possible.
pub fn fit(model: &dyn Model, q: &Variational, settings: &FitSettings, observer: &mut dyn Observer) -> Result<Fitted> {
    settings.check()?;
    q.check(model)?;
    fit_from(model, q, settings, &start::starts(model, q, settings)?, observer)
}

/// As [`fit`], from given starts.
///
/// # Errors
/// As [`fit`].
pub fn fit_from(
    model: &dyn Model,
    q: &Variational,
    settings: &FitSettings,
    starts: &[Start],
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    settings.check()?;
    q.check(model)?;
    let many = starts.len() > 1;
    let mut best: Option<(f64, Fit)> = None;
    let mut bounds = Vec::new();
    let mut failure = None;
    for (number, start) in starts.iter().enumerate() {
        match short_run(model, q, settings, start, number, starts.len(), observer) {
            Ok((bound, run, flow)) => {
                if many {
                    bounds.push(bound);
                }
                if best.as_ref().is_none_or(|(b, _)| bound > *b || b.is_nan()) {
                    best = Some((bound, run));
                }
                if flow.is_break() {
                    break;
                }
            }
            // A start that is impossible is one start fewer; a model that fails is a failure.
            Err(error @ (Error::NotFinite { .. } | Error::GradientNotFinite { .. })) if many => {
                bounds.push(f64::NEG_INFINITY);
                failure = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let Some((_, mut run)) = best else {
        return Err(failure.unwrap_or(Error::EmptyModel));
    };
    let before = run.step;
    let stopped = run.run(observer)?.is_break();
    let fitted = run.finish(stopped);
    Ok(Fitted { steps: fitted.steps - before, starts: bounds, ..fitted })
}

/// A short run from one start, and the bound it reached.
fn short_run<'a>(
    model: &'a dyn Model,
    q: &'a Variational,
    settings: &'a FitSettings,
    start: &Start,
    number: usize,
    of: usize,
    observer: &mut dyn Observer,
) -> Result<(f64, Fit<'a>, ControlFlow<()>)> {
    let mut run = Fit::init_numbered(model, q, settings, start, number as u64)?;
    let steps = if of > 1 { settings.start.steps } else { 0 };
    let flow = match steps {
        0 => ControlFlow::Continue(()),
        steps => run.piece(observer, Phase::Start { number, of }, 0, steps)?,
    };
    let bound = if of > 1 {
        let bounds = BoundSettings { draws: settings.start.ranking_draws, samples: 0, seed: settings.seed };
        bound::evaluate(model, q, (&run.theta, &run.phi), &bounds)?.elbo.value
    } else {
        f64::NAN
    };
    Ok((bound, run, flow))
}

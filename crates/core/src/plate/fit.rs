//! Fits a plate: epochs of minibatches without replacement.

use super::guide::Rows;
use super::{Guide, PlateEngine, PlateGradient, PlateModel, PlateParameters};
use crate::error::{Error, Result};
use crate::fit::{Observer, Phase, Progress, half_cosine};
use crate::gradient::{Estimate, GradientSettings};
use crate::optimizer::{Adam, Optimizer};
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::random::{Purpose, stream};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// How a plate is fitted. See [`PlateModel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PlateSettings {
    /// The seed.
    pub seed: u64,
    /// How many times every datum is visited.
    pub epochs: u64,
    /// B, the number of data per step.
    pub batch_len: usize,
    /// The initial step size; it falls to zero along a half cosine.
    pub step_size: f64,
    /// How gradients are estimated.
    pub gradient: GradientSettings,
}

crate::setters!(PlateSettings {
    seed: u64, epochs: u64, batch_len: usize, step_size: f64, gradient: GradientSettings;
});

impl Default for PlateSettings {
    fn default() -> Self {
        let gradient = GradientSettings { draws: 8, replicates: 1, ..GradientSettings::default() };
        Self { seed: 1, epochs: 100, batch_len: 64, step_size: 0.02, gradient }
    }
}

/// A fit in progress. See [`PlateModel`].
pub struct PlateFit<'a> {
    model: &'a dyn PlateModel,
    settings: &'a PlateSettings,
    engine: PlateEngine<'a>,
    parameters: PlateParameters,
    gradient: PlateGradient,
    of_globals: [Adam; 2],
    /// One for the network, or one for each row of a table.
    of_locals: Vec<Adam>,
    order: Vec<usize>,
    step: u64,
}

impl<'a> PlateFit<'a> {
    /// A fit that begins at `starts`: that of the globals, and that of every datum.
    ///
    /// # Errors
    /// As [`PlateEngine::new`] and [`Start::check`]; [`Error::BadSetting`] for empty batches, [`Error::EmptyModel`] without data.
    pub fn init(
        model: &'a dyn PlateModel,
        (globals, locals): (Option<&'a Variational>, &'a Variational),
        guide: &Guide,
        settings: &'a PlateSettings,
        (global_start, local_start): (&Start, &Start),
    ) -> Result<Self> {
        if model.data_len() == 0 {
            return Err(Error::EmptyModel);
        }
        if settings.batch_len == 0 {
            let reason = "at least one datum is needed";
            return Err(Error::BadSetting { field: "batch_len", value: "0".to_owned(), reason });
        }
        if !(settings.step_size > 0.0 && settings.step_size.is_finite()) {
            let (value, reason) = (settings.step_size.to_string(), "it must be above 0");
            return Err(Error::BadSetting { field: "step_size", value, reason });
        }
        let engine = PlateEngine::new(model, globals, locals, guide, &settings.gradient)?;
        let mut rng = stream(settings.seed, Purpose::PlateStart.step(), 0, 0);
        let mut parameters = PlateParameters::default();
        if let Some(q) = globals {
            global_start.check(q.prior().lambda_len())?;
            parameters.globals = (vec![0.0; q.theta_len()], vec![0.0; q.phi_len()]);
            q.prior().initialize(global_start, &mut rng, &mut parameters.globals.0);
            q.recursive().initialize(global_start, &mut rng, &mut parameters.globals.1);
        }
        local_start.check(locals.prior().lambda_len())?;
        parameters.locals = vec![0.0; engine.rows().parameters_len()];
        engine.rows().initialize(locals, local_start, &mut rng, &mut parameters.locals);
        let of_locals = match guide {
            Guide::Table => vec![Adam::new(engine.rows().row_len()); model.data_len()],
            Guide::Network(_) => vec![Adam::new(parameters.locals.len())],
        };
        let of_globals = [Adam::new(parameters.globals.0.len()), Adam::new(parameters.globals.1.len())];
        let order = (0..model.data_len()).collect();
        let gradient = PlateGradient::default();
        Ok(Self { model, settings, engine, parameters, gradient, of_globals, of_locals, order, step: 0 })
    }

    /// Visits every datum once, in a new order; returns whether the observer wants to continue.
    ///
    /// # Errors
    /// As [`PlateEngine::step`].
    pub fn epoch(&mut self, size: f64, steps: u64, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let mut rng = stream(self.settings.seed, Purpose::PlateMinibatch.step(), 0, self.step);
        for i in (1..self.order.len()).rev() {
            self.order.swap(i, rng.random_range(0..=i));
        }
        let order = std::mem::take(&mut self.order);
        let mut flow = ControlFlow::Continue(());
        let mut result = Ok(());
        for batch in order.chunks(self.settings.batch_len) {
            match self.take_step(batch, size) {
                Ok(estimate) => {
                    flow = observer.observe(&Progress { phase: Phase::Main, step: self.step, steps, estimate });
                }
                Err(error) => result = Err(error),
            }
            if flow.is_break() || result.is_err() {
                break;
            }
        }
        self.order = order;
        result.map(|()| flow)
    }

    fn take_step(&mut self, batch: &[usize], size: f64) -> Result<Estimate> {
        let key = (self.settings.seed, self.step);
        let estimate = self.engine.step(self.model, batch, key, &self.parameters, &mut self.gradient)?;
        let gradients = [&self.gradient.globals.0, &self.gradient.globals.1, &self.gradient.locals];
        if !gradients.into_iter().flatten().all(|d| d.is_finite()) {
            return Err(Error::GradientNotFinite { step: self.step, elbo: estimate.elbo });
        }
        self.step += 1;
        let [theta, phi] = &mut self.of_globals;
        theta.ascend(&mut self.parameters.globals.0, &self.gradient.globals.0, size);
        phi.ascend(&mut self.parameters.globals.1, &self.gradient.globals.1, size);
        let (locals, gradient) = (&mut self.parameters.locals, &self.gradient.locals);
        match self.engine.rows() {
            Rows::Network { .. } => self.of_locals[0].ascend(locals, gradient, size),
            Rows::Table { row_len, .. } => {
                for (&n, gradient) in batch.iter().zip(gradient.chunks_exact((*row_len).max(1))) {
                    self.of_locals[n].ascend(&mut locals[n * row_len..(n + 1) * row_len], gradient, size);
                }
            }
        }
        Ok(estimate)
    }

    /// Runs all epochs, with the step size falling along a half cosine.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let epochs = self.settings.epochs;
        let steps = epochs * self.model.data_len().div_ceil(self.settings.batch_len) as u64;
        for epoch in 0..epochs {
            let size = half_cosine(self.settings.step_size, epoch as f64 / epochs as f64);
            if self.epoch(size, steps, observer)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The learned parameters.
    pub fn parameters(&self) -> &PlateParameters {
        &self.parameters
    }

    /// (θ_n, φ_n) of datum `n`.
    pub fn row(&self, n: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.engine.rows().row_len()];
        let rows = self.engine.rows();
        rows.read(&self.parameters.locals, n, self.model.features(n), &mut Vec::new(), &mut row);
        row
    }
}

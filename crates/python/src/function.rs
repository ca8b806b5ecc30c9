//! A model defined by a Python function that computes log p(x, z) for a batch of draws.
//!
//! Conditionals of discrete latents come from evaluating the log joint at every value. Without a gradient, central differences of
//! the log joint are used. Continuous latents are fitted on the real line; the function sees them on their own scale.

use crate::draws::{self, matrix};
use crate::error::exception;
use crate::infer::{check_memory, log_density, parse_settings, result};
use crate::watch::Watch;
use hyperprior::infer::{Posterior, Source, Starts, infer};
use hyperprior::model::{Conditionals, Gradient, Latents, Model, Support};
use hyperprior::posterior::{Column, Draws};
use hyperprior::report::{About, FitReport};
use hyperprior::{Batch, Result};
use hyperprior_bugs::memory::columns_of_fit;
use hyperprior_graph::fit::FitError;
use hyperprior_math::bijector::Bijector;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The most numbers passed to Python in one call.
const NUMBERS_MAX: usize = 1 << 22;
/// The relative step of central differences: the cube root of the machine epsilon.
const STEP: f64 = 6e-6;
/// The cost of a call, in additions: mostly the interpreter's overhead.
const WORK: usize = 20_000;

/// How often signals are checked.
const PAUSE: Duration = Duration::from_millis(50);

/// A Python function with its latents.
#[pyclass(frozen, module = "hyperprior._hyperprior")]
pub struct Function {
    /// On the real line.
    latents: Latents,
    /// The map from the real line to each scalar; `None` for discrete ones.
    bijectors: Vec<Option<Bijector>>,
    /// Takes the latents on their own scale, a row each, and returns the log density of each draw.
    log_joint: Py<PyAny>,
    /// Takes the same and returns a row of derivatives for each latent.
    own_gradient: Option<Py<PyAny>>,
    /// The indices of the continuous scalars.
    continuous: Vec<usize>,
    /// The first exception that the function raised; it is passed on unchanged.
    raised: Mutex<Option<PyErr>>,
}

#[pymethods]
impl Function {
    /// `latents` has the name, shape, support, and smallest and largest value of each latent.
    #[new]
    fn new(
        latents: Vec<(String, Vec<usize>, String, f64, f64)>,
        log_joint: Py<PyAny>,
        gradient: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (mut on_real_line, mut bijectors) = (Latents::new(), Vec::new());
        for (name, shape, kind, lower, upper) in latents {
            let support = match kind.as_str() {
                "real" => Support::Real,
                "positive" => Support::Positive,
                "unit" => Support::UnitInterval,
                "counts" => Support::Counts,
                "integers" => Support::Integers { lower, upper },
                other => return Err(exception(format!("latent `{name}`: unknown support `{other}`"))),
            };
            let bijector = Bijector::for_support(support);
            on_real_line =
                on_real_line.array(&name, &shape, bijector.map_or(support, |_| Support::Real)).map_err(exception)?;
            bijectors.extend((0..shape.iter().product()).map(|_| bijector));
        }
        if on_real_line.is_empty() {
            return Err(exception(hyperprior::Error::EmptyModel));
        }
        let continuous = (0..bijectors.len()).filter(|i| bijectors[*i].is_some()).collect();
        let raised = Mutex::new(None);
        Ok(Self { latents: on_real_line, bijectors, log_joint, own_gradient: gradient, continuous, raised })
    }

    /// Fits the model. Returns the same dict as the fit of a program.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        settings_json: &str,
        init: Option<Vec<Option<f64>>>,
        name: String,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let began = Instant::now();
        let settings = parse_settings(settings_json)?;
        check_memory(settings.draws, columns_of_fit(self.latents.len(), self.latents.len()))?;
        let given = init.map(|init| self.unconstrained(&init)).transpose()?;
        self.forget();
        let mut watch = Watch::new(progress);
        let work = || -> std::result::Result<_, FitError> {
            let starts = Starts { given, ..Starts::default() };
            let inferred = infer(self, &starts, &settings, &mut watch)?;
            let draws = self.draws(&inferred.z)?;
            let log_density = log_density(self, &inferred.z)?;
            Ok((Posterior { draws, source: Source::Approximate(Box::new(inferred)) }, log_density))
        };
        let found = py.detach(|| self.on_one_thread(work))?;
        // An exception from the function is the cause of any error of the fit.
        if let Some(raised) = self.raised.lock().ok().and_then(|mut raised| raised.take()) {
            return Err(raised);
        }
        watch.finish()?;
        let (posterior, log_density) = found.map_err(exception)?;
        let about = About { name, ..About::default() };
        let report = FitReport::new(about, self, settings, &posterior, began.elapsed().as_secs_f64());
        let out = result(py, &report)?;
        out.set_item("log_density", log_density.map(|log| PyArray1::from_vec(py, log)))?;
        draws::insert(py, posterior.draws, &out)?;
        Ok(out)
    }

    /// Compares the gradient with central differences of the log joint, at random points.
    fn check(&self, py: Python, seed: u64) -> PyResult<()> {
        self.forget();
        let checked = py.detach(|| self.on_one_thread(|| hyperprior::check(self, seed)))?;
        match self.raised.lock().ok().and_then(|mut raised| raised.take()) {
            Some(raised) => Err(raised),
            None => checked.map(|_| ()).map_err(exception),
        }
    }
}

impl Function {
    /// Runs `work` on another thread while this one checks signals. Python runs one call at a time in any case, so more threads
    /// would only wait for each other.
    fn on_one_thread<T: Send>(&self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(exception)?;
        let (send, receive) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Attach once around everything: otherwise each call would create a thread state.
                let _ = send.send(pool.install(|| Python::attach(|py| py.detach(work))));
            });
            loop {
                match receive.recv_timeout(PAUSE) {
                    Ok(found) => return Ok(found),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                            self.keep(interrupt);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return Err(exception("the fit ended without a result")),
                }
            }
        })
    }

    fn forget(&self) {
        if let Ok(mut raised) = self.raised.lock() {
            *raised = None;
        }
    }

    /// Stores an exception, if it is the first, and returns the error that stops the fit.
    fn keep(&self, error: PyErr) -> hyperprior::Error {
        let message = error.to_string();
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
        hyperprior::Error::Model(message)
    }

    /// Fails if an exception was raised already.
    fn check_raised(&self) -> Result<()> {
        match self.raised.lock() {
            Ok(raised) if raised.is_none() => Ok(()),
            _ => Err(hyperprior::Error::Model("the function raised an exception".to_owned())),
        }
    }

    /// Maps starting values to the real line.
    fn unconstrained(&self, init: &[Option<f64>]) -> PyResult<Vec<Option<f64>>> {
        let one = |i: usize, value: f64| {
            let mut u = [value];
            if let Some(bijector) = &self.bijectors[i] {
                bijector.inverse(&[value], &mut u);
            }
            let is_valid = match self.latents.support(i) {
                support if support.is_discrete() => support.contains(value),
                _ => u[0].is_finite(),
            };
            let name = self.latents.name(i);
            is_valid.then_some(u[0]).ok_or_else(|| exception(format!("init: `{name}` cannot be {value}")))
        };
        init.iter().enumerate().map(|(i, value)| value.map(|value| one(i, value)).transpose()).collect()
    }

    /// The latents on their own scale.
    fn own(&self, z: &Batch) -> Batch {
        let mut own = z.clone();
        for i in &self.continuous {
            if let Some(bijector) = &self.bijectors[*i] {
                bijector.forward(z.column(*i), own.column_mut(*i));
            }
        }
        own
    }

    fn draws(&self, z: &Batch) -> std::result::Result<Draws, FitError> {
        let column = |i: usize| match self.bijectors[i] {
            Some(_) => Column::continuous(self.latents.name(i)),
            None => Column::discrete(self.latents.name(i)),
        };
        Ok(Draws::new((0..self.latents.len()).map(column).collect(), self.own(z))?)
    }

    /// The log density on the real line.
    fn evaluate(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.check_raised()?;
        let own = self.own(z);
        let shape = [own.columns_len(), own.draws_len()];
        Python::attach(|py| -> PyResult<()> {
            let found = self.log_joint.call1(py, (matrix(py, own.into_vec(), shape)?,))?;
            let found: PyReadonlyArray1<f64> = found.extract(py)?;
            out.copy_from_slice(found.as_slice().map_err(exception)?);
            Ok(())
        })
        .map_err(|error| self.keep(error))?;
        self.add_jacobians(z, out);
        Ok(())
    }

    /// Adds the log Jacobians of the maps to the real line.
    fn add_jacobians(&self, z: &Batch, out: &mut [f64]) {
        let mut slopes = vec![0.0; z.draws_len()];
        for i in &self.continuous {
            if let Some(bijector) = self.bijectors[*i].filter(|b| *b != Bijector::Identity) {
                bijector.log_derivative(z.column(*i), &mut slopes);
                out.iter_mut().zip(&slopes).for_each(|(out, slope)| *out += slope);
            }
        }
    }

    /// Evaluates `len` changed copies of a batch, as many in one call to Python as [`NUMBERS_MAX`] allows.
    fn copies(
        &self,
        z: &Batch,
        len: usize,
        change: impl Fn(usize, &mut Batch, usize),
        mut take: impl FnMut(usize, &[f64]),
    ) -> Result<()> {
        let (n, draws) = (z.columns_len(), z.draws_len());
        let at_once = (NUMBERS_MAX / (n * draws).max(1)).clamp(1, len.max(1));
        let mut log_p = Vec::new();
        for first in (0..len).step_by(at_once) {
            let few = at_once.min(len - first);
            let mut copies = Batch::zeros(n, few * draws);
            for i in 0..n {
                let column = copies.column_mut(i);
                (0..few).for_each(|c| column[c * draws..(c + 1) * draws].copy_from_slice(z.column(i)));
            }
            (0..few).for_each(|c| change(first + c, &mut copies, c * draws));
            log_p.resize(few * draws, 0.0);
            self.evaluate(&copies, &mut log_p)?;
            (0..few).for_each(|c| take(first + c, &log_p[c * draws..(c + 1) * draws]));
        }
        Ok(())
    }
}

/// The step of the central difference at `x`.
fn step(x: f64) -> f64 {
    STEP * x.abs().max(1.0)
}

impl Model for Function {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.evaluate(z, out)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        (self.continuous.len() < self.latents.len()).then_some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn work(&self) -> usize {
        WORK
    }
}

impl Conditionals for Function {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let draws = z.draws_len();
        self.copies(
            z,
            values.len(),
            |v, copies, at| copies.column_mut(i)[at..at + draws].fill(values[v]),
            |v, log_p| out.column_mut(v).copy_from_slice(log_p),
        )
    }
}

impl Gradient for Function {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.evaluate(z, out)?;
        let (n, draws) = (z.columns_len(), z.draws_len());
        d_z.reset(n, draws);
        if self.continuous.is_empty() {
            return Ok(());
        }
        let Some(own_gradient) = &self.own_gradient else {
            // For each number, one copy with a step to the right, then one with a step to the left.
            return self.copies(
                z,
                2 * self.continuous.len(),
                |c, copies, at| {
                    let side = if c % 2 == 0 { 1.0 } else { -1.0 };
                    let column = &mut copies.column_mut(self.continuous[c / 2])[at..at + draws];
                    column.iter_mut().for_each(|x| *x += side * step(*x));
                },
                |c, log_p| {
                    let side = if c % 2 == 0 { 1.0 } else { -1.0 };
                    let (x, d) = (z.column(self.continuous[c / 2]), d_z.column_mut(self.continuous[c / 2]));
                    for s in 0..draws {
                        d[s] += side * log_p[s] / (2.0 * step(x[s]));
                    }
                },
            );
        };
        let mut d_own = vec![0.0; n * draws];
        Python::attach(|py| -> PyResult<()> {
            let own = matrix(py, self.own(z).into_vec(), [n, draws])?;
            let found = own_gradient.call1(py, (own,))?;
            let found: PyReadonlyArray2<f64> = found.extract(py)?;
            d_own.copy_from_slice(found.as_slice().map_err(exception)?);
            Ok(())
        })
        .map_err(|error| self.keep(error))?;
        let ones = vec![1.0; draws];
        for i in &self.continuous {
            if let Some(bijector) = &self.bijectors[*i] {
                bijector.pullback(z.column(*i), &d_own[i * draws..(i + 1) * draws], &ones, d_z.column_mut(*i));
            }
        }
        Ok(())
    }
}

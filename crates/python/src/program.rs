//! A model in BUGS with its data.

use crate::draws;
use crate::error::{Error, exception};
use crate::infer::{check_memory, log_density, parse_settings, result};
use crate::watch::Watch;
use hyperprior::Model;
use hyperprior::infer::{InferSettings, Posterior, Source};
use hyperprior::posterior::ranges;
use hyperprior::posterior::{Monitor, MonitorError, summarise};
use hyperprior::report::{LinearResponseSummary, Predictive};
use hyperprior_bugs::marginalise;
use hyperprior_bugs::memory::columns_of_fit;
use hyperprior_bugs::predict::{MissingDraws, Predictor, spread};
use hyperprior_bugs::{Array, Data, Diagnostic, Dialect, Options, Severity, compile, render};
use hyperprior_graph::fit::{FitError, Task};
use hyperprior_graph::posterior_predictive_check;
use hyperprior_graph::{Graph, Marginalise};
use numpy::{PyArray1, PyReadonlyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::time::Instant;

/// A compiled model.
#[pyclass(frozen, module = "hyperprior._hyperprior")]
pub struct Program {
    source: String,
    name: String,
    dialect: Dialect,
    graph: Graph,
    eliminate: Marginalise,
    /// The names in the data.
    given: Vec<String>,
    observed: usize,
    /// Warnings and notes of the compiler.
    diagnostics: Vec<Diagnostic>,
    /// The same with the lines of the source they are about.
    #[pyo3(get)]
    drawn: String,
}

#[pymethods]
impl Program {
    #[new]
    fn new(
        py: Python,
        source: String,
        name: String,
        data: HashMap<String, PyReadonlyArrayDyn<f64>>,
        init: Option<HashMap<String, PyReadonlyArrayDyn<f64>>>,
        dialect: &str,
        eliminated: &str,
    ) -> PyResult<Self> {
        let dialect = match dialect {
            "jags" => Dialect::Jags,
            "openbugs" => Dialect::OpenBugs,
            other => return Err(exception(format!("dialect=`{other}` is not known; use jags or openbugs"))),
        };
        let (data, init) = (arrays(&data), init.as_ref().map(arrays));
        let options = Options { dialect, init, file: Some(name.clone()) };
        let compiled = py.detach(|| compile(&source, &name, &data, &options));
        let compiled = compiled.map_err(|diagnostics| {
            let drawn = render(&diagnostics, &name, &source, false);
            Error::new_err(format!("the model cannot be compiled\n\n{}", drawn.trim_end()))
        })?;
        let eliminate =
            marginalise::parse(eliminated, &compiled.graph).map_err(|e| exception(format!("eliminate: {e}")))?;
        let drawn = match compiled.warnings.as_slice() {
            [] => String::new(),
            warnings => render(warnings, &name, &source, false).trim_end().to_owned(),
        };
        Ok(Self {
            name: compiled.name,
            dialect,
            graph: compiled.graph,
            eliminate,
            given: data.arrays.into_keys().collect(),
            observed: compiled.observed,
            diagnostics: compiled.warnings,
            drawn,
            source,
        })
    }

    /// The messages of the compiler's warnings and notes.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect()
    }

    /// The latents as ranges: `z[1:150]`, `mu`.
    fn latents(&self) -> Vec<String> {
        ranges::ranges(self.graph.latent_names())
    }

    /// The number of observed values.
    fn observed(&self) -> usize {
        self.graph.observations_len()
    }

    /// The observed variables as ranges: `y[1:150]`.
    fn observed_names(&self) -> Vec<String> {
        ranges::ranges(self.graph.observed_names())
    }

    /// Fits the model. Returns `values`, `names`, `discrete`, `summary`, `trace`, `log_density` and, with `loo`, `log_likelihood`.
    #[pyo3(signature = (settings_json, monitor, checks, progress))]
    fn fit<'py>(
        &self,
        py: Python<'py>,
        settings_json: &str,
        monitor: &str,
        checks: Checks,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let began = Instant::now();
        let settings = parse_settings(settings_json)?;
        let monitors = Monitor::parse_list(monitor).map_err(exception)?;
        let task = Task::new(self.graph.clone(), &self.eliminate, &monitors).map_err(|error| self.refused(error))?;
        if self.graph.observations_len() == 0 && (checks.loo || checks.ppc) {
            let argument = if checks.loo { "loo" } else { "ppc" };
            return Err(exception(format!("{argument}: nothing is observed; give the model its data")));
        }
        let quantities = task.quantities().len() + if checks.loo { 2 * self.graph.observations_len() } else { 0 };
        check_memory(settings.draws, columns_of_fit(task.model().latents().len(), quantities))?;
        let mut watch = Watch::new(progress);
        let fitted = py.detach(|| run(&task, &settings, checks, &mut watch));
        watch.finish()?;
        let Fitted { posterior, predictive, linear_response, log_density } =
            fitted.map_err(|error| self.refused(error))?;
        let about = (self.name.clone(), self.observed, self.warnings());
        let report = task.report(about, settings, &posterior, began.elapsed().as_secs_f64());
        let out = result(py, &report.with(predictive, linear_response))?;
        out.set_item("log_density", log_density.map(|log| PyArray1::from_vec(py, log)))?;
        draws::insert(py, posterior.draws, &out)?;
        Ok(out)
    }

    /// Predicts new data from the draws of a fit of this model. Returns `values`, `names`, `discrete` and `summary`.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        new: &Self,
        saved: (PyReadonlyArray2<'py, f64>, Vec<String>),
        named: (Option<String>, Option<String>),
        size_and_seed: (Option<usize>, u64),
    ) -> PyResult<Bound<'py, PyDict>> {
        let ((values, names), (reuse, monitor), (len, seed)) = (saved, named, size_and_seed);
        let parse = |text: String| Monitor::parse_list(&text).map_err(exception);
        let (reused, monitors) = (reuse.map(parse).transpose()?, monitor.map(parse).transpose()?);
        let predictor = Predictor::new((&self.source, self.dialect), &self.graph, &new.graph, reused.as_deref())
            .map_err(|error| exception(format!("reuse: {error}")))?
            .of(monitors.as_deref())
            .map_err(exception)?;
        let (have, values) = (values.shape()[1], values.as_slice().map_err(exception)?);
        let len = len.unwrap_or(have);
        if len == 0 {
            return Err(exception("draws=0: at least one draw is needed"));
        }
        let columns =
            predictor.transfer.reused.len() + 2 * predictor.quantities.len() + 2 * new.graph.observations_len();
        check_memory(len, columns)?;
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let column = |name: &str| places.get(name).map(|i| &values[i * have..(i + 1) * have]);
        let draws = spread(&predictor.transfer.reused, (have, len), column).map_err(|MissingDraws { name }| {
            exception(format!(
                "the fit saved no draws of `{name}`. Fit again without monitor, or with `{name}` among its names; or leave it out \
                 of reuse to resimulate it"
            ))
        })?;
        let prediction = py.detach(|| predictor.predict(&draws, seed)).map_err(exception)?;
        let short = |names: &[String]| ranges::ranges(names.iter().map(String::as_str));
        let mismatched = predictor.transfer.mismatched.iter().map(|(array, here, there)| {
            format!(
                "`{array}` is resimulated, since it has {here} elements here and {there} in the fit; name the elements to reuse \
                 with reuse"
            )
        });
        // Notes are about variables without data that nothing depends on: here, those to predict.
        let warned = new.diagnostics.iter().filter(|one| one.severity > Severity::Note).map(|one| one.message.clone());
        let summaries = summarise(&prediction.draws);
        let summary = serde_json::json!({
            "model": new.name,
            "seed": seed,
            "draws": len,
            "reused": short(&predictor.transfer.reused),
            "resimulated": short(&predictor.transfer.resimulated),
            "elpd": prediction.elpd,
            "seen": prediction.seen,
            "warnings": warned.chain(mismatched).collect::<Vec<_>>(),
            "parameters": hyperprior::posterior::Parameters(summaries),
        });
        let out = PyDict::new(py);
        out.set_item("summary", summary.to_string())?;
        draws::insert(py, prediction.draws, &out)?;
        Ok(out)
    }
}

impl Program {
    /// An error as an exception that says which argument to change.
    fn refused(&self, error: FitError) -> PyErr {
        use hyperprior::Error as Engine;
        match error {
            FitError::Monitor(MonitorError::Unknown { name, .. }) if self.given.contains(&name) => {
                exception(format!("monitor: `{name}` is observed (it is in the data), so it has no posterior"))
            }
            FitError::Engine(error @ Engine::NotFinite { .. }) => {
                exception(format!("{error}; init gives starting values, such as {{\"mu\": 0.5}}"))
            }
            FitError::Engine(
                error @ (Engine::BadSetting { .. } | Engine::BadPart { .. } | Engine::Mismatch { .. }),
            ) => exception(format!("{error}; choose another method")),
            error => exception(error),
        }
    }
}

/// What to compute besides the posterior.
#[derive(Clone, Copy, FromPyObject)]
pub struct Checks {
    #[pyo3(item)]
    loo: bool,
    #[pyo3(item)]
    ppc: bool,
    #[pyo3(item)]
    linear_response: bool,
}

/// The posterior and the checks that were asked for.
struct Fitted {
    posterior: Posterior,
    predictive: Predictive,
    linear_response: Option<LinearResponseSummary>,
    log_density: Option<Vec<f64>>,
}

fn run(task: &Task, settings: &InferSettings, checks: Checks, watch: &mut Watch) -> Result<Fitted, FitError> {
    // What cannot be done fails before the fit, not after it.
    if checks.loo {
        task.model().pointwise()?;
    }
    let posterior = task.run(settings, watch)?;
    let z = posterior.latents();
    let ppc = checks.ppc.then(|| posterior_predictive_check(task.model(), &z, settings.seed));
    let loo = checks.loo.then(|| task.model().pointwise()?.loo(&z)).transpose()?;
    let predictive = Predictive::new(ppc, loo);
    let linear_response = match (&posterior.source, checks.linear_response) {
        (Source::Approximate(inferred), true) => Some(task.linear_response(inferred, settings)?),
        _ => None,
    };
    let log_density = log_density(task.model(), &z)?;
    Ok(Fitted { posterior, predictive, linear_response, log_density })
}

/// Data from NumPy arrays; NaN is a missing value.
fn arrays(given: &HashMap<String, PyReadonlyArrayDyn<f64>>) -> Data {
    let array = |numbers: &PyReadonlyArrayDyn<f64>| Array {
        shape: numbers.shape().to_vec(),
        values: numbers.as_array().iter().copied().collect(),
    };
    given.iter().fold(Data::default(), |data, (name, numbers)| data.with(name, array(numbers)))
}

//! A model in BUGS with its data.

use crate::draws;
use crate::error::{Error, in_python, said};
use crate::infer::{left_behind, log_density, settings, within_memory};
use crate::watch::Watch;
use hyperprior::Model;
use hyperprior::infer::InferSettings;
use hyperprior::model::graph::{Eliminate, Graph};
use hyperprior::posterior::{Monitor, MonitorError, summarise};
use hyperprior_bugs::eliminate::eliminate;
use hyperprior_bugs::fit::{FitError, Posterior, Source, Task};
use hyperprior_bugs::memory::columns_of_fit;
use hyperprior_bugs::names;
use hyperprior_bugs::predict::{Lacking, Outlook, spread};
use hyperprior_bugs::told::{Foretold, Response, Told};
use hyperprior_bugs::{Array, Data, Dialect, Options, compile, render};
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
    eliminate: Eliminate,
    /// What the data name.
    given: Vec<String>,
    observed: usize,
    /// What the front end warned of, and the same drawn over the source.
    #[pyo3(get)]
    warnings: Vec<String>,
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
            other => return Err(said(format!("dialect=`{other}` is not known; use jags or openbugs"))),
        };
        let (data, init) = (arrays(&data), init.as_ref().map(arrays));
        let options = Options { dialect, init, file: Some(name.clone()) };
        let compiled = py.detach(|| compile(&source, &name, &data, &options));
        let compiled = compiled.map_err(|diagnostics| {
            let drawn = render(&diagnostics, &name, &source, false);
            Error::new_err(format!("the model cannot be compiled\n\n{}", drawn.trim_end()))
        })?;
        let eliminate = eliminate(eliminated, &compiled.graph).map_err(|e| said(format!("eliminate: {e}")))?;
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
            warnings: compiled.warnings.iter().map(|w| w.message.clone()).collect(),
            drawn,
            source,
        })
    }

    /// The latents in few words: `z[1:150]`, `mu`.
    fn latents(&self) -> Vec<String> {
        names::ranges(self.graph.latent_names())
    }

    /// How many numbers are observed.
    fn observed(&self) -> usize {
        self.graph.observations_len()
    }

    /// What is observed, in few words: `y[1:150]`.
    fn observed_names(&self) -> Vec<String> {
        names::ranges(self.graph.observed_names())
    }

    /// Fits it. With `values`, `names`, `discrete`, `summary`, `trace`, and `log_density` and `log_likelihood` where there are any.
    #[pyo3(signature = (settings_json, monitor, checks, tell))]
    fn fit<'py>(
        &self,
        py: Python<'py>,
        settings_json: &str,
        monitor: &str,
        checks: Checks,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let began = Instant::now();
        let how = settings(settings_json)?;
        let monitors = Monitor::parse_list(monitor).map_err(said)?;
        let task = Task::new(self.graph.clone(), &self.eliminate, &monitors).map_err(|error| self.refused(error))?;
        if self.graph.observations_len() == 0 && (checks.loo || checks.predictive) {
            let argument = if checks.loo { "loo" } else { "check_predictive" };
            return Err(said(format!("{argument}: nothing is observed; give the model its data")));
        }
        let kept = task.quantities().len() + if checks.loo { 2 * self.graph.observations_len() } else { 0 };
        within_memory(how.draws, columns_of_fit(task.model().latents().len(), kept))?;
        let mut watch = Watch::new(tell);
        let found = py.detach(|| found(&task, &how, checks, &mut watch));
        watch.finish()?;
        let Found { posterior, foretold, response, log_density } = found.map_err(|error| self.refused(error))?;
        let about = (self.name.clone(), self.observed, self.warnings.clone());
        let told = Told::new(about, &task, how, &posterior, began.elapsed().as_secs_f64());
        let out = left_behind(py, &Told { foretold, response, ..told })?;
        out.set_item("log_density", log_density.map(|log| PyArray1::from_vec(py, log)))?;
        draws::give(py, posterior.draws, &out)?;
        Ok(out)
    }

    /// What draws of a fit of this model foretell of it with other data. With `values`, `names`, `discrete` and `summary`.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        new: &Self,
        kept: (PyReadonlyArray2<'py, f64>, Vec<String>),
        named: (Option<String>, Option<String>),
        how: (Option<usize>, u64),
    ) -> PyResult<Bound<'py, PyDict>> {
        let ((values, kept), (carry, monitor), (len, seed)) = (kept, named, how);
        let parse = |text: String| Monitor::parse_list(&text).map_err(said);
        let (carried, monitors) = (carry.map(parse).transpose()?, monitor.map(parse).transpose()?);
        let outlook = Outlook::new((&self.source, self.dialect), &self.graph, &new.graph, carried.as_deref())
            .map_err(|error| said(format!("carry: {error}")))?
            .of(monitors.as_deref())
            .map_err(said)?;
        let (have, values) = (values.shape()[1], values.as_slice().map_err(said)?);
        let len = len.unwrap_or(have);
        if len == 0 {
            return Err(said("draws=0: at least one draw is needed"));
        }
        let columns = outlook.carry.carried.len() + 2 * outlook.quantities.len() + 2 * new.graph.observations_len();
        within_memory(len, columns)?;
        let places: HashMap<&str, usize> = kept.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let column = |name: &str| places.get(name).map(|i| &values[i * have..(i + 1) * have]);
        let draws = spread(&outlook.carry.carried, (have, len), column).map_err(|Lacking { name }| {
            said(format!(
                "the fit kept no draws of `{name}`. Fit again without monitor, or with `{name}` among its names; or leave it out \
                 of carry, and it is drawn from its law"
            ))
        })?;
        let prediction = py.detach(|| outlook.foretell(&draws, seed)).map_err(said)?;
        let short = |names: &[String]| names::ranges(names.iter().map(String::as_str));
        let unlike = outlook.carry.unlike.iter().map(|(array, here, there)| {
            format!(
                "`{array}` is drawn from its law, since it has {here} elements here and {there} in the fit; carry names elements \
                 to carry over"
            )
        });
        // What is to be foretold has no data, and nothing depends on it: that is no news here.
        let warned = new.warnings.iter().filter(|warning| !warning.starts_with("nothing depends on")).cloned();
        let summaries = summarise(&prediction.draws);
        let summary = serde_json::json!({
            "model": new.name,
            "seed": seed,
            "draws": len,
            "carried": short(&outlook.carry.carried),
            "anew": short(&outlook.carry.anew),
            "elpd": prediction.elpd,
            "seen": prediction.seen,
            "warnings": warned.chain(unlike).collect::<Vec<_>>(),
            "parameters": hyperprior::posterior::Parameters(&summaries),
        });
        let out = PyDict::new(py);
        out.set_item("summary", in_python(&summary.to_string()))?;
        draws::give(py, prediction.draws, &out)?;
        Ok(out)
    }
}

impl Program {
    /// An error in words that say what to change here.
    fn refused(&self, error: FitError) -> PyErr {
        use hyperprior::Error as Engine;
        match error {
            FitError::Monitor(MonitorError::Unknown { name, .. }) if self.given.contains(&name) => {
                said(format!("monitor: `{name}` is observed (it is in the data), so it has no posterior"))
            }
            FitError::Engine(error @ Engine::NotFinite { .. }) => {
                said(format!("{error}; init gives starting values, such as {{\"mu\": 0.5}}"))
            }
            FitError::Engine(
                error @ (Engine::BadSetting { .. } | Engine::BadPart { .. } | Engine::Mismatch { .. }),
            ) => said(format!("{error}; choose another method")),
            error => said(error),
        }
    }
}

/// What is to be calculated beside the posterior.
#[derive(Clone, Copy, FromPyObject)]
pub struct Checks {
    #[pyo3(item)]
    loo: bool,
    #[pyo3(item)]
    predictive: bool,
    #[pyo3(item)]
    linear_response: bool,
}

struct Found {
    posterior: Posterior,
    foretold: Foretold,
    response: Option<Response>,
    log_density: Option<Vec<f64>>,
}

fn found(task: &Task, how: &InferSettings, checks: Checks, watch: &mut Watch) -> Result<Found, FitError> {
    let pointwise = checks.loo.then(|| task.model().pointwise()).transpose()?;
    let posterior = task.run(how, watch)?;
    let z = posterior.latents();
    let foretold = Foretold::new(task.model(), &z, how.seed, checks.predictive, pointwise.as_ref())?;
    let response = match (&posterior.source, checks.linear_response) {
        (Source::Approximate(inferred), true) => Some(Response::of(task, inferred, how)?),
        _ => None,
    };
    let log_density = log_density(task.model(), &z)?;
    Ok(Found { posterior, foretold, response, log_density })
}

/// Data as they were given: NaN is a missing value.
fn arrays(given: &HashMap<String, PyReadonlyArrayDyn<f64>>) -> Data {
    let array = |numbers: &PyReadonlyArrayDyn<f64>| Array {
        shape: numbers.shape().to_vec(),
        values: numbers.as_array().iter().copied().collect(),
    };
    given.iter().fold(Data::default(), |data, (name, numbers)| data.with(name, array(numbers)))
}

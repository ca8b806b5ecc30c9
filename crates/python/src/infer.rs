//! What all fits share: reading and checking the settings, and the result as a dict.

use crate::draws;
use crate::error::exception;
use crate::remedy::remedy;
use hyperprior::infer::{DRAWS_MIN, InferSettings, Method, PriorPart, RecursivePart, SIZE_MAX};
use hyperprior::report::FitReport;
use hyperprior::{Batch, Model};
use hyperprior_bugs::memory;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Parses the settings from JSON.
pub fn parse_settings(text: &str) -> PyResult<InferSettings> {
    let settings: InferSettings = serde_json::from_str(text).map_err(|error| {
        // The position in the JSON means nothing to a user who did not write it.
        let error = error.to_string();
        exception(error.rsplit_once(" at line ").map_or(error.as_str(), |(reason, _)| reason))
    })?;
    if settings.draws < DRAWS_MIN {
        return Err(exception(format!("draws={}: at least {DRAWS_MIN} draws are needed", settings.draws)));
    }
    let of_method = match settings.method {
        Method::LowRank(size) | Method::Mixture(size) | Method::Flow(size) | Method::Copula(size) => size,
        _ => 0,
    };
    let of_prior = settings.parts.prior.and_then(PriorPart::size).unwrap_or(0);
    let of_recursive = settings.parts.recursive.and_then(RecursivePart::size).unwrap_or(0);
    for (argument, size) in [("method", of_method), ("prior", of_prior), ("recursive", of_recursive)] {
        if size > SIZE_MAX {
            return Err(exception(format!("{argument}: the number after the colon is at most {SIZE_MAX}")));
        }
    }
    if let Some(importance) = settings.importance.filter(|importance| *importance > SIZE_MAX) {
        return Err(exception(format!("importance={importance}: the bound takes at most {SIZE_MAX} draws")));
    }
    if let Some(temperatures) = settings.annealed.filter(|temperatures| !(1..=SIZE_MAX).contains(temperatures)) {
        return Err(exception(format!("annealed={temperatures}: the bound takes from 1 to {SIZE_MAX} temperatures")));
    }
    Ok(settings)
}

/// Refuses draws that would not fit in memory.
pub fn check_memory(draws: usize, columns: usize) -> PyResult<()> {
    memory::within_memory(draws, columns).map_err(exception)
}

/// `summary.json`, with remedies that name the arguments of this package.
fn summary(report: &FitReport) -> PyResult<String> {
    serde_json::to_string(&report.summary(&remedy)).map_err(exception)
}

/// The log density of each draw on the unconstrained scale, with Jacobians; `None` if no latent is left.
pub fn log_density(model: &dyn Model, z: &Batch) -> Result<Option<Vec<f64>>, hyperprior::Error> {
    if z.columns_len() == 0 {
        return Ok(None);
    }
    let mut out = vec![0.0; z.draws_len()];
    model.log_joint(z, &mut out)?;
    Ok(Some(out))
}

/// The result of a fit: the summary, the trace and, if asked for, the pointwise log likelihood.
pub fn result<'py>(py: Python<'py>, report: &FitReport) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("summary", summary(report)?)?;
    let trace = report.inferred().map_or_else(Vec::new, |inferred| inferred.fitted.history.clone());
    out.set_item("trace", numpy::PyArray1::from_vec(py, trace))?;
    if let Some(loo) = &report.predictive.loo {
        let log_likelihood = PyDict::new(py);
        draws::insert(py, loo.log_likelihood.clone(), &log_likelihood)?;
        out.set_item("log_likelihood", log_likelihood)?;
    }
    Ok(out)
}

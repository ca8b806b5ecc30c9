//! What every fit needs: its settings read and checked, and what is told of it.

use crate::draws;
use crate::error::{in_python, said};
use hyperprior::infer::{InferSettings, Method, PriorPart, RecursivePart};
use hyperprior::{Batch, Model};
use hyperprior_bugs::memory;
use hyperprior_bugs::told::Told;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Fewer draws than this say nothing of quantiles or tails.
const DRAWS_MIN: usize = 10;
/// The most components, layers or ranks.
const SIZE_MAX: usize = 1000;

/// The settings, from JSON.
pub fn settings(text: &str) -> PyResult<InferSettings> {
    let settings: InferSettings = serde_json::from_str(text).map_err(|error| {
        // Where in the text it is says nothing to someone who wrote none.
        let error = error.to_string();
        said(error.rsplit_once(" at line ").map_or(error.as_str(), |(reason, _)| reason))
    })?;
    if settings.draws < DRAWS_MIN {
        return Err(said(format!("draws={}: at least {DRAWS_MIN} draws are needed", settings.draws)));
    }
    let of_method = match settings.method {
        Method::LowRank(size) | Method::Mixture(size) | Method::Flow(size) | Method::Copula(size) => size,
        _ => 0,
    };
    let of_prior = match settings.parts.prior {
        Some(
            PriorPart::LowRank(size)
            | PriorPart::Mixture(size)
            | PriorPart::Copula(size)
            | PriorPart::Planar(size)
            | PriorPart::Spline(size),
        ) => size,
        _ => 0,
    };
    let of_recursive = match settings.parts.recursive {
        Some(RecursivePart::InverseFlow(size)) => size,
        _ => 0,
    };
    for (argument, size) in [("method", of_method), ("prior", of_prior), ("recursive", of_recursive)] {
        if size > SIZE_MAX {
            return Err(said(format!("{argument}: the number after the colon is at most {SIZE_MAX}")));
        }
    }
    if settings.importance > SIZE_MAX {
        return Err(said(format!("importance={}: at most {SIZE_MAX} draws tighten the bound", settings.importance)));
    }
    Ok(settings)
}

/// Refuses draws that would not fit.
pub fn within_memory(draws: usize, columns: usize) -> PyResult<()> {
    memory::within_memory(draws, columns).map_err(said)
}

/// `summary` as JSON, with arguments where the command has options.
pub fn summary(told: &Told) -> PyResult<String> {
    serde_json::to_string(&told.summary()).map(|text| in_python(&text)).map_err(said)
}

/// The log density of each draw, with what the maps to the line add; nothing where no latent is left.
pub fn log_density(model: &dyn Model, z: &Batch) -> Result<Option<Vec<f64>>, hyperprior::Error> {
    if z.columns_len() == 0 {
        return Ok(None);
    }
    let mut out = vec![0.0; z.draws_len()];
    model.log_joint(z, &mut out)?;
    Ok(Some(out))
}

/// What a fit leaves behind, and nothing yet in it but the summary and the trace.
pub fn left_behind<'py>(py: Python<'py>, told: &Told) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("summary", summary(told)?)?;
    let trace = told.inferred().map_or_else(Vec::new, |inferred| inferred.fitted.history.clone());
    out.set_item("trace", numpy::PyArray1::from_vec(py, trace))?;
    if let Some(loo) = &told.foretold.loo {
        let own = PyDict::new(py);
        draws::give(py, loo.log_likelihood.clone(), &own)?;
        out.set_item("log_likelihood", own)?;
    }
    Ok(out)
}

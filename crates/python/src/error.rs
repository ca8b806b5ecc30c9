//! Errors as Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use std::fmt::Display;

pyo3::create_exception!(
    hyperprior,
    Error,
    PyValueError,
    "An error in a model, its data or the settings, with advice on how to fix it."
);

/// An error as an exception.
pub fn exception(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}

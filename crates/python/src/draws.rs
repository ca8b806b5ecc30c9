//! Draws as NumPy arrays, moved without copying.

use hyperprior::posterior::{Draws, Kind};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Inserts `values` (a row per scalar), `names`, and `discrete` (whether each scalar is).
pub fn insert<'py>(py: Python<'py>, draws: Draws, into: &Bound<'py, PyDict>) -> PyResult<()> {
    into.set_item("names", draws.names())?;
    into.set_item("discrete", draws.columns().iter().map(|c| c.kind == Kind::Discrete).collect::<Vec<_>>())?;
    let shape = [draws.columns().len(), draws.len()];
    into.set_item("values", matrix(py, draws.into_values().into_vec(), shape)?)
}

/// A matrix that takes ownership of the numbers.
pub fn matrix<'py>(py: Python<'py>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}

//! Draws as NumPy arrays: handed over, not copied.

use hyperprior::posterior::{Draws, Kind};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `values` (a row for each scalar), `names`, and which of them are `discrete`.
pub fn give<'py>(py: Python<'py>, draws: Draws, into: &Bound<'py, PyDict>) -> PyResult<()> {
    into.set_item("names", draws.names())?;
    into.set_item("discrete", draws.columns().iter().map(|c| c.kind == Kind::Discrete).collect::<Vec<_>>())?;
    let shape = [draws.columns().len(), draws.len()];
    into.set_item("values", matrix(py, draws.into_values().into_vec(), shape)?)
}

/// A matrix that takes the numbers over.
pub fn matrix<'py>(py: Python<'py>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}

//! The compiled half of the Python package `hyperprior`; the other half is in `python/hyperprior`.
//!
//! Numbers cross as NumPy arrays, settings and summaries as JSON: the structs that the command's files hold say which fields there are.

mod draws;
mod error;
mod function;
mod infer;
mod program;
mod topics;
mod watch;

/// What `hyperprior/__init__.py` is made of.
#[pyo3::pymodule]
mod _hyperprior {
    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::program::Program;
    #[pymodule_export]
    use crate::topics::{Trained, bible, split};
}

//! The compiled half of the Python package `hyperprior`; the other half is in `python/hyperprior`.
//!
//! Numbers cross as NumPy arrays, settings and summaries as JSON with the fields of the command's files.

mod draws;
mod error;
mod function;
mod infer;
mod program;
mod remedy;
mod topics;
mod watch;

/// The extension module `hyperprior._hyperprior`.
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
    #[pymodule_export]
    const SIZE_MAX: usize = hyperprior::infer::SIZE_MAX;
}

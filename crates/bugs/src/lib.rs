//! The BUGS language: a model file and a data file become a factor graph.
//!
//! [`syntax`] parses the text to a tree in which every node has its place in the text. [`data`] reads JSON, R dumps and CSV into
//! named arrays. [`lower`] unrolls the loops of the tree over the data and passes every relation to the graph builder. Errors and
//! warnings are [`Diagnostic`]s, drawn by [`render`]. [`predict`] predicts new data from the draws of a fit, [`transfer`] decides
//! which latents they reuse, and [`simulate`] simulates data from the model.
//!
//! ```
//! use hyperprior_bugs::{Dialect, parse};
//!
//! let parsed = parse("model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }", Dialect::Jags);
//! assert!(parsed.diagnostics.is_empty());
//! assert_eq!(parsed.program.model.len(), 2);
//! ```

pub mod data;
pub mod diagnostic;
pub mod lower;
pub mod marginalise;
pub mod memory;
pub mod predict;
mod rows;
pub mod simulate;
mod span;
pub mod syntax;
pub mod transfer;

pub use data::{Array, Data};
pub use diagnostic::{Diagnostic, Severity, render};
pub use lower::{Compiled, Observation, Options, compile};
pub use rows::rows;
pub use syntax::{Dialect, Parsed, parse};

/// The book's samples, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../book/src/predicting.md")]
    mod predicting {}
}

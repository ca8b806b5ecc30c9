//! The BUGS language: a model file and a data file become a factor graph.
//!
//! A program passes through three rooms. [`syntax`] turns text into a tree, with a place in the text on every branch.
//! [`data`] reads JSON, R dumps and CSV into named arrays. [`lower`] unrolls the loops of the tree over the data and
//! states every relation to the graph's builder. What a person got wrong is a [`Diagnostic`], drawn by [`render`].
//! [`fit`] takes the graph on to draws of its posterior, [`carry`] says what of them holds for new data, and [`simulate`] makes data as
//! the model says they come about.
//!
//! ```
//! use hyperprior_bugs::{Dialect, parse};
//!
//! let parsed = parse("model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }", Dialect::Jags);
//! assert!(parsed.diagnostics.is_empty());
//! assert_eq!(parsed.program.model.len(), 2);
//! ```

pub mod carry;
pub mod data;
pub mod diagnostic;
pub mod eliminate;
pub mod fit;
pub mod lower;
pub mod memory;
pub mod names;
pub mod predict;
mod rows;
pub mod simulate;
pub mod syntax;
pub mod told;

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

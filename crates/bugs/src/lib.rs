//! The BUGS language: a model file and a data file become a factor graph.
//!
//! A program passes through three rooms. [`syntax`] turns text into a tree, with a place in the text on every branch.
//! [`data`] reads JSON, R dumps and CSV into named arrays. [`lower`] unrolls the loops of the tree over the data and
//! states every relation to the graph's builder. What a person got wrong is a [`Diagnostic`], drawn by [`render`].
//! [`fit`] takes the graph on to draws of its posterior, and [`simulate`] makes data as the model says they come about.
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
pub mod fit;
pub mod lower;
pub mod simulate;
pub mod syntax;

pub use data::{Array, Data};
pub use diagnostic::{Diagnostic, Severity, render};
pub use lower::{Compiled, Observation, Options, compile};
pub use syntax::{Dialect, Parsed, parse};

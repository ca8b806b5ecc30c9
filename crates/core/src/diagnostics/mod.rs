//! How far a result can be trusted: convergence, importance weights, calibration, label switching, and the verdict.
//!
//! A [`Diagnostic`] is data: a [`Finding`] with its evidence, a [`Severity`] and [remedies](Remedy), which each front end words in
//! its own terms.

pub mod calibration;
pub(crate) mod chains;
pub(crate) mod convergence;
mod diagnostic;
mod exchangeable;
mod finding;
mod label_switching;
pub mod psis;
mod verdict;

#[doc(hidden)]
pub use diagnostic::capitalised;
pub use diagnostic::{Diagnostic, Remedy, Severity, Verdict};
pub use exchangeable::Exchangeable;
pub use finding::Finding;
pub use label_switching::{LabelSwitching, label_switching, label_switching_among};

//! Posteriors with known answers, on which every method can be measured exactly.

mod correlated_counts;
mod ising;

pub use correlated_counts::{CorrelatedCounts, CountTarget};
pub use ising::Ising;

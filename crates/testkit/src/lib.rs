//! What hyperprior's tests share: derivatives by finite differences, goodness of fit, tests of a mean, enumeration,
//! quadrature, and a count of heap allocations.
//!
//! Nothing here is random. Every check takes the numbers it judges, so that the seed stays in the test.

pub mod allocation;
pub mod enumerate;
pub mod finite_difference;
pub mod goodness;
pub mod mean;
pub mod quadrature;

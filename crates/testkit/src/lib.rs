//! What hyperprior's tests share: derivatives by finite differences, goodness of fit, tests of a mean, enumeration,
//! quadrature, a count of heap allocations, the memory in use, and fuzzing.
//!
//! Nothing here is random but the inputs of a fuzzer, which has a seed. Every check takes the numbers it judges, so that the seed
//! stays in the test.

pub mod allocation;
pub mod enumerate;
pub mod finite_difference;
pub mod fuzz;
pub mod goodness;
pub mod mean;
pub mod memory;
pub mod quadrature;

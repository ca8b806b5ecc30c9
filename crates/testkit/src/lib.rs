//! Tools for hyperprior's tests: derivatives by finite differences, goodness of fit, tests of a mean, enumeration,
//! quadrature, a count of heap allocations, the memory in use, processor time, and fuzzing.
//!
//! Only the fuzzer's inputs are random, and they have a seed. Every check takes the numbers it tests, so that the seed stays
//! in the test.

pub mod allocation;
pub mod clock;
pub mod enumerate;
pub mod finite_difference;
pub mod fuzz;
pub mod goodness;
pub mod mean;
pub mod memory;
pub mod quadrature;

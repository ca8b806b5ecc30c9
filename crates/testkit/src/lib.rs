//! What hyperprior's tests share: derivatives by finite differences, goodness of fit, tests of a mean.
//!
//! Nothing here is random. Every check takes the numbers it judges, so that the seed stays in the test.

pub mod finite_difference;
pub mod goodness;
pub mod mean;

//! The tests of the mathematics, in one program: exact expectations by enumeration, finite differences, invariances.

mod appendix;
mod bounds;
mod continuous_law;
mod determinism;
mod estimators;
mod exact_law;
mod gamma_poisson;
mod importance_law;
mod linear_response;
mod many;
mod noise_maps;
mod plates;
mod pullbacks;
mod robustness;
mod structures;
mod targets;
mod trees;
mod two_bernoullis;
mod zero_variance;
mod support;

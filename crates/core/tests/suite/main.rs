//! The tests of the mathematics, in one binary: exact expectations by enumeration, finite differences, invariances.

mod annealed_law;
mod appendix;
mod bounds;
mod continuous_law;
mod determinism;
mod estimators;
mod exact_law;
mod gamma_poisson;
mod hamiltonian_law;
mod importance_continuous;
mod importance_law;
mod invariance;
mod linear_response;
mod noise_maps;
mod plates;
mod pullbacks;
mod robustness;
mod single_precision;
mod structured_priors;
mod support;
mod targets;
mod trees;
mod two_bernoullis;
mod zero_variance;

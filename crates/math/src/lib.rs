//! The mathematics behind hyperprior, free of any inference.
//!
//! | module | contents |
//! | --- | --- |
//! | [`batch`] | S draws of several numbers, a column per number |
//! | [`vector`] | exp, ln, tanh, softplus over slices, with SIMD chosen at run time |
//! | [`simd`] | the eight-lane kernels behind it, and the dispatch macro |
//! | [`special`] | gamma, digamma, incomplete gamma and beta, the normal quantile |
//! | [`quadrature`] | Gauss–Hermite rules: expectations over a normal as short sums |
//! | [`random`] | a random stream per (seed, step, datum, draw); quasi-random normals |
//! | [`family`] | distributions q(z | λ) with unconstrained λ: density, score, sampler, support, pathwise derivative |
//! | [`bijector`] | constrained ↔ real |
//! | [`flow`] | planar flows, in either direction, and coupling flows |
//! | [`linalg`] | triangular products and solves; a small Cholesky per draw |
//! | [`sparse`] | sparse symmetric matrices and their Cholesky factors |
//! | [`network`] | fully connected networks |
//! | [`single`] | single precision, for many small posteriors, each with its own parameters |
//! | [`scratch`] | a pool of buffers, so that hot loops do not allocate |

pub mod batch;
pub mod bijector;
pub mod family;
pub mod flow;
pub mod linalg;
pub mod network;
pub mod quadrature;
pub mod random;
pub mod scratch;
pub mod simd;
pub mod single;
pub mod sparse;
pub mod sparse_many;
pub mod special;
pub mod vector;

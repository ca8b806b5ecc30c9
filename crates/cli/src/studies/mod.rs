//! Studies: simulation-based calibration, comparisons of methods, and the paper's experiments.

pub mod compare;
pub mod reproduce;
pub mod sbc;
pub mod tables;

//! The stages of inference, one algorithm per file.

mod adaptive_importance;
pub(super) mod ascent;
pub(super) mod bridge;
mod conditional_grid;
mod conditional_laplace;
mod curvature;
pub(super) mod deciles;
pub(super) mod enumeration;
pub(super) mod gaussian;
pub(super) mod gibbs;
mod hmc;
pub(super) mod importance;
pub(super) mod improper;
mod marginal;
pub(super) mod missed_modes;
pub(super) mod missed_tail;
mod missing_mass;
pub(super) mod model_selection;
mod nested_laplace;
mod nuts;
pub(super) mod nuts_chains;
pub(super) mod pathfinder;
pub(super) mod resample;
pub(super) mod resample_move;
pub(super) mod restarts;
mod sparse_curvature;
mod step_size;
pub(super) mod superchains;
pub(super) mod table_start;
#[cfg(test)]
mod test_models;
mod variational_newton;
pub(super) mod whitened;
pub(super) mod whitening;

//! Models as factor graphs: random nodes with their distributions, expressions between them, and data.
//!
//! A [`GraphBuilder`] takes scalar nodes one by one, as a modelling language or a person writes them, and stores every expression
//! once. [`Graph::model`] transforms the latents to unconstrained coordinates, marginalises the discrete ones for which that is
//! cheap, and compiles the rest to a tape that evaluates and differentiates many draws at once.

mod algebra;
mod beta_between;
mod builder;
mod by_mass;
mod capabilities;
mod censored;
mod centring;
mod conjugate;
mod constraint;
mod counts;
mod coupling;
mod degree_fit;
mod density;
mod describe;
mod distribution;
mod draw;
mod elimination;
mod error;
mod expression;
mod fault;
pub mod fit;
mod function;
mod gaussian_form;
mod hierarchy;
mod index;
mod interpret;
mod interval;
mod linear_response;
mod marginalise;
mod matrix;
mod model;
mod neck;
mod node;
mod operation;
mod outline;
mod parameterisation;
mod pieces;
mod pointwise;
mod pooled;
mod predict;
mod predictive;
mod quadratic;
mod replicate;
mod rewrite;
mod running_sums;
mod sample;
mod sample_between;
mod start;
mod support;
mod tape;
mod truncated_sum;
mod truncation;
mod unary;
mod unconstrained;
mod vector_transforms;

pub use builder::GraphBuilder;
pub use distribution::{Bounds, Distribution, VectorDistribution};
pub use draw::Quantity;
pub use elimination::Marginalise;
pub use error::GraphError;
pub use expression::Expr;
pub use function::Function;
pub use hyperprior::report::Role;
pub use model::GraphModel;
pub use node::Graph;
pub use outline::Outline;
pub use pointwise::Pointwise;
pub use predict::Prediction;
pub use predictive::posterior_predictive_check;
pub use replicate::{Measure, Observation};

/// The README's and the book's samples, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../book/src/fit.md")]
    mod fit {}
}

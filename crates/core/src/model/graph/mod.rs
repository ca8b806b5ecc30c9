//! Models stated as factor graphs: random nodes with their laws, expressions between them, data.
//!
//! A [`GraphBuilder`] takes scalar nodes one by one, as a modelling language or a person writes them, and keeps every expression
//! once. [`Graph::model`] lays the latents on the real line, sums out the discrete ones that can be summed out cheaply, and
//! compiles what is left to a tape that evaluates and differentiates many draws at once.

mod algebra;
mod builder;
mod density;
mod draw;
mod eliminate;
mod error;
mod expression;
mod fault;
mod foretell;
mod function;
mod index;
mod interpret;
mod law;
mod line;
mod matrix;
mod model;
mod node;
mod operation;
mod outline;
mod pointwise;
mod replicate;
mod rewrite;
mod sample;
mod support;
mod tape;
mod told;
mod truncation;

pub use builder::GraphBuilder;
pub use draw::Quantity;
pub use eliminate::Eliminate;
pub use error::GraphError;
pub use expression::Expr;
pub use foretell::Foretold;
pub use function::Function;
pub use law::{Bounds, Law, VectorLaw};
pub use model::GraphModel;
pub use node::Graph;
pub use outline::{Outline, Role};
pub use pointwise::{Pointwise, Unit};
pub use replicate::{Measure, Observation};

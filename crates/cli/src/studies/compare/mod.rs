//! The paper's first table as a command: all methods on targets with known answers.

mod annealed;
mod comparison;
mod method;
pub mod picture;
pub mod program;
mod run;
mod target;

pub use comparison::Comparison;
pub use method::Method;
pub use run::{Outcome, Row, run};
pub use target::Target;

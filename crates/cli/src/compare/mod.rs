//! The paper's first table as a command: every method is one point of a product, held against targets with known answers.

mod method;
pub mod picture;
mod run;
mod target;

pub use method::Method;
pub use run::{Comparison, Outcome, Row, run};
pub use target::Target;

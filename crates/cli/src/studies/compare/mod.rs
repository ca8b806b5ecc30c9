//! The paper's first table as a command: all methods on targets with known answers.

mod method;
pub mod picture;
mod run;
mod target;

pub use method::Method;
pub use run::{Comparison, Outcome, Row, run};
pub use target::Target;

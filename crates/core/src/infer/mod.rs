//! From a model to draws of its posterior: where to start, which approximation, how to fit it, how far to trust it.

mod approximation;
mod moves;
mod run;
mod search;
mod smooth;
mod whitened;

pub use approximation::{Method, MethodError};
pub use moves::{Moved, moves};
pub use run::{Correct, InferSettings, Inferred, infer};
pub use search::{Found, Searched, Starts, search};
pub use smooth::{Tail, smooth};
pub use whitened::{Units, Whitened};

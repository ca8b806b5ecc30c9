//! From a model to draws of its posterior: where to start, which approximation, how to fit it, how far to trust it.

mod approximation;
mod candidate;
mod course;
mod drawn;
mod moves;
mod parts;
mod run;
mod search;
mod settle;
mod smooth;
mod units;
mod verdict;
mod way;
mod whitened;

pub use approximation::{Method, MethodError};
pub use candidate::{Restarts, Rung};
pub use course::Within;
pub use moves::{Moved, Until, moves};
pub use parts::{LikelihoodPart, PartError, Parts, PriorPart, RecursivePart};
pub use run::{Correct, InferSettings, Inferred, OVERSAMPLED, infer};
pub use search::{Found, Searched, Starts, search};
pub use smooth::{Tail, smooth};
pub use units::Units;
pub use verdict::{Doubt, LeftOut, Verdict};
pub use whitened::Whitened;

//! Checkpoints: the state of a long computation, and files with a checksum to store it in.

mod file;
mod state;

pub use file::{ChecksumReader, ChecksumWriter, DAMAGED_HEAD, Reason};
pub use state::{Checkpoint, CheckpointState, Save};
pub(crate) use state::{Columns, Stage};

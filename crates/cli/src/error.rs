//! What the command says when it cannot go on, and the exit code that goes with it.

use hyperprior::posterior::DrawsError;
use thiserror::Error;

/// The command line made no sense.
pub const USAGE: u8 = 64;
/// The model or its data are bad.
const BAD_DATA: u8 = 65;
/// Something that should not happen.
const INTERNAL: u8 = 70;
/// A file could not be written.
pub const CANNOT_WRITE: u8 = 73;
/// Stopped before the end, with what was done so far printed.
const STOPPED: u8 = 75;

/// Why the command stops.
#[derive(Debug, Error)]
pub enum CliError {
    /// An option that has no meaning here.
    #[error("{0}")]
    Usage(String),
    /// The engine refused.
    #[error("{0}")]
    Engine(#[from] hyperprior::Error),
    /// A picture could not be written.
    #[error("{0}")]
    Figure(#[from] crate::figure::FigureError),
    /// A file of a run could not be written.
    #[error("{0}")]
    Write(#[from] crate::output::pending::WriteError),
    /// Draws do not fit together, or a selection of them selects nothing.
    #[error("{0}")]
    Draws(#[from] DrawsError),
    /// Standard output is gone or full.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
    /// Stopped by the person or the system.
    #[error(
        "stopped early: the rows that were printed are complete, the rest was not run. Run the command again to start over"
    )]
    Stopped,
    /// A fault of the program.
    #[error("internal fault: {0}; please report it")]
    Internal(String),
}

impl CliError {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Draws(DrawsError::Monitor(_)) => USAGE,
            Self::Engine(_) => BAD_DATA,
            Self::Figure(_) | Self::Write(_) | Self::Output(_) => CANNOT_WRITE,
            Self::Stopped => STOPPED,
            Self::Draws(_) | Self::Internal(_) => INTERNAL,
        }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => Self::Output(kind.into()),
            None => Self::Internal(error.to_string()),
        }
    }
}

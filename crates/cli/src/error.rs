//! What the command says when it cannot go on, and the exit code that goes with it.

use hyperprior::posterior::DrawsError;
use hyperprior_bugs::data::DataError;
use hyperprior_bugs::fit::FitError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The command line made no sense.
pub const USAGE: u8 = 64;
/// The model or its data are bad.
const BAD_DATA: u8 = 65;
/// There is no such file.
const NO_INPUT: u8 = 66;
/// Something that should not happen.
const INTERNAL: u8 = 70;
/// A file could not be written.
pub const CANNOT_WRITE: u8 = 73;
/// Finished, but not to be trusted.
const UNTRUSTED: u8 = 3;
/// Stopped before the end, with what was done so far printed.
pub const STOPPED: u8 = 75;

/// Why the command stops.
#[derive(Debug, Error)]
pub enum CliError {
    /// An option that has no meaning here.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read.
    #[error("cannot read `{}`: {reason}; {}", path.display(), remedy(reason))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A data file is not in its format.
    #[error("{}: {error}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: DataError,
    },
    /// A model file is no model; what is wrong is drawn over its source.
    #[error("the model cannot be compiled\n\n{0}")]
    Program(String),
    /// Everything in a model is observed.
    #[error("{0}")]
    Unneeded(FitError),
    /// No start is possible.
    #[error("{0}; --init FILE gives starting values, such as {{\"mu\": 0.5}}")]
    NoStart(hyperprior::Error),
    /// The engine refused.
    #[error("{0}")]
    Engine(#[from] hyperprior::Error),
    /// A corpus is bad, or settings that go with it.
    #[error("{}", crate::topics::in_options(&.0.to_string()))]
    Corpus(#[from] hyperprior_def::Error),
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
    Output(#[from] io::Error),
    /// Stopped by the person or the system.
    #[error(
        "stopped early: the rows that were printed are complete, the rest was not run. Run the command again to start over"
    )]
    Stopped,
    /// A fit was stopped by the person or the system; its results are there.
    #[error(
        "stopped early, at step {step} of {steps}: what was printed is of the approximation as it stood then{remedy}"
    )]
    StoppedFit {
        /// The step that was reached.
        step: u64,
        /// Of how many.
        steps: u64,
        /// How to go on, where that is possible.
        remedy: String,
    },
    /// The fit is not to be trusted, and that was to be a failure.
    #[error("the fit is not to be trusted; the verdict says why")]
    Untrusted,
    /// The state of a fit cannot be gone on from.
    #[error(
        "`{}/checkpoint` cannot be gone on from: {reason}; `hyperprior rerun {} --out {}` starts over", folder.display(),
        folder.display(), folder.display()
    )]
    Checkpoint {
        /// The folder of the run.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// A training was stopped by the person or the system; its results are there.
    #[error(
        "stopped early, after epoch {epoch} of {epochs}: what was printed is of the topics as they stood then{remedy}"
    )]
    StoppedTraining {
        /// The epochs that were done.
        epoch: u32,
        /// Of how many.
        epochs: u32,
        /// How to go on, where that is possible.
        remedy: String,
    },
    /// The documents set aside were not all measured before the person or the system stopped that; the training is done.
    #[error(
        "stopped early, after {measured} of {documents} documents set aside: the topics are as they should be, and the perplexity \
         is of those documents{remedy}"
    )]
    StoppedMeasuring {
        /// The documents that were measured.
        measured: usize,
        /// Of how many.
        documents: usize,
        /// How to go on, where that is possible.
        remedy: String,
    },
    /// New documents were not all done before the person or the system stopped that.
    #[error(
        "stopped early, after {done} of {documents} documents: what was printed is of those. Run the command again to start over"
    )]
    StoppedInference {
        /// The documents that were done.
        done: usize,
        /// Of how many.
        documents: usize,
    },
    /// Not all cells of the paper's tables were measured before the person or the system stopped that.
    #[error(
        "stopped early, with {done} of {cells} cells done: what was printed is of those. The same command goes on where it was \
         stopped"
    )]
    StoppedTables {
        /// The cells that were done.
        done: usize,
        /// Of how many.
        cells: usize,
    },
    /// A calibration was stopped by the person or the system; what its first rounds say is there.
    #[error(
        "stopped early, after {done} of {rounds} rounds: what was printed is of those. Run the command again to start over"
    )]
    StoppedCalibration {
        /// The rounds that were done.
        done: usize,
        /// Of how many.
        rounds: usize,
    },
    /// Data cannot be simulated from a model.
    #[error("--calibrate: {0}")]
    Simulate(hyperprior_bugs::simulate::SimulateError),
    /// No round of a calibration could be fitted.
    #[error("--calibrate: no round could be fitted{0}")]
    NoRound(String),
    /// A file of an earlier run cannot be understood.
    #[error("`{}` cannot be used: {reason}; remove it, and what it was about is measured again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A folder is not that of a run of topics.
    #[error("`{}` is no run of topics: {reason}", path.display())]
    NotARun {
        /// What was named.
        path: PathBuf,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A folder is not that of a fit.
    #[error("`{}` is no run of fit: {reason}", path.display())]
    NotAFit {
        /// What was named.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// A file of a run says nothing that a report could tell.
    #[error("`{}` cannot be told of: {reason}; name a folder that `fit --out` or `topics --out` wrote", path.display())]
    NotReported {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A run does not have what new data need of it.
    #[error("{0}")]
    Lacking(String),
    /// The model of a run cannot be read.
    #[error("{}: {error}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// Why.
        error: hyperprior_def::Error,
    },
    /// Results were printed, but not written.
    #[error("{error}. What was printed is complete{}", .again.as_ref().map_or_else(String::new, |again| format!("; {again} writes the files once there is room")))]
    NotKept {
        /// Why.
        error: crate::output::pending::WriteError,
        /// The command that tries it again, where there is one.
        again: Option<String>,
    },
    /// A fault of the program.
    #[error("internal fault: {0}; please report it")]
    Internal(String),
}

impl CliError {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Draws(DrawsError::Monitor(_)) => USAGE,
            Self::Corpus(hyperprior_def::Error::BadSetting { .. }) => USAGE,
            Self::Corpus(error) if error.io_kind().is_some() => NO_INPUT,
            Self::Corpus(_) | Self::Model { .. } | Self::Damaged { .. } | Self::Checkpoint { .. } => BAD_DATA,
            Self::Simulate(_) | Self::NoRound(_) => BAD_DATA,
            // Text that is not UTF-8 is there, but is no text.
            Self::Read { reason, .. } if reason.kind() == io::ErrorKind::InvalidData => BAD_DATA,
            Self::Read { .. } | Self::NotARun { .. } | Self::NotAFit { .. } => NO_INPUT,
            Self::Lacking(_) | Self::NotReported { .. } => BAD_DATA,
            Self::Engine(hyperprior::Error::Stopped { .. }) => STOPPED,
            Self::Data { .. } | Self::Program(_) | Self::Unneeded(_) | Self::NoStart(_) | Self::Engine(_) => BAD_DATA,
            Self::Figure(_) | Self::Write(_) | Self::NotKept { .. } | Self::Output(_) => CANNOT_WRITE,
            Self::Stopped | Self::StoppedFit { .. } | Self::StoppedTables { .. } => STOPPED,
            Self::StoppedCalibration { .. } => STOPPED,
            Self::StoppedTraining { .. } | Self::StoppedMeasuring { .. } | Self::StoppedInference { .. } => STOPPED,
            Self::Untrusted => UNTRUSTED,
            Self::Draws(_) | Self::Internal(_) => INTERNAL,
        }
    }
}

fn remedy(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check that you may read it",
        io::ErrorKind::InvalidData => "save it as UTF-8",
        io::ErrorKind::IsADirectory => "name a file in it",
        _ => "check the file",
    }
}

impl From<FitError> for CliError {
    fn from(error: FitError) -> Self {
        use hyperprior::Error as Engine;
        match error {
            FitError::Monitor(error) => Self::Draws(error.into()),
            FitError::Draws(error) => Self::Draws(error),
            FitError::Engine(error @ Engine::NotFinite { .. }) => Self::NoStart(error),
            // What only another choice of options mends.
            FitError::Engine(
                error @ (Engine::BadSetting { .. } | Engine::BadPart { .. } | Engine::Mismatch { .. }),
            ) => Self::Usage(format!("{error}; choose another --method")),
            FitError::Engine(error) => Self::Engine(error),
            error => Self::Unneeded(error),
        }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(_) => Self::Output(error.into()),
            None => Self::Internal(error.to_string()),
        }
    }
}

//! The errors of the command, with their messages and exit codes.

use hyperprior::posterior::DrawsError;
use hyperprior_bugs::data::DataError;
use hyperprior_graph::fit::FitError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Usage error.
pub const USAGE: u8 = 64;
/// The model or its data are bad.
const BAD_DATA: u8 = 65;
/// An input file is missing.
const NO_INPUT: u8 = 66;
/// Internal error.
const INTERNAL: u8 = 70;
/// A file could not be written.
pub const CANNOT_WRITE: u8 = 73;
/// The fit finished, but its verdict is not `trust`.
const UNTRUSTED: u8 = 3;
/// Stopped early, with partial results printed.
pub const STOPPED: u8 = 75;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// A bad option.
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
    /// A model file cannot be compiled; the diagnostics are rendered over its source.
    #[error("the model cannot be compiled\n\n{0}")]
    Program(String),
    /// Everything in a model is observed.
    #[error("{0}")]
    Unneeded(FitError),
    /// No starting point has a finite density.
    #[error("{0}; give starting values at which the data are possible with --init FILE, such as {{\"mu\": 0.5}}")]
    NoStart(hyperprior::Error),
    /// An error of inference.
    #[error("{0}")]
    Engine(#[from] hyperprior::Error),
    /// A bad corpus, or bad settings for it.
    #[error("{}", corpus(.0))]
    Corpus(#[from] hyperprior_def::Error),
    /// A picture could not be written.
    #[error("{0}")]
    Figure(#[from] crate::render::figure::FigureError),
    /// A file of a run could not be written.
    #[error("{0}")]
    Write(#[from] crate::run_dir::pending::WriteError),
    /// Inconsistent draws, or an empty selection.
    #[error("{0}")]
    Draws(#[from] DrawsError),
    /// Standard output is closed or full.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// Stopped by a signal.
    #[error(
        "stopped early: the printed rows are complete, the others were not run. Run the command again to start over"
    )]
    Stopped,
    /// A fit was stopped by a signal; its results were printed.
    #[error(
        "stopped early, at step {step} of {steps}: the printed results are for the approximation at that step{remedy}"
    )]
    StoppedFit {
        /// The last step.
        step: u64,
        /// The number of steps planned.
        steps: u64,
        /// How to continue, if possible.
        remedy: String,
    },
    /// The verdict is not `trust`, with `--strict`.
    #[error("the fit cannot be trusted; see its verdict")]
    Untrusted,
    /// A checkpoint of a fit cannot be used.
    #[error(
        "cannot resume from `{}/checkpoint`: {reason}; start over with `hyperprior rerun {} --out {}`", folder.display(),
        folder.display(), folder.display()
    )]
    Checkpoint {
        /// The folder of the run.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// Training was stopped by a signal; its results were printed.
    #[error("stopped early, after epoch {epoch} of {epochs}: the printed topics are those of that epoch{remedy}")]
    StoppedTraining {
        /// The epochs done.
        epoch: u32,
        /// The number of epochs planned.
        epochs: u32,
        /// How to continue, if possible.
        remedy: String,
    },
    /// Evaluation of the held-out documents was stopped by a signal; training is complete.
    #[error(
        "stopped early, after {measured} of {documents} held-out documents: training is complete, and the perplexity is for \
         those documents{remedy}"
    )]
    StoppedMeasuring {
        /// The documents evaluated.
        measured: usize,
        /// The number of held-out documents.
        documents: usize,
        /// How to continue, if possible.
        remedy: String,
    },
    /// Inference for new documents was stopped by a signal.
    #[error(
        "stopped early, after {done} of {documents} documents: the printed results are for those. Run the command again to start \
         over"
    )]
    StoppedInference {
        /// The documents done.
        done: usize,
        /// The number of documents.
        documents: usize,
    },
    /// The paper's tables were stopped by a signal.
    #[error("stopped early, with {done} of {cells} cells done. Run the same command again to continue")]
    StoppedTables {
        /// The cells done.
        done: usize,
        /// The number of cells.
        cells: usize,
    },
    /// Calibration was stopped by a signal; the results of the finished rounds were printed.
    #[error(
        "stopped early, after {done} of {rounds} rounds: the printed results are for those. Run the command again to start over"
    )]
    StoppedCalibration {
        /// The rounds done.
        done: usize,
        /// The number of rounds planned.
        rounds: usize,
    },
    /// Data cannot be simulated from a model.
    #[error("--sbc: {0}")]
    Simulate(hyperprior_bugs::simulate::SimulateError),
    /// No round of a calibration could be fitted.
    #[error("--sbc: no simulated data set could be fitted{0}")]
    NoRound(String),
    /// A file of an earlier run is damaged.
    #[error("`{}` cannot be used: {reason}; remove it to compute its results again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A folder is not a run of `topics`.
    #[error("`{}` is not a run of `hyperprior topics`: {reason}", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A folder is not a run of `fit`.
    #[error("`{}` is not a run of `hyperprior fit`: {reason}", path.display())]
    NotAFit {
        /// The folder.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// A report cannot be made from a file.
    #[error("cannot make a report from `{}`: {reason}; name a folder written by `fit --out` or `topics --out`", path.display())]
    NotReported {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A run lacks draws that a prediction needs.
    #[error("{0}")]
    MissingDraws(String),
    /// The model of a run cannot be read.
    #[error("{}: {error}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// Why.
        error: hyperprior_def::Error,
    },
    /// Results were printed, but not written.
    #[error("{error}. The printed results are complete{}", .again.as_ref().map_or_else(String::new, |again| format!("; write the files with {again} once there is space")))]
    NotSaved {
        /// Why.
        error: crate::run_dir::pending::WriteError,
        /// The command that writes them again, if there is one.
        again: Option<String>,
    },
    /// A bug in the program.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

/// An error about a corpus; a setting is called by its option.
fn corpus(error: &hyperprior_def::Error) -> String {
    let hyperprior_def::Error::BadSetting { field, value, reason } = error else { return error.to_string() };
    let option = match *field {
        "least_documents" => "min-documents",
        "largest_share" => "max-share",
        "most_terms" => "max-terms",
        "shortest_document" => "min-length",
        "longest_document" => "max-length",
        "vocabulary" => "vocab",
        field => &field.replace('_', "-"),
    };
    format!("--{option} {value} is invalid: {reason}")
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
            // The file exists, but is not UTF-8.
            Self::Read { reason, .. } if reason.kind() == io::ErrorKind::InvalidData => BAD_DATA,
            Self::Read { .. } | Self::NotARun { .. } | Self::NotAFit { .. } => NO_INPUT,
            Self::MissingDraws(_) | Self::NotReported { .. } => BAD_DATA,
            Self::Engine(hyperprior::Error::Stopped { .. }) => STOPPED,
            Self::Data { .. } | Self::Program(_) | Self::Unneeded(_) | Self::NoStart(_) | Self::Engine(_) => BAD_DATA,
            Self::Figure(_) | Self::Write(_) | Self::NotSaved { .. } | Self::Output(_) => CANNOT_WRITE,
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
        io::ErrorKind::PermissionDenied => "check its permissions",
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
            FitError::Engine(error @ Engine::BadSetting { field: "annealed", .. }) => {
                Self::Usage(format!("--bound: {error}"))
            }
            // Only other options can fix these.
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

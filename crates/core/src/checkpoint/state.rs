//! The state of a long computation: the results of its finished stages, and the state of the stage in progress.
//!
//! A computation with the same seed runs through its stages in the same order. On resuming, finished stages return their stored
//! results, and the stage in progress continues from its last state to the same numbers.

use crate::error::{Error, Result};
use hyperprior_math::batch::Batch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The state that a checkpoint stores.
///
/// ```
/// use hyperprior::checkpoint::CheckpointState;
/// let bytes = CheckpointState::default().to_bytes()?;
/// assert_eq!(CheckpointState::from_bytes(&bytes)?, CheckpointState::default());
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointState {
    finished: Vec<Vec<u8>>,
    in_progress: Option<Vec<u8>>,
}

impl CheckpointState {
    /// Encodes the state as bytes.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if it cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode(self)
    }

    /// Decodes a state.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the bytes are not a state.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode(bytes)
    }
}

/// Writes the state to disk; the error is the reason for a failure.
pub type Save = Box<dyn FnMut(&CheckpointState) -> std::result::Result<(), String> + Send>;

/// Stores the state of a computation while it runs.
///
/// ```
/// use hyperprior::checkpoint::{Checkpoint, CheckpointState};
/// use std::time::Duration;
/// let checkpoint = Checkpoint::new(CheckpointState::default(), Duration::from_secs(20), Box::new(|_| Ok(())));
/// assert_eq!(checkpoint.state(), &CheckpointState::default());
/// ```
pub struct Checkpoint {
    state: CheckpointState,
    /// The number of finished stages passed since resuming.
    passed: usize,
    every: Duration,
    last: Instant,
    is_closed: bool,
    save: Save,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("finished", &self.state.finished.len())
            .field("passed", &self.passed)
            .finish()
    }
}

/// A batch as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Columns {
    draws_len: usize,
    columns_len: usize,
    numbers: Vec<f64>,
}

impl Columns {
    pub(crate) fn of(batch: &Batch) -> Self {
        let (draws_len, columns_len) = (batch.draws_len(), batch.columns_len());
        Self { draws_len, columns_len, numbers: batch.as_slice().to_vec() }
    }

    pub(crate) fn batch(&self) -> Result<Batch> {
        if self.draws_len.checked_mul(self.columns_len) != Some(self.numbers.len()) {
            return Err(Error::Checkpoint { reason: "it is damaged".to_owned() });
        }
        let mut batch = Batch::zeros(self.columns_len, self.draws_len);
        batch.as_mut_slice().copy_from_slice(&self.numbers);
        Ok(batch)
    }
}

/// How a stage of the computation begins.
pub(crate) enum Stage<S> {
    /// It has not run before.
    New,
    /// It was interrupted in this state.
    InProgress(S),
    /// It is finished, with this result.
    Finished(S),
}

impl Checkpoint {
    /// Continues from this state, and saves at most once in the interval `every`.
    pub fn new(state: CheckpointState, every: Duration, save: Save) -> Self {
        Self { state, passed: 0, every, last: Instant::now(), is_closed: false, save }
    }

    /// What is stored.
    pub fn state(&self) -> &CheckpointState {
        &self.state
    }

    /// Begins the next stage.
    pub(crate) fn begin<S: DeserializeOwned>(&mut self) -> Result<Stage<S>> {
        if self.is_closed {
            return Ok(Stage::New);
        }
        if let Some(bytes) = self.state.finished.get(self.passed) {
            let state = decode(bytes)?;
            self.passed += 1;
            return Ok(Stage::Finished(state));
        }
        match &self.state.in_progress {
            Some(bytes) => Ok(Stage::InProgress(decode(bytes)?)),
            None => Ok(Stage::New),
        }
    }

    /// Saves the state of the stage in progress if the save interval has passed.
    pub(crate) fn save<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        if self.is_closed || self.last.elapsed() < self.every {
            return Ok(());
        }
        self.state.in_progress = Some(encode(&state())?);
        self.write()
    }

    /// Saves the state of a stage that is interrupted. The computation ends with the results it has, and nothing more is saved.
    pub(crate) fn interrupt<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        self.state.in_progress = Some(encode(&state())?);
        self.is_closed = true;
        self.write()
    }

    /// Saves the result of a finished stage.
    pub(crate) fn finish<S: Serialize>(&mut self, state: impl FnOnce() -> S) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        self.state.finished.push(encode(&state())?);
        self.state.in_progress = None;
        self.passed += 1;
        if self.last.elapsed() >= self.every { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.last = Instant::now();
        (self.save)(&self.state).map_err(|reason| Error::Checkpoint { reason })
    }
}

fn encode(state: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(state).map_err(|error| Error::Checkpoint { reason: error.to_string() })
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S> {
    let bad = || Error::Checkpoint { reason: "it belongs to another computation".to_owned() };
    match postcard::take_from_bytes(bytes) {
        Ok((state, [])) => Ok(state),
        _ => Err(bad()),
    }
}

//! The checkpoint of a fit on disk.

use super::Config;
use crate::error::CliError;
use crate::run_dir::{CHECKPOINT, RunDirectory, WriteError};
use hyperprior::checkpoint::CheckpointState;
use hyperprior::checkpoint::{ChecksumReader, ChecksumWriter};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufReader;

/// The first line; its number is raised when the format changes.
const FORMAT: &[u8] = b"hyperprior fit 2\n";

/// What the checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    version: String,
    fingerprint: String,
    /// The input and the settings of the fit, as JSON.
    config: String,
}

impl Head {
    /// For a run with this configuration, on files with this fingerprint.
    pub fn of(config: &Config, fingerprint: String) -> Self {
        let settings = (&config.input, &config.infer);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint,
            config: serde_json::to_string(&settings).unwrap_or_default(),
        }
    }
}

/// Writes the checkpoint.
pub fn save(run: &RunDirectory, head: &Head, state: &CheckpointState) -> Result<(), WriteError> {
    let bytes = state.to_bytes().map_err(std::io::Error::other);
    run.checkpoint(|file| {
        let mut out = ChecksumWriter::new(file, FORMAT, head)?;
        out.bytes(&bytes?)?;
        out.finish()
    })?;
    Ok(())
}

/// Reads the checkpoint and checks that it belongs to this run.
pub fn load(run: &RunDirectory, head: &Head) -> Result<CheckpointState, CliError> {
    let path = run.path().join(CHECKPOINT);
    let file = File::open(&path).map_err(|reason| CliError::Read { path, reason })?;
    let bad = |reason: &str| CliError::Checkpoint { folder: run.path().to_owned(), reason: reason.to_owned() };
    let (mut file, stored): (_, Head) = ChecksumReader::new(BufReader::new(file), FORMAT).map_err(bad)?;
    let bytes = file.bytes().map_err(bad)?;
    file.finish().map_err(bad)?;
    if stored.version != head.version {
        return Err(bad("it was written by another version of hyperprior"));
    }
    if stored.fingerprint != head.fingerprint {
        return Err(bad("the model or its data have changed since then"));
    }
    if stored.config != head.config {
        return Err(bad("the settings have changed since then"));
    }
    CheckpointState::from_bytes(&bytes).map_err(|_| bad("it is damaged"))
}

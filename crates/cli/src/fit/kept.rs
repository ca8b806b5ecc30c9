//! The state of a fit on disk.

use super::Config;
use crate::error::CliError;
use crate::output::{CHECKPOINT, RunDirectory, WriteError};
use hyperprior::journal::Pages;
use hyperprior::sealed::{Opener, Sealer};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufReader;

/// The first line; the number goes up when what follows changes.
const FORMAT: &[u8] = b"hyperprior fit 1\n";

/// What the state goes with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    version: String,
    fingerprint: String,
    /// All that decides how a fit goes, as text.
    config: String,
}

impl Head {
    /// Of a run with this configuration, on files with this fingerprint.
    pub fn of(config: &Config, fingerprint: String) -> Self {
        let settings = (&config.input, &config.infer);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint,
            config: serde_json::to_string(&settings).unwrap_or_default(),
        }
    }
}

/// Writes it.
pub fn save(run: &RunDirectory, head: &Head, pages: &Pages) -> Result<(), WriteError> {
    let bytes = pages.to_bytes().map_err(std::io::Error::other);
    run.checkpoint(|file| {
        let mut out = Sealer::new(file, FORMAT, head)?;
        out.bytes(&bytes?)?;
        out.finish()
    })?;
    Ok(())
}

/// Reads it, where it goes with this.
pub fn load(run: &RunDirectory, head: &Head) -> Result<Pages, CliError> {
    let path = run.path().join(CHECKPOINT);
    let file = File::open(&path).map_err(|reason| CliError::Read { path, reason })?;
    let bad = |reason: &str| CliError::Checkpoint { folder: run.path().to_owned(), reason: reason.to_owned() };
    let (mut file, kept): (_, Head) = Opener::new(BufReader::new(file), FORMAT).map_err(bad)?;
    let bytes = file.bytes().map_err(bad)?;
    file.finish().map_err(bad)?;
    if kept.version != head.version {
        return Err(bad("it was written by another version"));
    }
    if kept.fingerprint != head.fingerprint {
        return Err(bad("the model or its data have changed since"));
    }
    if kept.config != head.config {
        return Err(bad("the settings have changed since"));
    }
    Pages::from_bytes(&bytes).map_err(|_| bad("it is damaged"))
}

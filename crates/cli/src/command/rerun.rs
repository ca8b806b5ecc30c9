//! `hyperprior rerun`: repeats a run, with the same numbers.

use super::resume::Kind;
use crate::error::CliError;
use crate::{fit, topics};
use clap::Args;
use std::path::PathBuf;

/// Repeat a run exactly, from the config.toml in its folder.
#[derive(Debug, Args)]
#[command(after_help = "\
The numbers are the same on the same machine, with any number of threads. If the model or the data have changed since the run, \
the current files are used, with a note. Paths in DIR/config.toml are as they were given: run this from the same folder.

Examples:
  hyperprior fit model.bug --data data.json --seed 3 --out run
  hyperprior rerun run                 print the results again
  hyperprior rerun run --out again     and save them to another folder
  hyperprior rerun run --json | diff - run/summary.json")]
pub struct Rerun {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Folder for the files [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

impl Rerun {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let Self { folder, out, json, quiet } = self;
        let note = |text: &str| {
            if !quiet {
                eprintln!("Note: {text}; the numbers may differ");
            }
        };
        let version = |version: &str| {
            if version != env!("CARGO_PKG_VERSION") {
                note(&format!("the run was made by version {version}"));
            }
        };
        match Kind::of(&folder)? {
            Kind::Fit(mut config) => {
                version(&config.version);
                let now = config.input.fingerprint()?;
                if now != config.fingerprint {
                    note("the model or its data have changed since the run was made");
                }
                env!("CARGO_PKG_VERSION").clone_into(&mut config.version);
                config.fingerprint = now;
                fit::Job { config, out, json, quiet, strict: false, timings: false }.run(false)
            }
            Kind::Topics(config) => {
                version(&config.version);
                topics::Job::of(config, out, json, quiet).run_again(false)
            }
        }
    }
}

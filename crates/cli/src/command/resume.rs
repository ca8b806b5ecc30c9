//! `hyperprior resume`: continues an interrupted run.

use crate::error::CliError;
use crate::run_dir::{CHECKPOINT, read_config};
use crate::{fit, topics};
use clap::Args;
use std::path::{Path, PathBuf};

/// Continue a fit or training that was stopped or killed.
#[derive(Debug, Args)]
#[command(after_help = "\
`hyperprior fit … --out DIR` and `hyperprior topics … --out DIR` save a checkpoint in DIR every twenty seconds and when they are \
stopped. A resumed run gives the same numbers as an uninterrupted one. Paths in DIR/config.toml are as they were given: run this \
from the same folder.

Examples:
  hyperprior fit model.bug --data data.json --out run      (Ctrl-C)
  hyperprior resume run
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --out topics      (Ctrl-C)
  hyperprior resume topics")]
pub struct Resume {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

/// The kind of a run, with its configuration.
pub enum Kind {
    /// A fit of a model.
    Fit(fit::Config),
    /// Topics of a corpus.
    Topics(topics::Config),
}

impl Kind {
    /// The kind of the run in `folder`, by its configuration.
    pub fn of(folder: &Path) -> Result<Self, CliError> {
        let config: toml::Table = read_config(folder, "a run")?;
        if config.contains_key("infer") {
            fit::Config::read(folder).map(Self::Fit)
        } else {
            topics::Config::read(folder).map(Self::Topics)
        }
    }
}

impl Resume {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let Self { folder, json, quiet } = self;
        match Kind::of(&folder)? {
            Kind::Fit(config) => {
                if !folder.join(CHECKPOINT).exists() && folder.join("summary.json").exists() {
                    return Err(CliError::Usage(format!(
                        "the run in `{}` is complete; repeat it with `hyperprior rerun {0}`",
                        folder.display()
                    )));
                }
                fit::Job { config, out: Some(folder), json, quiet, strict: false, timings: false }.run(true)
            }
            Kind::Topics(config) => topics::Job::of(config, Some(folder), json, quiet).run_again(true),
        }
    }
}

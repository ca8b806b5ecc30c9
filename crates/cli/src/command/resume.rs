//! `hyperprior resume`: a run that was broken off goes on.

use crate::error::CliError;
use crate::output::{CHECKPOINT, read_config};
use crate::{fit, topics};
use clap::Args;
use std::path::{Path, PathBuf};

/// Go on with a fit or a training that was stopped or killed.
#[derive(Debug, Args)]
#[command(after_help = "\
`hyperprior fit … --out DIR` and `hyperprior topics … --out DIR` save their state in DIR every twenty seconds and when they are
stopped. What comes out in the end is the same as if they had never been stopped. Paths in DIR/config.toml are as they were given:
run this from the same folder.

Examples:
  hyperprior fit model.bug --data data.json --out run      (Ctrl-C)
  hyperprior resume run
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --out topics      (Ctrl-C)
  hyperprior resume topics")]
pub struct Resume {
    /// The folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

/// What a run does.
pub enum Kind {
    /// A fit of a model.
    Fit(fit::Config),
    /// Topics of a corpus.
    Topics(topics::Config),
}

impl Kind {
    /// By the configuration in its folder.
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
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let Self { folder, json, quiet } = self;
        match Kind::of(&folder)? {
            Kind::Fit(config) => {
                if !folder.join(CHECKPOINT).exists() && folder.join("summary.json").exists() {
                    return Err(CliError::Usage(format!(
                        "the run in `{}` came to its end; `hyperprior rerun {0}` does it again",
                        folder.display()
                    )));
                }
                fit::Job { config, out: Some(folder), json, quiet, strict: false }.run(true)
            }
            Kind::Topics(config) => topics::Job::of(config, Some(folder), json, quiet).run_again(true),
        }
    }
}

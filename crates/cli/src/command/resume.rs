//! `hyperprior resume`: a run that was broken off goes on.

use crate::error::CliError;
use crate::output::CHECKPOINT;
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
        match fit::Config::read(folder) {
            Ok(config) => Ok(Self::Fit(config)),
            Err(error @ CliError::Read { .. }) => Err(error),
            Err(error) => topics::Config::read(folder).map(Self::Topics).map_err(|other| match is_of_fit(folder) {
                true => error,
                false => other,
            }),
        }
    }
}

/// Whether a configuration, damaged or not, is of a fit.
fn is_of_fit(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("config.toml")).is_ok_and(|text| text.contains("[infer]"))
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
            Kind::Topics(config) => {
                let (name, corpus, read) =
                    (topics::name_of(&config.corpus), config.corpus.clone(), config.read.clone());
                let job = topics::Job { name, config, out: Some(folder), json, quiet };
                job.run(|| topics::read_again(&corpus, read.as_ref()), true)
            }
        }
    }
}

//! `hyperprior resume`: a run that was broken off goes on.

use crate::error::CliError;
use crate::topics::{Config, Job, name_of, read_again};
use clap::Args;
use std::path::PathBuf;

/// Go on with a training that was stopped or killed.
#[derive(Debug, Args)]
#[command(after_help = "\
`hyperprior topics … --out DIR` saves its training in DIR every twenty seconds and when it is stopped. What comes out in the end
is the same as if it had never been stopped. Paths in DIR/config.toml are as they were given: run this from the same folder.

Examples:
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --out run      (Ctrl-C)
  hyperprior resume run")]
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

impl Resume {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let config = Config::read(&self.folder)?;
        let (name, corpus, read) = (name_of(&config.corpus), config.corpus.clone(), config.read.clone());
        let job = Job { name, config, out: Some(self.folder), json: self.json, quiet: self.quiet };
        job.run(|| read_again(&corpus, read.as_ref()), true)
    }
}

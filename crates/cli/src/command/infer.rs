//! `hyperprior topics infer`: the topics of new documents.

use crate::error::CliError;
use crate::topics::{Inference, NewDocuments};
use clap::Args;
use hyperprior_def::heldout::FitSettings;
use std::path::PathBuf;

/// Find the topics of a run in new documents.
#[derive(Debug, Args)]
#[command(after_help = "\
RUN is a folder written by `hyperprior topics … --out RUN`; the training documents are not needed. Words of a text are looked up \
in the run's vocabulary; word counts refer to its terms by number. A document without a known word gets an empty row.

Examples:
  hyperprior topics bible --layers 20 --out run
  hyperprior topics infer run letters.txt              one document per line
  hyperprior topics infer run mail/ --out found        one text file per document
  hyperprior topics infer run new.ldac.gz              counts of the run's terms
  hyperprior topics infer run new.ldac --vocab new.txt counts of other terms, looked up by name
  hyperprior topics infer run letters.txt --json --quiet > summary.json")]
pub struct Infer {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    documents: NewDocuments,
    /// Optimisation steps per document
    #[arg(long, default_value_t = FitSettings::default().steps, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Number of topics to show per document, the strongest first
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// Number of words to show per topic
    #[arg(long, alias = "words", default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top_words: u16,
    /// Folder for activations.csv and summary.json [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

impl Infer {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let inference = Inference {
            run: self.run,
            fit: FitSettings::default().steps(self.steps),
            seed: self.seed,
            top: self.top.into(),
            words: self.top_words.into(),
            out: self.out,
            json: self.json,
            quiet: self.quiet,
        };
        inference.run(&self.documents)
    }
}

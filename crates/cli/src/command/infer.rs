//! `hyperprior topics infer`: the topics of documents that a run never saw.

use crate::error::CliError;
use crate::topics::{Inference, NewDocuments};
use clap::Args;
use hyperprior_def::heldout::FitSettings;
use std::path::PathBuf;

/// Find the topics of a run in new documents.
#[derive(Debug, Args)]
#[command(after_help = "\
RUN is the folder that `hyperprior topics … --out RUN` wrote; the documents that it learnt from are not needed. Words of text are
looked up in its vocabulary, and counts are of its terms by their numbers. A document without a word that the run knows keeps its
row, with nothing in it.

Examples:
  hyperprior topics bible --layers 20 --out run
  hyperprior topics infer run letters.txt              a document on each line
  hyperprior topics infer run mail/ --out found        a folder with a text file for each document; found/activations.csv
  hyperprior topics infer run new.ldac.gz              counts of the terms that the run was trained on
  hyperprior topics infer run new.ldac --vocab own.txt counts of terms of their own, looked up by their names
  hyperprior topics infer run letters.txt --json --quiet > summary.json")]
pub struct Infer {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    documents: NewDocuments,
    /// Steps that each document's latents are fitted for
    #[arg(long, default_value_t = FitSettings::default().steps, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// The random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// How many topics of a document are told, the strongest first
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// How many words a topic is told by
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    words: u16,
    /// Where activations.csv and summary.json go; nowhere, where it is not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

impl Infer {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let inference = Inference {
            run: self.run,
            fit: FitSettings { steps: self.steps, ..FitSettings::default() },
            seed: self.seed,
            top: self.top.into(),
            words: self.words.into(),
            out: self.out,
            json: self.json,
            quiet: self.quiet,
        };
        inference.run(&self.documents)
    }
}

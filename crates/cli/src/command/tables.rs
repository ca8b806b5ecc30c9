//! `hyperprior reproduce tables`: the paper's tables of held-out perplexity, on a corpus that is at hand.

use super::topics::chosen;
use crate::error::CliError;
use crate::tables::settings::{CURVE, DRAWS, EPOCHS, FAMILIES, LAYERS, MEASURED, METHODS, SEEDS, STEPS, WEIGHTS};
use crate::tables::{Choice, Flows, Job, Plan, Widths};
use crate::topics::{Reading, at_least_one, name_of};
use clap::Args;
use hyperprior_def::{Belief, Family, Method};
use std::path::PathBuf;

/// Train the paper's models of text by each method, and print its tables of held-out perplexity.
#[derive(Debug, Args)]
#[command(after_help = "\
Every model is trained on nine tenths of the documents and measured on the rest: the same documents, the same hidden words, the
same epochs and the same steps for all methods. Each cell is kept in DIR when it is done, and the same command goes on where it was
stopped. The paper's own numbers stand beside; they are of other corpora.

Examples:
  hyperprior reproduce tables --corpus bible
  hyperprior reproduce tables --corpus docs.ldac.gz --vocab vocab.txt --out tables
  hyperprior reproduce tables --corpus bible --layers 20 --layers 20-6 --seeds 1 --epochs 20 --steps 200 --out trial
  hyperprior reproduce tables --corpus bible --families poisson --methods low-rank:2,hvm,mean-field --flow none --no-curve")]
pub struct Tables {
    /// A file of word counts or of text, a folder of text files, or the word bible for the King James Bible, which is built in
    #[arg(long, value_name = "CORPUS")]
    corpus: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// The widths of a model's layers, the one next to the words first, as 100-30 or 100,30; once for each row of the tables
    #[arg(long, default_values = LAYERS, value_name = "LAYERS")]
    layers: Vec<Widths>,
    /// The laws of latents
    #[arg(long, default_value = FAMILIES, value_delimiter = ',', value_name = "FAMILIES", value_parser = chosen::<Family>)]
    families: Vec<Family>,
    /// The approximations of a document's latents, each a column: mean-field, hvm, low-rank:R, flow
    #[arg(long, default_value = METHODS, value_delimiter = ',', value_name = "METHODS", value_parser = chosen::<Method>)]
    methods: Vec<Method>,
    /// Which models have a row with the paper's planar flows
    #[arg(long, value_enum, default_value_t = Flows::OneLayer, value_name = "WHICH")]
    flow: Flows,
    /// The random seeds: of the documents set aside, of the words hidden in them, and of the training
    #[arg(long, default_value = SEEDS, value_delimiter = ',', value_name = "SEEDS", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seeds: Vec<u64>,
    /// What is believed of a weight: gamma, log-normal, point
    #[arg(long, default_value_t = WEIGHTS, value_name = "BELIEF", value_parser = chosen::<Belief>)]
    weights: Belief,
    /// How often every document is visited
    #[arg(long, default_value_t = EPOCHS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Draws of a document's latents in a step of the training: 1, 2, 4 or 8
    #[arg(long, default_value_t = DRAWS, value_name = "N")]
    draws: usize,
    /// Steps that each document which was set aside is fitted for
    #[arg(long, default_value_t = STEPS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// How many of the documents set aside are measured at most, from all parts of the corpus
    #[arg(long, default_value_t = MEASURED, value_name = "N", value_parser = at_least_one)]
    measured: usize,
    /// Steps at which the curve of models with one layer is measured, from the first seed
    #[arg(long, default_value = CURVE, value_delimiter = ',', value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..))]
    curve: Vec<u32>,
    /// No curve
    #[arg(long, conflicts_with = "curve")]
    no_curve: bool,
    /// Where cells are kept, and tables.md, cells.csv and the picture of the curve go
    #[arg(long, default_value = "hyperprior-tables", value_name = "DIR")]
    out: PathBuf,
    /// Print JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

impl Tables {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let plan = Plan {
            families: self.families,
            layers: self.layers,
            methods: self.methods,
            seeds: self.seeds,
            flows: self.flow,
            curve: if self.no_curve { Vec::new() } else { self.curve },
        };
        let job = Job {
            name: name_of(&self.corpus),
            command: command(),
            plan: plan.once(),
            choice: Choice {
                weights: self.weights,
                epochs: self.epochs,
                draws: self.draws,
                steps: self.steps,
                measured: self.measured,
            },
            out: self.out,
            json: self.json,
            quiet: self.quiet,
        };
        job.run(|| self.reading.read(&self.corpus))
    }
}

/// The command as it was given.
fn command() -> String {
    let quoted = |word: String| match word.contains(|x: char| x.is_whitespace() || "'\"$*?;&|<>()\\".contains(x)) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word,
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    ["hyperprior".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

//! `hyperprior reproduce tables`: the paper's tables of held-out perplexity, for a given corpus.

use super::topics::chosen;
use crate::error::CliError;
use crate::studies::tables::settings::{
    CURVE, DRAWS, EPOCHS, FAMILIES, LAYERS, MEASURED, METHODS, SEEDS, STEPS, TEMPERATURES, WEIGHTS,
};
use crate::studies::tables::{Choice, Flows, Job, Plan, Widths};
use crate::topics::{Reading, at_least_one, name_of};
use clap::Args;
use hyperprior_def::{Family, Method, WeightPosterior, WordCounts};
use std::path::PathBuf;

/// Train the paper's topic models with each method and print its tables of held-out perplexity.
#[derive(Debug, Args)]
#[command(after_help = "\
Every model is trained on nine tenths of the documents and evaluated on the rest, with the same documents, hidden words, epochs \
and steps for all methods. Finished cells are saved in DIR; after an interruption, the same command continues. The paper's \
numbers are printed for comparison, but they are for other corpora.

Examples:
  hyperprior reproduce tables --corpus bible
  hyperprior reproduce tables --corpus docs.ldac.gz --vocab vocab.txt --out tables
  hyperprior reproduce tables --corpus bible --layers 20 --layers 20-6 --seeds 1 --steps 200
  hyperprior reproduce tables --corpus bible --families poisson --methods low-rank:2,hvm --no-curve")]
pub struct Tables {
    /// File of word counts or text, folder of text files, or `bible` for the built-in King James Bible
    #[arg(long, value_name = "CORPUS")]
    corpus: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Layer widths of a model, bottom layer first, as 100-30 or 100,30; give it once for each row of the tables
    #[arg(long, default_values = LAYERS, value_name = "LAYERS")]
    layers: Vec<Widths>,
    /// Families of latents, separated by commas
    #[arg(long, default_value = FAMILIES, value_delimiter = ',', value_name = "FAMILIES", value_parser = chosen::<Family>)]
    families: Vec<Family>,
    /// Approximations of a document's latents, one column each: mean-field, hvm, low-rank:R, flow
    #[arg(long, default_value = METHODS, value_delimiter = ',', value_name = "METHODS", value_parser = chosen::<Method>)]
    methods: Vec<Method>,
    /// Models that get a row with the paper's planar flows
    #[arg(long, value_enum, default_value_t = Flows::OneLayer, value_name = "WHICH")]
    flow: Flows,
    /// Random seeds for the split, the hidden words and the training, separated by commas
    #[arg(long, default_value = SEEDS, value_delimiter = ',', value_name = "SEEDS", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seeds: Vec<u64>,
    /// Approximation of the weights' posterior: gamma, log-normal or point
    #[arg(long, default_value_t = WEIGHTS, value_name = "POSTERIOR", value_parser = chosen::<WeightPosterior>)]
    weights: WeightPosterior,
    /// Distribution of the number of times that a word occurs: poisson, or negative-binomial for words that come in bursts
    #[arg(long, default_value_t, value_name = "COUNTS", value_parser = chosen::<WordCounts>)]
    words: WordCounts,
    /// Passes over the documents
    #[arg(long, default_value_t = EPOCHS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Draws of a document's latents per training step: 1, 2, 4 or 8
    #[arg(long, default_value_t = DRAWS, value_name = "N")]
    draws: usize,
    /// Optimisation steps per held-out document
    #[arg(long, default_value_t = STEPS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Largest number of held-out documents to evaluate, taken from all parts of the corpus
    #[arg(long, default_value_t = MEASURED, value_name = "N", value_parser = at_least_one)]
    measured: usize,
    /// Temperatures of annealed importance sampling, which estimates the likelihood of each whole held-out document; 0 for none
    #[arg(long, default_value_t = TEMPERATURES, value_name = "N")]
    temperatures: usize,
    /// Numbers of steps at which to plot perplexity for the one-layer models, with the first seed
    #[arg(long, default_value = CURVE, value_delimiter = ',', value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..))]
    curve: Vec<u32>,
    /// Plot no curve
    #[arg(long, conflicts_with = "curve")]
    no_curve: bool,
    /// Folder for finished cells, tables.md, cells.csv and the plot of the curve
    #[arg(long, default_value = "hyperprior-tables", value_name = "DIR")]
    out: PathBuf,
    /// Print JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

impl Tables {
    /// Runs the command.
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
            plan: plan.deduplicated(),
            choice: Choice {
                weights: self.weights,
                words: self.words,
                epochs: self.epochs,
                draws: self.draws,
                steps: self.steps,
                measured: self.measured,
                temperatures: self.temperatures,
            },
            out: self.out,
            json: self.json,
            quiet: self.quiet,
        };
        job.run(|| self.reading.read(&self.corpus))
    }
}

/// The command line, quoted for a shell.
fn command() -> String {
    let quoted = |word: String| match word.contains(|x: char| x.is_whitespace() || "'\"$*?;&|<>()\\".contains(x)) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word,
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    ["hyperprior".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

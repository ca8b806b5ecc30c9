//! `hyperprior topics`: from a collection of text to its topics.

use crate::command::infer::Infer;
use crate::error::CliError;
use crate::topics::{Config, Input, Job, Layers};
use clap::{Args, Subcommand};
use hyperprior_def::{Belief, Error, Family, Method, Settings};
use std::path::PathBuf;
use std::str::FromStr;

/// Find the topics of a collection of text.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Each document has latents, counts or switches or amounts; each is a topic, which adds words of its own. Layers above say which
topics go together. Some documents are set aside, to see how well the words that are hidden in them are foretold.

Examples:
  hyperprior topics bible                               50 topics of the King James Bible
  hyperprior topics mail/ --layers 100                  a folder with a text file for each document
  hyperprior topics abstracts.txt --stop-words none     a document on each line
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --epochs 200 --out run
  hyperprior topics bible --layers 50,bernoulli:10      counts of topics below, switches above
  hyperprior topics abstracts.txt --amortize            a network learns to tell a document's topics from its words
  hyperprior topics bible --layers gamma:50,gaussian:10 amounts of topics below, numbers of either sign above
  hyperprior topics docword.kos.txt --vocab vocab.kos.txt --method mean-field --weights point
  hyperprior topics bible --json --quiet > summary.json
  hyperprior topics infer run letters.txt               the topics of a run in documents that it never saw"
)]
pub struct Topics {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    input: Input,
    /// The law of the latents of layers that name no other: poisson (how often), bernoulli (whether at all), gamma (how much), or
    /// gaussian (how much, of either sign; not in the layer next to the words)
    #[arg(long, default_value_t, value_name = "FAMILY", value_parser = chosen::<Family>)]
    family: Family,
    /// How many latents each layer has, separated by commas, the layer next to the words first; a layer may name a family of its
    /// own, as in 100,bernoulli:30
    #[arg(long, default_value_t = Layers::one(50), value_name = "LAYERS")]
    layers: Layers,
    /// The shape of the latents of gamma layers: the smaller, the more of them are near 0
    #[arg(long, default_value_t = Settings::default().gamma_shape, value_name = "SHAPE")]
    gamma_shape: f32,
    /// The approximation of a document's latents: mean-field, hvm, tight, mixture:J with J points, low-rank:R with a Gaussian of rank
    /// R, or flow:L,M with planar flows
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = chosen::<Method>)]
    method: Method,
    /// Documents have no parameters of their own: a network with so many hidden units gives them theirs, and gives them to new
    /// documents at once
    #[arg(long, value_name = "UNITS", num_args = 0..=1, require_equals = true, default_missing_value = "128")]
    amortize: Option<usize>,
    /// What is believed of a weight: a gamma law, a log-normal one, or a point: gamma, log-normal, point
    #[arg(long, default_value_t, value_name = "BELIEF", value_parser = chosen::<Belief>)]
    weights: Belief,
    /// How often every document is visited
    #[arg(long, default_value_t = Settings::default().epochs, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Documents in a minibatch
    #[arg(long, default_value_t = Settings::default().batch, value_name = "N")]
    batch: usize,
    /// Draws of a document's latents in a step: 1, 2, 4 or 8
    #[arg(long, default_value_t = Settings::default().draws, value_name = "N")]
    draws: usize,
    /// The random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// The share of the documents that are set aside to measure how well hidden words are foretold; 0 for none
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = heldout)]
    heldout: f64,
    /// How many words a topic is told by
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    words: u16,
    /// Where report.html, config.toml, summary.json, topics.json, activations.csv, weights.parquet, trace.csv, the model that
    /// `hyperprior topics infer` takes and the checkpoint that `hyperprior resume` goes on from go; nowhere, where it is not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

/// What can be done beside.
#[derive(Debug, Subcommand)]
enum Other {
    /// Find the topics of a run in new documents
    Infer(Infer),
}

/// A choice by its name; what is refused is said without the setting's name, which the option has.
pub fn chosen<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::BadSetting { reason, .. } => reason.to_owned(),
        error => error.to_string(),
    })
}

fn heldout(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("write a share of the documents, from 0 up to 1, such as 0.1".to_owned()),
    }
}

impl Topics {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        if let Some(Other::Infer(infer)) = self.other {
            return infer.run();
        }
        let config = self.config();
        config.train.check()?;
        let job = Job { name: self.input.name(), config, out: self.out, json: self.json, quiet: self.quiet };
        job.run(|| self.input.read(), false)
    }

    fn config(&self) -> Config {
        Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            corpus: self.input.corpus().to_owned(),
            heldout: self.heldout,
            words: self.words.into(),
            read: self.input.settings(),
            train: Settings {
                layers: self.layers.of(self.family),
                gamma_shape: self.gamma_shape,
                method: self.method,
                amortize: self.amortize,
                weights: self.weights,
                seed: self.seed,
                epochs: self.epochs,
                batch: self.batch,
                draws: self.draws,
                ..Settings::default()
            },
        }
    }
}

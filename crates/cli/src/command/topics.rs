//! `hyperprior topics`: the topics of a text corpus.

use crate::command::fit::seconds;
use crate::command::infer::Infer;
use crate::error::CliError;
use crate::run_dir::SAVE_EVERY;
use crate::topics::{Config, Input, Job, Layers};
use clap::{Args, Subcommand};
use hyperprior_def::{Device, Error, Family, Method, Settings, WeightPosterior, WordCounts};
use std::path::PathBuf;
use std::str::FromStr;

/// Find the topics of a text corpus.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Every document has one latent per topic: a count, a binary variable or an amount. Each topic contributes its own words. Higher \
layers model which topics occur together. Some documents are held out, to measure how well their hidden words are predicted.

Examples:
  hyperprior topics bible                               50 topics of the King James Bible
  hyperprior topics mail/ --layers 100                  one text file per document
  hyperprior topics abstracts.txt --stop-words none     one document per line
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --epochs 200 --out run
  hyperprior topics bible --layers 50,bernoulli:10      counts in the bottom layer, binary latents above
  hyperprior topics abstracts.txt --amortize            infer each document's topics with a neural network
  hyperprior topics bible --layers gamma:50,gaussian:10 positive amounts in the bottom layer, real numbers above
  hyperprior topics docword.kos.txt --vocab vocab.kos.txt --method mean-field --weights point
  hyperprior topics bible --json --quiet > summary.json
  hyperprior topics infer run letters.txt               the topics of a run in new documents"
)]
pub struct Topics {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    input: Input,
    /// Family of latents in layers that name none: poisson (counts), bernoulli (binary), gamma (amounts), or gaussian (real
    /// numbers; not in the bottom layer)
    #[arg(long, default_value_t, value_name = "FAMILY", value_parser = chosen::<Family>)]
    family: Family,
    /// Number of latents per layer, separated by commas, bottom layer (next to the words) first; a layer may name its family, as in
    /// 100,bernoulli:30
    #[arg(long, default_value_t = Layers::one(50), value_name = "LAYERS")]
    layers: Layers,
    /// Shape of the latents in gamma layers; a smaller shape puts more of them near 0
    #[arg(long, default_value_t = Settings::default().gamma_shape, value_name = "SHAPE")]
    gamma_shape: f32,
    /// Approximation of a document's latents: mean-field, hvm, conway-maxwell, mixture:J (J atoms), conway-maxwell-mixture:J,
    /// low-rank:R (Gaussian of rank R) or flow:L,M (planar flows)
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = chosen::<Method>)]
    method: Method,
    /// Distribution of the number of times that a word occurs: poisson, or negative-binomial for words that come in bursts
    #[arg(long, default_value_t, value_name = "COUNTS", value_parser = word_counts)]
    words: WordCounts,
    /// Compute each document's variational parameters with a network of this many hidden units [default without a value: 128]; new
    /// documents then need no fitting
    #[arg(long, value_name = "UNITS", num_args = 0..=1, require_equals = true, default_missing_value = "128")]
    amortize: Option<usize>,
    /// Approximation of the weights' posterior: gamma, log-normal or point
    #[arg(long, default_value_t, value_name = "POSTERIOR", value_parser = chosen::<WeightPosterior>)]
    weights: WeightPosterior,
    /// Passes over the documents
    #[arg(long, default_value_t = Settings::default().epochs, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Documents per minibatch
    #[arg(long, default_value_t = Settings::default().batch, value_name = "N")]
    batch: usize,
    /// Draws of a document's latents per step: 1, 2, 4 or 8
    #[arg(long, default_value_t = Settings::default().draws, value_name = "N")]
    draws: usize,
    /// Where to train: cpu, cuda, or cuda:N for the GPU with the number N (mean-field and hvm, layers of poisson or bernoulli latents)
    #[arg(long, default_value_t, value_name = "DEVICE", value_parser = chosen::<Device>)]
    device: Device,
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Share of the documents to hold out, to measure how well hidden words are predicted; 0 for none
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = heldout)]
    heldout: f64,
    /// Number of words to show per topic
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top_words: u16,
    /// Folder for report.html, config.toml, summary.json, topics.json, activations.csv, weights.parquet, trace.csv, the model for
    /// `hyperprior topics infer` and the checkpoint for `hyperprior resume` [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds between checkpoints in --out, for `hyperprior resume`
    #[arg(long, default_value_t = SAVE_EVERY, value_name = "SECONDS", value_parser = seconds)]
    save_every: f64,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
enum Other {
    /// Find the topics of a run in new documents
    Infer(Infer),
}

/// Parses a choice by its name. Errors omit the setting's name, since clap names the option.
pub fn chosen<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::BadSetting { reason, .. } => reason.to_owned(),
        error => error.to_string(),
    })
}

/// Parses the distribution of the counts of words.
pub fn word_counts(text: &str) -> Result<WordCounts, String> {
    if text.parse::<u16>().is_ok() {
        return Err("use poisson or negative-binomial; the number of words to show is --top-words".to_owned());
    }
    chosen(text)
}

fn heldout(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("write a share from 0 up to 1, such as 0.1".to_owned()),
    }
}

impl Topics {
    /// Runs the command.
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
            words: self.top_words.into(),
            save_every: self.save_every,
            device: self.device,
            read: self.input.settings(),
            train: Settings::default()
                .layers(self.layers.of(self.family))
                .gamma_shape(self.gamma_shape)
                .method(self.method)
                .words(self.words)
                .amortize(self.amortize)
                .weights(self.weights)
                .seed(self.seed)
                .epochs(self.epochs)
                .batch(self.batch)
                .draws(self.draws),
        }
    }
}

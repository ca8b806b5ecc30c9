//! `hyperprior topics`: from a collection of text to its topics.

use crate::error::CliError;
use crate::output::RunDirectory;
use crate::progress::StopFlag;
use crate::topics::{Config, Foretold, Glance, Input, Layers, Told, Watch, report, write};
use clap::Args;
use hyperprior_def::{Activity, Belief, Corpus, Error, Family, Method, Settings, Training};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// Find the topics of a collection of text.
#[derive(Debug, Args)]
#[command(after_help = "\
Each document has latent counts (or switches); each latent is a topic, which adds words of its own. Layers above say which
topics go together. Some documents are set aside, to see how well the words that are hidden in them are foretold.

Examples:
  hyperprior topics bible                               50 topics of the King James Bible
  hyperprior topics mail/ --layers 100                  a folder with a text file for each document
  hyperprior topics abstracts.txt --stop-words none     a document on each line
  hyperprior topics docs.ldac.gz --vocab vocab.txt --layers 100,30,15 --epochs 200 --out run
  hyperprior topics docword.kos.txt --vocab vocab.kos.txt --method mean-field --weights point
  hyperprior topics bible --json --quiet > summary.json")]
pub struct Topics {
    #[command(flatten)]
    input: Input,
    /// The law of the latents: poisson (how often) or bernoulli (whether at all)
    #[arg(long, default_value_t, value_name = "FAMILY", value_parser = chosen::<Family>)]
    family: Family,
    /// How many latents each layer has, separated by commas, the layer next to the words first
    #[arg(long, default_value_t = Layers(vec![50]), value_name = "WIDTHS")]
    layers: Layers,
    /// The approximation of a document's latents: mean-field, hvm, or low-rank:R with a Gaussian of rank R
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = chosen::<Method>)]
    method: Method,
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
    /// Where config.toml, summary.json, topics.json, activations.csv, weights.parquet and trace.csv go; nowhere, where it is not
    /// given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

/// A choice by its name; what is refused is said without the setting's name, which the option has.
fn chosen<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
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

/// How often the perplexity is looked at on the way.
const GLANCES: u32 = 5;

impl Topics {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let began = Instant::now();
        let settings = self.settings();
        settings.check()?;
        let stop = StopFlag::on_signals_once_kept();
        let mut watch = Watch::new(settings.epochs, self.quiet);
        let (corpus, notes) = self.input.read()?;
        if !self.quiet {
            notes.iter().for_each(|note| watch.note(note));
        }
        let (train, test) = self.split(&corpus)?;
        // A folder that cannot be made is better known before the training than after it.
        let run = self.out.as_ref().map(RunDirectory::create).transpose()?;
        let mut training = Training::new(&train, &settings)?;
        climb(&mut training, &train, &test, &stop, &mut watch)?;
        watch.say("documents set aside");
        let is_stopped = training.epoch() < settings.epochs;
        let foretold = match test.documents_len() {
            0 => None,
            _ => Foretold::new(&training, &train, &test, is_stopped)?,
        };
        watch.say("topics");
        let activity = Activity::new(&training, &train);
        let topics = hyperprior_def::Topics::new(&training, &train, &activity, self.words.into());
        watch.finish();
        let told = Told {
            name: self.input.name(),
            corpus: &corpus,
            train: &train,
            training: &training,
            activity,
            topics,
            foretold,
            trace: &watch.trace,
            wall_seconds: began.elapsed().as_secs_f64(),
        };
        if let Some(run) = &run {
            write(run, &self.config(&settings), &told)?;
        }
        self.print(&told, run.as_ref())?;
        if told.is_stopped() {
            return Err(CliError::StoppedTraining { epoch: training.epoch(), epochs: settings.epochs });
        }
        Ok(())
    }

    /// The documents to train on, and those set aside.
    fn split(&self, corpus: &Corpus) -> Result<(Corpus, Corpus), CliError> {
        let (train, test) = corpus.split(self.heldout, self.seed)?;
        if train.is_empty() {
            return Err(CliError::Usage(format!(
                "--heldout {} sets every document aside, of {} that there are; use a smaller share",
                self.heldout,
                corpus.documents_len()
            )));
        }
        Ok((corpus.subset(&train), corpus.subset(&test)))
    }

    fn print(&self, told: &Told, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &told.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", report(told))?;
            if let Some(run) = run {
                writeln!(out, "\nThe topics, the weights and what repeats the run are in {}", run.path().display())?;
            }
        }
        Ok(out.flush()?)
    }

    fn settings(&self) -> Settings {
        Settings {
            layers: self.layers.of(self.family),
            method: self.method,
            weights: self.weights,
            seed: self.seed,
            epochs: self.epochs,
            batch: self.batch,
            draws: self.draws,
            ..Settings::default()
        }
    }

    fn config(&self, settings: &Settings) -> Config {
        Config {
            version: env!("CARGO_PKG_VERSION"),
            corpus: self.input.corpus.clone(),
            heldout: self.heldout,
            words: self.words.into(),
            read: (!self.input.is_built_in()).then(|| self.input.settings()),
            train: settings.clone(),
        }
    }
}

/// Epoch after epoch, until the last or until someone asks to stop.
fn climb(
    training: &mut Training,
    train: &Corpus,
    test: &Corpus,
    stop: &StopFlag,
    watch: &mut Watch,
) -> Result<(), CliError> {
    let (epochs, words) = (training.settings().epochs, train.tokens_len() as f64);
    let glance = (watch.is_seen() && test.documents_len() > 0).then(|| Glance::new(training, train, test));
    watch.begin();
    while training.epoch() < epochs && !stop.is_raised() {
        let began = Instant::now();
        let epoch = training.run_epoch();
        // From here on there are topics that are worth keeping.
        stop.keep();
        watch.epoch(&epoch, words, began);
        let is_fifth = epoch.number.is_multiple_of(epochs.div_ceil(GLANCES)) && epoch.number < epochs;
        if let Some(glance) = glance.as_ref().filter(|_| is_fifth) {
            watch.glance(glance.perplexity(training)?);
        }
    }
    Ok(())
}

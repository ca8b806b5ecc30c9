//! `hyperprior fit`: from a model file and its data to draws of the posterior.

use super::input::Input;
use crate::error::CliError;
use crate::fit::{Config, Response, Told, Watch, report, write};
use crate::output::RunDirectory;
use crate::progress::StopFlag;
use clap::{Args, ValueEnum};
use hyperprior::Model;
use hyperprior::infer::{
    Correct, InferSettings, LikelihoodPart, Method, MethodError, OVERSAMPLED, PartError, Parts, PriorPart,
    RecursivePart,
};
use hyperprior::posterior::{Monitor, MonitorError};
use hyperprior_bugs::fit::{FitError, Source, Task};
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// Fit a model in BUGS to its data.
#[derive(Debug, Args)]
#[command(after_help = "\
Discrete latents are summed out where that is cheap; the others, and the continuous ones, get an approximation that keeps the
dependence between them. Its draws are resampled by their importance weights and moved towards the posterior.

Examples:
  hyperprior fit examples/coal/model.bug --data examples/coal/data.json
  hyperprior fit rats.bug --data rats.R --monitor mu.b,b[1:3] --draws 10000
  hyperprior fit karate.bug --data karate.json --method hvm --eliminate none --seed 3
  hyperprior fit karate.bug --data karate.json --prior low-rank:4 --recursive inverse-flow:10 --bound importance:8
  hyperprior fit model.bug --data y.csv --data sizes.json --init inits.R --out run
  hyperprior fit model.bug --data data.json --method mean-field --correct none --linear-response
  hyperprior fit model.bug --data data.json --json > summary.json
  hyperprior fit model.bug                        without data: draws from the prior")]
pub struct Fit {
    #[command(flatten)]
    input: Input,
    /// The approximation: auto, mean-field, full-rank, mixture:K, flow:L, copula:R or hvm
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = method)]
    method: Method,
    /// Its factors of discrete latents: usual, binomial or negative-binomial; the method's, where it is not given
    #[arg(long, value_name = "PART")]
    likelihood: Option<LikelihoodPart>,
    /// Its prior over their parameters: diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L or spline:L
    #[arg(long, value_name = "PART", value_parser = prior)]
    prior: Option<PriorPart>,
    /// Its recursive approximation: prior, factorised, inverse-flow:L, laplace or ep
    #[arg(long, value_name = "PART", value_parser = recursive)]
    recursive: Option<RecursivePart>,
    /// What is climbed: hierarchical, or importance:J with J draws of the recursive approximation
    #[arg(long, default_value_t, value_name = "BOUND")]
    bound: BoundChoice,
    /// What brings the approximation's draws nearer to the posterior
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    correct: Correction,
    /// Add the spreads that linear response gives; for `--method mean-field --correct none`
    #[arg(long)]
    linear_response: bool,
    /// The random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// How many draws of the posterior
    #[arg(long, default_value_t = 4000, value_name = "N", value_parser = draws)]
    draws: u32,
    /// Optimisation steps; what suits the method, where it is not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// What to show and keep, separated by commas: beta, beta[2], beta[1:3], z[,2]; everything, where it is not given
    #[arg(long, value_name = "NAMES")]
    monitor: Option<String>,
    /// Where config.toml, summary.json, draws.parquet, draws.csv, CODA files and trace.csv go; nowhere, where it is not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    quiet: bool,
}

/// What is done to the draws of an approximation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Correction {
    /// Nothing: they are the approximation's own
    None,
    /// They are resampled by their importance weights
    Weights,
    /// They are resampled, and then each makes moves that leave the posterior as it is
    #[default]
    Moves,
}

impl From<Correction> for Correct {
    fn from(correction: Correction) -> Self {
        match correction {
            Correction::None => Self::Nothing,
            Correction::Weights => Self::Weights,
            Correction::Moves => Self::Moves,
        }
    }
}

/// Fewer draws than this say nothing of quantiles or tails.
const DRAWS_MIN: u32 = 10;
/// The most components, layers or ranks.
const SIZE_MAX: usize = 1000;
/// The most memory that draws may take, in bytes.
const BYTES_MAX: f64 = 8.0 * GIB;
const GIB: f64 = (1_u64 << 30) as f64;

fn draws(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(draws) if draws >= DRAWS_MIN => Ok(draws),
        Ok(_) => Err(format!("at least {DRAWS_MIN} draws are needed")),
        Err(error) => Err(format!("{error}; write a whole number, {DRAWS_MIN} or more")),
    }
}

/// The bound that is climbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BoundChoice {
    /// Draws of r; none for the hierarchical bound.
    importance: usize,
}

impl fmt::Display for BoundChoice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.importance {
            0 => f.write_str("hierarchical"),
            draws => write!(f, "importance:{draws}"),
        }
    }
}

impl FromStr for BoundChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("importance:").and_then(|number| number.parse().ok());
        match (text, number) {
            ("hierarchical", _) => Ok(Self::default()),
            (_, Some(importance @ 1..=SIZE_MAX)) => Ok(Self { importance }),
            _ => Err(format!("use hierarchical, or importance:J with J from 1 to {SIZE_MAX}")),
        }
    }
}

fn prior(text: &str) -> Result<PriorPart, String> {
    let part: PriorPart = text.parse().map_err(|error: PartError| error.to_string())?;
    match part {
        PriorPart::LowRank(size)
        | PriorPart::Mixture(size)
        | PriorPart::Copula(size)
        | PriorPart::Planar(size)
        | PriorPart::Spline(size) => within(size).map(|()| part),
        PriorPart::Diagonal | PriorPart::Gaussian => Ok(part),
    }
}

fn recursive(text: &str) -> Result<RecursivePart, String> {
    let part: RecursivePart = text.parse().map_err(|error: PartError| error.to_string())?;
    match part {
        RecursivePart::InverseFlow(size) => within(size).map(|()| part),
        part => Ok(part),
    }
}

fn within(size: usize) -> Result<(), String> {
    if size <= SIZE_MAX { Ok(()) } else { Err(format!("the number after the colon is at most {SIZE_MAX}")) }
}

pub(super) fn method(text: &str) -> Result<Method, String> {
    let method: Method = text.parse().map_err(|error: MethodError| error.to_string())?;
    match method {
        Method::Mixture(size) | Method::Flow(size) | Method::Copula(size) => within(size).map(|()| method),
        method => Ok(method),
    }
}

/// Refuses draws that would not fit. For each that is kept, several are weighed.
fn within_memory(draws: u32, latents: usize, quantities: usize) -> Result<(), CliError> {
    let of_one = (OVERSAMPLED * latents + quantities) as f64 * size_of::<f64>() as f64;
    let bytes = f64::from(draws) * of_one;
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    let (needed, most) = (bytes / GIB, BYTES_MAX / GIB);
    let fitting = (BYTES_MAX / of_one).floor();
    Err(CliError::Usage(format!(
        "--draws {draws} would take {needed:.1} GiB for {latents} fitted latents and {quantities} quantities; the most is \
         {most:.0} GiB: ask for at most {fitting:.0} draws, or keep fewer quantities with --monitor NAMES"
    )))
}

impl Fit {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let began = Instant::now();
        if self.linear_response && (self.method != Method::MeanField || self.correct != Correction::None) {
            return Err(CliError::Usage(
                "--linear-response mends the spreads of mean-field, where the draws are its own: it goes with `--method \
                 mean-field --correct none`"
                    .to_owned(),
            ));
        }
        let monitors = match &self.monitor {
            Some(text) => Monitor::parse_list(text).map_err(hyperprior::posterior::DrawsError::from)?,
            None => Vec::new(),
        };
        let stop = StopFlag::on_signals_once_kept();
        let mut watch = Watch::new(self.quiet, &stop);
        watch.phase("compile");
        let (compiled, given) = self.input.compile(self.quiet)?;
        let warned = compiled.warnings.iter().map(|w| w.message.clone()).collect();
        let eliminate = self.input.eliminate(&compiled.graph)?;
        let task = match Task::new(compiled.graph, &eliminate, &monitors) {
            Err(FitError::Monitor(MonitorError::Unknown { name, .. })) if given.contains(&name) => {
                return Err(CliError::Usage(format!(
                    "--monitor: `{name}` is observed (it is in the data), so it has no posterior"
                )));
            }
            task => task?,
        };
        within_memory(self.draws, task.model().latents().len(), task.quantities().len())?;
        // A folder that cannot be made is better known before the fit than after it.
        let run = self.out.as_ref().map(RunDirectory::create).transpose()?;
        watch.phase("search");
        let settings = self.settings();
        let result = task.run(&settings, &mut watch);
        watch.finish();
        let posterior = result?;
        let response = match (&posterior.source, self.linear_response) {
            (Source::Approximate(inferred), true) => Some(Response::of(&task, inferred, &settings)?),
            _ => None,
        };
        let seconds = began.elapsed().as_secs_f64();
        let about = (compiled.name, compiled.observed, warned);
        let told = Told { response, ..Told::new(about, &task, settings, &posterior, &watch, seconds) };
        if let Some(run) = &run {
            write(run, &self.config(&told), &told)?;
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &told.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", report(&told, self.monitor.is_some())?)?;
            if let Some(run) = &run {
                writeln!(out, "\nThe draws, the summary and what repeats the run are in {}", run.path().display())?;
            }
        }
        out.flush()?;
        if told.is_stopped() {
            let (step, steps) = watch.step;
            return Err(CliError::StoppedFit { step, steps });
        }
        Ok(())
    }

    fn settings(&self) -> InferSettings {
        InferSettings {
            method: self.method,
            parts: Parts { likelihood: self.likelihood, prior: self.prior, recursive: self.recursive },
            importance: self.bound.importance,
            seed: self.seed,
            draws: self.draws as usize,
            steps: self.steps,
            correct: self.correct.into(),
            ..InferSettings::default()
        }
    }

    fn config(&self, told: &Told) -> Config {
        let dialect = self.input.dialect.to_possible_value();
        Config {
            version: env!("CARGO_PKG_VERSION"),
            model: self.input.model.clone(),
            data: self.input.data.clone(),
            init: self.input.init.clone(),
            dialect: dialect.map_or_else(String::new, |value| value.get_name().to_owned()),
            eliminate: self.input.eliminate.clone(),
            monitor: self.monitor.clone().unwrap_or_default(),
            infer: told.settings.clone(),
        }
    }
}

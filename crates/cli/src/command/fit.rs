//! `hyperprior fit`: from a model file and its data to draws of the posterior.

use super::input::Input;
use crate::error::CliError;
use crate::fit::{Config, Job};
use clap::{Args, ValueEnum};
use hyperprior::infer::{
    Correct, InferSettings, LikelihoodPart, Method, MethodError, PartError, Parts, PriorPart, RecursivePart,
};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Fit a model in BUGS to its data.
#[derive(Debug, Args)]
#[command(after_help = "\
Discrete latents are summed out where that is cheap; the others, and the continuous ones, get an approximation that keeps the
dependence between them. Its draws are resampled by their importance weights and moved towards the posterior.

Examples:
  hyperprior fit examples/coal/model.bug --data examples/coal/data.json
  hyperprior fit rats.bug --data rats.R --monitor mu.b,b[1:3] --draws 10000
  hyperprior fit model.bug --data data.json --accuracy 0.1 --budget 60
  hyperprior fit karate.bug --data karate.json --method hvm --eliminate none --seed 3
  hyperprior fit karate.bug --data karate.json --prior low-rank:4 --recursive inverse-flow:10 --bound importance:8
  hyperprior fit model.bug --data y.csv --data sizes.json --init inits.R --out run      (Ctrl-C)
  hyperprior resume run
  hyperprior fit model.bug --data data.json --method mean-field --correct none --linear-response
  hyperprior fit model.bug --data data.json --json > summary.json
  hyperprior fit examples/coal/model.bug --data examples/coal/data.json --check-predictive --loo
  hyperprior fit model.bug                        without data: draws from the prior")]
pub struct Fit {
    #[command(flatten)]
    input: Input,
    /// The approximation: auto, mean-field, low-rank:R, full-rank, mixture:K, flow:L, copula:R or hvm
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = method)]
    method: Method,
    /// The nats of the bound that may be left: auto tries larger approximations while they gain more, and a fit takes steps while they
    /// gain a fifth of it
    #[arg(long, default_value_t = 0.5, value_name = "NATS", value_parser = size, allow_negative_numbers = true)]
    accuracy: f64,
    /// The seconds after which fits end as they are and nothing larger is tried; the draws come on top
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    budget: Option<f64>,
    /// How often the approximation is fitted, from different starts; twice, or once where that takes long, if it is not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100), allow_negative_numbers = true)]
    restarts: Option<u16>,
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
    /// Optimisation steps of a fit; it ends by itself, where it is not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// The size of a step at the beginning, in the posterior's own units; what suits the method, where it is not given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    step_size: Option<f64>,
    /// What to show and keep, separated by commas: beta, beta[2], beta[1:3], z[,2]; everything, where it is not given
    #[arg(long, value_name = "NAMES")]
    monitor: Option<String>,
    /// Draw the data anew for every draw, and hold the statistics of both beside each other
    #[arg(long)]
    check_predictive: bool,
    /// Foretell each observation from all others: leave-one-out cross-validation (PSIS) and WAIC
    #[arg(long)]
    loo: bool,
    /// Where report.html, config.toml, summary.json, draws.parquet, draws.csv, CODA files and trace.csv go; nowhere, where it is not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds between two states of the fit that are saved in --out, for `hyperprior resume`
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    save_every: f64,
    /// Exit with 3 where the verdict is not `trust`
    #[arg(long)]
    strict: bool,
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

pub fn draws(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(draws) if draws >= DRAWS_MIN => Ok(draws),
        Ok(_) => Err(format!("at least {DRAWS_MIN} draws are needed")),
        Err(error) => Err(format!("{error}; write a whole number, {DRAWS_MIN} or more")),
    }
}

fn size(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(size) if size > 0.0 && size.is_finite() => Ok(size),
        _ => Err("write a number above 0".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("write a number of seconds, 0 or more".to_owned()),
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
        Method::LowRank(size) | Method::Mixture(size) | Method::Flow(size) | Method::Copula(size) => {
            within(size).map(|()| method)
        }
        method => Ok(method),
    }
}

impl Fit {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        if self.linear_response && (self.method != Method::MeanField || self.correct != Correction::None) {
            return Err(CliError::Usage(
                "--linear-response mends the spreads of mean-field, where the draws are its own: it goes with `--method \
                 mean-field --correct none`"
                    .to_owned(),
            ));
        }
        let config = Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: self.input.fingerprint()?,
            monitor: self.monitor.clone().unwrap_or_default(),
            save_every: self.save_every,
            check_predictive: self.check_predictive,
            loo: self.loo,
            linear_response: self.linear_response,
            infer: self.settings(),
            input: self.input,
        };
        Job { config, out: self.out, json: self.json, quiet: self.quiet, strict: self.strict }.run(false)
    }

    fn settings(&self) -> InferSettings {
        InferSettings {
            method: self.method,
            accuracy: self.accuracy,
            budget: self.budget,
            restarts: self.restarts.map(usize::from),
            parts: Parts { likelihood: self.likelihood, prior: self.prior, recursive: self.recursive },
            importance: self.bound.importance,
            seed: self.seed,
            draws: self.draws as usize,
            steps: self.steps,
            step_size: self.step_size,
            correct: self.correct.into(),
            ..InferSettings::default()
        }
    }
}

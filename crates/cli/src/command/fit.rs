//! `hyperprior fit`: draws from the posterior of a model file and its data.

use super::input::Input;
use crate::error::CliError;
use crate::fit::{Config, Job};
use crate::run_dir::SAVE_EVERY;
use clap::{Args, ValueEnum};
use hyperprior::gradient::Estimator;
use hyperprior::infer::{
    Correction, DRAWS_MIN, InferSettings, LikelihoodPart, Method, MethodError, PartError, Parts, PriorPart,
    RecursivePart, SIZE_MAX,
};
use hyperprior::optimizer::OptimizerKind;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::str::FromStr;

/// Fit a BUGS model to data.
#[derive(Debug, Args)]
#[command(after_help = "\
Discrete latents are marginalised if that is cheap. An approximation that keeps dependence is fitted to the remaining latents; \
its draws are resampled by importance weight and then corrected by MCMC moves.

Examples:
  hyperprior fit examples/coal/model.bug --data examples/coal/data.json
  hyperprior fit rats.bug --data rats.R --monitor mu.b,b[1:3] --draws 10000
  hyperprior fit model.bug --data data.json --accuracy 0.1 --budget 60
  hyperprior fit karate.bug --data karate.json --method hvm --eliminate none --seed 3
  hyperprior fit karate.bug --data karate.json --prior low-rank:4 --recursive inverse-flow:10
  hyperprior fit model.bug --data y.csv --data sizes.json --init inits.R --out run      (Ctrl-C)
  hyperprior resume run
  hyperprior fit model.bug --data data.json --method mean-field --correct none --linear-response
  hyperprior fit model.bug --data data.json --json > summary.json
  hyperprior fit examples/coal/model.bug --data examples/coal/data.json --ppc --loo
  hyperprior fit model.bug                           draw from the prior")]
pub struct Fit {
    #[command(flatten)]
    input: Input,
    /// Approximation: auto, mean-field, low-rank:R, full-rank, mixture:K, flow:L, copula:R, hvm or nuts
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = method)]
    method: Method,
    /// ELBO tolerance, in nats, for stopping and for enlarging the approximation
    #[arg(long, default_value_t = 0.5, value_name = "NATS", value_parser = size, allow_negative_numbers = true)]
    accuracy: f64,
    /// Time budget for the fits, in seconds; drawing takes additional time [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    budget: Option<f64>,
    /// Number of fits from different starts [default: 2, or 1 for expensive models]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100), allow_negative_numbers = true)]
    restarts: Option<u16>,
    /// Likelihood q(z | λ) of discrete latents: usual, binomial or negative-binomial [default: the method's]
    #[arg(long, value_name = "PART")]
    likelihood: Option<LikelihoodPart>,
    /// Variational prior q(λ): diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L, coupling:L, spline:L, atoms:K,
    /// switches:S, levels:U or gaussian-process:M [default: the method's]
    #[arg(long, value_name = "PART", value_parser = prior)]
    prior: Option<PriorPart>,
    /// Recursive approximation r(λ | z): prior, factorised, inverse-flow:L, laplace, ep, exact or levels [default: the
    /// method's]
    #[arg(long, value_name = "PART", value_parser = recursive)]
    recursive: Option<RecursivePart>,
    /// Objective: hierarchical, importance:J with J draws of the recursive approximation, or annealed:K, which maximises the
    /// hierarchical bound and reports one with K temperatures (discrete latents) [default: importance:8 for ep, otherwise
    /// hierarchical]
    #[arg(long, value_name = "BOUND")]
    bound: Option<BoundChoice>,
    /// Gradient along discrete latents: automatic, score, local-expectation, difference (Poisson factors) or disarm (Bernoulli
    /// factors) [default: automatic]
    #[arg(long, value_name = "NAME", value_parser = named::<Estimator>)]
    estimator: Option<Estimator>,
    /// Optimiser: adam, or rms-prop-nesterov as in the paper [default: adam]
    #[arg(long, value_name = "NAME", value_parser = named::<OptimizerKind>)]
    optimizer: Option<OptimizerKind>,
    /// Correction of the approximation's draws
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    correct: CorrectionChoice,
    /// Correct the standard deviations of mean-field by linear response; needs `--method mean-field --correct none`
    #[arg(long)]
    linear_response: bool,
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Number of posterior draws
    #[arg(long, default_value_t = 4000, value_name = "N", value_parser = draws)]
    draws: u32,
    /// Optimisation steps of a fit [default: until it converges]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Initial step size, in whitened coordinates [default: the method's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    step_size: Option<f64>,
    /// Quantities to show and save, separated by commas: beta, beta[2], beta[1:3], z[,2] [default: all]
    #[arg(long, value_name = "NAMES")]
    monitor: Option<String>,
    /// Posterior predictive check
    #[arg(long, alias = "check-predictive")]
    ppc: bool,
    /// Leave-one-out cross-validation (PSIS-LOO) and WAIC
    #[arg(long)]
    loo: bool,
    /// Folder for report.html, summary.json, config.toml, draws.parquet, draws.csv, trace.csv and CODA files [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds between checkpoints in --out, for `hyperprior resume`
    #[arg(long, default_value_t = SAVE_EVERY, value_name = "SECONDS", value_parser = seconds)]
    save_every: f64,
    /// Exit with code 3 if the verdict is not `trust`
    #[arg(long)]
    strict: bool,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Print the seconds of each stage to standard error
    #[arg(long)]
    timings: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    quiet: bool,
}

/// The correction of an approximation's draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum CorrectionChoice {
    /// Keep the draws of the approximation
    None,
    /// Importance resampling
    #[value(alias = "weights")]
    Resample,
    /// Importance resampling, then MCMC moves that leave the posterior invariant
    #[default]
    #[value(alias = "moves")]
    ResampleMove,
}

impl From<CorrectionChoice> for Correction {
    fn from(choice: CorrectionChoice) -> Self {
        match choice {
            CorrectionChoice::None => Self::None,
            CorrectionChoice::Resample => Self::Resample,
            CorrectionChoice::ResampleMove => Self::ResampleMove,
        }
    }
}

pub fn draws(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(draws) if draws as usize >= DRAWS_MIN => Ok(draws),
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

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("write a number of seconds, 0 or more".to_owned()),
    }
}

/// The objective.
#[derive(Clone, Copy, Debug, Default)]
struct BoundChoice {
    /// Draws of r; 0 for the hierarchical bound.
    importance: usize,
    /// The temperatures of an annealed bound, which is reported.
    annealed: Option<usize>,
}

impl FromStr for BoundChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = text.split_once(':').unwrap_or((text, ""));
        match (kind, number.parse()) {
            ("hierarchical", Err(_)) if number.is_empty() => Ok(Self::default()),
            ("importance", Ok(importance @ 1..=SIZE_MAX)) => Ok(Self { importance, annealed: None }),
            ("annealed", Ok(temperatures @ 1..=SIZE_MAX)) => Ok(Self { importance: 0, annealed: Some(temperatures) }),
            _ => Err(format!("use hierarchical, importance:J or annealed:K, with J and K from 1 to {SIZE_MAX}")),
        }
    }
}

fn prior(text: &str) -> Result<PriorPart, String> {
    let part: PriorPart = text.parse().map_err(|error: PartError| error.to_string())?;
    part.size().map_or(Ok(()), within).map(|()| part)
}

fn recursive(text: &str) -> Result<RecursivePart, String> {
    let part: RecursivePart = text.parse().map_err(|error: PartError| error.to_string())?;
    part.size().map_or(Ok(()), within).map(|()| part)
}

/// One of a few names.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
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
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        if self.linear_response && (self.method != Method::MeanField || self.correct != CorrectionChoice::None) {
            return Err(CliError::Usage(
                "--linear-response corrects the standard deviations of an uncorrected mean-field fit: use it with \
                 `--method mean-field --correct none`"
                    .to_owned(),
            ));
        }
        let config = Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: self.input.fingerprint()?,
            monitor: self.monitor.clone().unwrap_or_default(),
            save_every: self.save_every,
            ppc: self.ppc,
            loo: self.loo,
            linear_response: self.linear_response,
            infer: self.settings(),
            input: self.input,
        };
        Job { config, out: self.out, json: self.json, quiet: self.quiet, strict: self.strict, timings: self.timings }
            .run(false)
    }

    fn settings(&self) -> InferSettings {
        InferSettings::default()
            .method(self.method)
            .accuracy(self.accuracy)
            .budget(self.budget)
            .restarts(self.restarts.map(usize::from))
            .parts(Parts { likelihood: self.likelihood, prior: self.prior, recursive: self.recursive })
            .importance(self.bound.map(|bound| bound.importance))
            .annealed(self.bound.and_then(|bound| bound.annealed))
            .estimator(self.estimator)
            .optimizer(self.optimizer)
            .seed(self.seed)
            .draws(self.draws as usize)
            .steps(self.steps)
            .step_size(self.step_size)
            .correct(self.correct.into())
    }
}

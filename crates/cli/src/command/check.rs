//! `hyperprior check`: a model file with its data, held against itself.

use super::fit::{Correction, method};
use super::input::Input;
use crate::calibrate::Calibration;
use crate::check::{Capabilities, Elimination, Point, Row, capabilities, elimination, points, rows, start};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::table;
use clap::Args;
use hyperprior::Model;
use hyperprior::infer::{InferSettings, Method};
use hyperprior::model::graph::Eliminate;
use hyperprior::posterior::Monitor;
use hyperprior_bugs::Options;
use hyperprior_bugs::simulate::SimulateError;
use serde::Serialize;
use std::io::Write;

/// Latents beyond which the model with nothing summed out is not checked: each is moved on its own.
const LATENTS_MAX: usize = 200;

/// Compile a model in BUGS with its data, list its latents, and check its derivatives and sums.
#[derive(Debug, Args)]
#[command(after_help = "\
The gradient is held against central differences; the terms around each discrete latent, and its conditionals, against the log
joint; what is summed out against a sum over every configuration, where those are few enough.

With --calibrate the fits are checked instead: the latents are drawn from their laws and data from theirs given them, the data
are fitted, and the true values ranked among the draws. Ranks are uniform where the fits are right.

Examples:
  hyperprior check examples/coal/model.bug --data examples/coal/data.json
  hyperprior check karate.bug --data karate.json --eliminate none
  hyperprior check examples/eight_schools/model.bug --data examples/eight_schools/data.json --calibrate 200
  hyperprior check karate.bug --data karate.json --calibrate 100 --method mean-field --correct none
  hyperprior check model.bug --data data.R --points 20 --json     log densities, to hold against another program's")]
pub struct Check {
    #[command(flatten)]
    input: Input,
    /// Instead, simulate so many data sets from the model, fit each, and see whether intervals hold what they promise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000), conflicts_with = "points")]
    calibrate: Option<u32>,
    /// With --calibrate: the method of the fits, as of `fit`
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = method, requires = "calibrate")]
    method: Method,
    /// With --calibrate: what brings draws nearer to the posterior, as of `fit`
    #[arg(long, value_enum, default_value_t, value_name = "HOW", requires = "calibrate")]
    correct: Correction,
    /// With --calibrate: optimisation steps, as of `fit`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "calibrate")]
    steps: Option<u64>,
    /// With --calibrate: among how many draws a true value is ranked
    #[arg(long, default_value_t = 99, value_name = "L", value_parser = clap::value_parser!(u32).range(9..=10_000), requires = "calibrate")]
    draws: u32,
    /// With --calibrate: calculated quantities that are ranked beside the latents, separated by commas
    #[arg(long, value_name = "NAMES", requires = "calibrate")]
    monitor: Option<String>,
    /// At how many random points the log density is told
    #[arg(long, default_value_t = 0, value_name = "N")]
    points: u32,
    /// The random seed
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Print JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No messages
    #[arg(long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Checked {
    model: String,
    observed: usize,
    latents: Vec<Row>,
    /// Of the model as it is fitted.
    fitted: Capabilities,
    /// Of the model with nothing summed out.
    whole: Capabilities,
    elimination: Elimination,
    start: Option<Point>,
    points: Vec<Point>,
}

impl Check {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        if let Some(rounds) = self.calibrate {
            return self.calibrate(rounds as usize);
        }
        let (compiled, _) = self.input.compile(self.quiet)?;
        let eliminate = self.input.eliminate(&compiled.graph)?;
        let model = compiled.graph.model_with(&eliminate)?;
        let whole = if model.eliminated().next().is_none() {
            Capabilities::Skipped { skipped: "it is the same model" }
        } else if model.graph().latent_names().count() > LATENTS_MAX {
            Capabilities::Skipped { skipped: "there are too many latents" }
        } else {
            capabilities(&model.graph().clone().model_with(&Eliminate::Nothing)?, self.seed)?
        };
        let checked = Checked {
            model: compiled.name,
            observed: compiled.observed,
            latents: rows(&model.outline()),
            fitted: capabilities(&model, self.seed)?,
            whole,
            elimination: elimination(&model, self.seed)?,
            start: start(&model, self.seed)?,
            points: points(&model, self.points as usize, self.seed)?,
        };
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &checked)?;
            writeln!(out)?;
        } else {
            let (rows, runs) = model.tape_len();
            write!(out, "{}", crate::paint::for_stdout(&checked.text()))?;
            writeln!(out, "{} latents on the line; the tape has {rows} rows in {runs} runs", model.latents().len())?;
        }
        Ok(out.flush()?)
    }
}

impl Check {
    fn calibrate(self, rounds: usize) -> Result<(), CliError> {
        let monitors = match &self.monitor {
            Some(text) => Monitor::parse_list(text).map_err(hyperprior::posterior::DrawsError::from)?,
            None => Vec::new(),
        };
        let read = self.input.read(self.quiet)?;
        let stop = StopFlag::on_signals();
        let (compiled, _) = self.input.compile(true)?;
        let calibration = Calibration {
            name: self.input.name(),
            source: &read.source,
            options: &Options { init: None, ..read.options.clone() },
            eliminate: self.input.eliminate(&compiled.graph)?,
            monitors,
            settings: InferSettings {
                method: self.method,
                correct: self.correct.into(),
                steps: self.steps,
                seed: self.seed,
                ..InferSettings::default()
            },
            draws: self.draws as usize,
            rounds,
        };
        let simulated = calibration.simulate(&read.data).map_err(|error| match error {
            SimulateError::Program(diagnostics) => read.refused(&diagnostics),
            error => CliError::Simulate(error),
        })?;
        let found = calibration.run(&simulated, &stop, self.quiet)?;
        if found.fitted == 0 && found.done == rounds {
            let reason = match &found.failure {
                Some(failure) => format!("; the first failed with: {failure}"),
                None => {
                    ": simulated values are not finite numbers; the priors are too wide to simulate from".to_owned()
                }
            };
            return Err(CliError::NoRound(reason));
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &found)?;
            writeln!(out)?;
        } else {
            write!(out, "{}", found.text())?;
        }
        out.flush()?;
        if found.done < rounds {
            return Err(CliError::StoppedCalibration { done: found.done, rounds });
        }
        Ok(())
    }
}

impl Checked {
    fn text(&self) -> String {
        let header = ["latent", "law", "values", "how many", "treatment", "blanket"];
        let blanket = |row: &Row| match row.blanket {
            Some((least, most)) if least == most => least.to_string(),
            Some((least, most)) => format!("{least} to {most}"),
            None => "–".to_owned(),
        };
        let cells = |row: &Row| {
            let (name, law, support) = (row.name.clone(), row.law.to_owned(), row.support.clone());
            vec![name, law, support, row.count.to_string(), row.role.clone(), blanket(row)]
        };
        let observed =
            if self.observed == 1 { "1 observed node" } else { &format!("{} observed nodes", self.observed) };
        let mut out = format!("{}: {observed}\n\n", self.model);
        out += &table::render(&header, &self.latents.iter().map(cells).collect::<Vec<_>>());
        out += &format!("\nas it is fitted: {}\n", self.fitted.text());
        if !matches!(self.whole, Capabilities::Skipped { skipped: "it is the same model" }) {
            out += &format!("with nothing summed out: {}\n", self.whole.text());
        }
        out += &match &self.elimination {
            Elimination::Agree { configurations, points, difference } => format!(
                "summed out against enumeration: {configurations} configurations at {points} points agree, to {difference:.0e}\n"
            ),
            Elimination::Skipped { skipped } => format!("summed out against enumeration: not compared, {skipped}\n"),
        };
        if let Some(start) = &self.start {
            out += &format!(
                "at the start: log prior {:.6}, log likelihood {:.6}\n",
                start.log_prior, start.log_likelihood
            );
        }
        for (k, point) in self.points.iter().enumerate() {
            out += &format!("at random point {}: log joint {:.10}\n", k + 1, point.log_joint);
        }
        out
    }
}

impl Capabilities {
    fn text(&self) -> String {
        match self {
            Self::Agree { finite, tried, gradient, locals, conditionals } => {
                let parts = [(*gradient, "gradient"), (*locals, "local terms"), (*conditionals, "conditionals")];
                let parts: Vec<&str> = parts.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
                format!("right: {} (the log joint is finite at {finite} of {tried} points)", parts.join(", "))
            }
            Self::Skipped { skipped } => format!("not checked, {skipped}"),
        }
    }
}

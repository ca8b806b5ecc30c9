//! `hyperprior check`: whether a model file and its data are consistent.

use super::fit::{CorrectionChoice, method};
use super::input::Input;
use crate::check::{Capabilities, Marginalisation, Point, Row, capabilities, marginalisation, points, rows, start};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::render::terminal::table;
use crate::studies::sbc::Calibration;
use clap::Args;
use hyperprior::Model;
use hyperprior::infer::{InferSettings, Method};
use hyperprior::posterior::Monitor;
use hyperprior_bugs::Options;
use hyperprior_bugs::simulate::SimulateError;
use hyperprior_graph::Marginalise;
use serde::Serialize;
use std::io::Write;

/// With more latents, the model without marginalisation is not checked: each is perturbed on its own.
const LATENTS_MAX: usize = 200;

/// Compile a BUGS model with its data, list its latents, and check its derivatives and marginalisation.
#[derive(Debug, Args)]
#[command(after_help = "\
The gradient is compared with central differences, the terms and conditionals of each discrete latent with the log joint, and \
the marginalisation with a sum over every configuration, if there are few enough.

With --sbc the fits are checked instead, by simulation-based calibration: latents are drawn from the prior and data from the \
model, each data set is fitted, and the true values are ranked among the draws. Ranks are uniform if the fits are right.

Examples:
  hyperprior check examples/coal/model.bug --data examples/coal/data.json
  hyperprior check karate.bug --data karate.json --eliminate none
  hyperprior check examples/eight_schools/model.bug --data examples/eight_schools/data.json --sbc 200
  hyperprior check karate.bug --data karate.json --sbc 100 --method mean-field --correct none
  hyperprior check model.bug --data data.R --points 20 --json    print log densities at random points")]
pub struct Check {
    #[command(flatten)]
    input: Input,
    /// Run simulation-based calibration with this many simulated data sets instead of the other checks
    #[arg(long, alias = "calibrate", value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000), conflicts_with = "points")]
    sbc: Option<u32>,
    /// With --sbc: the method, as in `fit`
    #[arg(long, default_value_t, value_name = "METHOD", value_parser = method, requires = "sbc")]
    method: Method,
    /// With --sbc: the correction of the draws, as in `fit`
    #[arg(long, value_enum, default_value_t, value_name = "HOW", requires = "sbc")]
    correct: CorrectionChoice,
    /// With --sbc: optimisation steps, as in `fit`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "sbc")]
    steps: Option<u64>,
    /// With --sbc: number of draws among which a true value is ranked
    #[arg(long, default_value_t = 99, value_name = "L", value_parser = clap::value_parser!(u32).range(9..=10_000), requires = "sbc")]
    draws: u32,
    /// With --sbc: computed quantities to rank in addition to the latents, separated by commas
    #[arg(long, value_name = "NAMES", requires = "sbc")]
    monitor: Option<String>,
    /// Number of random points at which to print the log density
    #[arg(long, default_value_t = 0, value_name = "N")]
    points: u32,
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Print JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no messages
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
    /// Of the model without marginalisation.
    whole: Capabilities,
    marginalisation: Marginalisation,
    start: Option<Point>,
    points: Vec<Point>,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        if let Some(data_sets) = self.sbc {
            return self.sbc(data_sets as usize);
        }
        let (compiled, _) = self.input.compile(self.quiet)?;
        let marginalise = self.input.marginalise(&compiled.graph)?;
        let model = compiled.graph.model_with(&marginalise)?;
        let whole = if model.marginalised().next().is_none() {
            Capabilities::Skipped { skipped: "it is the same model" }
        } else if model.graph().latent_names().count() > LATENTS_MAX {
            Capabilities::Skipped { skipped: "there are too many latents" }
        } else {
            capabilities(&model.graph().clone().model_with(&Marginalise::Nothing)?, self.seed)?
        };
        let checked = Checked {
            model: compiled.name,
            observed: compiled.observed,
            latents: rows(&model.outline()),
            fitted: capabilities(&model, self.seed)?,
            whole,
            marginalisation: marginalisation(&model, self.seed)?,
            start: start(&model, self.seed)?,
            points: points(&model, self.points as usize, self.seed)?,
        };
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &checked)?;
            writeln!(out)?;
        } else {
            let (rows, runs) = model.tape_len();
            write!(out, "{}", crate::render::style::for_stdout(&checked.text()))?;
            writeln!(out, "{} unconstrained latents; the tape has {rows} rows in {runs} runs", model.latents().len())?;
        }
        Ok(out.flush()?)
    }
}

impl Check {
    fn sbc(self, rounds: usize) -> Result<(), CliError> {
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
            marginalise: self.input.marginalise(&compiled.graph)?,
            monitors,
            settings: InferSettings::default()
                .method(self.method)
                .correct(self.correct.into())
                .steps(self.steps)
                .seed(self.seed),
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
        let header = ["latent", "distribution", "values", "number", "treatment", "blanket"];
        let blanket = |row: &Row| match row.blanket {
            Some((least, most)) if least == most => least.to_string(),
            Some((least, most)) => format!("{least} to {most}"),
            None => "–".to_owned(),
        };
        let cells = |row: &Row| {
            let (name, distribution) = (row.name.clone(), row.distribution.to_owned());
            vec![name, distribution, row.support.clone(), row.count.to_string(), row.role.clone(), blanket(row)]
        };
        let observed =
            if self.observed == 1 { "1 observed node" } else { &format!("{} observed nodes", self.observed) };
        let mut out = format!("{}: {observed}\n\n", self.model);
        out += &table::render(&header, &self.latents.iter().map(cells).collect::<Vec<_>>());
        out += &format!("\nas fitted: {}\n", self.fitted.text());
        if !matches!(self.whole, Capabilities::Skipped { skipped: "it is the same model" }) {
            out += &format!("without marginalisation: {}\n", self.whole.text());
        }
        out += &match &self.marginalisation {
            Marginalisation::Agree { configurations, points, difference } => format!(
                "marginalisation against enumeration: {configurations} configurations at {points} points agree to {difference:.0e}\n"
            ),
            Marginalisation::Skipped { skipped } => {
                format!("marginalisation against enumeration: not compared, {skipped}\n")
            }
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
                format!("correct: {} (the log joint is finite at {finite} of {tried} points)", parts.join(", "))
            }
            Self::Skipped { skipped } => format!("not checked, {skipped}"),
        }
    }
}

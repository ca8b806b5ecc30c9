//! `hyperprior check`: a model file with its data, held against itself.

use super::input::Input;
use crate::check::{Capabilities, Elimination, Point, Row, capabilities, elimination, points, rows, start};
use crate::error::CliError;
use crate::table;
use clap::Args;
use hyperprior::Model;
use hyperprior::model::graph::Eliminate;
use serde::Serialize;
use std::io::Write;

/// Latents beyond which the model with nothing summed out is not checked: each is moved on its own.
const LATENTS_MAX: usize = 200;

/// Compile a model in BUGS with its data, list its latents, and check its derivatives and sums.
#[derive(Debug, Args)]
#[command(after_help = "\
The gradient is held against central differences; the terms around each discrete latent, and its conditionals, against the log
joint; what is summed out against a sum over every configuration, where those are few enough.

Examples:
  hyperprior check examples/coal/model.bug --data examples/coal/data.json
  hyperprior check karate.bug --data karate.json --eliminate none
  hyperprior check model.bug --data data.R --points 20 --json     log densities, to hold against another program's")]
pub struct Check {
    #[command(flatten)]
    input: Input,
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
            write!(out, "{}", checked.text())?;
            writeln!(out, "{} latents on the line; the tape has {rows} rows in {runs} runs", model.latents().len())?;
        }
        Ok(out.flush()?)
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

//! `hyperprior compare`: the paper's first table, every method on one target, or on the posterior of a model.

use super::compare_program::CompareProgram;
use super::compared::{Compared, ComparedParser, Subject, SubjectParser};
use super::output::Output;
use crate::error::CliError;
use crate::memory;
use crate::progress::StopFlag;
use crate::render::terminal::table;
use crate::studies::compare::{self, Comparison, Method, Outcome, Row, Target};
use crate::studies::reproduce;
use clap::{Args, ValueEnum};
use hyperprior::infer::SIZE_MAX;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Fit every applicable method to one target, or to a model, and compare them.
#[derive(Debug, Args)]
#[command(after_help = "\
A method is a likelihood q(z | λ), a prior q(λ; θ) and a recursive approximation r(λ | z; φ). KL is exact if z can be \
enumerated, and −ELBO if the target is normalised and the method needs no r. For a model file, every method of `fit` is compared \
with a fit with the defaults, without correction of its draws.

Examples:
  hyperprior compare examples/rats/model.bug --data examples/rats/data.json
  hyperprior compare karate.bug --data karate.json --eliminate none --methods mean-field,mixture:8
  hyperprior compare correlated-poisson-c
  hyperprior compare ising-grid-4x4 --coupling 0.3 --methods bbvi,hvm-gaussian
  hyperprior compare ising-ring-8 --methods bbvi,hvm-gaussian --annealed 1,2,4,8,16
  hyperprior compare banana --json --no-pictures > banana.json")]
pub struct Compare {
    /// Posterior to approximate: a target with a known answer, or a model file
    #[arg(value_name = "TARGET|MODEL", value_parser = SubjectParser)]
    subject: Subject,
    /// Methods to fit, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = ComparedParser)]
    methods: Vec<Compared>,
    /// Data file of a model: JSON, R dump or CSV; may be given several times
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Starting values of a model: JSON or R dump
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// Discrete latents of a model to marginalise exactly: auto, none, or names separated by commas
    #[arg(long, default_value = "auto", value_name = "WHICH")]
    eliminate: String,
    /// Coupling of neighbouring spins, for ising-ring-8 and ising-grid-4x4
    #[arg(long, value_name = "J", allow_negative_numbers = true)]
    coupling: Option<f64>,
    /// Integrate q(z) over λ if z has at most this many states; with more, methods with a continuous λ have no exact KL
    #[arg(long, value_name = "N", default_value_t = 1 << 16)]
    states_max: usize,
    /// Annealed bounds on log p(x) with these numbers of temperatures, separated by commas [default: none]
    #[arg(long, value_delimiter = ',', value_name = "K,K", value_parser = temperatures)]
    annealed: Vec<usize>,
    #[command(flatten)]
    output: Output,
}

fn temperatures(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(temperatures @ 1..=SIZE_MAX) => Ok(temperatures),
        _ => Err(format!("write numbers from 1 to {SIZE_MAX}, such as 1,2,4,8")),
    }
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    target: String,
    seed: u64,
    rows: Vec<&'a Row>,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        match self.subject.clone() {
            Subject::Target(target) => self.on_target(target),
            Subject::Program(model) => self.on_program(model),
        }
    }

    fn on_program(self, model: PathBuf) -> Result<(), CliError> {
        let refuse = |option: &str| Err(CliError::Usage(format!("{option} is for targets, not for a model file")));
        if self.coupling.is_some() {
            return refuse("--coupling");
        }
        if !self.annealed.is_empty() {
            return Err(CliError::Usage(
                "--annealed is for targets; use `fit --bound annealed:K` for a model".to_owned(),
            ));
        }
        let methods = Compared::of_programs(&self.methods)?;
        let Output { seed, json, quiet, .. } = self.output;
        let files = (model, self.data, self.init);
        CompareProgram { files, eliminate: self.eliminate, methods, seed, json, quiet }.run()
    }

    fn on_target(self, target: Target) -> Result<(), CliError> {
        if !self.data.is_empty() || self.init.is_some() {
            return Err(CliError::Usage(
                "--data and --init are for a model file; a target has its own data".to_owned(),
            ));
        }
        // In the order of the table, not of the option.
        let chosen = Compared::of_targets(&self.methods)?;
        let is_chosen = |method: &&Method| chosen.is_empty() || chosen.contains(method);
        let comparison = Comparison {
            target,
            coupling: target.coupling(self.coupling)?,
            methods: Method::value_variants().iter().filter(is_chosen).copied().collect(),
            seed: self.output.seed,
            states_max: self.states_max,
            annealed: self.annealed.clone(),
        };
        let stop = StopFlag::on_signals();
        let mut outcomes: Vec<Outcome> = Vec::new();
        let result = compare::run(&comparison, self.output.quiet, &stop, |outcome| {
            outcomes.push(outcome);
            Ok(())
        });
        // After an error, show the rows that were computed.
        if self.output.json {
            self.print_json(target, &outcomes)?;
        } else {
            print_table(&comparison, &outcomes)?;
        }
        result?;
        if !self.output.no_pictures {
            let written = compare::picture::draw(&comparison, &outcomes, &self.output.out)?;
            if !self.output.quiet {
                eprintln!("{}", reproduce::pictures::announce(&written));
            }
        }
        Ok(())
    }

    fn print_json(&self, target: Target, outcomes: &[Outcome]) -> Result<(), CliError> {
        let rows = outcomes.iter().map(|o| &o.row).collect();
        let report = Report { target: target.name(), seed: self.output.seed, rows };
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &report)?;
        Ok(writeln!(out)?)
    }
}

/// Prints the table to standard output, with notes on its rows below it.
fn print_table(comparison: &Comparison, outcomes: &[Outcome]) -> Result<(), CliError> {
    let header =
        ["method", "prior", "r", "KL", "ELBO ≥", "exact ELBO", "ELBO ≤", "ms/step", "memory", "parameters", "gradient"];
    let (rows, others): (Vec<&Outcome>, Vec<&Outcome>) = outcomes.iter().partition(|o| o.row.applies);
    let cells: Vec<Vec<String>> = rows.iter().map(|o| cells(&o.row)).collect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} — {}\n", comparison.target.name(), comparison.target.describe(comparison.coupling))?;
    if !cells.is_empty() {
        writeln!(out, "{}", table::render(&header, &cells))?;
    }
    print_annealed(&rows, &mut out)?;
    for outcome in &others {
        let reason = outcome.row.reason.as_deref().unwrap_or_default();
        writeln!(out, "{}", dim(&format!("{} does not apply: {reason}", outcome.row.method)))?;
    }
    if rows.iter().any(|o| o.kl_bounds.is_some()) {
        writeln!(out, "Not integrated over λ: z has more than {} states (see --states-max)", comparison.states_max)?;
    }
    for outcome in &rows {
        if let Some((least, most)) = outcome.kl_bounds {
            let method = &outcome.row.method;
            writeln!(
                out,
                "{method}: KL between {:.4} and {most:.4}, by the bounds and the exact evidence",
                least.max(0.0)
            )?;
        }
        if let Some(mass) = outcome.mass.filter(|mass| (mass - 1.0).abs() > 1e-6) {
            let method = &outcome.row.method;
            writeln!(out, "{method}: the grid holds {mass:.6} of its probability, so its KL is not exact")?;
        }
    }
    if !others.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn unknown() -> String {
    "–".to_owned()
}

fn estimate(value: Option<f64>, error: Option<f64>) -> String {
    // A bound may be far away.
    let digits = |x: f64| if x.abs() < 1e4 { format!("{x:.4}") } else { format!("{x:.1e}") };
    value.zip(error).map_or_else(unknown, |(value, error)| format!("{} ± {}", digits(value), digits(error)))
}

/// Prints the annealed bounds, if there are any.
fn print_annealed(rows: &[&Outcome], out: &mut impl Write) -> std::io::Result<()> {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|outcome| outcome.row.annealed.iter().flatten().map(|bound| (&outcome.row.method, bound)))
        .map(|(method, bound)| {
            vec![
                format!("{method}, annealed:{}", bound.temperatures),
                estimate(Some(bound.lower), Some(bound.lower_standard_error)),
                // Zero without a sign.
                bound.log_evidence.map_or_else(unknown, |value| format!("{:.4}", (1e4 * value).round() / 1e4 + 0.0)),
                estimate(bound.upper, bound.upper_standard_error),
            ]
        })
        .collect();
    if !cells.is_empty() {
        writeln!(out, "{}", table::render(&["bound", "log p(x) ≥", "log p(x)", "log p(x) ≤"], &cells))?;
    }
    Ok(())
}

fn cells(row: &Row) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let number = |value: Option<f64>, digits: usize| value.map_or_else(unknown, |v| format!("{v:.digits$}"));
    // Without enumeration the KL has the standard error of the bound.
    let kl = match (row.kl, row.elbo_exact) {
        (Some(_), None) => estimate(row.kl, row.elbo_standard_error),
        (kl, _) => kl.map_or_else(unknown, table::divergence),
    };
    vec![
        row.method.clone(),
        text(&row.prior),
        text(&row.recursive),
        kl,
        estimate(row.elbo, row.elbo_standard_error),
        number(row.elbo_exact, 4),
        estimate(row.elbo_upper, row.elbo_upper_standard_error),
        number(row.seconds_per_step.map(|s| 1e3 * s), 3),
        row.peak_bytes.map_or_else(unknown, memory::describe),
        row.parameters.map_or_else(unknown, |p| p.to_string()),
        text(&row.gradient),
    ]
}

/// Dimmed on a terminal.
fn dim(text: &str) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[2m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

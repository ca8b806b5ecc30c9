//! `hyperprior reproduce`: the paper's simulation study and coupled spins, compared with exact answers; its perplexity tables.

use super::output::Output;
use super::tables::Tables;
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::render::terminal::table;
use crate::studies::reproduce::{self, Experiment, Row, Target, pictures};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Run the paper's simulation studies, or build its perplexity tables for a corpus.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
The KL in every row is exact: z is enumerated, and q(z) is integrated over λ with quasi-random nodes until it converges.

Examples:
  hyperprior reproduce correlated-poisson
  hyperprior reproduce correlated-poisson --target c --seed 3
  hyperprior reproduce ising --json > ising.json
  hyperprior reproduce tables --corpus bible"
)]
pub struct Reproduce {
    #[command(subcommand)]
    other: Option<Other>,
    /// Study to run
    // Required without a subcommand.
    #[arg(value_enum, required = true)]
    experiment: Option<Experiment>,
    /// Target of the study [default: all]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
enum Other {
    /// Train the paper's topic models with each method and print its tables of held-out perplexity
    Tables(Box<Tables>),
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    experiment: &'a str,
    seed: u64,
    rows: &'a [Row],
}

impl Reproduce {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        if let Some(Other::Tables(tables)) = self.other {
            return tables.run();
        }
        // The parser requires one.
        let Some(experiment) = self.experiment else {
            return Err(CliError::Internal("no experiment was given".to_owned()));
        };
        let targets = self.targets(experiment)?;
        let stop = StopFlag::on_signals();
        let mut all_rows: Vec<Row> = Vec::new();
        let mut written: Vec<PathBuf> = Vec::new();
        for target in targets {
            let mut rows = Vec::new();
            let result = reproduce::run(target, self.output.seed, self.output.quiet, &stop, |outcome| {
                rows.push(outcome.row.clone());
                Ok(())
            });
            // After an error, show the rows that were computed.
            if !self.output.json {
                print_target(target, &rows)?;
            }
            all_rows.append(&mut rows);
            if self.output.json && result.is_err() {
                self.print_json(experiment, &all_rows)?;
            }
            let (posterior, outcomes) = result?;
            if !self.output.no_pictures {
                written.extend(pictures::draw(target, &posterior, &outcomes, &self.output.out)?);
            }
        }
        if experiment == Experiment::CorrelatedPoisson && !self.output.no_pictures {
            written.extend(pictures::gaussian_gamma(self.output.seed, &self.output.out)?);
        }
        if self.output.json {
            self.print_json(experiment, &all_rows)?;
        }
        if !self.output.quiet && !written.is_empty() {
            eprintln!("{}", pictures::announce(&written));
        }
        Ok(())
    }

    fn print_json(&self, experiment: Experiment, rows: &[Row]) -> Result<(), CliError> {
        let report = Report { experiment: experiment.name(), seed: self.output.seed, rows };
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &report)?;
        Ok(writeln!(out)?)
    }

    fn targets(&self, experiment: Experiment) -> Result<Vec<Target>, CliError> {
        let all = experiment.targets();
        let Some(name) = &self.target else { return Ok(all) };
        let chosen: Vec<Target> = all.iter().copied().filter(|t| t.name() == name.to_lowercase()).collect();
        if chosen.is_empty() {
            let names: Vec<String> = all.iter().map(|t| t.name()).collect();
            let study = experiment.name();
            return Err(CliError::Usage(format!(
                "{study} has no target `{name}`; choose one of {}, or omit --target to run all",
                names.join(", ")
            )));
        }
        Ok(chosen)
    }
}

/// Prints the table of one target to standard output.
pub fn print_target(target: Target, rows: &[Row]) -> Result<(), CliError> {
    if rows.is_empty() {
        return Ok(());
    }
    let header =
        ["method", "r", "K", "exact KL", "ELBO ≥", "± s.e.", "exact ELBO", "ELBO ≤", "± s.e.", "nodes", "seconds"];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|r| {
            vec![
                r.method.to_owned(),
                r.recursive.clone(),
                r.components.to_string(),
                format!("{:.5}", r.kl),
                format!("{:.4}", r.elbo),
                format!("{:.4}", r.elbo_standard_error),
                format!("{:.4}", r.elbo_exact),
                format!("{:.4}", r.elbo_upper),
                format!("{:.4}", r.elbo_upper_standard_error),
                r.nodes.to_string(),
                format!("{:.1}", r.wall_seconds),
            ]
        })
        .collect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} — {}\n", target.name(), target.describe())?;
    writeln!(out, "{}", table::render(&header, &cells))?;
    if let Some(row) = rows.iter().find(|r| (r.mass - 1.0).abs() > 1e-6) {
        writeln!(out, "The grid holds {:.6} of {}'s probability: its KL is not exact.\n", row.mass, row.method)?;
    }
    Ok(())
}

//! The hyperprior command: from a probabilistic model to a posterior that keeps its dependence.

mod check;
mod command;
mod error;
mod fit;
mod memory;
mod parts;
mod predict;
mod progress;
mod render;
mod run_dir;
mod studies;
mod topics;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Counts the memory that fits take.
#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Approximate Bayesian inference for models with discrete and continuous latent variables.
#[derive(Debug, Parser)]
#[command(name = "hyperprior", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Number of threads; the results do not depend on it [default: all cores]
    #[arg(long, global = true, display_order = 900, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  hyperprior demo                                        take a tour of two minutes
  hyperprior fit model.bug --data data.json              draw from the posterior of a BUGS model
  hyperprior fit model.bug --data data.json --out run    ... and save the draws and a report
  hyperprior predict run --data new.json                 predict new data with that fit
  hyperprior check model.bug --data data.json            list the latents and check the derivatives
  hyperprior check model.bug --data data.json --sbc 200  check the intervals by simulation-based calibration
  hyperprior topics bible --out topics                   find the topics of the King James Bible
  hyperprior topics infer topics letters.txt             find those topics in new documents
  hyperprior reproduce correlated-poisson                run the paper's simulation study
  hyperprior reproduce tables --corpus bible             build the paper's perplexity tables for a corpus
  hyperprior compare ising-grid-4x4                      compare all methods on one posterior

Exit codes:
  0   success
  3   the verdict of a fit is not `trust` (with --strict)
  64  usage error
  65  bad model or data
  66  missing input file
  70  internal error
  73  cannot write output
  75  stopped early";

#[derive(Debug, Subcommand)]
enum Command {
    /// Fit a BUGS model to data
    Fit(command::fit::Fit),
    /// Predict new data with the draws of a fit
    Predict(command::predict::Predict),
    /// Check a BUGS model: its latents, derivatives and marginalisation, or the calibration of its fits
    Check(command::check::Check),
    /// Find the topics of a text corpus
    Topics(Box<command::topics::Topics>),
    Resume(command::resume::Resume),
    Rerun(command::rerun::Rerun),
    Report(command::report::Report),
    /// Take a tour: discrete posteriors, a BUGS model and the topics of a text
    Demo(command::demo::Demo),
    /// Run the paper's simulation studies, or build its perplexity tables for a corpus
    Reproduce(Box<command::reproduce::Reproduce>),
    /// Fit every applicable method to one target and compare them
    Compare(command::compare::Compare),
    /// Print a shell completion script
    Completions(command::shell::Completions),
    /// Print the manual page
    Man(command::shell::Man),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors.
            let code = if error.use_stderr() { error::USAGE } else { 0 };
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::from(error::CANNOT_WRITE),
            };
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, as `head` does: not an error.
        Err(error::CliError::Output(reason)) if reason.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyperprior: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<(), error::CliError> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads))
            .build_global()
            .map_err(|e| error::CliError::Internal(e.to_string()))?;
    }
    match cli.command {
        Command::Fit(fit) => fit.run(),
        Command::Predict(predict) => predict.run(),
        Command::Check(check) => check.run(),
        Command::Topics(topics) => topics.run(),
        Command::Resume(resume) => resume.run(),
        Command::Rerun(rerun) => rerun.run(),
        Command::Report(report) => report.run(),
        Command::Demo(demo) => demo.run(),
        Command::Reproduce(reproduce) => reproduce.run(),
        Command::Compare(compare) => compare.run(),
        Command::Completions(completions) => completions.run::<Cli>(),
        Command::Man(man) => man.run::<Cli>(),
    }
}

//! The hyperprior command: from a probabilistic model to a posterior that keeps its dependence.

mod calibrate;
mod check;
mod command;
mod compare;
mod error;
mod figure;
mod fit;
mod html;
mod memory;
mod output;
mod paint;
mod parts;
mod predict;
mod progress;
mod render;
mod saving;
mod study;
mod table;
mod tables;
mod topics;

use clap::{Parser, Subcommand};
use hyperprior_bugs::names;
use std::process::ExitCode;

/// Counts the memory that fits take.
#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Posteriors over discrete and continuous hidden variables that keep the dependence between them.
#[derive(Debug, Parser)]
#[command(name = "hyperprior", version, about, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Threads to use; all cores where it is not given. The numbers do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  hyperprior fit model.bug --data data.json    the posterior of a model in BUGS
  hyperprior report run                        its report.html anew, from the files of the run
  hyperprior predict run --data new.json       what the fit in that folder foretells of new data
  hyperprior check model.bug --data data.json  its latents, and whether its derivatives are right
  hyperprior check model.bug --data data.json --calibrate 200   whether its intervals hold what they promise
  hyperprior topics bible                      topics of the King James Bible, or of a text of yours
  hyperprior topics infer run letters.txt      those topics in documents that came later
  hyperprior demo                              a tour of two minutes, with pictures
  hyperprior reproduce correlated-poisson      the paper's simulated study, every row exact
  hyperprior reproduce ising --json            coupled spins, as JSON on standard output
  hyperprior reproduce tables --corpus bible   the paper's tables of text, on yours
  hyperprior compare ising-grid-4x4            every method on one posterior

Exit codes: 0 done, 3 not to be trusted (with --strict), 64 usage, 65 bad model or data, 66 no such file, 70 internal, 73 cannot write, 75 stopped early.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Fit a model in BUGS to its data
    Fit(command::fit::Fit),
    /// Foretell new data with the draws of a fit
    Predict(command::predict::Predict),
    /// Compile a model in BUGS with its data, list its latents, and check its derivatives and sums
    Check(command::check::Check),
    /// Find the topics of a collection of text
    Topics(Box<command::topics::Topics>),
    Resume(command::resume::Resume),
    Rerun(command::rerun::Rerun),
    Report(command::report::Report),
    /// Take a tour: a posterior of discrete variables, a model in BUGS, the topics of a text
    Demo(command::demo::Demo),
    /// Run a study of the paper: against exact answers, or its tables of text
    Reproduce(Box<command::reproduce::Reproduce>),
    /// Fit every method that applies to a target, and hold them beside each other
    Compare(command::compare::Compare),
    /// Print what a shell needs to complete the command's words
    Completions(command::shell::Completions),
    /// Print the manual page
    Man(command::shell::Man),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not mistakes.
            let code = if error.use_stderr() { error::USAGE } else { 0 };
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::from(error::CANNOT_WRITE),
            };
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output had enough of it.
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

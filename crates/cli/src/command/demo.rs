//! `hyperprior demo`: one correlated posterior, mean-field beside a hierarchical model, in under a minute.

use super::reproduce::print_target;
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::study::{self, Target, pictures};
use clap::Args;
use hyperprior::targets::CountTarget;
use std::io::Write;
use std::path::PathBuf;

/// Fit two correlated posteriors with mean-field and with a hierarchical model, and draw them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hyperprior demo
  hyperprior demo --out pictures --seed 2")]
pub struct Demo {
    /// The random seed
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Where the pictures go
    #[arg(long, default_value = "hyperprior-pictures", value_name = "DIR")]
    out: PathBuf,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

impl Demo {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let stop = StopFlag::on_signals();
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "Two hidden counts whose posterior has four modes, and eight spins on a ring that like to agree with their neighbours.\n\
             Mean-field must treat them as independent; the hierarchical model puts a prior on mean-field's parameters and keeps\n\
             their dependence. Both are held against the exact answer.\n"
        )?;
        drop(out);
        let mut written = Vec::new();
        for target in [Target::Counts(CountTarget::Figure), Target::Ring(0.5)] {
            let mut rows = Vec::new();
            let result = study::run(target, self.seed, self.quiet, &stop, |outcome| {
                rows.push(outcome.row.clone());
                Ok(())
            });
            print_target(target, &rows)?;
            let (posterior, outcomes) = result?;
            written.extend(pictures::draw(target, &posterior, &outcomes, &self.out)?);
        }
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "KL is the distance to the true posterior in nats (0 is perfect). The ELBO is bracketed from both sides, so the gap\n\
             that the bound leaves is known without enumeration too.\n\n{}",
            pictures::announce(&written)
        )?;
        Ok(())
    }
}

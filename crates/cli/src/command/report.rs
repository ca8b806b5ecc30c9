//! `hyperprior report`: a run's report, made anew from its files.

use crate::error::CliError;
use crate::html;
use crate::output::RunDirectory;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Make report.html of a run anew, from the files in its folder.
#[derive(Debug, Args)]
#[command(after_help = "\
`hyperprior fit … --out DIR` and `hyperprior topics … --out DIR` write DIR/report.html by themselves: one file that opens in any
browser and needs no network. This makes it again, with a second fit beside the first where one is named.

Examples:
  hyperprior fit model.bug --data data.json --out run
  hyperprior report run
  hyperprior fit model.bug --data data.json --method mean-field --correct none --out mean-field
  hyperprior report run --beside mean-field")]
pub struct Report {
    /// The folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The folder of another fit of the same parameters, whose pairs are drawn beside those of the first
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,
}

impl Report {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let report = html::of_folder(&self.folder, self.beside.as_deref())?;
        let path = RunDirectory::create(&self.folder)?.report(&report)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", path.display())?;
        Ok(out.flush()?)
    }
}

//! `hyperprior report`: rebuilds a run's report from its files.

use crate::error::CliError;
use crate::render::html;
use crate::run_dir::RunDirectory;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Rebuild report.html from the files of a run.
#[derive(Debug, Args)]
#[command(after_help = "\
`hyperprior fit … --out DIR` and `hyperprior topics … --out DIR` write DIR/report.html: one file that opens in any browser, \
offline. This command writes it again; --compare-with adds the draws of a second fit for comparison.

Examples:
  hyperprior fit model.bug --data data.json --out run
  hyperprior report run
  hyperprior fit model.bug --data data.json --method mean-field --correct none --out mean-field
  hyperprior report run --compare-with mean-field")]
pub struct Report {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Folder of another fit of the same model, to compare pairs of parameters
    #[arg(long, alias = "beside", value_name = "DIR")]
    compare_with: Option<PathBuf>,
}

impl Report {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let report = html::of_folder(&self.folder, self.compare_with.as_deref())?;
        let path = RunDirectory::create(&self.folder)?.report(&report)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", path.display())?;
        Ok(out.flush()?)
    }
}

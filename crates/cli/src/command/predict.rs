//! `hyperprior predict`: posterior predictions for new data.

use super::fit::draws;
use crate::error::CliError;
use crate::predict::{FittedRun, Predicted};
use crate::run_dir::RunDirectory;
use clap::Args;
use hyperprior::posterior::{DrawsError, Monitor};
use hyperprior_bugs::memory::within_memory;
use hyperprior_bugs::predict::Predictor;
use std::io::Write;
use std::path::PathBuf;

/// Predict new data with the draws of a fit.
#[derive(Debug, Args)]
#[command(after_help = "\
The run's model is compiled with the new data. Parameters reuse the run's draws; everything else that is not observed (latents \
of new rows, and responses that are null or missing) is drawn given them. Observations in the new data do not update the fit: \
their log predictive density is reported.

Examples:
  hyperprior fit model.bug --data data.json --out run
  hyperprior predict run --data new.json
  hyperprior predict run --data longer.json --reuse A,lambda,z[1:107]
  hyperprior predict run --data test.json --json > predictions.json")]
pub struct Predict {
    /// Folder of the run, written by `fit --out`
    run: PathBuf,
    /// New data: JSON, R dump or CSV; may be given several times
    #[arg(long, value_name = "FILE", required = true)]
    data: Vec<PathBuf>,
    /// Latents that reuse the run's draws, separated by commas [default: those not indexed by rows of data]
    #[arg(long, alias = "carry", value_name = "NAMES")]
    reuse: Option<String>,
    /// Quantities to show and save, separated by commas [default: all that are not reused]
    #[arg(long, value_name = "NAMES")]
    monitor: Option<String>,
    /// Number of draws [default: as many as the run has]
    #[arg(long, value_name = "N", value_parser = draws)]
    draws: Option<u32>,
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Folder for summary.json, draws.parquet and draws.csv [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Show no messages
    #[arg(long)]
    quiet: bool,
}

fn monitors(option: &str, text: Option<&String>) -> Result<Option<Vec<Monitor>>, CliError> {
    let parse = |text: &String| Monitor::parse_list(text).map_err(|e| CliError::Usage(format!("{option}: {e}")));
    text.map(parse).transpose()
}

impl Predict {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let reused = monitors("--reuse", self.reuse.as_ref())?;
        let shown = monitors("--monitor", self.monitor.as_ref())?;
        if let (Some(out), Ok(run)) = (&self.out, self.run.canonicalize())
            && out.canonicalize().is_ok_and(|out| out == run)
        {
            return Err(CliError::Usage("--out would overwrite the run; name another folder".to_owned()));
        }
        let run = FittedRun::read(&self.run)?;
        let input = run.input(Some(&self.data));
        let (of_run, _) = run.input(None).compile(true).map_err(|error| self.explain_missing(error))?;
        let (new, _) = input.compile(self.quiet)?;
        let source = input.source()?;
        let predictor = Predictor::new((&source, input.dialect()), &of_run.graph, &new.graph, reused.as_deref())
            .map_err(|error| CliError::Usage(format!("--reuse: {error}")))?
            .of(shown.as_deref())
            .map_err(DrawsError::from)?;
        let len = self.draws.map_or(run.draws_len(), |draws| draws as usize);
        let (reused_len, quantities_len) = (predictor.transfer.reused.len(), predictor.quantities.len());
        let columns = reused_len + 2 * quantities_len + 2 * new.graph.observations_len();
        within_memory(len, columns).map_err(|error| CliError::Usage(error.to_string()))?;
        let draws = run.draws(&predictor.transfer.reused, len)?;
        let out = self.out.as_ref().map(RunDirectory::create).transpose()?;
        let prediction = predictor.predict(&draws, self.seed)?;
        let transfer = predictor.transfer;
        let predicted = Predicted {
            name: new.name,
            run: self.run.clone(),
            seed: self.seed,
            transfer,
            draws: prediction.draws,
            warned: new.warnings.iter().map(|w| w.message.clone()).collect(),
            elpd: prediction.elpd,
            seen: prediction.seen,
        };
        self.print(&predicted, out.as_ref())
    }

    /// Paths in a run are as they were given to `fit`, so a missing file often means the wrong working directory.
    fn explain_missing(&self, error: CliError) -> CliError {
        match error {
            CliError::Read { path, reason } => CliError::NotAFit {
                path: self.run.clone(),
                reason: format!(
                    "its input `{}` cannot be read ({reason}); run this from the folder in which `fit` was run",
                    path.display()
                ),
            },
            error => error,
        }
    }

    fn print(&self, predicted: &Predicted, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let summaries = predicted.summaries();
        if let Some(run) = run {
            run.draws_csv(&predicted.draws)?;
            run.draws_parquet(&predicted.draws)?;
            run.summary(&predicted.summary(&summaries))?;
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &predicted.summary(&summaries))?;
            writeln!(out)?;
        } else {
            write!(out, "{}", crate::render::style::for_stdout(&predicted.text(&summaries)?))?;
            if let Some(run) = run {
                writeln!(out, "\nDraws and summary: {}", run.path().display())?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

//! `hyperprior predict`: from a run of `fit` and new data to what the fit foretells of them.

use super::fit::draws;
use crate::error::CliError;
use crate::output::RunDirectory;
use crate::predict::{FittedRun, Predicted};
use clap::Args;
use hyperprior::posterior::{DrawsError, Monitor};
use hyperprior_bugs::memory::within_memory;
use hyperprior_bugs::predict::Outlook;
use std::io::Write;
use std::path::PathBuf;

/// Foretell new data with the draws of a fit.
#[derive(Debug, Args)]
#[command(after_help = "\
The model of the run is compiled with the new data. Its parameters have the run's draws; everything else that is not observed
(the latents of new rows, and responses that are null or not there) is drawn from its law given them. Observations in the new
data are not learnt from: their log predictive density is told.

Examples:
  hyperprior fit model.bug --data data.json --out run
  hyperprior predict run --data new.json
  hyperprior predict run --data longer.json --carry A,lambda,z[1:107]
  hyperprior predict run --data test.json --json > foretold.json")]
pub struct Predict {
    /// The run: a folder that `fit --out` wrote
    run: PathBuf,
    /// The new data, as JSON, as an R dump or as CSV; may be given several times
    #[arg(long, value_name = "FILE", required = true)]
    data: Vec<PathBuf>,
    /// What has the run's draws, separated by commas; what does not go row by row with the data, where it is not given
    #[arg(long, value_name = "NAMES")]
    carry: Option<String>,
    /// What to show and keep, separated by commas; everything that is not carried over, where it is not given
    #[arg(long, value_name = "NAMES")]
    monitor: Option<String>,
    /// How many draws; as many as the run has, where it is not given
    #[arg(long, value_name = "N", value_parser = draws)]
    draws: Option<u32>,
    /// The random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    seed: u64,
    /// Where summary.json, draws.parquet and draws.csv go; nowhere, where it is not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No messages
    #[arg(long)]
    quiet: bool,
}

fn monitors(option: &str, text: Option<&String>) -> Result<Option<Vec<Monitor>>, CliError> {
    let parse = |text: &String| Monitor::parse_list(text).map_err(|e| CliError::Usage(format!("{option}: {e}")));
    text.map(parse).transpose()
}

impl Predict {
    /// Runs it.
    pub fn run(self) -> Result<(), CliError> {
        let carried = monitors("--carry", self.carry.as_ref())?;
        let shown = monitors("--monitor", self.monitor.as_ref())?;
        if let (Some(out), Ok(run)) = (&self.out, self.run.canonicalize())
            && out.canonicalize().is_ok_and(|out| out == run)
        {
            return Err(CliError::Usage("--out would overwrite the run; name another folder".to_owned()));
        }
        let run = FittedRun::read(&self.run)?;
        let input = run.input(Some(&self.data));
        let (of_run, _) = run.input(None).compile(true).map_err(|error| self.moved(error))?;
        let (new, _) = input.compile(self.quiet)?;
        let source = input.source()?;
        let outlook = Outlook::new((&source, input.dialect()), &of_run.graph, &new.graph, carried.as_deref())
            .map_err(|error| CliError::Usage(format!("--carry: {error}")))?
            .of(shown.as_deref())
            .map_err(DrawsError::from)?;
        let len = self.draws.map_or(run.draws_len(), |draws| draws as usize);
        let (carried_len, quantities_len) = (outlook.carry.carried.len(), outlook.quantities.len());
        let columns = carried_len + 2 * quantities_len + 2 * new.graph.observations_len();
        within_memory(len, columns).map_err(|error| CliError::Usage(error.to_string()))?;
        let draws = run.draws(&outlook.carry.carried, len)?;
        let out = self.out.as_ref().map(RunDirectory::create).transpose()?;
        let prediction = outlook.foretell(&draws, self.seed)?;
        let carry = outlook.carry;
        let predicted = Predicted {
            name: new.name,
            run: self.run.clone(),
            seed: self.seed,
            carry,
            draws: prediction.draws,
            warned: new.warnings.iter().map(|w| w.message.clone()).collect(),
            elpd: prediction.elpd,
            seen: prediction.seen,
        };
        self.tell(&predicted, out.as_ref())
    }

    /// Paths in a run are as they were given to `fit`.
    fn moved(&self, error: CliError) -> CliError {
        match error {
            CliError::Read { path, reason } => CliError::NotAFit {
                path: self.run.clone(),
                reason: format!(
                    "`{}`, which it was made from, cannot be read ({reason}); run this from the folder that `fit` was run in",
                    path.display()
                ),
            },
            error => error,
        }
    }

    fn tell(&self, predicted: &Predicted, run: Option<&RunDirectory>) -> Result<(), CliError> {
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
            write!(out, "{}", crate::paint::for_stdout(&predicted.text(&summaries)?))?;
            if let Some(run) = run {
                writeln!(out, "\nThe draws and the summary are in {}", run.path().display())?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

//! A fit: from a model's file to what is told of its posterior, from the beginning or from a checkpoint.

use super::kept::{Head, load, save};
use super::{Config, Watch, foretold, report, write};
use crate::error::CliError;
use crate::output::{CHECKPOINT, RunDirectory};
use crate::paint;
use crate::progress::StopFlag;
use hyperprior::Model;
use hyperprior::infer::{InferSettings, Verdict};
use hyperprior::journal::{Journal, Pages};
use hyperprior::posterior::{Monitor, MonitorError};
use hyperprior_bugs::fit::{FitError, Source, Task};
use hyperprior_bugs::memory::{columns_of_fit, within_memory};
use hyperprior_bugs::told::{Foretold, Response, Told};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is to be done.
pub struct Job {
    /// How.
    pub config: Config,
    /// Where the files go.
    pub out: Option<PathBuf>,
    /// Whether `summary.json` is printed.
    pub json: bool,
    /// Whether nothing else is.
    pub quiet: bool,
    /// Whether a verdict other than trust is a failure.
    pub strict: bool,
}

impl Job {
    /// Does it, or what is left of it.
    pub fn run(self, is_resumed: bool) -> Result<(), CliError> {
        let began = Instant::now();
        let config = &self.config;
        let monitors = Monitor::parse_list(&config.monitor).map_err(hyperprior::posterior::DrawsError::from)?;
        let stop = StopFlag::on_signals_once_kept();
        let mut watch = Watch::new(self.quiet, &stop);
        watch.phase("compile");
        let (compiled, given) = config.input.compile(self.quiet)?;
        let warned = compiled.warnings.iter().map(|w| w.message.clone()).collect();
        let eliminate = config.input.eliminate(&compiled.graph)?;
        let task = match Task::new(compiled.graph, &eliminate, &monitors) {
            Err(FitError::Monitor(MonitorError::Unknown { name, .. })) if given.contains(&name) => {
                return Err(CliError::Usage(format!(
                    "--monitor: `{name}` is observed (it is in the data), so it has no posterior"
                )));
            }
            task => task?,
        };
        let observed = task.model().graph().observations_len();
        if observed == 0 && (config.loo || config.check_predictive) {
            let option = if config.loo { "--loo" } else { "--check-predictive" };
            return Err(CliError::Usage(format!(
                "{option}: nothing is observed; give the model its data with --data FILE"
            )));
        }
        let kept = task.quantities().len() + if config.loo { 2 * observed } else { 0 };
        let columns = columns_of_fit(task.model().latents().len(), kept);
        within_memory(config.infer.draws, columns).map_err(|error| CliError::Usage(error.to_string()))?;
        let pointwise = config.loo.then(|| task.model().pointwise()).transpose()?;
        // A folder that cannot be made is better known before the fit than after it.
        let run = self.out.as_ref().map(RunDirectory::create).transpose()?;
        if let Some(run) = &run {
            watch.journal = Some(self.journal(run, is_resumed)?);
        }
        watch.phase("search");
        let result = task.run(&config.infer, &mut watch);
        watch.finish();
        let posterior = result.map_err(|error| match (error, &run) {
            (FitError::Engine(hyperprior::Error::Checkpoint { reason }), Some(run)) => {
                CliError::Checkpoint { folder: run.path().to_owned(), reason }
            }
            (error, _) => error.into(),
        })?;
        let z = posterior.latents();
        let foretold = Foretold::new(task.model(), &z, config.infer.seed, config.check_predictive, pointwise.as_ref())?;
        let response = match (&posterior.source, config.linear_response) {
            (Source::Approximate(inferred), true) => Some(Response::of(&task, inferred, &config.infer)?),
            _ => None,
        };
        let seconds = began.elapsed().as_secs_f64();
        let about = (compiled.name, compiled.observed, warned);
        let told = Told { foretold, response, ..Told::new(about, &task, config.infer.clone(), &posterior, seconds) };
        // Neither a full disk nor a reader that left may take the other's results away.
        let written = run.as_ref().map_or(Ok(()), |run| write(run, &told));
        let printed = self.print(&told, run.as_ref().filter(|_| written.is_ok()));
        let again = run.as_ref().map(|run| format!("`hyperprior resume {}`", run.path().display()));
        written.map_err(|error| CliError::NotKept { error, again: again.clone() })?;
        let within = told.inferred().and_then(|inferred| inferred.within.clone()).filter(|_| !told.is_stopped());
        if let (Some(run), Some(within)) = (&run, within) {
            // The clock would end it elsewhere the next time.
            run.forget_checkpoint();
            let infer = InferSettings { within: Some(within), ..config.infer.clone() };
            run.config(&Config { infer, ..config.clone() })?;
        }
        printed?;
        if told.is_stopped() {
            let (step, steps) = watch.step;
            let remedy = again.map_or_else(String::new, |again| format!("; {again} goes on"));
            return Err(CliError::StoppedFit { step, steps, remedy });
        }
        if let Some(run) = &run {
            run.forget_checkpoint();
        }
        match told.verdict() {
            Verdict::MeansOnly | Verdict::Distrust if self.strict => Err(CliError::Untrusted),
            _ => Ok(()),
        }
    }

    /// Where the state of the fit is kept, with what there is of it. The configuration is written first: it is what a run that is
    /// killed goes on by.
    fn journal(&self, run: &RunDirectory, is_resumed: bool) -> Result<Journal, CliError> {
        // What the files have in them now, which may not be what they had when the run began.
        let head = Head::of(&self.config, self.config.input.fingerprint()?);
        let pages = if is_resumed && run.path().join(CHECKPOINT).exists() {
            load(run, &head)?
        } else {
            // An earlier run's would be gone on from in the place of this one's.
            run.forget_checkpoint();
            run.config(&self.config)?;
            Pages::default()
        };
        let (run, quiet, mut is_failing) = (run.clone(), self.quiet, false);
        let keep = move |pages: &Pages| {
            // A disk that is full is no reason to end a fit: there may be room later.
            let saved = save(&run, &head, pages);
            if let Some(error) = saved.as_ref().err().filter(|_| !is_failing && !quiet) {
                eprintln!("Note: the fit could not be saved: {error}. It goes on all the same");
            }
            is_failing = saved.is_err();
            Ok(())
        };
        let every = Duration::try_from_secs_f64(self.config.save_every).unwrap_or(Duration::MAX);
        Ok(Journal::new(pages, every, Box::new(keep)))
    }

    fn print(&self, told: &Told, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &told.summary())?;
            writeln!(out)?;
        } else {
            let text = report(told, !self.config.monitor.is_empty())? + &foretold::text(&told.foretold);
            write!(out, "{}", paint::for_stdout(&text))?;
            if let Some(run) = run {
                let (folder, page) = (run.path().display(), run.path().join("report.html"));
                writeln!(
                    out,
                    "\nThe page to look at is {}; the draws, the summary and what repeats the run are in {folder}",
                    page.display()
                )?;
            }
        }
        Ok(out.flush()?)
    }
}

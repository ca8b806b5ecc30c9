//! A fit, from the start or from a checkpoint.

use super::checkpoint::{Head, load, save};
use super::{Config, Watch, predictive, text, write};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::render::style;
use crate::render::terminal::remedy;
use crate::run_dir::{CHECKPOINT, RunDirectory};
use hyperprior::checkpoint::{Checkpoint, CheckpointState};
use hyperprior::diagnostics::Verdict;
use hyperprior::fit::Observer;
use hyperprior::infer::Source;
use hyperprior::posterior::{DrawsError, Monitor, MonitorError};
use hyperprior::report::{FitReport, Predictive};
use hyperprior::{Model, Session};
use hyperprior_bugs::memory::{columns_of_fit, within_memory};
use hyperprior_graph::fit::{FitError, Task};
use hyperprior_graph::posterior_predictive_check;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A fit to run.
pub struct Job {
    /// The configuration.
    pub config: Config,
    /// The folder for its files.
    pub out: Option<PathBuf>,
    /// Whether to print `summary.json`.
    pub json: bool,
    /// Whether to show no progress and no messages.
    pub quiet: bool,
    /// Whether a verdict other than `trust` is an error.
    pub strict: bool,
    /// Whether to print the time of each stage to standard error.
    pub timings: bool,
}

/// The model's name, its number of observed nodes and the compiler's warnings.
type About = (String, usize, Vec<String>);

impl Job {
    /// Runs the fit, or the rest of it.
    pub fn run(self, is_resumed: bool) -> Result<(), CliError> {
        let began = Instant::now();
        let config = &self.config;
        let monitors = Monitor::parse_list(&config.monitor).map_err(DrawsError::from)?;
        let stop = StopFlag::on_signals_after_results();
        let mut watch = Watch::new(self.quiet, &stop);
        watch.phase("compile");
        let (task, about) = self.compile(&monitors)?;
        // What cannot be done fails before the fit, not after it.
        if config.loo {
            task.model().pointwise()?;
        }
        // Fail before the fit, not after it, if the folder cannot be created.
        let run = self.out.as_ref().map(RunDirectory::create).transpose()?;
        let mut checkpoint = run.as_ref().map(|run| self.checkpoint(run, is_resumed)).transpose()?;
        let session = Session::new(&mut watch).with_checkpoint(checkpoint.as_mut());
        let result = task.run(&config.infer, session);
        watch.finish();
        let posterior = result.map_err(|error| match (error, &run) {
            (FitError::Engine(hyperprior::Error::Checkpoint { reason }), Some(run)) => {
                CliError::Checkpoint { folder: run.path().to_owned(), reason }
            }
            (error, _) => error.into(),
        })?;
        watch.enter("checks and report");
        let z = posterior.latents();
        let ppc = config.ppc.then(|| posterior_predictive_check(task.model(), &z, config.infer.seed));
        let loo = config.loo.then(|| task.model().pointwise()?.loo(&z)).transpose()?;
        let linear_response = match (&posterior.source, config.linear_response) {
            (Source::Approximate(inferred), true) => Some(task.linear_response(inferred, &config.infer)?),
            _ => None,
        };
        let report = task.report(about, config.infer.clone(), &posterior, began.elapsed().as_secs_f64());
        if self.timings {
            eprint!("{}", watch.timings());
        }
        self.save_and_print(&report.with(Predictive::new(ppc, loo), linear_response), run.as_ref(), watch.step)
    }

    /// Compiles the model, and checks the options that depend on it and the memory that the draws need.
    fn compile(&self, monitors: &[Monitor]) -> Result<(Task, About), CliError> {
        let config = &self.config;
        let (compiled, in_data) = config.input.compile(self.quiet)?;
        let warnings = compiled.warnings.iter().map(|w| w.message.clone()).collect();
        let marginalise = config.input.marginalise(&compiled.graph)?;
        let task = match Task::new(compiled.graph, &marginalise, monitors) {
            Err(FitError::Monitor(MonitorError::Unknown { name, .. })) if in_data.contains(&name) => {
                return Err(CliError::Usage(format!(
                    "--monitor: `{name}` is observed (it is in the data), so it has no posterior"
                )));
            }
            task => task?,
        };
        let observations = task.model().graph().observations_len();
        if observations == 0 && (config.loo || config.ppc) {
            let option = if config.loo { "--loo" } else { "--ppc" };
            return Err(CliError::Usage(format!(
                "{option}: nothing is observed; give the model its data with --data FILE"
            )));
        }
        let saved = task.quantities().len() + if config.loo { 2 * observations } else { 0 };
        let columns = columns_of_fit(task.model().latents().len(), saved);
        within_memory(config.infer.draws, columns).map_err(|error| CliError::Usage(error.to_string()))?;
        Ok((task, (compiled.name, compiled.observed, warnings)))
    }

    /// Writes the files and prints the report. `step` is the last step and the number of steps planned.
    fn save_and_print(
        &self,
        report: &FitReport,
        run: Option<&RunDirectory>,
        (step, steps): (u64, u64),
    ) -> Result<(), CliError> {
        // If the disk is full, still print; if standard output is closed, still write.
        let written = run.map_or(Ok(()), |run| write(run, report));
        let printed = self.print(report, run.filter(|_| written.is_ok()));
        let again = run.map(|run| format!("`hyperprior resume {}`", run.path().display()));
        written.map_err(|error| CliError::NotSaved { error, again: again.clone() })?;
        let record = report.inferred().and_then(|inferred| inferred.budget_record.clone());
        if let (Some(run), Some(record), false) = (run, record, report.is_stopped()) {
            // The clock would end the fit elsewhere next time: `rerun` repeats the recorded steps instead.
            run.remove_checkpoint();
            let infer = self.config.infer.clone().budget_record(record);
            run.config(&Config { infer, ..self.config.clone() })?;
        }
        printed?;
        if report.is_stopped() {
            let remedy = again.map_or_else(String::new, |again| format!("; continue with {again}"));
            return Err(CliError::StoppedFit { step, steps, remedy });
        }
        if let Some(run) = run {
            run.remove_checkpoint();
        }
        match report.verdict() {
            Verdict::MeansOnly | Verdict::Distrust if self.strict => Err(CliError::Untrusted),
            _ => Ok(()),
        }
    }

    /// The checkpoint to resume from, or an empty one. The configuration is written first, since `resume` needs it.
    fn checkpoint(&self, run: &RunDirectory, is_resumed: bool) -> Result<Checkpoint, CliError> {
        // The fingerprint of the files as they are now: they may have changed since the run began.
        let head = Head::of(&self.config, self.config.input.fingerprint()?);
        let state = if is_resumed && run.path().join(CHECKPOINT).exists() {
            load(run, &head)?
        } else {
            // Otherwise `resume` would continue an earlier run.
            run.remove_checkpoint();
            run.config(&self.config)?;
            CheckpointState::default()
        };
        let (run, quiet, mut is_failing) = (run.clone(), self.quiet, false);
        let keep = move |state: &CheckpointState| {
            // A full disk does not end a fit: there may be space later.
            let saved = save(&run, &head, state);
            if let Some(error) = saved.as_ref().err().filter(|_| !is_failing && !quiet) {
                eprintln!("Warning: the checkpoint could not be saved: {error}. The fit continues");
            }
            is_failing = saved.is_err();
            Ok(())
        };
        let every = Duration::try_from_secs_f64(self.config.save_every).unwrap_or(Duration::MAX);
        Ok(Checkpoint::new(state, every, Box::new(keep)))
    }

    fn print(&self, report: &FitReport, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &report.summary(&remedy))?;
            writeln!(out)?;
        } else {
            let text = text(report, !self.config.monitor.is_empty())? + &predictive::text(&report.predictive);
            write!(out, "{}", style::for_stdout(&text))?;
            if let Some(run) = run {
                let (folder, page) = (run.path().display(), run.path().join("report.html"));
                writeln!(out, "\nReport: {}; draws, summary and settings: {folder}", page.display())?;
            }
        }
        Ok(out.flush()?)
    }
}
